"""A pre-training run on disk: the state it resumes from, and the weights kept along the way.

    FOLDER/tokenizer/            what AutoTokenizer loads
    FOLDER/resume/               model.safetensors, optimizer.safetensors, state.json: the last state
    FOLDER/step-000400/          float16 weights with config and tokenizer: AutoModelForCausalLM loads it
    FOLDER/final/                the same at the end

Safetensors and JSON only, no pickle. A state is written beside the old one and takes its place at once, so that a
run killed while saving still resumes. Knows nothing about the training loop.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

RESUME = "resume"


def save_state(folder: Path, model, optimizer, state: dict[str, Any]) -> None:
    """Write everything the next step needs: float32 weights, Adam's moments, and `state` (step, tokens, ...)."""
    from safetensors.torch import save_file

    names = {parameter: name for name, parameter in model.named_parameters()}
    moments = {
        f"{names[parameter]}/{key}": value.detach().cpu().contiguous().clone()
        for parameter, slots in optimizer.state.items()
        for key, value in slots.items()
    }
    weights = {name: p.detach().cpu().contiguous().clone() for name, p in model.named_parameters()}
    new = folder / f"{RESUME}.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    save_file(weights, new / "model.safetensors")
    save_file(moments, new / "optimizer.safetensors")
    (new / "state.json").write_text(json.dumps(state, indent=1))
    _swap(new, folder / RESUME)


def _swap(new: Path, place: Path) -> None:
    old = place.with_name(f"{place.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        os.rename(place, old)
    os.rename(new, place)
    shutil.rmtree(old, ignore_errors=True)


def saved_state(folder: Path) -> dict[str, Any] | None:
    """The `state` of the last save; None where nothing was saved."""
    place = _resume_folder(folder)
    return None if place is None else json.loads((place / "state.json").read_text())


def _resume_folder(folder: Path) -> Path | None:
    # Between the two renames of a save only the old state has its final form.
    for place in (folder / RESUME, folder / f"{RESUME}.old"):
        if (place / "state.json").exists():
            return place
    return None


def load_state(folder: Path, model, optimizer) -> None:
    """Put the saved weights and moments back into `model` and `optimizer`, exactly."""
    import torch
    from safetensors.torch import load_file

    place = _resume_folder(folder)
    weights, moments = (load_file(place / f"{part}.safetensors") for part in ("model", "optimizer"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    for name, parameter in model.named_parameters():
        slots = {k.split("/")[1]: v for k, v in moments.items() if k.split("/")[0] == name}
        if slots:
            optimizer.state[parameter] = {
                key: value if key == "step" else value.to(parameter.device) for key, value in slots.items()
            }


def save_weights(folder: Path, name: str, model, tokenizer, n_ctx: int) -> Path:
    """Write `model` in float16 with its tokenizer into `folder/name`, ready for transformers' Auto classes."""
    import copy

    import torch

    from gptviz.training.tokenizer_training import save_tokenizer

    new = folder / f"{name}.new"
    shutil.rmtree(new, ignore_errors=True)
    half = copy.deepcopy(model).to("cpu", torch.float16)
    half.config.use_cache = True
    half.config.dtype = torch.float16
    half.save_pretrained(new)
    save_tokenizer(tokenizer, new, n_ctx)
    _swap(new, folder / name)
    return folder / name
