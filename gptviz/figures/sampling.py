"""Figures of the sampling lab: what each knob did, a continuation step by step, the beam tree, the contrastive choice.

Pure: frozen data in, Plotly figures out. Tokens are shown with their spaces visible and never read as HTML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from gptviz.figures import palette
from gptviz.types.decoding import BeamTree, ContrastiveStep
from gptviz.types.sampling import STAGE_NAMES, Candidate, GenerationStep, StageSummary

STAGE_TITLES = {
    "raw": "the model",
    "repetition_penalty": "repetition penalty",
    "temperature": "temperature",
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
    "typical": "typical",
}
GREY = "rgba(138,143,152,0.55)"


def token_label(piece: str, limit: int = 18) -> str:
    """A token as a label: spaces and line ends visible, cut to `limit`, never read as HTML.

    >>> token_label(" <b>\\n")
    '␣&lt;b&gt;⏎'
    """
    shown = piece.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")
    shown = "".join(c if c.isprintable() else f"‹{ord(c):02X}›" for c in shown) or "(empty)"
    shown = shown if len(shown) <= limit else shown[: limit - 1] + "…"
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def stage_title(summary: StageSummary) -> str:
    """A stage with its setting, as a heading.

    >>> stage_title(StageSummary("top_k", 50.0, True, 50, 0.1, 2.0))
    'top-k = 50'
    """
    if summary.name == "raw":
        return STAGE_TITLES["raw"]
    if summary.name == "temperature" and summary.setting == 0:
        return "temperature = 0 (greedy)"
    return f"{STAGE_TITLES[summary.name]} = {summary.setting:g}"


def stage_bars(
    candidates: Sequence[Candidate], stages: Sequence[StageSummary], stage: str | None = None, columns: int = 4
) -> go.Figure:
    """The candidates' probabilities after each active stage, side by side, or after one `stage` alone.

    Solid: still to be drawn. Hatched grey: cut by this stage or an earlier one, drawn at its last probability.
    The tick is the probability before the stage.
    """
    shown = [i for i, s in enumerate(stages) if s.active and stage in (None, s.name)]
    if not shown:
        raise ValueError(f"The stage {stage!r} is off or unknown; there are: {', '.join(STAGE_NAMES)}.")
    across = min(columns, len(shown))
    down = -(-len(shown) // across)
    fig = make_subplots(
        rows=down,
        cols=across,
        shared_yaxes=True,
        horizontal_spacing=0.025,
        vertical_spacing=0.16 if down > 1 else 0.1,
        subplot_titles=[stage_title(stages[i]) for i in shown],
    )
    at = list(range(len(candidates)))
    labels = [token_label(c.piece) for c in candidates]
    for panel, i in enumerate(shown):
        row, column = panel // across + 1, panel % across + 1
        after = [c.stage_probabilities[i] for c in candidates]
        before = [c.stage_probabilities[max(0, i - 1)] for c in candidates]
        cut = [
            max((c.stage_probabilities[k] for k in range(i) if c.stage_probabilities[k] > 0), default=0.0)
            if c.stage_probabilities[i] == 0
            else 0.0
            for c in candidates
        ]
        common = {"y": at, "orientation": "h", "showlegend": panel == 0, "hoverinfo": "text"}
        fig.add_trace(
            go.Bar(
                x=after,
                name="can be drawn",
                legendgroup="kept",
                marker={"color": palette.SERIES[0]},
                text=[f"{p:.3f}" if p else "" for p in after],
                textposition="auto",
                hovertext=[f"{label}<br>{p:.4f}" for label, p in zip(labels, after, strict=True)],
                **common,
            ),
            row,
            column,
        )
        fig.add_trace(
            go.Bar(
                x=cut,
                name="cut",
                legendgroup="cut",
                marker={"color": GREY, "pattern": {"shape": "/", "fgcolor": "rgba(138,143,152,0.9)"}},
                hovertext=[f"{label}<br>cut, was {p:.4f}" for label, p in zip(labels, cut, strict=True)],
                **common,
            ),
            row,
            column,
        )
        if i:
            fig.add_trace(
                go.Scatter(
                    x=before,
                    y=at,
                    mode="markers",
                    name="before this knob",
                    legendgroup="before",
                    showlegend=panel == (0 if stage else 1),
                    marker={"symbol": "line-ns", "size": 13, "line": {"width": 2, "color": palette.SERIES[1]}},
                    hoverinfo="text",
                    hovertext=[f"{label}<br>before {p:.4f}" for label, p in zip(labels, before, strict=True)],
                ),
                row,
                column,
            )
    top = max((max(c.stage_probabilities) for c in candidates), default=1.0)
    palette.layout(fig, "", "", "")
    fig.update_xaxes(range=[0, min(1.0, top * 1.08) or 1.0], tickformat=".2~f", nticks=4, title=None)
    fig.update_yaxes(range=[len(at) - 0.4, -0.6], tickvals=at, ticktext=labels, title=None, fixedrange=True)
    fig.update_layout(
        barmode="overlay",
        bargap=0.25,
        height=down * (70 + 21 * len(at)) + 60,
        legend={"orientation": "h", "y": -0.08 / down, "yanchor": "top", "x": 0},
        margin={"t": 40, "l": 10, "r": 10, "b": 10},
    )
    return fig


def step_curves(steps: Mapping[str, Sequence[GenerationStep]], measure: str = "raw_probability") -> go.Figure:
    """One line a continuation over its steps. measure: raw_probability, probability, surprisal, entropy or rank."""
    words = {
        "raw_probability": "probability before the knobs",
        "probability": "probability after the knobs",
        "surprisal": "surprisal (nats)",
        "entropy": "entropy before the knobs (nats)",
        "rank": "rank of the token taken",
    }
    if measure not in words:
        raise ValueError(f"There is no measure {measure!r}; there are: {', '.join(words)}.")
    fig = go.Figure()
    for n, (name, row) in enumerate(steps.items()):
        values = [getattr(s, measure) for s in row]
        fig.add_trace(
            go.Scatter(
                x=[s.index + 1 for s in row],
                y=values,
                name=token_label(name.replace(" ", "\u00a0"), 40),
                mode="lines+markers",
                line={"color": palette.SERIES[n % len(palette.SERIES)], "width": 2},
                marker={"size": 5, "symbol": ["circle", "square", "diamond", "x"][n % 4]},
                hoverinfo="text",
                hovertext=[
                    f"{token_label(s.piece)}<br>{words[measure]} {v:.4g}" for s, v in zip(row, values, strict=True)
                ],
            )
        )
    palette.layout(fig, "", "new token", words[measure])
    if measure == "rank":
        fig.update_yaxes(type="log")
    fig.update_layout(height=330, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"})
    return fig


def beam_tree(tree: BeamTree, last_step: int | None = None) -> go.Figure:
    """The continuations beam search looked at: best score on top of each step, the answer's path in strong colour."""
    nodes = [n for n in tree.nodes if last_step is None or n.step <= last_step]
    place: dict[int, float] = {-1: 0.0}
    for step in {n.step for n in nodes}:
        same = sorted((n for n in nodes if n.step == step), key=lambda n: -n.score)
        place |= {n.id: float(i) for i, n in enumerate(same)}
    best = {n.id for n in tree.path(tree.finished[0].node)} if tree.finished else set()
    styles = {
        "dropped": (GREY, "dot", 1),
        "kept": (palette.SERIES[0], "solid", 1.5),
        "finished": (palette.SERIES[2], "solid", 1.5),
        "best": (palette.SERIES[1], "solid", 3.5),
    }
    names = {
        "dropped": "dropped",
        "kept": "kept, one of the beams",
        "finished": "finished",
        "best": "path of the answer",
    }
    fig = go.Figure()
    for kind, (colour, dash, width) in styles.items():
        rows = [n for n in nodes if (kind == "best" and n.id in best) or (n.id not in best and n.state == kind)]
        if not rows:
            continue
        xs: list[float | None] = []
        ys: list[float | None] = []
        for n in rows:
            xs += [n.step, n.step + 1, None]  # the parent stands one step to the left
            ys += [place[n.parent], place[n.id], None]
        line = {"color": colour, "dash": dash, "width": width}
        fig.add_trace(
            go.Scatter(x=xs, y=ys, mode="lines", line=line, hoverinfo="skip", showlegend=False, legendgroup=kind)
        )
        fig.add_trace(
            go.Scatter(
                x=[n.step + 1 for n in rows],
                y=[place[n.id] for n in rows],
                mode="markers+text",
                name=names[kind],
                legendgroup=kind,
                marker={"color": colour, "size": 8, "symbol": "x-thin-open" if kind == "dropped" else "circle"},
                text=[token_label(n.piece, 11) for n in rows],
                textposition="top center",
                textfont={"size": 11},
                hoverinfo="text",
                hovertext=[
                    f"{token_label(n.piece)}<br>ln P(token | past) {n.log_probability:.3f}"
                    f"<br>sum {n.score:.3f}<br>{n.state}"
                    for n in rows
                ],
                cliponaxis=False,
            )
        )
    palette.layout(fig, "", "new token", "place by score (best on top)")
    lowest = max(place.values())
    fig.update_yaxes(range=[lowest + 0.6, -0.9], tickvals=[], zeroline=False, showgrid=False)
    fig.update_xaxes(dtick=1, range=[-0.2, max((n.step for n in nodes), default=0) + 1.6], showgrid=False)
    fig.update_layout(
        height=int(160 + 46 * (lowest + 1)), legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"}
    )
    return fig


def contrastive_choice(step: ContrastiveStep, alpha: float) -> go.Figure:
    """Each candidate's two terms and their difference: (1 - alpha) P minus alpha times its largest cosine."""
    rows = sorted(step.candidates, key=lambda c: -c.score)
    labels = [token_label(c.piece) + ("  ◀" if c.id == step.token_id else "") for c in rows]
    at = list(range(len(rows)))
    fig = go.Figure()
    for name, values, colour in (
        ("(1 − α) × confidence", [(1 - alpha) * c.probability for c in rows], palette.SERIES[0]),
        ("− α × degeneration penalty", [-alpha * c.similarity for c in rows], palette.SERIES[1]),
    ):
        fig.add_trace(
            go.Bar(
                x=values,
                y=at,
                orientation="h",
                name=name,
                marker={"color": colour},
                text=[f"{v:.3f}" for v in values],
                hoverinfo="text",
                hovertext=[f"{label}<br>{name} {v:.4f}" for label, v in zip(labels, values, strict=True)],
            )
        )
    fig.add_trace(
        go.Scatter(
            x=[c.score for c in rows],
            y=at,
            mode="markers",
            name="score",
            marker={"symbol": "diamond", "size": 11, "color": palette.SERIES[2]},
            hoverinfo="text",
            hovertext=[f"{label}<br>score {c.score:.4f}" for label, c in zip(labels, rows, strict=True)],
        )
    )
    palette.layout(fig, "", "score", "")
    fig.update_yaxes(range=[len(rows) - 0.4, -0.6], tickvals=at, ticktext=labels, title=None)
    fig.update_layout(
        barmode="relative", height=130 + 40 * len(rows), legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"}
    )
    return fig
