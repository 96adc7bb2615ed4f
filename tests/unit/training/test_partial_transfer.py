"""Which weights are copied and which are drawn anew, for every family and every number of blocks."""

import pytest
import torch

from gptviz.models import families
from gptviz.models.tiny import FAMILIES, tiny_model
from gptviz.training.partial_transfer import partly_pretrained


@pytest.mark.parametrize("family", FAMILIES)
def test_exactly_the_embeddings_and_the_first_blocks_are_copied(family):
    model, _ = tiny_model(family)
    n_layer = len(families.at(model, families.family_of(model).blocks))
    for k in range(-1, n_layer + 1):
        partial = partly_pretrained(model, k, seed=1)
        same = torch.equal(partial.get_input_embeddings().weight, model.get_input_embeddings().weight)
        assert same == (k >= 0)
        for n, (new, old) in enumerate(
            zip(families.at(partial, families.family_of(model).blocks), families.at(model, families.family_of(model).blocks), strict=True)
        ):
            pairs = [(a, b) for a, b in zip(new.parameters(), old.parameters(), strict=True) if a.dim() > 1]
            assert all(torch.equal(a, b) for a, b in pairs) == (n < k), (k, n)
        assert partial.get_input_embeddings().weight.data_ptr() != model.get_input_embeddings().weight.data_ptr()
    ids = torch.tensor([[1, 2, 3, 4]])
    with torch.no_grad():
        whole = partly_pretrained(model, n_layer)(ids).logits
        assert torch.equal(whole, model(ids).logits), "all blocks are the whole model"
        none = partly_pretrained(model, -1)(ids).logits
        assert not torch.allclose(none, model(ids).logits, atol=1e-2)


def test_the_seed_decides_what_is_drawn():
    model, _ = tiny_model("gpt2")
    one, again, other = (partly_pretrained(model, 1, seed=s) for s in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), again.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    for wrong in (-2, 4, True, 1.0):
        with pytest.raises(ValueError, match="between -1"):
            partly_pretrained(model, wrong)
