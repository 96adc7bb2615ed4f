"""Figures of the zero-shot rules: candidates of one example, score distributions, scores against chance, by step.

Pure: dataclasses or plain records in, Plotly figures out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import palette
from gptviz.types.zero_shot import Verdict, ZeroShot


def candidate_bars(verdict: Verdict, by: str = "mean") -> go.Figure:
    """Mean (or total) log-probability of each candidate, the chosen one in a strong colour, in nats."""
    names = [_label(candidate.name) for candidate in verdict.candidates]
    values = [getattr(candidate, by) for candidate in verdict.candidates]
    best = int(np.argmax(values))
    colours = [palette.SERIES[0] if n == best else "rgba(138,143,152,0.55)" for n in range(len(values))]
    fig = go.Figure(
        go.Bar(x=values, y=list(range(len(values))), orientation="h", marker={"color": colours},
               text=[f"{value:.3f}" for value in values], textposition="auto",
               hovertemplate="%{x:.4f} nats<extra></extra>")
    )
    palette.layout(fig, "", f"{by} log-probability of the scored tokens (nats)", "")
    fig.update_yaxes(tickvals=list(range(len(names))), ticktext=names, autorange="reversed", title=None)
    fig.update_layout(height=90 + 44 * len(names), showlegend=False)
    return fig


def score_histogram(result: ZeroShot) -> go.Figure:
    """What the rule compares, over a set, by true class; a line where the decision changes.

    sentiment: log-odds, decided at 0. acceptability: mean log-probability, decided at the threshold.
    """
    values = np.array([verdict.score for verdict in result.verdicts])
    labels = ["no label" if verdict.label is None else str(verdict.label) for verdict in result.verdicts]
    edges = np.histogram_bin_edges(values, bins=min(40, max(8, len(values) // 6)))
    fig = go.Figure()
    for n, name in enumerate(sorted(set(labels))):
        chosen = values[[label == name for label in labels]]
        fig.add_trace(
            go.Histogram(x=chosen, name=name, xbins={"start": edges[0], "end": edges[-1], "size": edges[1] - edges[0]},
                         marker={"color": palette.SERIES[n]}, opacity=0.62)
        )
    line = result.threshold if result.rule == "acceptability" else 0.0
    axis = "mean log-probability of the sentence (nats)" if result.rule == "acceptability" else (
        "log-odds of “positive” against “negative” (nats)"
    )
    palette.layout(fig, "", axis, "examples")
    fig.add_vline(x=line, line={"dash": "dash", "color": "#8a8f98"}, annotation_text=f"decided at {line:.2f}")
    fig.update_layout(barmode="overlay", height=320)
    return fig


def score_bars(records: Sequence[Mapping], metric: str = "accuracy") -> go.Figure:
    """One bar a record (as ``ZeroShot.record`` gives, plus "data"): value, 95 % interval, chance and majority marks."""
    rows = [(record, _score(record, metric)) for record in records]
    rows = [(record, score) for record, score in rows if score is not None]
    names = [f"{record.get('data', record['rule'])} (n={record['n']})" for record, _ in rows]
    at = list(range(len(rows)))
    value = [score["value"] for _, score in rows]
    fig = go.Figure(
        go.Bar(
            x=at, y=value, name="measured", marker={"color": palette.SERIES[0]},
            error_y={
                "type": "data",
                "array": [score["high"] - score["value"] for _, score in rows],
                "arrayminus": [score["value"] - score["low"] for _, score in rows],
            },
            customdata=[[score["low"], score["high"], record["rule"]] for record, score in rows],
            hovertemplate="%{y:.3f} [%{customdata[0]:.3f}, %{customdata[1]:.3f}]<br>%{customdata[2]}<extra></extra>",
        )
    )
    for key, symbol, n in (("chance", "line-ew", 1), ("majority", "diamond-open", 2)):
        fig.add_trace(
            go.Scatter(
                x=at, y=[score[key] for _, score in rows], mode="markers", name=key,
                marker={"symbol": symbol, "size": 26 if key == "chance" else 9,
                        "line": {"width": 3 if key == "chance" else 2, "color": palette.SERIES[n]},
                        "color": palette.SERIES[n]},
                hovertemplate=f"{key} %{{y:.3f}}<extra></extra>",
            )
        )
    palette.layout(fig, "", "", metric)
    fig.update_xaxes(tickvals=at, ticktext=names)
    fig.update_layout(height=380)
    return fig


def curves_by_step(
    steps: Sequence[float],
    rows: Sequence[tuple[str, Sequence[float | None]]],
    x: str,
    y: str,
    intervals: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    log_x: bool = True,
) -> go.Figure:
    """Lines over training steps. A dashed line for a label that starts with LSTM; None leaves a gap."""
    kinds = list(dict.fromkeys(label.split(", ", 1)[-1] for label, _ in rows))
    fig = go.Figure()
    for label, values in rows:
        n = kinds.index(label.split(", ", 1)[-1])
        spans = (intervals or {}).get(label)
        bars = None
        if spans:
            bars = {
                "type": "data",
                "array": [None if v is None else high - v for v, (_, high) in zip(values, spans, strict=True)],
                "arrayminus": [None if v is None else v - low for v, (low, _) in zip(values, spans, strict=True)],
                "thickness": 1,
            }
        fig.add_trace(
            go.Scatter(
                x=list(steps), y=list(values), name=label, mode="lines+markers", connectgaps=False, error_y=bars,
                line={"color": palette.SERIES[n], "dash": "dash" if label.startswith("LSTM") else "solid"},
                marker={"symbol": "circle-open" if label.startswith("LSTM") else "circle"},
            )
        )
    palette.layout(fig, "", x, y)
    if log_x:
        fig.update_xaxes(type="log")
    fig.update_layout(height=420)
    return fig


def _score(record: Mapping, metric: str) -> Mapping | None:
    return next((score for score in record["scores"] if score["metric"] == metric), None)


def _label(text: str) -> str:
    """A candidate's text as an axis label: short, and never read as HTML."""
    short = text if len(text) <= 40 else text[:39] + "…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
