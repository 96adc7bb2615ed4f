"""Read one attention layer's scores and weights by running that one block again from its stored input.

A block is run only as far as its scores: the probe raises out of it as soon as they exist, so the
values, the MLP and the layers above cost nothing, and no forward pass of the model takes place.
The caller holds the model's lock, because the attention implementation is switched while this runs.
Source: transformers' AttentionInterface, and the `_attn` methods of GPT-1 and GPT-Neo, which do not use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from transformers import AttentionInterface

NAME = "gptviz_probe"


class ScoresReady(Exception):
    """Carries the scores out of the block."""

    def __init__(self, scores: torch.Tensor):
        super().__init__()
        self.scores = scores  # (1, H, T, S) float32, scaled, not masked


def _interface(module, query, key, value, attention_mask, scaling=None, **_):
    """Attention function in transformers' interface: query (1, H, T, d), key (1, H_kv, S, d)."""
    key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)  # grouped-query: each key head serves several
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    raise ScoresReady(torch.matmul(query, key.transpose(2, 3)).float() * scaling)


AttentionInterface.register(NAME, _interface)


@contextmanager
def _own_attention(module: torch.nn.Module) -> Iterator[None]:
    """GPT-1 and GPT-Neo compute attention in a method: replace it on this one module for the duration."""
    if not hasattr(module, "_attn"):
        yield
        return
    transposed = "split_size" in vars(module)  # GPT-1 hands the key over already transposed

    def scores_only(query, key, value, attention_mask=None, output_attentions=False):
        if transposed:
            scale = query.shape[-1] ** -0.5 if module.scale else 1.0
            raise ScoresReady(torch.matmul(query, key).float() * scale)
        raise ScoresReady(torch.matmul(query.float(), key.float().transpose(-1, -2)))

    module._attn = scores_only
    try:
        yield
    finally:
        del module._attn


@torch.no_grad()
def attention_scores(block: torch.nn.Module, attention: torch.nn.Module, config, hidden, call) -> torch.Tensor:
    """Scores (H, T, T) float32 before mask and softmax, from the block's input ``hidden`` (1, T, D).

    ``call`` holds the other arguments the block was called with: (positional, named).
    """
    before = config._attn_implementation
    with _own_attention(attention):
        try:
            if not hasattr(attention, "_attn"):
                config._attn_implementation = NAME
            block(hidden, *call[0], **call[1])
        except ScoresReady as ready:
            return ready.scores[0]
        finally:
            config._attn_implementation = before
    raise ValueError(f"The attention of {type(attention).__name__} cannot be read: it does not use transformers' interface.")


def visible(attention: torch.nn.Module, n_tokens: int, device: torch.device) -> torch.Tensor:
    """(T, T) bool: which position may look at which. Causal, and local where the layer has a window."""
    i = torch.arange(n_tokens, device=device)
    mask = i[None, :] <= i[:, None]
    window = getattr(attention, "sliding_window", None)
    if getattr(attention, "attention_type", None) == "local":  # GPT-Neo's alternate layers
        window = attention.config.window_size
    return mask if not window else mask & (i[None, :] > i[:, None] - window)


def weights_of(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Softmax over the visible positions: (H, T, T) float32, rows sum to 1, hidden positions exactly 0."""
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
