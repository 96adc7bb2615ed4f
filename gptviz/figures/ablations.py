"""Ablations: differences against the full model, from the paper's Table 5 or measured. Pure: data in, figures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from gptviz.figures import palette
from gptviz.types.transfer import SeedScores


def difference_bars(tasks: Sequence[str], rows: Mapping[str, Sequence[float | None]], reference: str) -> go.Figure:
    """Bars of each variant's score minus the reference's, by task, in the rows' own unit (points)."""
    fig = go.Figure()
    base = rows[reference]
    for n, (name, values) in enumerate(row for row in rows.items() if row[0] != reference):
        gaps = [None if v is None or b is None else round(v - b, 6) for v, b in zip(values, base, strict=True)]
        fig.add_trace(
            go.Bar(x=list(tasks), y=gaps, name=name, marker={"color": palette.SERIES[n]},
                   hovertemplate="%{x}: %{y:+.1f}<extra>" + name + "</extra>")
        )
    palette.layout(fig, "", "", f"difference from: {reference} (points)")
    fig.add_hline(y=0, line={"color": "#8a8f98", "width": 1})
    fig.update_layout(barmode="group", height=400)
    return fig


def grid_bars(tasks: Sequence[str], cells: Mapping[str, Mapping[str, SeedScores]], chance: Mapping[str, float]) -> go.Figure:
    """Measured scores by task and variant with 95 % intervals, and each task's chance line."""
    fig = go.Figure()
    for n, (variant, by_task) in enumerate(cells.items()):
        there = [task for task in tasks if task in by_task]
        means = [by_task[task].mean for task in there]
        spans = [by_task[task].interval for task in there]
        fig.add_trace(
            go.Bar(
                x=there, y=means, name=variant, marker={"color": palette.SERIES[n]},
                error_y={"type": "data", "array": [h - m for (_, h), m in zip(spans, means, strict=True)],
                         "arrayminus": [m - low for (low, _), m in zip(spans, means, strict=True)]},
                customdata=[[low, high] for low, high in spans],
                hovertemplate="%{y:.3f} [%{customdata[0]:.3f}, %{customdata[1]:.3f}]<extra>" + variant + "</extra>",
            )
        )
    fig.add_trace(
        go.Scatter(x=list(tasks), y=[chance.get(task) for task in tasks], mode="markers", name="most frequent class",
                   marker={"symbol": "line-ew", "size": 60, "line": {"width": 2, "color": "#8a8f98"}})
    )
    palette.layout(fig, "", "", "score")
    fig.update_layout(barmode="group", height=400)
    return fig
