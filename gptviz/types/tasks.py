"""The four task forms of GPT-1 (Section 3.3), and their serialized token sequences, as frozen data.

Knows no tokenizer, no model and no file. An example is checked when it is made, so that everything behind it
may rely on non-empty texts and on a label that exists. Dimension names: N sequences, T tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

FORMS = ("classification", "entailment", "similarity", "multiple_choice")
SPECIAL_ROLES = ("start", "delimiter", "extract")


def _checked_text(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, not {type(value).__name__}; quote it or convert it first.")
    if not value.strip():
        raise ValueError(f"{name} is empty; write at least one word.")


def _checked_class(label: object, name: str) -> None:
    if label is None or (isinstance(label, str) and label.strip()):
        return
    if isinstance(label, int) and not isinstance(label, bool):
        return
    raise ValueError(f"{name} label {label!r} is not a class; use a non-empty text, a whole number or None.")


@dataclass(frozen=True)
class Classification:
    """One text and its class.

    >>> Classification("A fine film.", "positive").form
    'classification'
    """

    text: str
    label: str | int | None = None

    def __post_init__(self) -> None:
        _checked_text(self.text, "text")
        _checked_class(self.label, "classification")

    @property
    def form(self) -> str:
        return "classification"

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """(name, text) of each part, in reading order."""
        return (("text", self.text),)


@dataclass(frozen=True)
class Entailment:
    """A premise, a hypothesis and the class of their relation."""

    premise: str
    hypothesis: str
    label: str | int | None = None

    def __post_init__(self) -> None:
        _checked_text(self.premise, "premise")
        _checked_text(self.hypothesis, "hypothesis")
        _checked_class(self.label, "entailment")

    @property
    def form(self) -> str:
        return "entailment"

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        return (("premise", self.premise), ("hypothesis", self.hypothesis))


@dataclass(frozen=True)
class Similarity:
    """Two texts without an order, and a score (a number) or a class (a text, such as "paraphrase")."""

    text_a: str
    text_b: str
    label: float | str | None = None

    def __post_init__(self) -> None:
        _checked_text(self.text_a, "text_a")
        _checked_text(self.text_b, "text_b")
        if isinstance(self.label, str):
            _checked_class(self.label, "similarity")
        elif self.label is not None:
            if isinstance(self.label, bool) or not isinstance(self.label, (int, float)):
                raise ValueError(f"similarity label {self.label!r} is neither a number nor a class name.")
            if not math.isfinite(self.label):
                raise ValueError(f"similarity score {self.label!r} is not finite; use a number such as 3.5.")

    @property
    def form(self) -> str:
        return "similarity"

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        return (("text_a", self.text_a), ("text_b", self.text_b))


@dataclass(frozen=True)
class MultipleChoice:
    """A context, a question about it (either may be empty, not both), the choices, and the right one's index."""

    context: str
    question: str
    choices: tuple[str, ...]
    label: int | None = None

    def __post_init__(self) -> None:
        for name in ("context", "question"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a text, not {type(getattr(self, name)).__name__}.")
        if not self.context.strip() and not self.question.strip():
            raise ValueError("context and question are both empty; write at least one of them.")
        if isinstance(self.choices, str) or not hasattr(self.choices, "__iter__"):
            raise ValueError("choices must be a list of texts, one for each answer.")
        object.__setattr__(self, "choices", tuple(self.choices))
        if len(self.choices) < 2:
            raise ValueError(f"multiple choice needs at least 2 choices, got {len(self.choices)}.")
        for number, choice in enumerate(self.choices):
            _checked_text(choice, f"choice {number}")
        if self.label is not None:
            if isinstance(self.label, bool) or not isinstance(self.label, int):
                raise ValueError(f"multiple-choice label {self.label!r} must be the index of the right choice.")
            if not 0 <= self.label < len(self.choices):
                raise ValueError(
                    f"multiple-choice label {self.label} is out of range; "
                    f"{len(self.choices)} choices are numbered 0 to {len(self.choices) - 1}."
                )

    @property
    def form(self) -> str:
        return "multiple_choice"

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        named = (("context", self.context), ("question", self.question))
        shared = tuple((name, text) for name, text in named if text.strip())
        return shared + tuple((f"choice {number}", choice) for number, choice in enumerate(self.choices))


Example = Classification | Entailment | Similarity | MultipleChoice
EXAMPLE_TYPES = dict(zip(FORMS, (Classification, Entailment, Similarity, MultipleChoice), strict=True))


@dataclass(frozen=True)
class SpecialTokens:
    """The new tokens of fine-tuning: rows appended to an embedding matrix that had ``base`` rows.

    Ids run from ``base`` upwards, in the order of GPT-1's code: start, delimiter (where it is a new token), extract.
    ``delimiter`` is the token or tokens written between two parts: one new id, or the model's own ids of a text.
    """

    base: int
    start: int
    delimiter: tuple[int, ...]
    delimiter_pieces: tuple[str, ...]
    extract: int

    def __post_init__(self) -> None:
        if not self.delimiter or len(self.delimiter) != len(self.delimiter_pieces):
            raise ValueError("a delimiter needs at least one token, and one readable piece for each.")
        if self.start < self.base or self.extract < self.base:
            raise ValueError(f"start and extract must be new rows, numbered from {self.base} upwards.")

    @property
    def new_ids(self) -> tuple[int, ...]:
        """The ids that need a new embedding row, ascending and without a gap."""
        return tuple(sorted({self.start, self.extract, *(i for i in self.delimiter if i >= self.base)}))

    @property
    def delimiter_is_new(self) -> bool:
        return any(i >= self.base for i in self.delimiter)


@dataclass(frozen=True)
class TokenSequence:
    """One sequence as the model reads it. ``roles`` holds start, delimiter, extract or the name of a text part."""

    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    roles: tuple[str, ...]
    extract: int  # position the head reads
    cut: tuple[tuple[str, int], ...] = ()  # (part, tokens taken off its end) where truncation was needed

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Serialized:
    """An example as token sequences, and how the head joins them.

    join   "one"   the head reads one vector
           "add"   both orders' vectors are added, then read (similarity)
           "softmax"  one score for each sequence, softmax over them (multiple choice)
    """

    form: str
    sequences: tuple[TokenSequence, ...]
    join: str
    special: SpecialTokens
    label: str | int | float | None = None

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def was_cut(self) -> bool:
        return any(sequence.cut for sequence in self.sequences)


@dataclass(frozen=True)
class TaskBatch:
    """Sequences of several examples, padded on the right. Padding has id 0, mask 0 and is never read.

    ids, attention_mask   (N, T) int64
    extract               (N,) position the head reads in each sequence
    owner                 (N,) index of the example a sequence belongs to, ascending
    """

    form: str
    join: str
    ids: np.ndarray = field(repr=False)
    attention_mask: np.ndarray = field(repr=False)
    extract: np.ndarray = field(repr=False)
    owner: np.ndarray = field(repr=False)
    labels: tuple[str | int | float | None, ...] = field(repr=False, default=())
    special: SpecialTokens | None = None

    @property
    def n_examples(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class HeadCount:
    """Parameters that fine-tuning adds: a linear head (width x outputs, bias or not) and new embedding rows."""

    form: str
    width: int
    outputs: int
    bias: bool
    new_rows: int
    backbone: int

    @property
    def head(self) -> int:
        return self.width * self.outputs + (self.outputs if self.bias else 0)

    @property
    def embeddings(self) -> int:
        return self.new_rows * self.width

    @property
    def total(self) -> int:
        return self.head + self.embeddings

    @property
    def share(self) -> float:
        """New parameters divided by the backbone's."""
        return self.total / self.backbone


@dataclass(frozen=True)
class RowProblem:
    """What is wrong with one row of a file: its line (from 1), its column and a sentence."""

    line: int
    column: str
    message: str

    def __str__(self) -> str:
        return f'Line {self.line}, column "{self.column}": {self.message}'


@dataclass(frozen=True)
class TaskData:
    """Labelled examples of one form, from one file or bundled set.

    labels        class names in sorted order; empty where the label is a score or the index of a choice
    label_counts  (label as text, count), most frequent first
    problems      rows left out, where the reader asked to leave them out
    notes         one sentence for each thing the reader should know (encoding guessed, rows cut)
    """

    name: str
    form: str
    split: str
    examples: tuple[Example, ...] = field(repr=False)
    labels: tuple[str, ...]
    label_counts: tuple[tuple[str, int], ...]
    source: str = ""
    licence: str = ""
    problems: tuple[RowProblem, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def is_score(self) -> bool:
        """True where the label is a number to be regressed (similarity scores)."""
        return self.form == "similarity" and not self.labels

    @property
    def n_outputs(self) -> int:
        """Outputs of the head this data needs: one for a score or a choice, else one for each class."""
        return len(self.labels) if self.labels else 1
