"""Repetition in text, measured: distinct n-grams, repetition rate, longest repeat, loops, and a loop's probability.

What it is: measures on token ids, the same for a model's text and for a person's, and the probability a model
gives a phrase at its first, second, ... n-th occurrence.
What it does not know: decoding methods, pages.

Sources: distinct-n, Li et al. 2016; repetition within a window ("rep"), Welleck et al. 2020; the rising
probability of a repeated sentence, Holtzman et al. 2020 (Figure 4) and Xu et al. 2022.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gptviz.analysis.likelihood import token_log_probabilities
from gptviz.types.degeneration import Loop, Occurrence, RepetitionCurves
from gptviz.types.language import frozen

MAX_TOKENS = 4_000
"""Longest text measured: the longest repeat takes T * T steps."""


def repetition_curves(ids: Sequence[int], window: int = 128) -> RepetitionCurves:
    """The measures of every prefix of `ids`. Raises ValueError for a window below 1 or more than 4,000 tokens.

    >>> curves = repetition_curves([1, 2, 1, 2, 1])
    >>> curves.distinct[1].tolist()[1:], curves.longest_repeat.tolist()
    ([1.0, 1.0, 0.6666666666666666, 0.5], [0, 0, 1, 2, 3])
    """
    if window < 1:
        raise ValueError(f"window is {window}; it must be 1 or more tokens.")
    if len(ids) > MAX_TOKENS:
        raise ValueError(
            f"The text has {len(ids):,} tokens; at most {MAX_TOKENS:,} are measured. Shorten it."
        )
    t = len(ids)
    distinct = np.full((4, t), np.nan)
    for n in range(1, 5):
        seen: set[tuple[int, ...]] = set()
        for end in range(n, t + 1):
            seen.add(tuple(ids[end - n : end]))
            distinct[n - 1, end - 1] = len(seen) / (end - n + 1)
    repeated = np.zeros(t)
    last: dict[int, int] = {}
    for at, token in enumerate(ids):
        repeated[at] = token in last and at - last[token] <= window
        last[token] = at
    rate = np.cumsum(repeated) / np.arange(1, t + 1)
    return RepetitionCurves(frozen(distinct), frozen(rate), frozen(_longest_repeat(ids)), window)


def _longest_repeat(ids: Sequence[int]) -> np.ndarray:
    """(T,) for each prefix the longest run of tokens that ends at two places; one row of the match table at a time."""
    tokens = np.asarray(ids, dtype=np.int64)
    longest = np.zeros(len(tokens), dtype=np.int64)
    row = np.zeros(len(tokens) + 1, dtype=np.int64)  # row[s + 1]: length of the match ending at s and at t
    best = 0
    for t in range(len(tokens)):
        matches = tokens[:t] == tokens[t]
        row[1 : t + 1] = np.where(matches, row[:t] + 1, 0)
        best = max(best, int(row[1 : t + 1].max(initial=0)))
        longest[t] = best
    return longest


def find_loop(ids: Sequence[int], at_least: int = 3) -> Loop | None:
    """The phrase that is repeated most tokens long, or None where no phrase occurs `at_least` times in a row.

    Of the phrases that explain the same stretch the shortest is taken, so "the the the the" is "the" four times.

    >>> find_loop([7, 1, 2, 1, 2, 1, 2, 9])
    Loop(phrase=(1, 2), start=1, n=3)
    """
    if at_least < 2:
        raise ValueError(f"at_least is {at_least}; a loop has 2 or more occurrences.")
    tokens = np.asarray(ids, dtype=np.int64)
    found, covered = None, 0
    for period in range(1, len(tokens) // at_least + 1):
        same = np.concatenate([[False], tokens[period:] == tokens[:-period], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            n = (end - start + period) // period
            if n >= at_least and n * period > covered:
                covered = n * period
                found = Loop(tuple(tokens[start : start + period].tolist()), start, n)
    return found


def occurrences(ids: Sequence[int], phrase: Sequence[int], start: int = 0) -> list[int]:
    """Where `phrase` begins in ids[start:], left to right without overlap.

    >>> occurrences([1, 2, 1, 2, 3, 1, 2], [1, 2])
    [0, 2, 5]
    """
    if not phrase:
        raise ValueError("The phrase is empty: choose at least one token.")
    ids, phrase, places, at = tuple(ids), tuple(phrase), [], start
    while at + len(phrase) <= len(ids):
        if ids[at : at + len(phrase)] == phrase:
            places.append(at)
            at += len(phrase)
        else:
            at += 1
    return places


def occurrence_probabilities(lm, ids: Sequence[int], phrase: Sequence[int]) -> tuple[Occurrence, ...]:
    """How probable the model finds each occurrence of `phrase` in `ids`; one forward pass.

    An occurrence at token 0 has nothing before it and is left out. Raises ValueError where the phrase does not
    occur later, or where the text is longer than the context.
    """
    places = [p for p in occurrences(ids, phrase) if p > 0]
    if not places:
        raise ValueError("The phrase does not occur after the first token of the text.")
    (log_p,) = token_log_probabilities(lm, [list(ids)], [1])  # (T - 1,)
    pieces = tuple(lm.piece(i) for i in phrase)
    return tuple(
        Occurrence(n, at, pieces, frozen(log_p[at - 1 : at - 1 + len(pieces)]))
        for n, at in enumerate(places, 1)
    )


def repeated_phrase(lm, before: str, phrase: str, n: int = 10) -> tuple[Occurrence, ...]:
    """The text `before`, then `phrase` n times: how probable is each repetition? One forward pass.

    A phrase that follows on a word without a space gets one. Raises ValueError for an empty phrase, n outside
    1 to 100, or a text longer than the context.
    """
    if not phrase.strip():
        raise ValueError("The phrase is empty: type at least one word.")
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= 100:
        raise ValueError(f"The number of repetitions is {n!r}; it must be a whole number from 1 to 100.")
    phrase_ids = list(lm.encode(phrase if phrase[0].isspace() else " " + phrase))
    ids = list(lm.encode(before)) or [i for i in (lm.bos_id, lm.eos_id) if i is not None][:1]
    if not ids:
        raise ValueError("This model has no start token, so there must be text before the phrase.")
    whole = ids + phrase_ids * n
    if len(whole) > lm.spec.n_ctx:
        fit = (lm.spec.n_ctx - len(ids)) // len(phrase_ids)
        raise ValueError(f"{n} repetitions do not fit the model's {lm.spec.n_ctx} tokens; {max(fit, 0)} do.")
    (log_p,) = token_log_probabilities(lm, [whole], [len(ids)])
    pieces = tuple(lm.piece(i) for i in phrase_ids)
    size = len(phrase_ids)
    return tuple(
        Occurrence(k + 1, len(ids) + k * size, pieces, frozen(log_p[k * size : (k + 1) * size]))
        for k in range(n)
    )
