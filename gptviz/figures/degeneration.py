"""Figures of repetition: measures over a text's length, and a phrase's probability at each occurrence.

Pure: frozen data in, Plotly figures out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import palette
from gptviz.figures.sampling import token_label
from gptviz.types.degeneration import Occurrence, RepetitionCurves

MEASURES = {
    "distinct-1": "distinct tokens / tokens",
    "distinct-2": "distinct pairs / pairs",
    "distinct-3": "distinct triples / triples",
    "distinct-4": "distinct 4-grams / 4-grams",
    "repetition rate": "share of tokens seen shortly before",
    "longest repeat": "longest run that occurs twice (tokens)",
}
DASHES = ("solid", "dash", "dot", "dashdot")


def values_of(curves: RepetitionCurves, measure: str) -> np.ndarray:
    """(T,) one of MEASURES. Raises ValueError for another name."""
    if measure.startswith("distinct-") and measure in MEASURES:
        return curves.distinct[int(measure[-1]) - 1]
    if measure == "repetition rate":
        return curves.repetition_rate
    if measure == "longest repeat":
        return curves.longest_repeat
    raise ValueError(f"There is no measure {measure!r}; there are: {', '.join(MEASURES)}.")


def repetition_curves(texts: Mapping[str, RepetitionCurves], measure: str = "distinct-4") -> go.Figure:
    """One line a text: the measure of its first t tokens. A text named "Your text" is dashed: nobody generated it."""
    fig = go.Figure()
    for n, (name, curves) in enumerate(texts.items()):
        values = values_of(curves, measure)
        fig.add_trace(
            go.Scatter(
                x=list(range(1, len(values) + 1)),
                y=values,
                name=token_label(name.replace(" ", "\u00a0"), 40),
                mode="lines",
                line={
                    "color": palette.SERIES[n % len(palette.SERIES)],
                    "dash": "dash" if name == "Your text" else "solid",
                    "width": 2.5,
                },
                hovertemplate="%{x} tokens: %{y:.3g}<extra></extra>",
            )
        )
    palette.layout(fig, "", "tokens of the text", MEASURES[measure])
    if measure != "longest repeat":
        fig.update_yaxes(range=[-0.03, 1.05])
    fig.update_layout(height=360, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"})
    return fig


def occurrence_curve(phrases: Mapping[str, Sequence[Occurrence]], by: str = "per_token") -> go.Figure:
    """Probability of a phrase at its first, second, ... occurrence. by: "per_token" (geometric mean) or "whole"."""
    words = {"per_token": "probability per token (geometric mean)", "whole": "probability of the whole phrase"}
    if by not in words:
        raise ValueError(f"There is no reading {by!r}; there are: {', '.join(words)}.")
    fig = go.Figure()
    for n, (name, row) in enumerate(phrases.items()):
        fig.add_trace(
            go.Scatter(
                x=[o.n for o in row],
                y=[getattr(o, by) for o in row],
                name=token_label(name.replace(" ", "\u00a0"), 40),
                mode="lines+markers",
                line={"color": palette.SERIES[n % len(palette.SERIES)], "dash": DASHES[n % 4], "width": 2.5},
                marker={"size": 8, "symbol": ["circle", "square", "diamond", "x"][n % 4]},
                hovertemplate="occurrence %{x}: %{y:.4g}<extra></extra>",
            )
        )
    palette.layout(fig, "", "occurrence", words[by])
    fig.update_xaxes(dtick=1 if max((len(r) for r in phrases.values()), default=0) <= 25 else None)
    if by == "whole":
        fig.update_yaxes(type="log")
    else:
        fig.update_yaxes(range=[-0.03, 1.05])
    fig.update_layout(height=360, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"})
    return fig


def token_probabilities(row: Sequence[Occurrence]) -> go.Figure:
    """Heat map: each token of the phrase (down) at each occurrence (across)."""
    pieces = row[0].pieces
    table = np.exp(np.stack([o.log_probabilities for o in row], axis=1))  # (P, N)
    fig = go.Figure(
        go.Heatmap(
            z=table,
            x=[o.n for o in row],
            y=list(range(len(pieces))),
            zmin=0,
            zmax=1,
            colorscale=palette.SEQUENTIAL,
            colorbar={"title": {"text": "probability", "side": "right"}},
            hoverinfo="text",
            text=[[f"{token_label(p)}, occurrence {o.n}<br>{v:.4f}" for o, v in zip(row, line, strict=True)]
                  for p, line in zip(pieces, table, strict=True)],
        )
    )  # fmt: skip
    palette.layout(fig, "", "occurrence", "")
    fig.update_yaxes(
        tickvals=list(range(len(pieces))), ticktext=[token_label(p) for p in pieces], autorange="reversed", title=None
    )
    fig.update_xaxes(dtick=1 if len(row) <= 25 else None)
    fig.update_layout(height=120 + 24 * len(pieces))
    return fig
