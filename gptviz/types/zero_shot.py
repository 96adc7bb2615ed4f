"""What the four zero-shot rules of GPT-1 (Section 5) return: every scored candidate, every decision, the scores.

Numpy only; knows no model and no rule. Log-probabilities are in nats.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import numpy as np

from gptviz.types.tasks import Example

RULES = ("sentiment", "acceptability", "multiple_choice", "winograd")


@dataclass(frozen=True)
class Scored:
    """One candidate text under the model. Tokens from ``first`` on are scored, each given all tokens before it."""

    name: str  # the word, the choice or "sentence"
    text: str
    pieces: tuple[str, ...]
    first: int
    log_probabilities: np.ndarray = field(repr=False)  # (T - first,)
    n_cut: int = 0  # tokens left off the beginning because the context is full

    @property
    def total(self) -> float:
        return float(self.log_probabilities.sum())

    @property
    def mean(self) -> float:
        return float(self.log_probabilities.mean())

    @property
    def n_scored(self) -> int:
        return len(self.log_probabilities)


@dataclass(frozen=True)
class Verdict:
    """The rule applied to one example. ``score`` is what the rule compares; larger means the first class.

    sentiment         log-odds of " positive" against " negative"; prediction is a class name
    acceptability     mean log-probability of the sentence; prediction is a class name
    multiple choice   margin of the best choice's mean over the second best; prediction is its index
    winograd          the same margin, over the tokens after the substituted pronoun
    """

    candidates: tuple[Scored, ...]
    score: float
    prediction: str | int
    label: str | int | None = None

    @property
    def correct(self) -> bool | None:
        return None if self.label is None else self.prediction == self.label


@dataclass(frozen=True)
class Score:
    """One measure over a set, with its 95 % bootstrap interval, the value of guessing and of the majority class."""

    metric: str
    value: float
    low: float
    high: float
    chance: float
    majority: float

    @property
    def clear_of_chance(self) -> bool:
        """The whole interval lies above chance."""
        return self.low > self.chance


@dataclass(frozen=True)
class ZeroShot:
    """A rule applied to examples. ``scores`` is empty where no example has a label; the first is the usual one.

    threshold   acceptability only: the mean log-probability from which a sentence counts as acceptable
    threshold_from  "given", "cross-fitted on these examples" or "median of these examples"
    """

    rule: str
    model: str
    examples: tuple[Example, ...] = field(repr=False)
    verdicts: tuple[Verdict, ...] = field(repr=False)
    scores: tuple[Score, ...]
    threshold: float | None = None
    threshold_from: str = ""
    seed: int = 0

    def __len__(self) -> int:
        return len(self.verdicts)

    def record(self) -> dict:
        """The scores as plain data, to be written as JSON."""
        return {
            "rule": self.rule,
            "model": self.model,
            "n": len(self),
            "scores": [asdict(score) for score in self.scores],
            "threshold": self.threshold,
            "threshold_from": self.threshold_from,
            "seed": self.seed,
        }
