"""What a language model is and says, as frozen data: specification, tokens, candidates, head statistics.

Knows nothing of torch, of files or of how any number was computed. Dimension names used everywhere:
B batch, T tokens, S source tokens, L layers, H heads, D model width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


def frozen(array: np.ndarray) -> np.ndarray:
    """Return ``array`` marked read-only, so that a cached result cannot be changed by a caller.

    >>> frozen(np.zeros(2)).flags.writeable
    False
    """
    array = np.asarray(array)
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class ModelSpec:
    """The shape of a causal language model, read from its configuration."""

    family: str  # "gpt1", "gpt2", "gpt-neo", "gpt-neox", "opt", "llama", or "other: <model_type>"
    n_layer: int
    n_head: int
    n_kv_head: int  # fewer than n_head under grouped-query attention
    d_model: int
    d_head: int
    n_ctx: int  # longest sequence in tokens
    vocab_size: int  # rows of the embedding matrix
    norm: str  # "pre" (GPT-2) or "post" (GPT-1): where the layer norm stands in a block
    norm_kind: str  # "LayerNorm" or "RMSNorm"
    positions: str  # "learned" or "rotary"
    activation: str
    d_ff: int
    tied: bool  # output weights are the token embedding
    n_parameters: int


@dataclass(frozen=True)
class ModelCard:
    """One model that can be chosen, and its state on this machine."""

    name: str
    title: str
    source: str  # "wheel", "hub", "folder", "bundled" or "random"
    state: str  # "ready", "not fetched" or "not reachable"
    n_parameters: int | None
    download_bytes: int | None
    licence: str
    note: str = ""
    repo: str = ""  # hub repository or package name
    revision: str = ""


@dataclass(frozen=True)
class Tokens:
    """A text as a model sees it. ``spans`` are character ranges; tokens that share one character share its span."""

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]  # readable: real characters, or the bytes in hexadecimal where a character is split
    spans: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Candidate:
    """One possible next token."""

    id: int
    piece: str
    probability: float
    logit: float
    rank: int = 0  # 1 is the most probable


@dataclass(frozen=True)
class NextToken:
    """The distribution after a prompt: its ``top`` candidates, most probable first, and its entropy in nats."""

    prompt: str
    candidates: tuple[Candidate, ...]
    entropy: float
    heads_off: tuple[tuple[int, int], ...] = ()

    def probability(self, piece: str) -> float | None:
        """Probability of the listed candidate whose piece equals ``piece``, or None where it is not listed."""
        return next((c.probability for c in self.candidates if c.piece == piece), None)


@dataclass(frozen=True)
class HeadSummary:
    """Five statistics per (layer, head), each an (L, H) float32 array, averaged over query positions.

    entropy        nats, of the attention row; 0 means all weight on one token
    distance       tokens between query and attended position, weighted by attention
    first          weight on the first token of the text (an "attention sink" where near 1)
    previous       weight on the token just before
    induction      weight on the token that followed an earlier copy of the current token;
                   NaN where no token of the text occurs twice
    """

    entropy: np.ndarray
    distance: np.ndarray
    first: np.ndarray
    previous: np.ndarray
    induction: np.ndarray
    thumbnails: np.ndarray = field(repr=False)  # (L, H, S, S) uint8, each map scaled to its own maximum
    n_tokens: int = 0


@dataclass(frozen=True)
class AttentionRow:
    """One query position of one head: scores (q.k / sqrt(d_head), before the softmax) and weights after it."""

    layer: int
    head: int
    position: int
    scores: np.ndarray  # (position + 1,)
    weights: np.ndarray  # (position + 1,)


@dataclass(frozen=True)
class LogitLens:
    """The residual stream read out through the final norm and the output weights after each block.

    ids, probabilities: (L + 1, P, top); row 0 is the embedding, row L the model's own output. ``positions`` (P,).
    """

    positions: tuple[int, ...]
    ids: np.ndarray
    probabilities: np.ndarray
    pieces: tuple[tuple[tuple[str, ...], ...], ...] = field(repr=False)
    entropy: np.ndarray = field(repr=False, default=None)  # (L + 1, P) nats


@dataclass(frozen=True)
class HeadEffect:
    """The next-token distribution with and without some heads; ``kl`` is KL(with || without) in nats."""

    heads_off: tuple[tuple[int, int], ...]
    before: NextToken
    after: NextToken
    kl: float
