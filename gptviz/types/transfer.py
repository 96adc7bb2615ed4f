"""Scores over seeds: the points of a layer-transfer curve (GPT-1, Figure 2 left) and the cells of an ablation grid.

Numpy only. A score is a share from 0 to 1 (accuracy) or a correlation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# 97.5 % points of Student's t by degrees of freedom; 1.96 beyond 30
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True)
class SeedScores:
    """One score for each seed, measured on ``n_dev`` held-out examples."""

    scores: tuple[float, ...]
    n_dev: int

    def __post_init__(self) -> None:
        if not self.scores:
            raise ValueError("a measurement needs at least one seed's score.")
        if self.n_dev < 1:
            raise ValueError(f"a measurement needs held-out examples, got {self.n_dev}.")

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores))

    @property
    def interval(self) -> tuple[float, float]:
        """95 %: Student's t over the seeds; for one seed the normal interval of a share of ``n_dev`` examples.

        >>> low, high = SeedScores((0.6, 0.7, 0.65), 100).interval
        >>> round(low, 3), round(high, 3)
        (0.526, 0.774)
        """
        n, mean = len(self.scores), self.mean
        if n == 1:
            half = 1.96 * (max(mean * (1 - mean), 0.0) / self.n_dev) ** 0.5
        else:
            half = (_T[n - 2] if n - 2 < len(_T) else 2.0) * float(np.std(self.scores, ddof=1)) / n**0.5
        return mean - half, mean + half

    @property
    def interval_kind(self) -> str:
        return "over the held-out examples" if len(self.scores) == 1 else f"over {len(self.scores)} seeds"


@dataclass(frozen=True)
class TransferPoint:
    """Score when ``blocks`` blocks and the embeddings are copied; -1: nothing is, 0: the embeddings alone."""

    blocks: int
    measured: SeedScores

    @property
    def label(self) -> str:
        return {-1: "nothing", 0: "embeddings", 1: "1 block"}.get(self.blocks, f"{self.blocks} blocks")


@dataclass(frozen=True)
class TransferCurve:
    """Fine-tuning scores by how much of a pre-trained model was copied; the rest starts from random numbers."""

    model: str
    data: str
    metric: str
    n_train: int
    chance: float
    points: tuple[TransferPoint, ...]
    source: str = ""  # date, device, seeds

    @property
    def gain(self) -> float:
        """Last point minus first."""
        return self.points[-1].measured.mean - self.points[0].measured.mean
