"""A one-layer LSTM language model: the twin that GPT-1's ablation sets beside the Transformer (Table 5, "LSTM").

Tied token embeddings, one LSTM layer (oneDNN or cuDNN kernels through `torch.nn.LSTM`), one projection back to the
embedding width. It saves, loads and answers as a transformers causal language model does, once `register` has told
transformers of it. GPT-1's own twin was a single-layer LSTM of 2,048 units; here the units are chosen so that the
parameter count equals the Transformer's. It has no attention and no cache.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutput

MODEL_TYPE = "gptviz-lstm"


class LstmConfig(PretrainedConfig):
    """The shape of an `LstmForCausalLM`."""

    model_type = MODEL_TYPE

    def __init__(
        self,
        vocab_size: int = 8192,
        n_embd: int = 256,
        n_hidden: int = 1024,
        n_positions: int = 512,
        dropout: float = 0.0,
        initializer_range: float = 0.02,
        **kwargs,
    ) -> None:
        self.vocab_size, self.n_embd, self.n_hidden = vocab_size, n_embd, n_hidden
        self.n_positions, self.dropout, self.initializer_range = n_positions, dropout, initializer_range
        self.hidden_size, self.num_hidden_layers = n_embd, 1
        kwargs.setdefault("tie_word_embeddings", True)
        super().__init__(**kwargs)


class LstmBody(nn.Module):
    """Token ids to hidden states of the embedding's width."""

    def __init__(self, config: LstmConfig) -> None:
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.lstm = nn.LSTM(config.n_embd, config.n_hidden, batch_first=True)
        self.proj = nn.Linear(config.n_hidden, config.n_embd)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, input_ids: torch.Tensor, **_) -> BaseModelOutputWithPast:  # (B, T)
        states, _ = self.lstm(self.drop(self.wte(input_ids)))  # (B, T, n_hidden)
        return BaseModelOutputWithPast(last_hidden_state=self.drop(self.proj(states)))  # (B, T, D)


class LstmForCausalLM(PreTrainedModel):
    """Next-token logits from a one-layer LSTM; the attention mask is ignored, as a recurrent net has none."""

    config_class = LstmConfig
    base_model_prefix = "transformer"
    _tied_weights_keys: ClassVar = {"lm_head.weight": "transformer.wte.weight"}

    def __init__(self, config: LstmConfig) -> None:
        super().__init__(config)
        self.transformer = LstmBody(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.LSTM):
            bound = 1 / math.sqrt(module.hidden_size)
            for name, parameter in module.named_parameters():
                nn.init.zeros_(parameter) if "bias" in name else nn.init.uniform_(parameter, -bound, bound)
            module.bias_ih_l0[module.hidden_size : 2 * module.hidden_size] = 1.0  # remember at first
        elif isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, 0.0, self.config.initializer_range)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.transformer.wte

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.transformer.wte = value

    def get_output_embeddings(self) -> nn.Linear:
        return self.lm_head

    def forward(self, input_ids: torch.Tensor, **_) -> CausalLMOutput:  # (B, T) -> logits (B, T, V)
        return CausalLMOutput(logits=self.lm_head(self.transformer(input_ids).last_hidden_state))


def register() -> None:
    """Let transformers' Auto classes read this kind of folder; calling it again changes nothing."""
    AutoConfig.register(MODEL_TYPE, LstmConfig, exist_ok=True)
    AutoModelForCausalLM.register(LstmConfig, LstmForCausalLM, exist_ok=True)


def hidden_units(parameters: int, vocab_size: int, n_embd: int) -> int:
    """The LSTM units that bring the whole model closest to `parameters` parameters.

    An LSTM of h units over width d has 4h(d + h) weights and 8h biases; embedding and projection add V d + h d + d.
    """
    target = parameters - vocab_size * n_embd - n_embd
    b = 5 * n_embd + 8  # 4h^2 + b h = target
    return max(1, round((-b + math.sqrt(b * b + 16 * max(target, 1))) / 8))
