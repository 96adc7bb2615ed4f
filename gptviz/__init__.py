"""gptviz: GPT-1 and GPT-2 explained on a real language model. ``import gptviz as gv``.

The public names are loaded when first used, so that ``import gptviz`` stays fast and pulls in no torch.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_PUBLIC = {
    # name: module that defines it, or "module:attribute"
    "models": "gptviz.models:",  # callable package: gv.models()
    "load": "gptviz.models.loader",
    "figures": "gptviz.figures:",
    "Sampling": "gptviz.types.sampling",
    "Classification": "gptviz.types.tasks",
    "Entailment": "gptviz.types.tasks",
    "Similarity": "gptviz.types.tasks",
    "MultipleChoice": "gptviz.types.tasks",
    "serialize": "gptviz.tasks.serialize",
    "special_tokens": "gptviz.tasks.serialize",
    "head_count": "gptviz.tasks.head",
    "load_data": "gptviz.tasks.datasets",
    "data_sets": "gptviz.tasks.datasets",
    "zero_shot": "gptviz.analysis.zero_shot",
    "stages": "gptviz.analysis.sampling",
    "StagedDistribution": "gptviz.analysis.sampling",
    "beam_search": "gptviz.analysis.decoding",
    "contrastive_search": "gptviz.analysis.decoding",
    "repetition_curves": "gptviz.analysis.degeneration",
    "repeated_phrase": "gptviz.analysis.degeneration",
    "find_loop": "gptviz.analysis.degeneration",
    "occurrence_probabilities": "gptviz.analysis.degeneration",
    "records": "gptviz.analysis.records:",
    "prompts": "gptviz.analysis.prompts:",
    "measured": "gptviz.data.measured",
}


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"gptviz has no public name {name!r}; it has: {', '.join(sorted(_PUBLIC))}")
    module, colon, attribute = _PUBLIC[name].partition(":")
    loaded = import_module(module)
    value = loaded if colon and not attribute else getattr(loaded, attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
