"""Layer transfer: accuracy by how much of the pre-trained model was copied. Pure: data in, Plotly figures out."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from gptviz.figures import palette
from gptviz.types.transfer import TransferCurve


def paper_transfer(positions: Sequence[float], rows: Sequence[tuple[str, Sequence[float | None]]]) -> go.Figure:
    """Figure 2 left of the GPT-1 paper, values read off the figure: dev solid, training dashed; accuracy in percent."""
    tasks = list(dict.fromkeys(label.split(" ")[0] for label, _ in rows))
    fig = go.Figure()
    for label, values in rows:
        train = label.endswith("train")
        fig.add_trace(
            go.Scatter(
                x=list(positions), y=list(values), name=label, mode="lines+markers",
                line={"color": palette.SERIES[tasks.index(label.split(" ")[0])], "dash": "dot" if train else "solid"},
                marker={"symbol": "circle-open" if train else "circle"},
                hovertemplate="%{x}: ≈ %{y:.1f} %<extra>" + label + "</extra>",
            )
        )
    palette.layout(fig, "", "position on the paper's axis (layers transferred)", "accuracy (%)")
    fig.update_layout(height=420)
    return fig


def transfer_curves(curves: Sequence[TransferCurve]) -> go.Figure:
    """Measured curves with 95 % intervals and each task's chance line; single seeds as small dots."""
    fig = go.Figure()
    ticks: dict[int, str] = {}
    for n, curve in enumerate(curves):
        colour = palette.SERIES[n % len(palette.SERIES)]
        x = [point.blocks for point in curve.points]
        means = [point.measured.mean for point in curve.points]
        spans = [point.measured.interval for point in curve.points]
        ticks |= {point.blocks: point.label for point in curve.points}
        name = f"{curve.data}, {curve.model}"
        fig.add_trace(
            go.Scatter(
                x=x, y=means, name=name, mode="lines+markers", line={"color": colour},
                error_y={"type": "data", "array": [high - mean for (_, high), mean in zip(spans, means, strict=True)],
                         "arrayminus": [mean - low for (low, _), mean in zip(spans, means, strict=True)]},
                customdata=[[low, high] for low, high in spans],
                hovertemplate="%{y:.3f} [%{customdata[0]:.3f}, %{customdata[1]:.3f}]<extra>" + name + "</extra>",
            )
        )
        single = [(p.blocks, score) for p in curve.points if len(p.measured.scores) > 1 for score in p.measured.scores]
        if single:
            fig.add_trace(
                go.Scatter(x=[at for at, _ in single], y=[score for _, score in single], mode="markers", showlegend=False,
                           marker={"color": colour, "size": 5, "opacity": 0.5}, hovertemplate="one seed: %{y:.3f}<extra></extra>")
            )
        if x:
            fig.add_trace(
                go.Scatter(x=[min(x), max(x)], y=[curve.chance] * 2, mode="lines", name=f"most frequent class, {curve.data}",
                           line={"color": colour, "dash": "dash", "width": 1}, hoverinfo="skip")
            )
    palette.layout(fig, "", "copied from the pre-trained model", curves[0].metric if curves else "accuracy")
    fig.update_xaxes(tickvals=sorted(ticks), ticktext=[ticks[at] for at in sorted(ticks)])
    fig.update_layout(height=420)
    return fig
