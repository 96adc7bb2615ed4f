"""One row of a table to one checked example, or to the problem that stands in its way.

Knows the fields of each form and how people write labels and choices in tables; knows no file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gptviz.tasks.tables import Row
from gptviz.types.tasks import (
    FORMS,
    Classification,
    Entailment,
    Example,
    MultipleChoice,
    RowProblem,
    Similarity,
)

FIELDS = {
    "classification": ("text", "label"),
    "entailment": ("premise", "hypothesis", "label"),
    "similarity": ("text_a", "text_b", "label"),
    "multiple_choice": ("context", "question", "choices", "label"),
}


def infer_form(have: Sequence[str], columns: Mapping[str, str | Sequence[str]]) -> str:
    """The form whose text fields are all mapped or present as columns. Raises ValueError where none or several fit."""
    present = {*have, *columns}
    required = {form: [f for f in FIELDS[form] if f not in ("label", "question")] for form in FORMS}
    fits = [form for form in FORMS if all(field in present for field in required[form])]
    if len(fits) == 1:
        return fits[0]
    wanted = "; ".join(f"{form}: {', '.join(FIELDS[form])}" for form in FORMS)
    if fits:
        raise ValueError(f"the columns fit {' and '.join(fits)}; choose the task form.")
    raise ValueError(
        f"Line 1, column \"{have[0] if have else ''}\": no task form fits the columns {', '.join(have)}; "
        f"map them to the fields of one form ({wanted})."
    )


def read_example(
    form: str, row: Row, columns: Mapping[str, str | Sequence[str]], labelled: bool = True
) -> Example | RowProblem:
    """Build the example of one row. ``columns`` maps fields to columns; unmapped fields keep their own name."""
    if row.problem is not None:
        return RowProblem(row.line, *row.problem)
    where = {field: columns.get(field, field) for field in FIELDS[form]}
    try:
        values = {}
        for field in FIELDS[form]:
            if field not in ("choices", "label"):
                values[field] = _text(row, where[field], optional=field in ("context", "question"))
        if form == "multiple_choice":
            values["choices"] = _choices(row, where["choices"])
        values["label"] = _label(form, row, where["label"], labelled, values.get("choices", ()))
    except _Problem as problem:
        return RowProblem(row.line, problem.column, str(problem))
    kind = {
        "classification": Classification,
        "entailment": Entailment,
        "similarity": Similarity,
        "multiple_choice": MultipleChoice,
    }[form]
    try:
        return kind(**values)
    except ValueError as error:
        first = where[FIELDS[form][0]]
        return RowProblem(row.line, first if isinstance(first, str) else first[0], str(error))


class _Problem(Exception):
    def __init__(self, column: str, message: str):
        super().__init__(message)
        self.column = column


def _text(row: Row, column: str, optional: bool = False) -> str:
    value = row.values.get(column)
    if value is None or (isinstance(value, str) and not value.strip()):
        if optional:
            return ""
        raise _Problem(column, "empty; every row needs a text here.")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _Problem(column, f"holds {type(value).__name__}, not a text.")
    return _unicode(str(value), column)


def _unicode(text: str, column: str) -> str:
    """JSON can spell half of a surrogate pair, which is no character and which no tokenizer accepts."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _Problem(column, f"has half a character (\\u{ord(text[error.start]):04x}) at {error.start}.") from error
    return text


def _choices(row: Row, column: str | Sequence[str]) -> tuple[str, ...]:
    """Several columns, a list, a JSON list in a cell, or one cell with bars between the choices."""
    if not isinstance(column, str):
        return tuple(_text(row, name) for name in column)
    value = row.values.get(column)
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            try:
                value = json.loads(text)
            except json.JSONDecodeError as error:
                raise _Problem(column, f"not a JSON list ({error.msg}).") from error
        else:
            value = [part.strip() for part in text.split("|")]
    if not isinstance(value, (list, tuple)) or len(value) < 2:
        raise _Problem(column, 'needs at least two choices: ["first", "second"] or first | second.')
    for number, choice in enumerate(value):
        if not isinstance(choice, str) or not choice.strip():
            raise _Problem(column, f"choice {number} is {choice!r}; every choice needs a text.")
        _unicode(choice, column)
    return tuple(value)


def _label(form: str, row: Row, column: str, labelled: bool, choices: Sequence[str]) -> str | float | int | None:
    value = row.values.get(column)
    if isinstance(value, str):
        value = value.strip()
    if value is None or value == "":
        if labelled:
            raise _Problem(column, "the label is empty; every row needs one.")
        return None
    if isinstance(value, (list, dict)):
        raise _Problem(column, f"the label is a {type(value).__name__}; it must be one value.")
    if form == "multiple_choice":
        return _choice_index(value, column, choices)
    if form == "similarity":
        return _score(value, column)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _unicode(str(value), column)


def _choice_index(value: Any, column: str, choices: Sequence[str]) -> int:
    """An index from 0, a letter, or the text of a choice."""
    index = None
    if isinstance(value, str) and value in choices and not value.isdigit():
        index = list(choices).index(value)
    elif isinstance(value, str) and re.fullmatch(r"[A-Za-z]", value):
        index = ord(value.upper()) - ord("A")
    elif isinstance(value, str) and re.fullmatch(r"-?\d+", value) and len(value) < 10:
        index = int(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and float(value).is_integer():
        index = int(value)
    if index is None or not 0 <= index < len(choices):
        last = len(choices) - 1
        raise _Problem(
            column, f"label {value!r} names no choice; use 0 to {last} (or A to {chr(ord('A') + last)}, or its text)."
        )
    return index


def _score(value: Any, column: str) -> float | str:
    """A number where it reads as one, else a class name."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return _unicode(str(value), column)
    if number != number or number in (float("inf"), float("-inf")):
        raise _Problem(column, f"score {value!r} is not finite; use a number such as 3.5.")
    return number
