"""Sampling requests and everything a generation step can be asked about afterwards.

What it is: `Sampling` (the knobs), `Stage` and `StageSummary` (what one knob did to the next-token
distribution), `Candidate`, `GenerationStep` and `GenerationRecord` (one whole continuation).
What it does not know: torch, models, tokenizers. Names follow Hugging Face's `GenerationConfig`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

STAGE_NAMES = ("raw", "repetition_penalty", "temperature", "top_k", "top_p", "min_p", "typical")
"""The order Hugging Face's `generate` applies them: processors first, then warpers."""


def _check(name: str, value: object, low: float, high: float, says: str, whole: bool = False) -> None:
    """Raise ValueError unless `value` is a finite number in [low, high]; `says` words the allowed range."""
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}; it must be {says}.")


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. The defaults leave the model's distribution as it is.

    temperature         0 is greedy (always the most probable token); else 0.01 to 100; 1 changes nothing
    top_k               keep the k most probable tokens (and ties with the k-th); 0 is off; above V keeps all
    top_p               keep the smallest set of most probable tokens with this mass; 1 is off; 0 keeps one
    min_p               drop tokens less probable than min_p times the most probable one; 0 is off
    typical_p           keep the tokens nearest to the entropy until they hold this mass; 1 is off
    repetition_penalty  divide positive and multiply negative logits of tokens already present; 1 is off,
                        above 1 discourages repetition, below 1 encourages it
    seed                fixes the draws: one uniform number a step

    >>> Sampling(top_p=1.5)
    Traceback (most recent call last):
    ValueError: top_p is 1.5; it must be a number from 0 to 1 (1 is off).
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _check("top_k", self.top_k, 0, 2**31 - 1, "a whole number, 0 (off) or more", whole=True)
        _check("seed", self.seed, 0, 2**63 - 1, "a whole number from 0 to 2**63 - 1", whole=True)
        if self.temperature != 0 or isinstance(self.temperature, bool):
            _check("temperature", self.temperature, 0.01, 100.0, "0 (greedy) or a number from 0.01 to 100")
        _check("top_p", self.top_p, 0.0, 1.0, "a number from 0 to 1 (1 is off)")
        _check("min_p", self.min_p, 0.0, 1.0, "a number from 0 (off) to 1")
        _check("typical_p", self.typical_p, 0.001, 1.0, "a number from 0.001 to 1 (1 is off)")
        _check(
            "repetition_penalty", self.repetition_penalty, 0.01, 100.0, "a number from 0.01 to 100 (1 is off)"
        )

    @property
    def greedy(self) -> bool:
        """True when the most probable token is always taken."""
        return self.temperature == 0

    def active(self, stage: str) -> bool:
        """Whether the knob of this stage changes anything; top-k to typical do nothing in greedy decoding."""
        if stage == "raw":
            return True
        if stage == "repetition_penalty":
            return self.repetition_penalty != 1.0
        if stage == "temperature":
            return self.temperature != 1.0
        if self.greedy:
            return False
        return {
            "top_k": self.top_k > 0,
            "top_p": self.top_p < 1.0,
            "min_p": self.min_p > 0.0,
            "typical": self.typical_p < 1.0,
        }[stage]

    def setting(self, stage: str) -> float | None:
        """The value of the knob of this stage; None for the raw distribution."""
        if stage == "raw":
            return None
        return float(getattr(self, "typical_p" if stage == "typical" else stage))


@dataclass(frozen=True)
class StageSummary:
    """One stage in four numbers, small enough to keep for every step.

    name, setting  the knob and its value (None for raw)
    active         False when the knob is off: the distribution is the one before
    n_survivors    tokens that can still be drawn
    mass_cut       probability, before this stage, of the tokens this stage removed
    entropy        nats, of the distribution after this stage
    """

    name: str
    setting: float | None
    active: bool
    n_survivors: int
    mass_cut: float
    entropy: float


@dataclass(frozen=True, eq=False)
class Stage(StageSummary):
    """One stage in full. probabilities (V,) float32 and survivors (V,) bool are read-only."""

    probabilities: np.ndarray = field(repr=False)
    survivors: np.ndarray = field(repr=False)

    def summary(self) -> StageSummary:
        """The same stage without its arrays."""
        return StageSummary(
            self.name, self.setting, self.active, self.n_survivors, self.mass_cut, self.entropy
        )


@dataclass(frozen=True)
class Candidate:
    """One token a step could have taken.

    logit                the model's score
    stage_probabilities  its probability after each of STAGE_NAMES, 0 once it is cut
    """

    id: int
    piece: str
    logit: float
    stage_probabilities: tuple[float, ...]

    @property
    def raw_probability(self) -> float:
        """What the model gave it."""
        return self.stage_probabilities[0]

    @property
    def probability(self) -> float:
        """What it was drawn with."""
        return self.stage_probabilities[-1]


@dataclass(frozen=True)
class GenerationStep:
    """One token of a continuation and the choice it was made from.

    index            0 for the first new token
    token_id, piece  the token; bytes that are not a whole character read as \\xNN in `piece`
    delta            text this step completes: "" while a character's bytes are still arriving
    probability      what it was drawn with, after every stage (0 for a hand-picked token that was cut)
    raw_probability  what the model gave it
    rank             1 for the model's most probable token (ties share the better rank)
    surprisal        -ln raw_probability, nats
    entropy          nats, of the model's raw distribution
    candidates       the most probable tokens before and after, and the chosen one, most probable first
    stages           one summary for each of STAGE_NAMES
    forced           True when the token was picked by hand
    context_start    index of the first token the model still saw (above 0 once the window has slid)
    finish           why this is the last step: "end_of_text", "length", "context"; "" otherwise
    """

    index: int
    token_id: int
    piece: str
    delta: str
    probability: float
    raw_probability: float
    rank: int
    surprisal: float
    entropy: float
    candidates: tuple[Candidate, ...]
    stages: tuple[StageSummary, ...]
    forced: bool = False
    context_start: int = 0
    finish: str = ""


@dataclass(frozen=True)
class GenerationRecord:
    """A continuation with everything that led to it. `finish` is "stopped" when the reader ended it."""

    model: str
    prompt: str
    prompt_ids: tuple[int, ...]
    sampling: Sampling
    steps: tuple[GenerationStep, ...]
    finish: str = ""

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The new tokens."""
        return tuple(step.token_id for step in self.steps)

    @property
    def text(self) -> str:
        """The continuation, without bytes of a character that was never finished."""
        return "".join(step.delta for step in self.steps)

    def upto(self, n: int) -> GenerationRecord:
        """The record as it stood after its first n steps."""
        if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= len(self.steps):
            raise ValueError(f"The step to replay to is {n!r}; this record has steps 0 to {len(self.steps)}.")
        finish = self.finish if n == len(self.steps) else ""
        return GenerationRecord(
            self.model, self.prompt, self.prompt_ids, self.sampling, self.steps[:n], finish
        )
