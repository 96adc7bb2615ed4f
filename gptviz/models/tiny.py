"""Tiny random checkpoints of every family, made in a moment from a seed: for tests, and while a download runs.

Their text is noise by design; their shapes, layers and tokenizers are real. Nothing is read from disk.
"""

from __future__ import annotations

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    OPTConfig,
    OPTForCausalLM,
    PreTrainedTokenizerFast,
)

N_CTX = 128
END = "<|endoftext|>"

_TEXT = (
    "The river runs past the old mill and under the bridge. In the morning the baker opens the shop, "
    "and the children walk to school with warm bread in their hands. Nobody knows who planted the tall trees, "
    "but everybody rests in their shade. When the wind turns, the sails of the mill begin to move, first slowly, "
    "then faster, until the whole house hums. The capital of the country is far away; letters take two days. "
    "Is the film good? It is very good, said one; it is very bad, said another. Count with me: 1, 2, 3, 10, 100. "
    "def add(a, b): return a + b"
)


def _byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([_TEXT] * 4, trainer)
    return tokenizer


def _word_end() -> Tokenizer:
    """GPT-1's kind: lower-cased, words end in </w>, unknown characters are lost."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    tokenizer.train_from_iterator([_TEXT] * 4, trainer)
    return tokenizer


def tiny_tokenizer(kind: str = "bytes") -> PreTrainedTokenizerFast:
    """A fast tokenizer of about 500 tokens: "bytes" (GPT-2's kind, any text, lossless) or "word-end" (GPT-1's)."""
    if kind == "word-end":
        return PreTrainedTokenizerFast(tokenizer_object=_word_end(), unk_token="<unk>")
    return PreTrainedTokenizerFast(tokenizer_object=_byte_level(), bos_token=END, eos_token=END)


def _network(family: str, vocab: int) -> torch.nn.Module:
    off = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    if family == "gpt1":
        return OpenAIGPTLMHeadModel(
            OpenAIGPTConfig(vocab_size=vocab, n_positions=N_CTX, n_embd=32, n_layer=3, n_head=4, **off)
        )
    if family == "gpt2":
        return GPT2LMHeadModel(
            GPT2Config(vocab_size=vocab, n_positions=N_CTX, n_embd=32, n_layer=3, n_head=4, **off, **ends)
        )
    if family == "gpt-neo":
        return GPTNeoForCausalLM(
            GPTNeoConfig(
                vocab_size=vocab, max_position_embeddings=N_CTX, hidden_size=32, num_layers=4, num_heads=4,
                attention_types=[[["global", "local"], 2]], window_size=8, attention_dropout=0.0,
                embed_dropout=0.0, resid_dropout=0.0, **ends,
            )
        )
    if family == "gpt-neox":
        return GPTNeoXForCausalLM(
            GPTNeoXConfig(
                vocab_size=vocab, max_position_embeddings=N_CTX, hidden_size=32, num_hidden_layers=3,
                num_attention_heads=4, intermediate_size=128, attention_dropout=0.0, hidden_dropout=0.0, **ends,
            )
        )
    if family == "opt":
        return OPTForCausalLM(
            OPTConfig(
                vocab_size=vocab, max_position_embeddings=N_CTX, hidden_size=32, word_embed_proj_dim=32, ffn_dim=128,
                num_hidden_layers=3, num_attention_heads=4, dropout=0.0, attention_dropout=0.0, pad_token_id=0, **ends,
            )
        )
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocab, max_position_embeddings=N_CTX, hidden_size=48, num_hidden_layers=3, intermediate_size=96,
            num_attention_heads=6, num_key_value_heads=2, tie_word_embeddings=True, **ends,
        )
    )


FAMILIES = ("gpt1", "gpt2", "gpt-neo", "gpt-neox", "opt", "llama")


def tiny_model(family: str, seed: int = 0) -> tuple[torch.nn.Module, PreTrainedTokenizerFast]:
    """A random float32 network of ``family`` on the CPU and its tokenizer. The same seed gives the same weights.

    Weights are drawn five times wider than usual, so that attention and predictions differ visibly from uniform.
    ValueError for a family that is not in ``FAMILIES``.
    """
    if family not in FAMILIES:
        raise ValueError(f"There is no tiny model {family!r}; there are: {', '.join('random-' + f for f in FAMILIES)}.")
    tokenizer = tiny_tokenizer("word-end" if family == "gpt1" else "bytes")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _network(family, len(tokenizer))
        for name, parameter in network.named_parameters():
            if parameter.dim() > 1 and "norm" not in name:
                parameter.data.mul_(5.0)
    return network, tokenizer
