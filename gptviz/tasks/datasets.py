"""Labelled examples from anywhere through one loader: bundled sets, CSV, TSV and JSONL files or uploads, the hub.

    load_data("sentiment")                           a bundled set (gptviz/data/sets)
    load_data("folder/with/train.jsonl", split="dev")  a folder with one file for each split
    load_data("reviews.csv", columns={"text": "review", "label": "stars"})
    load_data("upload.csv", content=b"...")          bytes a reader uploaded
    load_data("hub:nyu-mll/glue/rte", split="dev")   Hugging Face datasets, where reachable

Reads tables (``tables``), maps columns, builds one example a row (``rows``), counts labels. Knows no tokenizer.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gptviz.tasks.rows import FIELDS, infer_form, read_example
from gptviz.tasks.tables import MAX_BYTES, MAX_ROWS, Row, Table, read_table
from gptviz.types.tasks import FORMS, Example, RowProblem, TaskData

SETS = Path(__file__).resolve().parent.parent / "data" / "sets"
SUFFIXES = (".jsonl", ".csv", ".tsv")
HUB_SPLITS = {"dev": "validation"}
OFFLINE = ("1", "true", "yes", "on")


@dataclass(frozen=True)
class SetCard:
    """One set found in a folder's index.json: what it holds, as its author states it."""

    name: str
    form: str
    title: str
    splits: tuple[tuple[str, int], ...]  # (split, number of examples)
    licence: str
    metric: str = ""
    note: str = ""


def data_sets(folder: Path | str = SETS) -> tuple[SetCard, ...]:
    """The sets of a folder with an index.json, by default the bundled ones; empty where there is none."""
    index = _index(Path(folder))
    return tuple(
        SetCard(
            name=name,
            form=_form_name(entry.get("form", "")),
            title=entry.get("title", name),
            splits=tuple((split, int(count)) for split, count in entry.get("counts", {}).items()),
            licence=entry.get("licence", ""),
            metric=entry.get("metric", ""),
            note=entry.get("notes", ""),
        )
        for name, entry in index.items()
    )


def load_data(
    source: str | Path,
    split: str = "train",
    form: str | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    content: bytes | None = None,
    limit: int | None = None,
    skip_bad: bool = False,
    labelled: bool = True,
) -> TaskData:
    """Load labelled examples of one task form.

    source    a bundled set's name, a folder, a .jsonl, .csv or .tsv file, or "hub:owner/name[/config]"
    form      one of FORMS; told from the columns where None
    columns   field -> column of the file; a list of columns for "choices"; names equal to the fields need none
    content   the bytes of an uploaded file, whose name is ``source``
    limit     first rows only
    skip_bad  leave out rows with a problem and list them in ``problems`` instead of raising
    labelled  False: a missing label is allowed (rows to be classified)

    Raises ValueError, one sentence: the first bad line and column, an unknown set, a file too large.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit {limit} must be at least 1 row.")
    table, name, licence = _table(str(source), split, content, limit)
    columns = dict(columns or {})
    if form is not None and _form_name(form) not in FORMS:
        raise ValueError(f"task form {form!r} is unknown; use one of {', '.join(FORMS)}.")
    form = _form_name(form) if form else infer_form(table.columns, columns)
    _check_columns(form, table, columns, labelled)
    examples, problems = _read_rows(form, table.rows, columns, labelled)
    if problems and not skip_bad:
        more = f" ({len(problems)} rows have a problem.)" if len(problems) > 1 else ""
        raise ValueError(f"{problems[0]}{more}")
    if not examples:
        raise ValueError(f"{name} has no usable row; the file needs a header and at least one row below it.")
    return _task_data(name, form, split, examples, table, licence, problems)


def preview(source: str | Path, content: bytes | None = None, split: str = "train", limit: int = 20) -> Table:
    """The first rows as they stand in the file, before any column is mapped."""
    return _table(str(source), split, content, limit)[0]


def _read_rows(
    form: str, rows: Sequence[Row], columns: Mapping, labelled: bool
) -> tuple[list[Example], list[RowProblem]]:
    """Build the examples; a similarity file is read as scores only where every label is a number."""
    examples, problems = [], []
    for row in rows:
        result = read_example(form, row, columns, labelled)
        (problems if isinstance(result, RowProblem) else examples).append(result)
    if form == "similarity":
        kinds = {isinstance(e.label, str) for e in examples if e.label is not None}
        if len(kinds) > 1:
            numbers = sum(not isinstance(e.label, str) for e in examples)
            odd_is_text = numbers * 2 >= len(examples)
            good = [row for row in rows if not isinstance(read_example(form, row, columns, labelled), RowProblem)]
            column = columns.get("label", "label")
            bad = {i for i, e in enumerate(examples) if isinstance(e.label, str) == odd_is_text}
            wanted = "a number, as in most rows" if odd_is_text else "a class name, as in most rows"
            problems += [
                RowProblem(good[i].line, str(column), f"label {examples[i].label!r} should be {wanted}.")
                for i in sorted(bad)
            ]
            examples = [e for i, e in enumerate(examples) if i not in bad]
    return examples, sorted(problems, key=lambda problem: problem.line)


def _task_data(
    name: str,
    form: str,
    split: str,
    examples: list[Example],
    table: Table,
    licence: str,
    problems: list[RowProblem],
) -> TaskData:
    counts = Counter(e.label for e in examples if e.label is not None)
    is_class = form in ("classification", "entailment") or any(isinstance(label, str) for label in counts)
    return TaskData(
        name=name,
        form=form,
        split=split,
        examples=tuple(examples),
        labels=tuple(sorted(str(label) for label in counts)) if is_class else (),
        label_counts=tuple((str(label), n) for label, n in sorted(counts.items(), key=lambda c: (-c[1], str(c[0])))),
        source=table.source,
        licence=licence,
        problems=tuple(problems),
        notes=table.notes,
    )


def _table(source: str, split: str, content: bytes | None, limit: int | None) -> tuple[Table, str, str]:
    """The table behind a source, the set's name and its licence."""
    if content is not None:
        return read_table(source, content, limit), Path(source).stem or "upload", ""
    if source.startswith("hub:"):
        return _hub_table(source[4:], split, limit), source[4:], ""
    path = Path(source)
    if (SETS / source).is_dir() and path.name == source:
        path = SETS / source
    if path.is_dir():
        file = next((path / f"{split}{s}" for s in SUFFIXES if (path / f"{split}{s}").is_file()), None)
        if file is None:
            there = sorted(f.stem for f in path.iterdir() if f.suffix in SUFFIXES)
            raise ValueError(f"{path.name} has no split {split!r}; it has {', '.join(there) or 'no data file'}.")
        licence = _index(path.parent).get(path.name, {}).get("licence", "")
        return read_table(str(file), _bytes(file), limit), path.name, licence
    if path.is_file():
        return read_table(source, _bytes(path), limit), path.stem, ""
    known = ", ".join(card.name for card in data_sets()) or "none"
    raise ValueError(f"no data set or file named {source!r}; bundled sets: {known}.")


def _bytes(file: Path) -> bytes:
    size = file.stat().st_size
    if size > MAX_BYTES:
        raise ValueError(f"{file.name} has {size / 1e6:.0f} MB; the limit is {MAX_BYTES // 10**6} MB.")
    return file.read_bytes()


def _hub_table(name: str, split: str, limit: int | None) -> Table:
    """Rows of a Hugging Face data set. ``name`` is owner/name, owner/name/config or a local folder."""
    local = Path(name).is_dir()
    if os.environ.get("GPTVIZ_OFFLINE", "").lower() in OFFLINE and not local:
        raise ValueError(f"data set {name!r} is on the hub and GPTVIZ_OFFLINE is set; load a file instead.")
    import datasets

    owner_name, config = name, None
    if not local and name.count("/") >= 2:
        owner, repo, config = name.split("/", 2)
        owner_name = f"{owner}/{repo}"
    try:
        streamed = datasets.load_dataset(owner_name, config, split=HUB_SPLITS.get(split, split), streaming=True)
        rows = []
        for number, record in enumerate(streamed, start=1):
            if number > min(limit or MAX_ROWS, MAX_ROWS):
                break
            rows.append(record)
        features = streamed.features or {}
    except Exception as error:  # the library raises many kinds: no network, no such set, a script, a wrong split
        reason = str(error).strip().split("\n")[0][:160] or type(error).__name__
        raise ValueError(f"data set {name!r} could not be loaded from the hub: {reason}") from error
    names = {key: f.names for key, f in features.items() if isinstance(f, datasets.ClassLabel)}
    table_rows = []
    for number, record in enumerate(rows, start=1):
        values = {
            key: names[key][value] if key in names and isinstance(value, int) and value >= 0 else value
            for key, value in record.items()
        }
        table_rows.append(Row(number, {k: None if v == -1 and k in names else v for k, v in values.items()}))
    columns = tuple(features) or tuple(dict.fromkeys(key for record in rows for key in record))
    return Table(f"hub:{name}", columns, tuple(table_rows), ())


def _check_columns(form: str, table: Table, columns: Mapping, labelled: bool) -> None:
    """Every field needs a column that is there; the sentence names the field and what the file has."""
    have = ", ".join(table.columns)
    for field in columns:
        if field not in FIELDS[form]:
            raise ValueError(f"{form} has no field {field!r}; its fields are {', '.join(FIELDS[form])}.")
    for field in FIELDS[form]:
        optional = field == "question" or (field == "label" and not labelled)
        wanted = columns.get(field, field)
        for column in [wanted] if isinstance(wanted, str) else wanted:
            if column not in table.columns and not (optional and field not in columns):
                raise ValueError(f'Line 1, column "{column}": not found; the file has the columns {have}.')


def _index(folder: Path) -> dict:
    file = folder / "index.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}


def _form_name(form: str) -> str:
    return form.strip().replace(" ", "_").replace("-", "_")
