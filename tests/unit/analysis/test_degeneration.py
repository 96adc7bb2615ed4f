"""Repetition measures by hand and against their definitions; the probability of a repeated phrase."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.analysis.degeneration import (
    find_loop,
    occurrence_probabilities,
    occurrences,
    repeated_phrase,
    repetition_curves,
)
from gptviz.models.language_model import LanguageModel
from gptviz.models.tiny import tiny_model
from gptviz.types.degeneration import Loop

TEXTS = st.lists(st.integers(0, 4), max_size=40)


@pytest.fixture(scope="module")
def lm():
    return LanguageModel("random-gpt2", *tiny_model("gpt2"))


def brute_longest_repeat(ids):
    best = 0
    for length in range(1, len(ids)):
        runs = [tuple(ids[i : i + length]) for i in range(len(ids) - length + 1)]
        if len(set(runs)) < len(runs):
            best = length
    return best


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_curves_equal_their_definitions_on_every_prefix(ids):
    curves = repetition_curves(ids, window=5)
    for t in range(1, len(ids) + 1):
        prefix = ids[:t]
        for n in range(1, 5):
            grams = [tuple(prefix[i : i + n]) for i in range(t - n + 1)]
            value = curves.distinct[n - 1, t - 1]
            assert np.isnan(value) if not grams else value == len(set(grams)) / len(grams)
        rate = sum(token in prefix[max(0, i - 5) : i] for i, token in enumerate(prefix)) / t
        assert curves.repetition_rate[t - 1] == pytest.approx(rate)
        assert curves.longest_repeat[t - 1] == brute_longest_repeat(prefix)


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_a_found_loop_is_there(ids):
    loop = find_loop(ids)
    if loop is None:
        assert not any(ids[i] == ids[i + 1] == ids[i + 2] for i in range(len(ids) - 2))
    else:
        size = len(loop.phrase)
        assert ids[loop.start : loop.start + loop.n * size] == list(loop.phrase) * loop.n
        assert loop.n >= 3


def test_the_shortest_phrase_of_a_loop_is_taken():
    assert find_loop([5] * 12) == Loop((5,), 0, 12)
    assert find_loop([9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1]) == Loop((1, 2, 3), 1, 3)
    assert find_loop([1, 2, 3, 4, 5]) is None


def test_occurrence_probabilities_are_the_models_own(lm):
    ids = lm.encode("The river runs. The mill stands. The river runs. The river runs.")
    phrase = lm.encode(" The river runs.")
    places = occurrences(ids, phrase)
    assert len(places) == 2
    log_p = torch.log_softmax(lm.logits(ids), -1)
    for found, at in zip(occurrence_probabilities(lm, ids, phrase), places, strict=True):
        expected = [float(log_p[at + i - 1, token]) for i, token in enumerate(phrase)]
        np.testing.assert_allclose(found.log_probabilities, expected, atol=1e-4)
        assert found.whole == pytest.approx(np.exp(sum(expected)), rel=1e-3)


def test_a_repeated_phrase_is_scored_at_each_repetition_in_one_pass(lm):
    calls = lm.forward_calls
    found = repeated_phrase(lm, "In the morning", "the baker opens the shop.", 4)
    assert lm.forward_calls == calls + 1
    assert [o.n for o in found] == [1, 2, 3, 4]
    ids = lm.encode("In the morning") + lm.encode(" the baker opens the shop.") * 4
    log_p = torch.log_softmax(lm.logits(ids), -1)
    third = found[2]
    assert third.log_probabilities[0] == pytest.approx(
        float(log_p[third.start - 1, ids[third.start]]), abs=1e-4
    )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda lm: repeated_phrase(lm, "a", "  ", 3), "phrase is empty"),
        (lambda lm: repeated_phrase(lm, "a", "b", 0), "repetitions is 0"),
        (
            lambda lm: repeated_phrase(lm, "a", "the river runs past", 100),
            "do not fit the model's 128 tokens",
        ),
        (lambda lm: occurrence_probabilities(lm, [1, 2], [3]), "does not occur"),
        (lambda lm: occurrences([1], []), "phrase is empty"),
        (lambda lm: repetition_curves([1], 0), "window is 0"),
        (lambda lm: repetition_curves([1] * 4001), "at most 4,000"),
        (lambda lm: find_loop([1], 1), "at_least is 1"),
    ],
)
def test_what_cannot_be_measured_says_so(lm, call, says):
    with pytest.raises(ValueError, match=says):
        call(lm)
