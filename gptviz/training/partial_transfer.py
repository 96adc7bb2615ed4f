"""A model of which only the embeddings and the first blocks are pre-trained; the rest starts from random numbers.

The starting points of GPT-1's layer-transfer experiment (Section 5, Figure 2 left). Runs nothing, trains nothing.
"""

from __future__ import annotations

import copy

import torch

from gptviz.models import families


def partly_pretrained(model: torch.nn.Module, blocks: int, seed: int = 0) -> torch.nn.Module:
    """A new model of the same shape: ``blocks`` = -1 copies nothing, 0 the embeddings, k also the first k blocks.

    All L blocks bring the final norm (and an untied output matrix) with them, so that L is the whole model. What is
    not copied is drawn as the model's own library draws it, from ``seed``. Raises ValueError outside -1 to L.
    """
    family = families.family_of(model)
    n_layer = len(families.at(model, family.blocks))
    if isinstance(blocks, bool) or not isinstance(blocks, int) or not -1 <= blocks <= n_layer:
        raise ValueError(f"blocks {blocks!r} must lie between -1 (nothing) and {n_layer} (the whole model).")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(model)(copy.deepcopy(model.config))
    weight = model.get_input_embeddings().weight
    fresh = fresh.to(weight.device, weight.dtype)
    if blocks >= 0:
        own, chosen = fresh.state_dict(), {}
        for name, tensor in model.state_dict().items():
            if name in own and _is_copied(name, family, blocks, n_layer):
                chosen[name] = tensor
        fresh.load_state_dict(chosen, strict=False)
    fresh.tie_weights()
    return fresh.eval()


def _is_copied(name: str, family: families.Family, blocks: int, n_layer: int) -> bool:
    if blocks == n_layer:
        return True
    stem = family.blocks + "."
    if name.startswith(stem):
        return int(name[len(stem) :].split(".", 1)[0]) < blocks
    late = [path for path in (family.final_norm, family.after_norm) if path]
    return not name.startswith((*late, "lm_head.", "embed_out."))
