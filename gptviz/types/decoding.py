"""What decoding that looks ahead leaves behind: the beam tree, and the two scores of contrastive search.

Knows nothing of torch or of how the numbers were computed (`gptviz.analysis.decoding`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BeamNode:
    """One continuation beam search looked at.

    id, parent       index in `BeamTree.nodes`; parent is -1 for a child of the prompt
    step             0 for the first new token
    log_probability  ln P(token | everything before it)
    score            sum of log_probability from the prompt to here
    state            "kept" went on; "finished" ended the text or reached the length; "dropped" was
                     among the best 2B (B beams) but went no further
    """

    id: int
    parent: int
    step: int
    token_id: int
    piece: str
    log_probability: float
    score: float
    state: str


@dataclass(frozen=True)
class Hypothesis:
    """A finished continuation; `score` is its log-probability over (number of new tokens) ** length_penalty."""

    token_ids: tuple[int, ...]
    text: str
    log_probability: float
    score: float
    node: int


@dataclass(frozen=True)
class BeamTree:
    """Every continuation looked at so far and the finished ones, best first. `done` when the search has ended."""

    n_beams: int
    length_penalty: float
    nodes: tuple[BeamNode, ...]
    finished: tuple[Hypothesis, ...]
    done: bool = False

    def path(self, node: int) -> tuple[BeamNode, ...]:
        """From the first new token to `node`."""
        path: list[BeamNode] = []
        while node >= 0:
            path.append(self.nodes[node])
            node = path[-1].parent
        return tuple(reversed(path))


@dataclass(frozen=True)
class ContrastiveCandidate:
    """One of the k candidates of a step.

    probability  model confidence, P(token | past)
    similarity   degeneration penalty: the largest cosine between its last-layer state and any earlier one
    score        (1 - alpha) * probability - alpha * similarity
    nearest      index (prompt included) of the earlier token it resembles most
    """

    id: int
    piece: str
    probability: float
    similarity: float
    score: float
    nearest: int


@dataclass(frozen=True)
class ContrastiveStep:
    """One token chosen by contrastive search; candidates stand in the order of their probability."""

    index: int
    token_id: int
    piece: str
    delta: str
    candidates: tuple[ContrastiveCandidate, ...]
    finish: str = ""

    @property
    def chosen(self) -> ContrastiveCandidate:
        """The candidate with the best score."""
        return next(c for c in self.candidates if c.id == self.token_id)
