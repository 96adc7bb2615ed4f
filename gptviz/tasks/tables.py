"""Files and uploads as rows of named values: CSV, TSV and JSONL, with the line each row starts on.

Guesses the encoding and the delimiter, and says so; refuses what is not text with a sentence. Knows nothing of
task forms.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_BYTES = 20_000_000
MAX_ROWS = 100_000
MAX_FIELD = 100_000  # characters of one cell
MAX_COLUMNS = 200

_BINARY = ((b"PK\x03\x04", "an Excel workbook or a zip archive"), (b"%PDF", "a PDF"), (b"\x1f\x8b", "a gzip archive"),
           (b"\xd0\xcf\x11\xe0", "an old Excel workbook"), (b"PAR1", "a Parquet file"))
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True)
class Row:
    """One record: the line it starts on (from 1) and its values by column. ``problem``: (column, sentence) or None."""

    line: int
    values: dict[str, Any]
    problem: tuple[str, str] | None = None


@dataclass(frozen=True)
class Table:
    """A file's columns and rows. ``notes``: sentences about what was guessed or left out."""

    source: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def read_table(source: str, content: bytes, limit: int | None = None) -> Table:
    """Read a file's bytes; its kind is told from the name's ending, else from its first characters."""
    name = Path(source).name
    if len(content) > MAX_BYTES:
        raise ValueError(f"{name} has {len(content) / 1e6:.0f} MB; the limit is {MAX_BYTES // 10**6} MB.")
    text, notes = decode(name, content)
    if not text.strip():
        raise ValueError(f"{name} is empty; it needs a header line and at least one row.")
    kind = Path(name).suffix.lower()
    if kind in (".jsonl", ".ndjson") or (kind not in (".csv", ".tsv") and text.lstrip().startswith("{")):
        columns, rows = _json_lines(name, text, limit)
    else:
        columns, rows = _delimited(name, text, "\t" if kind == ".tsv" else None, limit)
    if limit is None and len(rows) > MAX_ROWS:
        rows, notes = rows[:MAX_ROWS], [*notes, f"Only the first {MAX_ROWS:,} rows are used."]
    return Table(source, columns, tuple(rows), tuple(notes))


def decode(name: str, content: bytes) -> tuple[str, list[str]]:
    """Bytes to text: a byte-order mark decides, then UTF-8, then Windows-1252 with a note.

    >>> decode("a.csv", "text,label".encode())
    ('text,label', [])
    """
    for magic, what in _BINARY:
        if content.startswith(magic):
            raise ValueError(f"{name} is {what}, not a text file; export it as CSV (UTF-8) first.")
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            try:
                return content.decode(encoding), []
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{name} says it is {encoding} but byte {error.start} does not fit; save it again as UTF-8."
                ) from error
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        try:
            text = content.decode("cp1252")
        except UnicodeDecodeError:
            raise ValueError(
                f"{name} is neither UTF-8 nor Windows-1252 text (line {line}, byte {content[error.start]:#04x}); "
                "save it again as UTF-8."
            ) from error
        if "\x00" not in text:
            return text, [f"Not UTF-8 (line {line}): read as Windows-1252. Check the accents, or save it as UTF-8."]
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise ValueError(f"{name} has a null byte on line {line}; it is not a text file, or not UTF-8.")
    return text, []


def _json_lines(name: str, text: str, limit: int | None) -> tuple[tuple[str, ...], list[Row]]:
    columns: dict[str, None] = {}
    rows = []
    for line, record in enumerate(text.split("\n"), start=1):
        if not record.strip():
            continue
        if limit is not None and len(rows) >= limit or len(rows) > MAX_ROWS:
            break
        try:
            values = json.loads(record)
        except (ValueError, RecursionError) as error:
            column = getattr(error, "colno", 1)
            reason = getattr(error, "msg", "a number too long or objects too deep")
            raise ValueError(f"Line {line}, column {column}: not JSON ({reason}); write one object a line.") from error
        if not isinstance(values, dict):
            raise ValueError(f'Line {line}, column 1: not a JSON object; write {{"text": ..., "label": ...}} a line.')
        columns.update(dict.fromkeys(values))
        rows.append(Row(line, values))
    return tuple(columns), rows


def _delimited(
    name: str, text: str, delimiter: str | None, limit: int | None
) -> tuple[tuple[str, ...], list[Row]]:
    delimiter = delimiter or sniff_delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    previous = csv.field_size_limit(MAX_FIELD)
    try:
        header, rows, line = None, [], 1
        while True:
            start = reader.line_num + 1
            try:
                cells = next(reader, None)
            except csv.Error as error:
                raise ValueError(_csv_problem(name, header, start, str(error))) from error
            if cells is None:
                break
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header, line = _header(name, cells), start
                continue
            if limit is not None and len(rows) >= limit or len(rows) > MAX_ROWS:
                break
            rows.append(_row(start, header, cells))
    finally:
        csv.field_size_limit(previous)
    if not rows:
        raise ValueError(f"{name} has a header on line {line} but no row below it.")
    return header, rows


def _csv_problem(name: str, header: tuple[str, ...] | None, line: int, reason: str) -> str:
    column = header[0] if header else "1"
    if "field larger" in reason:
        return f'Line {line}, column "{column}": a cell has more than {MAX_FIELD:,} characters; is a quote left open?'
    if "end of data" in reason:
        return f'Line {line}, column "{column}": a quoted cell that starts on this line is never closed; add the quote.'
    return f'Line {line}, column "{column}": {name} is not well-formed CSV ({reason}); quote cells that hold commas.'


def _header(name: str, cells: list[str]) -> tuple[str, ...]:
    header = tuple(cell.strip() for cell in cells)
    if len(header) > MAX_COLUMNS:
        raise ValueError(f"{name} has {len(header)} columns; the limit is {MAX_COLUMNS}.")
    for number, column in enumerate(header, start=1):
        if header.index(column) != number - 1:
            raise ValueError(f'Line 1, column "{column}": this name stands twice in the header; rename one.')
    return header


def _row(line: int, header: tuple[str, ...], cells: list[str]) -> Row:
    values = dict(zip(header, cells, strict=False))  # a short or long row is a problem, named below
    if len(cells) == len(header):
        return Row(line, values)
    column = header[len(cells)] if len(cells) < len(header) else header[-1]
    count = f"{len(cells)} cell{'s' if len(cells) != 1 else ''}"
    return Row(line, values, (column, f"{count} where the header has {len(header)}; quote cells that hold commas."))


def sniff_delimiter(text: str) -> str:
    """Comma, tab, semicolon or bar: the one that splits the header and the rows below it most evenly.

    >>> sniff_delimiter("text;label\\ngood, really;1\\n")
    ';'
    """
    sample = text[:20_000]
    best, best_score = ",", (0, 0.0)
    for delimiter in (",", "\t", ";", "|"):
        try:
            widths = [len(cells) for cells in csv.reader(io.StringIO(sample), delimiter=delimiter) if cells][:20]
        except csv.Error:
            continue
        if len(widths) > 1 and len(sample) == 20_000:
            widths = widths[:-1]  # the last line may be cut by the sample
        even = sum(width == widths[0] for width in widths) / len(widths) if widths else 0.0
        score = (min(widths[0], 2) if widths else 0, even)
        if score > best_score:
            best, best_score = delimiter, score
    return best
