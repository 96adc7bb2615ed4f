"""One forward pass, kept: the residual stream, from which attention, surprisal and logit lens are read on demand.

Keeps (L + 1) x T x D floats and never L x H x T x T. Reading a layer re-runs the start of that one block.
Does not know how figures look. Sources: logit lens, nostalgebraist (2020); rollout, Abnar and Zuidema (2020).
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from gptviz.analysis import attention as stats
from gptviz.models import probe
from gptviz.types.language import AttentionRow, HeadSummary, LogitLens, Tokens, frozen

if TYPE_CHECKING:
    from gptviz.models.language_model import LanguageModel

CHUNK = 128  # positions whose logits exist at once: 128 x 50,000 floats are 25 MB


class Trace:
    """What one forward pass of ``lm`` over ``tokens`` left behind. Made by ``LanguageModel.trace``."""

    def __init__(self, lm: LanguageModel, tokens: Tokens, residual: list[torch.Tensor], calls: list):
        self.lm = lm
        self.tokens = tokens
        self.residual = residual  # L + 1 tensors (1, T, D): input of block 0 .. output of block L - 1
        self._calls = calls  # what else each block was called with: (positional, named)
        self.attention = lru_cache(maxsize=4)(self._attention)

    def __len__(self) -> int:
        return len(self.tokens)

    # -- attention -------------------------------------------------------------------------------------------

    def _check(self, layer: int, head: int | None = None, position: int | None = None) -> None:
        spec = self.lm.spec
        for what, value, limit in (("layer", layer, spec.n_layer), ("head", head, spec.n_head), ("position", position, len(self))):
            if value is not None and not 0 <= value < limit:
                raise ValueError(f"There is no {what} {value}: {self.lm.name} on this text has {what}s 0 to {limit - 1}.")

    def _scores(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores (H, T, T) and the mask (T, T) of one layer, on the model's device."""
        module = self.lm.attention_modules[layer]
        with self.lm.lock:
            scores = probe.attention_scores(
                self.lm.blocks[layer], module, self.lm.model.config, self.residual[layer], self._calls[layer]
            )
        return scores, probe.visible(module, len(self), scores.device)

    def _weights(self, layer: int) -> torch.Tensor:
        return probe.weights_of(*self._scores(layer))

    def _attention(self, layer: int) -> np.ndarray:
        """Attention weights of one layer: (H, T, T) float32, causal, rows sum to 1. Runs no forward pass."""
        self._check(layer)
        return frozen(self._weights(layer).cpu().numpy())

    def attention_row(self, layer: int, head: int, position: int) -> AttentionRow:
        """Scores before and weights after the softmax for one query position (as 0-based index)."""
        self._check(layer, head, position)
        scores, mask = self._scores(layer)
        row, seen = scores[head, position, : position + 1], mask[position, : position + 1]
        row = row.masked_fill(~seen, float("-inf"))
        return AttentionRow(
            layer, head, position, frozen(row.cpu().numpy()), frozen(torch.softmax(row, -1).cpu().numpy())
        )

    @cached_property
    def _per_layer(self) -> tuple[HeadSummary, np.ndarray]:
        """Head summary and rollout, gathered in one walk over the layers."""
        ids = torch.tensor(self.tokens.ids, device=self.lm.device)
        rows: dict[str, list[np.ndarray]] = {}
        thumbnails, mixed = [], None
        for layer in range(self.lm.spec.n_layer):
            weights = self._weights(layer)
            for name, values in stats.layer_statistics(weights, ids).items():
                rows.setdefault(name, []).append(values.cpu().numpy())
            thumbnails.append(stats.thumbnail(weights).cpu().numpy())
            mixed = stats.rollout_step(mixed, weights)
        arrays = {name: frozen(np.stack(values)) for name, values in rows.items()}
        return (
            HeadSummary(**arrays, thumbnails=frozen(np.stack(thumbnails)), n_tokens=len(self)),
            frozen(mixed.cpu().numpy()),
        )

    def head_summary(self) -> HeadSummary:
        """Five statistics and a small map for every head of every layer."""
        return self._per_layer[0]

    def rollout(self) -> np.ndarray:
        """(T, T): how much each position draws on each earlier one when attention is followed through all layers."""
        return self._per_layer[1]

    # -- predictions -----------------------------------------------------------------------------------------

    @torch.no_grad()
    def logits(self, positions: list[int] | None = None, layer: int = -1) -> torch.Tensor:
        """Logits (P, V) float32 read from the residual stream after ``layer`` blocks (-1: all), on the device."""
        hidden = self.residual[layer][0]
        hidden = hidden if positions is None else hidden[positions]
        return self.lm.unembed(hidden)

    @cached_property
    def surprisal(self) -> np.ndarray:
        """(T - 1,) nats: minus the log-probability of each token from the second on, given all before it."""
        return self._next[0]

    @cached_property
    def ranks(self) -> np.ndarray:
        """(T - 1,) int: rank of each token from the second on among all that could have come; 1 is the favourite."""
        return self._next[1]

    @cached_property
    def entropy(self) -> np.ndarray:
        """(T,) nats: entropy of the next-token distribution after each position."""
        return self._next[2]

    @cached_property
    def _next(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ids = torch.tensor(self.tokens.ids, device=self.lm.device)
        surprisal, ranks, entropy = [], [], []
        for start in range(0, len(self), CHUNK):
            positions = list(range(start, min(start + CHUNK, len(self))))
            logp = torch.log_softmax(self.logits(positions), -1)  # (P, V)
            entropy.append(-(logp.exp() * logp).sum(-1).cpu())
            known = [p for p in positions if p + 1 < len(self)]
            rows = logp[: len(known)]
            own = rows.gather(-1, ids[[p + 1 for p in known]][:, None])  # (P, 1)
            surprisal.append(-own[:, 0].cpu())
            ranks.append((rows > own).sum(-1).cpu() + 1)
        return tuple(frozen(torch.cat(x).numpy()) for x in (surprisal, ranks, entropy))

    @property
    def perplexity(self) -> float:
        """exp of the mean surprisal per predicted token. ValueError where only one token is there."""
        if len(self) < 2:
            raise ValueError("Perplexity needs at least 2 tokens; this text has 1.")
        return float(np.exp(self.surprisal.mean()))

    @torch.no_grad()
    def logit_lens(self, top: int = 5, positions: list[int] | None = None) -> LogitLens:
        """What each block's output would predict if it were the last. ``positions`` defaults to the last 16."""
        if not 1 <= top <= self.lm.spec.vocab_size:
            raise ValueError(f"top is {top}; it must lie between 1 and the vocabulary size {self.lm.spec.vocab_size}.")
        positions = list(range(max(0, len(self) - 16), len(self))) if positions is None else list(positions)
        for position in positions:
            self._check(0, None, position)
        ids, probabilities, entropy = [], [], []
        for layer in range(self.lm.spec.n_layer + 1):
            logp = torch.log_softmax(self.logits(positions, layer), -1)
            best = logp.topk(top, dim=-1)
            ids.append(best.indices.cpu().numpy())
            probabilities.append(best.values.exp().cpu().numpy())
            entropy.append(-(logp.exp() * logp).sum(-1).cpu().numpy())
        pieces = tuple(tuple(tuple(self.lm.piece(int(i)) for i in cell) for cell in row) for row in ids)
        return LogitLens(
            tuple(positions), frozen(np.stack(ids)), frozen(np.stack(probabilities)), pieces, frozen(np.stack(entropy))
        )
