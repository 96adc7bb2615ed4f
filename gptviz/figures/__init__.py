"""Figures: pure functions from frozen data to a Plotly or Altair figure. Loaded when first used."""

from __future__ import annotations

from importlib import import_module

_FIGURES = {
    # name: module under gptviz.figures
    "attention_heatmap": "attention",
    "attention_overview": "attention",
    "attention_row": "attention",
    "head_statistics": "attention",
    "rollout_heatmap": "attention",
    "logit_lens_table": "attention",
    "next_token_bars": "tokens_ahead",
    "head_effect_bars": "tokens_ahead",
    "STAGE_TITLES": "sampling",
    "stage_title": "sampling",
    "token_label": "sampling",
    "stage_bars": "sampling",
    "step_curves": "sampling",
    "beam_tree": "sampling",
    "contrastive_choice": "sampling",
    "MEASURES": "degeneration",
    "values_of": "degeneration",
    "repetition_curves": "degeneration",
    "occurrence_curve": "degeneration",
    "token_probabilities": "degeneration",
    "role_colour": "tasks",
    "head_flow": "tasks",
    "candidate_bars": "zero_shot",
    "score_histogram": "zero_shot",
    "score_bars": "zero_shot",
    "curves_by_step": "zero_shot",
    "paper_transfer": "transfer",
    "transfer_curves": "transfer",
    "difference_bars": "ablations",
    "grid_bars": "ablations",
}


def __getattr__(name: str):
    if name not in _FIGURES:
        raise AttributeError(f"gptviz.figures has no {name!r}; it has: {', '.join(sorted(_FIGURES))}")
    return getattr(import_module(f"gptviz.figures.{_FIGURES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_FIGURES])
