"""A task written into a prompt: instruction, example pairs, the question, and what counts as its end.

Knows nothing of models. Source: GPT-2 paper, Sections 2 and 3.5 to 3.8, where P(output | input, task) is
conditioned on text alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    """One solved example shown in the prompt."""

    input: str
    output: str


@dataclass(frozen=True)
class TaskPrompt:
    """How a task is posed.

    example   the line of one solved pair, with {input} and {output}
    query     the line to be continued, with {input}; it ends where the answer begins
    between   text between two examples
    stop      the answer ends before the first of these; "" never ends it
    paper     how GPT-2's authors posed it, and its place in the paper
    """

    name: str
    title: str
    example: str
    query: str
    between: str
    stop: str
    paper: str


@dataclass(frozen=True, eq=False)
class AnswerProbability:
    """How probable a given answer is right after the prompt. log_probability is the sum over its tokens, nats."""

    text: str
    pieces: tuple[str, ...]
    probabilities: tuple[float, ...]
    log_probability: float
    first_rank: int
