"""Sampling requests: what is accepted, and the sentence for what is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.types.sampling import STAGE_NAMES, Sampling


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("temperature", -0.1, "0 (greedy) or a number from 0.01 to 100"),
        ("temperature", 1e-5, "0 (greedy) or a number from 0.01 to 100"),
        ("temperature", math.nan, "0 (greedy)"),
        ("temperature", False, "0 (greedy)"),
        ("temperature", "warm", "0 (greedy)"),
        ("top_k", -1, "a whole number, 0 (off) or more"),
        ("top_k", 2.5, "a whole number, 0 (off) or more"),
        ("top_k", True, "a whole number"),
        ("top_p", 1.01, "from 0 to 1"),
        ("min_p", -0.5, "from 0 (off) to 1"),
        ("typical_p", 0.0, "from 0.001 to 1"),
        ("repetition_penalty", 0.0, "from 0.01 to 100"),
        ("repetition_penalty", math.inf, "from 0.01 to 100"),
        ("seed", -1, "from 0 to 2**63 - 1"),
        ("seed", None, "from 0 to 2**63 - 1"),
    ],
)
def test_a_value_out_of_range_is_named_with_its_range(name, value, says):
    with pytest.raises(ValueError, match=name) as error:
        Sampling(**{name: value})
    assert repr(value) in str(error.value)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_numpy_numbers_are_numbers():
    assert Sampling(temperature=np.float32(0.5), top_k=np.int64(3)).top_k == 3


@given(st.sampled_from(STAGE_NAMES[1:]))
def test_the_defaults_switch_every_knob_off(stage):
    assert not Sampling().active(stage)


def test_cuts_do_nothing_in_greedy_decoding():
    sampling = Sampling(temperature=0, top_k=3, top_p=0.5, min_p=0.1, typical_p=0.5, repetition_penalty=1.2)
    assert [s for s in STAGE_NAMES if sampling.active(s)] == ["raw", "repetition_penalty", "temperature"]
