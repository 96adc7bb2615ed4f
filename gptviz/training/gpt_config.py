"""From a pre-training config to an untrained model: GPT-1 or GPT-2 block order, or the LSTM twin.

The models are transformers' own classes, so that what is trained loads anywhere: OpenAIGPT normalises after each
sub-layer (GPT-1, Section 4.1), GPT2 before it (GPT-2, Section 2.3). Knows nothing about data or optimisers.
"""

from __future__ import annotations

from gptviz.training.pretrain_config import PretrainConfig


def build_model(config: PretrainConfig, vocab_size: int):
    """The untrained model of `config` in float32 on the CPU; the same seed gives the same weights."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if config.architecture == "lstm":
            from gptviz.models.lstm import LstmForCausalLM

            return LstmForCausalLM(_lstm_config(config, vocab_size))
        from transformers import GPT2LMHeadModel, OpenAIGPTLMHeadModel

        shape = _gpt_config(config, vocab_size)
        if config.architecture == "gpt1":
            return OpenAIGPTLMHeadModel(shape)
        from gptviz.models.device import choose_device

        # Written-out attention compiles to faster CPU code than the fused kernel, whose backward pass is slow there.
        on_cpu = choose_device(config.device).type == "cpu"
        return GPT2LMHeadModel._from_config(shape, attn_implementation="eager" if config.compile and on_cpu else "sdpa")


def _gpt_config(config: PretrainConfig, vocab_size: int):
    from transformers import GPT2Config, OpenAIGPTConfig

    shape = {
        "vocab_size": vocab_size,
        "n_positions": config.n_ctx,
        "n_embd": config.d_model,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "embd_pdrop": config.dropout,
        "resid_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    if config.architecture == "gpt1":
        return OpenAIGPTConfig(afn="gelu", **shape)
    return GPT2Config(activation_function="gelu_pytorch_tanh", use_cache=False, **shape)


def _lstm_config(config: PretrainConfig, vocab_size: int):
    from gptviz.models.lstm import LstmConfig, hidden_units

    units = hidden_units(gpt_parameters(config, vocab_size), vocab_size, config.d_model)
    return LstmConfig(
        vocab_size=vocab_size,
        n_embd=config.d_model,
        n_hidden=units,
        n_positions=config.n_ctx,
        dropout=config.dropout,
        bos_token_id=0,
        eos_token_id=0,
    )


def gpt_parameters(config: PretrainConfig, vocab_size: int) -> int:
    """The exact parameter count of the GPT of `config`, tied output layer counted once.

    A block has 12 d^2 + 13 d (attention 4 d^2 + 4 d, feed-forward 8 d^2 + 5 d, two layer norms 4 d); GPT-2 adds a
    last layer norm.

    >>> from gptviz.training.pretrain_config import PretrainConfig
    >>> gpt_parameters(PretrainConfig(n_layer=12, d_model=768, n_head=12, n_ctx=1024), 50257)  # GPT-2 small
    124439808
    """
    d = config.d_model
    blocks = config.n_layer * (12 * d * d + 13 * d)
    last_norm = 0 if config.architecture == "gpt1" else 2 * d
    return (vocab_size + config.n_ctx) * d + blocks + last_norm
