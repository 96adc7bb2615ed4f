"""The staged distribution against Hugging Face's logits processors, built by Hugging Face in its own order."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.stats
import torch
from transformers import GenerationConfig

from gptviz.analysis.sampling import StagedDistribution, draw, generator_at, stages
from gptviz.models.tiny import tiny_model
from gptviz.types.sampling import STAGE_NAMES, Sampling

V, N = 1000, 500
KNOBS = {
    "repetition_penalty": 1.3,
    "temperature": 0.7,
    "top_k": 50,
    "top_p": 0.92,
    "min_p": 0.02,
    "typical_p": 0.9,
}
SUBSETS = [c for r in range(len(KNOBS) + 1) for c in combinations(KNOBS, r)]
OTHER_VALUES = [
    {"top_k": 5 * V},
    {"top_p": 0.0},
    {"top_p": 1.0},
    {"min_p": 1.0},
    {"typical_p": 0.001},
    {"repetition_penalty": 0.6},
    {"repetition_penalty": 0.6, "temperature": 1.7, "top_p": 0.5},
    {"temperature": 0.05, "top_k": 3},
    {"temperature": 5.0, "top_k": 3, "typical_p": 0.5},
    {"top_k": 1, "top_p": 0.1, "min_p": 0.5, "typical_p": 0.1},
]


@pytest.fixture(scope="module")
def network():
    return tiny_model("gpt2")[0]


@pytest.fixture(scope="module")
def batch():
    """(N, V) logits of many shapes: flat, peaked, with ties; (N, 40) tokens so far."""
    g = torch.Generator().manual_seed(7)
    logits = torch.randn(N, V, generator=g) * torch.linspace(0.2, 8.0, N)[:, None]
    logits[::7] = (logits[::7] * 2).round() / 2  # ties
    logits[::11, :100] = -float("inf")
    return logits, torch.randint(0, V, (N, 40), generator=g)


def hugging_face(network, settings: dict, logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """(N, V) probabilities after the processors `generate` itself would build, in its order."""
    config = GenerationConfig(do_sample=True, top_k=0)
    config.update(**settings)
    processors = network._get_logits_processor(config, input_ids_seq_length=ids.shape[1], device="cpu")
    rows = [processors(i[None], x[None])[0].softmax(-1) for i, x in zip(ids, logits, strict=True)]
    return torch.stack(rows)


@pytest.mark.slow
@pytest.mark.parametrize("knobs", SUBSETS, ids=lambda c: "+".join(c) or "none")
def test_every_subset_of_knobs_equals_hugging_face_on_500_logits(network, batch, knobs):
    settings = {k: KNOBS[k] for k in knobs}
    logits, ids = batch
    expected = hugging_face(network, settings, logits, ids).numpy()
    for row, previous, want in zip(logits, ids.tolist(), expected, strict=True):
        final = stages(row, Sampling(**settings), previous)[-1]
        np.testing.assert_allclose(final.probabilities, want, atol=1e-6, rtol=0)
        assert (final.survivors >= (want > 0)).all()


@pytest.mark.parametrize("settings", OTHER_VALUES, ids=str)
def test_settings_at_the_edges_equal_hugging_face(network, batch, settings):
    logits, ids = (x[:60] for x in batch)
    expected = hugging_face(network, settings, logits, ids).numpy()
    for row, previous, want in zip(logits, ids.tolist(), expected, strict=True):
        got = stages(row, Sampling(**settings), previous)[-1].probabilities
        np.testing.assert_allclose(got, want, atol=1e-6, rtol=0)


def test_each_stage_equals_hugging_face_with_the_later_knobs_off(network, batch):
    logits, ids = (x[:40] for x in batch)
    names = list(KNOBS)
    for stage in range(1, len(STAGE_NAMES)):
        earlier = {k: KNOBS[k] for k in names[:stage]}
        expected = hugging_face(network, earlier, logits, ids).numpy()
        for row, previous, want in zip(logits, ids.tolist(), expected, strict=True):
            got = stages(row, Sampling(**KNOBS), previous)[stage].probabilities
            np.testing.assert_allclose(got, want, atol=1e-6, rtol=0)


def test_the_order_matters_so_the_parity_above_can_fail(network, batch):
    """Temperature after top-p keeps other tokens than before it: the order is part of what is tested."""
    logits, ids = (x[150:190] for x in batch)
    expected = hugging_face(network, {"temperature": 1.7, "top_p": 0.8}, logits, ids)
    swapped = []
    for row in logits:
        kept = stages(row, Sampling(top_p=0.8))[-1].survivors
        swapped.append(torch.softmax(row.masked_fill(~torch.tensor(kept), -float("inf")) / 1.7, -1))
    assert (torch.stack(swapped) - expected).abs().max() > 1e-2


def test_top_50000_vocabulary_equals_hugging_face(network):
    g = torch.Generator().manual_seed(0)
    logits, ids = torch.randn(3, 50_257, generator=g) * 4, torch.randint(0, 50_257, (3, 200), generator=g)
    settings = {"temperature": 0.85, "top_k": 50, "top_p": 0.92, "repetition_penalty": 1.3}
    expected = hugging_face(network, settings, logits, ids).numpy()
    for row, previous, want in zip(logits, ids.tolist(), expected, strict=True):
        got = stages(row, Sampling(**settings), previous)[-1].probabilities
        np.testing.assert_allclose(got, want, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "settings",
    [{}, {"temperature": 0.85, "top_k": 50, "top_p": 0.92, "repetition_penalty": 1.3}, {"typical_p": 0.7}],
    ids=str,
)
def test_20000_draws_follow_the_distribution(network, batch, settings):
    """Chi-square of the drawn counts against Hugging Face's distribution, at a fixed seed."""
    logits, ids = batch[0][80], batch[1][80]
    expected = hugging_face(network, settings, logits[None], ids[None])[0].double().numpy()
    staged = StagedDistribution(logits, Sampling(**settings), ids.tolist())
    generator = generator_at(11, 0)
    counts = np.bincount([staged.draw(generator) for _ in range(20_000)], minlength=V)
    assert counts[expected == 0].sum() == 0
    wanted = expected * 20_000
    often = wanted >= 5  # the usual condition of the test; the rest is pooled into one cell
    observed = np.append(counts[often], counts[~often].sum())
    wanted = np.append(wanted[often], wanted[~often].sum())
    if wanted[-1] == 0:
        observed, wanted = observed[:-1], wanted[:-1]
    assert scipy.stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > 0.01


def test_the_chi_square_sees_a_wrong_draw():
    p = np.full(20, 0.05, np.float32)
    generator = generator_at(0, 0)
    counts = np.bincount([draw(p * np.linspace(0.8, 1.2, 20), generator) for _ in range(20_000)])
    assert scipy.stats.chisquare(counts).pvalue < 1e-6
