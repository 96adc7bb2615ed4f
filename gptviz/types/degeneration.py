"""How a text repeats itself, as data: curves over its length, and a phrase at each of its occurrences.

Knows nothing of torch or of how the numbers were computed (`gptviz.analysis.degeneration`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class RepetitionCurves:
    """Four measures of the first t tokens of a text, for t = 1..T.

    distinct         (4, T) distinct n-grams over all n-grams, n = 1..4; NaN while t < n
    repetition_rate  (T,) share of tokens that also occur among the `window` tokens before them
    longest_repeat   (T,) tokens in the longest run that occurs at least twice (the two may overlap)
    """

    distinct: np.ndarray = field(repr=False)
    repetition_rate: np.ndarray = field(repr=False)
    longest_repeat: np.ndarray = field(repr=False)
    window: int

    @property
    def n_tokens(self) -> int:
        """T"""
        return self.repetition_rate.size


@dataclass(frozen=True)
class Loop:
    """A phrase a text has begun to repeat: `phrase` (token ids) occurs `n` times in a row from token `start`."""

    phrase: tuple[int, ...]
    start: int
    n: int


@dataclass(frozen=True, eq=False)
class Occurrence:
    """The n-th occurrence of a phrase and how probable the model found it there.

    log_probabilities  (P,) nats, of each token of the phrase given everything before it
    """

    n: int
    start: int
    pieces: tuple[str, ...]
    log_probabilities: np.ndarray = field(repr=False)

    @property
    def per_token(self) -> float:
        """Geometric mean of the tokens' probabilities: comparable between phrases of different length."""
        return float(np.exp(self.log_probabilities.mean()))

    @property
    def whole(self) -> float:
        """Probability of the whole phrase."""
        return float(np.exp(self.log_probabilities.sum()))
