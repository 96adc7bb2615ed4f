"""Models from configs: exact counts, block order, reproducible weights, a twin of equal size."""

from dataclasses import replace

import pytest
import torch

from gptviz.models.lstm import LstmForCausalLM
from gptviz.training.gpt_config import build_model, gpt_parameters
from gptviz.training.presets import PRESETS, preset
from gptviz.training.pretrain_config import PretrainConfig

TINY = PretrainConfig(n_layer=2, d_model=16, n_head=2, n_ctx=8)


@pytest.mark.parametrize("architecture", ["gpt1", "gpt2"])
def test_the_count_is_exact(architecture):
    config = replace(TINY, architecture=architecture)
    model = build_model(config, 300)
    assert sum(p.numel() for p in model.parameters()) == gpt_parameters(config, 300)
    assert model.config.model_type == {"gpt1": "openai-gpt", "gpt2": "gpt2"}[architecture]


def test_the_twin_has_as_many_parameters():
    pair = [build_model(replace(preset(name), compile=False), 8192) for name in PRESETS]
    gpt, lstm = (sum(p.numel() for p in model.parameters()) for model in pair)
    assert isinstance(pair[1], LstmForCausalLM)
    assert abs(gpt - lstm) / gpt < 0.001


def test_weights_come_from_the_seed_alone():
    torch.manual_seed(5)
    first = build_model(TINY, 300).state_dict()
    torch.manual_seed(6)
    before = torch.get_rng_state()
    again, other = build_model(TINY, 300).state_dict(), build_model(replace(TINY, seed=1), 300).state_dict()
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["transformer.wte.weight"], other["transformer.wte.weight"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"d_model": 10, "n_head": 3}, "10 cannot be split evenly over 3 heads"),
        ({"architecture": "rnn"}, "architecture is 'rnn'"),
        ({"vocab_size": 100}, "vocab_size is 100"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"learning_rate": 0.0}, "learning_rate"),
    ],
)
def test_values_that_cannot_work(change, said):
    with pytest.raises(ValueError, match=said):
        replace(TINY, **change)


def test_unknown_names():
    with pytest.raises(ValueError, match="no preset 'books'"):
        preset("books")
    with pytest.raises(ValueError, match="no field 'layers'"):
        PretrainConfig.from_mapping({"layers": 3})
