"""Stages and draws, by hand and on the edges the sampling page names."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.analysis.sampling import StagedDistribution, draw, generator_at, stages
from gptviz.types.sampling import STAGE_NAMES, Sampling

LOGITS = torch.log(torch.tensor([0.5, 0.25, 0.15, 0.1]))


def final(sampling, logits=LOGITS, previous=()):
    return stages(logits, sampling, previous)[-1]


def test_one_stage_for_each_name_with_read_only_arrays():
    made = stages(LOGITS, Sampling(top_k=2, top_p=0.6))
    assert tuple(s.name for s in made) == STAGE_NAMES
    for stage in made:
        assert stage.probabilities.sum() == pytest.approx(1, abs=1e-6)
        assert not stage.probabilities.flags.writeable
        assert not stage.survivors.flags.writeable


def test_top_k_by_hand():
    stage = final(Sampling(top_k=2))
    np.testing.assert_allclose(stage.probabilities, [2 / 3, 1 / 3, 0, 0], atol=1e-6)
    cut = stages(LOGITS, Sampling(top_k=2))[STAGE_NAMES.index("top_k")]
    assert (cut.n_survivors, cut.mass_cut) == (2, pytest.approx(0.25, abs=1e-6))
    assert cut.entropy == pytest.approx(-(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3)), abs=1e-6)


def test_top_p_keeps_the_token_that_crosses_the_mass():
    np.testing.assert_array_equal(final(Sampling(top_p=0.6)).survivors, [True, True, False, False])
    np.testing.assert_array_equal(final(Sampling(top_p=0.45)).survivors, [True, False, False, False])


def test_min_p_is_relative_to_the_best():
    np.testing.assert_array_equal(final(Sampling(min_p=0.26)).survivors, [True, True, True, False])


def test_typical_can_drop_the_most_probable_token():
    logits = torch.log(torch.tensor([0.4, *[0.05] * 12]))
    assert not final(Sampling(typical_p=0.3), logits).survivors[0]


def test_repetition_penalty_divides_positive_and_multiplies_negative_once():
    logits = torch.tensor([2.0, -1.0, 0.5])
    got = final(Sampling(repetition_penalty=2.0), logits, previous=[0, 0, 1]).probabilities
    np.testing.assert_allclose(got, torch.softmax(torch.tensor([1.0, -2.0, 0.5]), 0), atol=1e-6)


def test_a_penalty_below_1_encourages_repetition():
    before, after = (final(Sampling(repetition_penalty=p), previous=[3]).probabilities[3] for p in (1.0, 0.5))
    assert after > before


def test_ids_outside_the_vocabulary_are_not_penalised():
    sampling = Sampling(repetition_penalty=2.0)
    a, b = (final(sampling, previous=p).probabilities for p in ([0], [0, 4, -1, 999]))
    np.testing.assert_array_equal(a, b)


def test_temperature_0_is_the_most_probable_token_after_the_penalty():
    assert final(Sampling(temperature=0)).probabilities.tolist() == [1, 0, 0, 0]
    penalised = final(Sampling(temperature=0, repetition_penalty=3.0), previous=[0]).probabilities
    assert penalised.tolist() == [0, 1, 0, 0]


def test_top_k_above_the_vocabulary_keeps_all():
    assert final(Sampling(top_k=10_000)).n_survivors == 4


def test_top_p_0_keeps_one_and_1_keeps_all():
    assert final(Sampling(top_p=0.0)).n_survivors == 1
    assert final(Sampling(top_p=1.0)).n_survivors == 4


@pytest.mark.parametrize("bad", [torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("inf")])])
def test_logits_that_are_no_numbers_raise(bad):
    with pytest.raises(ValueError, match="NaN or infinity"):
        stages(bad, Sampling())


def test_logits_of_the_wrong_shape_raise():
    with pytest.raises(ValueError, match=r"shape \(1, 4\)"):
        stages(LOGITS[None], Sampling())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=40),
    st.builds(
        Sampling,
        temperature=st.just(0) | st.floats(0.05, 10),
        top_k=st.integers(0, 60),
        top_p=st.floats(0, 1),
        min_p=st.floats(0, 1),
        typical_p=st.floats(0.001, 1),
        repetition_penalty=st.floats(0.2, 5),
    ),
    st.integers(0, 2**63 - 1),
)
def test_whatever_the_knobs_a_survivor_is_drawn(logits, sampling, seed):
    staged = StagedDistribution(torch.tensor(logits), sampling, [0, 1])
    made = staged.expand()
    assert made[-1].probabilities.sum() == pytest.approx(1, abs=1e-5)
    for before, after in pairwise(made):
        assert not (after.survivors & ~before.survivors).any()
        assert 0 <= after.mass_cut <= 1 + 1e-6
    token = staged.draw(generator_at(seed, 0))
    assert made[-1].survivors[token]
    assert [s.summary() for s in made] == list(staged.summaries())
    ids = staged.top(3, also=(token,))
    table = staged.probabilities(ids)
    for row, i in zip(table, ids, strict=True):
        np.testing.assert_allclose(row, [s.probabilities[i] for s in made], atol=0)
    assert staged.rank(token) == 1 + sum(x > torch.tensor(logits)[token] for x in torch.tensor(logits))


def test_a_draw_takes_one_number_and_inverts_the_cumulative_sum():
    p = np.array([0.2, 0.0, 0.5, 0.3], np.float32)
    for seed in range(50):
        generator = generator_at(seed, 0)
        u = generator_at(seed, 0).random()
        assert draw(p, generator) == (0 if u < 0.2 else 2 if u < 0.7 else 3)
        assert generator.random() == generator_at(seed, 1).random()


def test_a_knob_over_50000_tokens_is_restaged_within_the_time_of_a_redraw():
    """The page has 0.3 s for a redraw; the stages get a third of it even on a busy machine."""
    logits = torch.randn(50_257, generator=torch.Generator().manual_seed(0)) * 3
    everything = Sampling(0.8, 500, 0.9, 0.01, 0.9, 1.2)
    best = min(_timed(lambda: stages(logits, everything, range(100))) for _ in range(5))
    assert best < 0.1


def _timed(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
