"""How a serialized example flows into the head (GPT-1, Figure 1 right), as a drawing with this example's numbers.

Pure: dataclasses in, a Plotly figure out. Knows no tokenizer and no page.
"""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from gptviz.figures import palette
from gptviz.types.tasks import HeadCount, Serialized, TokenSequence

ROLE_COLOURS = {"start": 2, "delimiter": 1, "extract": 3}  # index into palette.SERIES; text parts take the others
PART_COLOURS = (0, 4, 5)


def role_colour(role: str, sequence: TokenSequence) -> str:
    """The colour of a role: specials have their own, text parts alternate in reading order."""
    if role in ROLE_COLOURS:
        return palette.SERIES[ROLE_COLOURS[role]]
    parts = list(dict.fromkeys(r for r in sequence.roles if r not in ROLE_COLOURS))
    return palette.SERIES[PART_COLOURS[parts.index(role) % len(PART_COLOURS)]]


def shape_in_words(sequence: TokenSequence) -> str:
    """The roles of a sequence in order, text parts with their token counts.

    >>> shape_in_words(TokenSequence((9, 1, 2, 8), ("Start", "a", "b", "Extract"), ("start", "text", "text", "extract"), 3))
    'Start, text (2), Extract'
    """
    words = {"start": "Start", "delimiter": "Delim", "extract": "Extract"}
    names = list(dict.fromkeys(sequence.roles))
    return ", ".join(words.get(name) or f"{name} ({sequence.roles.count(name)})" for name in names)


def head_flow(serialized: Serialized, count: HeadCount, outputs: Sequence[str]) -> go.Figure:
    """Boxes from sequences over the vector at Extract to the linear head and its outputs, joined as the form asks."""
    n = len(serialized)
    fig = go.Figure()
    rows = [n - 1 - k for k in range(n)]  # first sequence on top
    middle = (n - 1) / 2
    for k, sequence in enumerate(serialized.sequences):
        _box(fig, 0.0, 3.6, rows[k], shape_in_words(sequence), palette.SERIES[0])
        _box(fig, 4.2, 5.7, rows[k], f"h at {sequence.extract}<br>{count.width:,} numbers", palette.SERIES[3])
        _arrow(fig, 3.6, rows[k], 4.2, rows[k])
    joined = serialized.join
    if joined == "add":
        _box(fig, 6.3, 6.9, middle, "+", palette.SERIES[2])
        for row in rows:
            _arrow(fig, 5.7, row, 6.3, middle)
        left, heads = 6.9, [middle]
    else:
        left, heads = 5.7, rows if joined == "softmax" else [middle]
    formula = f"{count.width:,} × {count.outputs}" + (f" + {count.outputs}" if count.bias else "")
    for row in heads:
        _box(fig, 7.5, 9.2, row, f"linear<br>{formula}", palette.SERIES[4])
        _arrow(fig, left, row, 7.5, row)
    if joined == "softmax":
        _box(fig, 9.8, 10.7, middle, "softmax", palette.SERIES[2])
        for row in heads:
            _arrow(fig, 9.2, row, 9.8, middle)
    shown = list(outputs[:6]) + (["..."] if len(outputs) > 6 else [])
    edge = 10.7 if joined == "softmax" else 9.2
    _box(fig, edge + 0.5, edge + 2.3, middle, "<br>".join(_plain(name) for name in shown), palette.SERIES[5])
    _arrow(fig, edge, middle, edge + 0.5, middle)
    fig.update_xaxes(visible=False, range=[-0.1, edge + 2.4], fixedrange=True)
    fig.update_yaxes(visible=False, range=[-0.7, n - 0.3], fixedrange=True)
    palette.layout(fig, "", "", "")
    fig.update_layout(height=110 + 72 * n, margin={"l": 4, "r": 4, "t": 8, "b": 8}, showlegend=False)
    return fig


def _plain(text: str) -> str:
    """Plotly reads a little HTML in labels: class names from a reader's file must not."""
    short = text if len(text) <= 18 else text[:17] + "…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _box(fig: go.Figure, x0: float, x1: float, y: float, text: str, colour: str) -> None:
    fig.add_shape(type="rect", x0=x0, x1=x1, y0=y - 0.36, y1=y + 0.36, line={"color": colour, "width": 2},
                  fillcolor=colour, opacity=0.16, layer="below")
    fig.add_shape(type="rect", x0=x0, x1=x1, y0=y - 0.36, y1=y + 0.36, line={"color": colour, "width": 1.5})
    fig.add_trace(go.Scatter(x=[(x0 + x1) / 2], y=[y], mode="text", text=[text], hoverinfo="skip", cliponaxis=False))


def _arrow(fig: go.Figure, x0: float, y0: float, x1: float, y1: float) -> None:
    fig.add_annotation(x=x1, y=y1, ax=x0, ay=y0, xref="x", yref="y", axref="x", ayref="y", showarrow=True, arrowhead=2,
                       arrowsize=1, arrowwidth=1.4, arrowcolor="#8a8f98", text="")
