"""Scores of predictions against labels: accuracy, Matthews correlation, area under the ROC curve, with intervals.

Plain counting on numpy arrays; knows no model. Intervals are percentile bootstrap intervals over examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import rankdata

from gptviz.types.zero_shot import Score

RESAMPLES = 2000


def bootstrap(statistic: Callable[[np.ndarray], float], n: int, seed: int = 0, resamples: int = RESAMPLES) -> tuple:
    """(low, high): the 2.5th and 97.5th percentile of ``statistic(indices)`` over resampled example indices."""
    generator = np.random.default_rng(seed)
    values = [statistic(generator.integers(0, n, n)) for _ in range(resamples)]
    values = [value for value in values if np.isfinite(value)]
    if not values:
        return float("nan"), float("nan")
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def accuracy_score(correct: Sequence[bool], chance: float, labels: Sequence, seed: int = 0) -> Score:
    """Share of right predictions; ``majority`` is the share of the most frequent label."""
    hits = np.asarray(correct, dtype=float)
    low, high = bootstrap(lambda at: hits[at].mean(), len(hits), seed)
    majority = Counter(labels).most_common(1)[0][1] / len(hits)
    return Score("accuracy", float(hits.mean()), low, high, chance, majority)


def matthews(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Matthews correlation of two Boolean arrays; 0 where one of them is constant.

    >>> matthews(np.array([True, True, False, False]), np.array([True, True, False, True]))
    0.5773502691896258
    """
    predicted, actual = np.asarray(predicted, float), np.asarray(actual, float)
    if predicted.std() == 0 or actual.std() == 0:
        return 0.0
    return float(np.mean((predicted - predicted.mean()) * (actual - actual.mean())) / (predicted.std() * actual.std()))


def matthews_score(predicted: Sequence[bool], actual: Sequence[bool], seed: int = 0) -> Score:
    """Matthews correlation, the usual measure of CoLA: 0 for guessing and for the majority class, 1 for perfect."""
    p, a = np.asarray(predicted, bool), np.asarray(actual, bool)
    low, high = bootstrap(lambda at: matthews(p[at], a[at]), len(p), seed)
    return Score("Matthews correlation", matthews(p, a), low, high, 0.0, 0.0)


def area_under_roc(scores: np.ndarray, actual: np.ndarray) -> float:
    """Probability that a true example scores above a false one, ties counted half; NaN where one kind is missing.

    >>> area_under_roc(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]))
    0.5
    """
    actual = np.asarray(actual, bool)
    n_true, n_false = int(actual.sum()), int((~actual).sum())
    if not n_true or not n_false:
        return float("nan")
    ranks = rankdata(scores)
    return float((ranks[actual].sum() - n_true * (n_true + 1) / 2) / (n_true * n_false))


def roc_score(scores: Sequence[float], actual: Sequence[bool], seed: int = 0) -> Score:
    """Area under the ROC curve: how well the score alone ranks, whatever the threshold."""
    s, a = np.asarray(scores, float), np.asarray(actual, bool)
    low, high = bootstrap(lambda at: area_under_roc(s[at], a[at]), len(s), seed, RESAMPLES // 4)
    return Score("area under ROC", area_under_roc(s, a), low, high, 0.5, 0.5)


def best_threshold(scores: np.ndarray, actual: np.ndarray) -> float:
    """The threshold (score >= threshold counts as true) with the highest Matthews correlation, midway between scores.

    >>> best_threshold(np.array([-3.0, -1.0, -4.0]), np.array([True, True, False]))
    -3.5
    """
    scores, actual = np.asarray(scores, float), np.asarray(actual, bool)
    order = np.argsort(-scores, kind="stable")
    ranked, truth = scores[order], actual[order].astype(float)
    n, total = len(scores), truth.sum()
    k = np.arange(1, n)  # the k best are called true
    hits = np.cumsum(truth)[:-1]
    spread = np.sqrt(k * (n - k) * total * (n - total))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.where(spread > 0, (n * hits - k * total) / spread, 0.0)
    correlation[ranked[:-1] == ranked[1:]] = -np.inf  # equal scores cannot be told apart
    if not len(correlation) or not np.isfinite(correlation).any():
        return float(np.median(scores))
    best = int(np.argmax(correlation))
    return float((ranked[best] + ranked[best + 1]) / 2)
