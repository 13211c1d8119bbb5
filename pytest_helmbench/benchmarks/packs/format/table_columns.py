"""Columns of a table: which one holds the question, the answer, the choices; and its rows as rows of a pack."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from tempfile import TemporaryFile
from threading import Lock
from typing import TypeVar
from weakref import finalize

from pytest_helmbench.benchmarks.packs.families.registry import table_family
from pytest_helmbench.benchmarks.packs.format.row_files import Line, ReadRow, TableError, open_table
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import RowRef
from pytest_helmbench.files.source import Fault

FIELDS: Mapping[str, str] = {
    "question": "question, prompt, input, query, problem, instruction",
    "answer": "answer, answers, accepted answers, target, expected, expected output, output, gold, label, solution",
    "choices": "choices, options",
    "context": "context, passage, document",
    "id": "id, name, key",
    "tolerance": "",
}
"""Names under which each field is found; case, spaces and underscores do not count."""

_CHUNK = 2**20
_PREFIXES = ("", "choice", "option")
_ENDS = (tuple(ascii_lowercase), tuple(map(str, range(1, 27))), tuple(map(str, range(26))))
Cell = TypeVar("Cell", str, list[str])
_ADD = "add --helmbench-columns='{}'"
_RUBRIC = '{}, or --helmbench-rubric="…" with --helmbench-marking-model=ID'


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Columns by field, and a rubric, as the user or a manifest names them.

    An empty column leaves its field out. Several columns of choices have `|` between them.
    """

    columns: Mapping[str, str]
    rubric: str | None = None

    def before(self, other: TableOptions) -> TableOptions:
        """Return these, and where they say nothing what another says."""
        return TableOptions({**other.columns, **self.columns}, self.rubric or other.rubric)


NO_TABLE_OPTIONS = TableOptions({})


@dataclass(frozen=True, slots=True)
class Columns:
    """Where a table has its fields; of choices the column that lists them, or one for each."""

    of: Mapping[str, str]
    choices: tuple[str, ...] = ()
    rubric: str | None = None

    @property
    def family(self) -> str:
        """The family of every row."""
        return table_family(choices=bool(self.choices), answers="answer" in self.of)

    @property
    def stated(self) -> dict[str, str]:
        """The columns as a manifest names them."""
        listed = {"choices": "|".join(self.choices)} if self.choices else {}
        return {**self.of, **listed}

    def understood(self, groups: Sequence[str]) -> str:
        """Return what was understood, in words: `question = "Frage", answer = "Antwort", groups by topic`."""
        found = [f"{name} = {_quoted([column])}" for name, column in self.stated.items()]
        return ", ".join([*found, *([f"groups by {', '.join(groups)}"] if groups else [])])

    def pack_row(self, record: ReadRow, name: str) -> dict[str, JsonValue]:
        """Return a row as a pack has it, and add to the record what is wrong with it.

        Args:
            record: As read.
            name: Its id, where it has no column for that.
        """
        cells = record.row or {}
        context = cells.get(self.of.get("context", ""))
        passage = context if isinstance(context, dict) else _text(context)
        question = self._needed(record, "question", _text(cells.get(self.of["question"])))
        answers = self._needed(record, "answer", _listed(cells.get(self.of.get("answer", ""))))
        shown: dict[str, JsonValue]
        if self.choices:
            choices = self._needed(record, "choices", self._choices(record))
            shown = {"question": f"{passage}\n\n{question}" if passage else question, "choices": [*choices]}
            hidden: dict[str, JsonValue] = {"answer": [self._choice(one, choices, record) for one in answers]}
        else:
            has_answers = "answer" in self.of
            shown = {
                "question" if has_answers else "prompt": question,
                **({"context": passage} if passage else {}),
            }
            hidden = {"accepted_answers": [*answers]} if has_answers else {"rubric": self.rubric}
        tolerance = _text(cells.get(self.of.get("tolerance", "")))
        if tolerance:
            hidden["tolerance"] = float(tolerance) if tolerance.replace(".", "", 1).isdecimal() else tolerance
        used = {*self.of.values(), *self.choices}
        row: dict[str, JsonValue] = {
            "id": _text(cells.get(self.of.get("id", ""))) or name,
            "family": self.family,
        }
        row["input"], row["eval"] = shown, hidden
        row["metadata"] = {
            key: cell for key, cell in cells.items() if key not in used and cell not in (None, "")
        }
        return row

    def _needed(self, record: ReadRow, field: str, value: Cell) -> Cell:
        """Return a value, after adding to its record that it is empty where it must not be."""
        column = self.stated.get(field)
        if not value and column is not None and record.row:
            shown = "" if column == field else f" (column {_quoted([column])})"
            hint = "fill the cell, or delete the row"
            record.faults.errors.append(Fault(record.line.number, f"{field} is empty{shown}", hint))
        return value

    def _choices(self, record: ReadRow) -> list[str]:
        """Return the choices of a row; the last ones may be left empty where each has a column."""
        cells = [(record.row or {}).get(column) for column in self.choices]
        if len(cells) == 1:
            return _listed(cells[0])
        found = [_text(cell) for cell in cells]
        while found and not found[-1]:
            found.pop()
        if "" in found:
            what = f"choice {self.choices[found.index('')]} is empty, and a later one is not"
            record.faults.errors.append(
                Fault(record.line.number, what, "fill the cell, or move the later ones up")
            )
        return found

    def _choice(self, answer: str, choices: Sequence[str], record: ReadRow) -> JsonValue:
        """Return the choice that an answer names, as a pack has it: a letter or a text; a number is a place from 0."""
        if not answer.isdecimal():
            return answer
        ends = [_plain(name).removeprefix("choice").removeprefix("option") for name in self.choices]
        place = ends.index(answer) if answer in ends else int(answer)
        is_text = answer in choices and isinstance((record.row or {}).get(self.of["answer"]), str)
        if is_text and choices[place : place + 1] not in ([], [answer]):
            what = f"answer {answer} may be the choice {answer!r}, or the one at place {answer} from 0"
            hint = "write the letter of the right choice"
            record.faults.errors.append(Fault(record.line.number, what, hint))
        place = choices.index(answer) if is_text and place >= len(choices) else place
        return ascii_uppercase[: len(choices)][place : place + 1] or place


class Tables:
    """The tables of a pack, all with the same columns.

    Their rows are kept as JSON in a file without a name: they take no memory, and a changed table changes no case.
    """

    def __init__(self, paths: Sequence[Path], table_options: TableOptions) -> None:
        self.paths = paths
        self.columns: Columns | None = None
        self._options = table_options
        self._rows = TemporaryFile()  # noqa: SIM115 - it lives as long as its pack
        finalize(self, self._rows.close)
        self._lock = Lock()

    def text(self, ref: RowRef) -> bytes:
        """Return a row as JSON."""
        with self._lock:
            self._rows.seek(ref.offset)
            return self._rows.read(ref.length)

    def rows(self, path: Path, digest: hashlib._Hash) -> Iterator[ReadRow]:
        """Yield the rows of a table as a pack has them, and add the table to a hash.

        The 17th row without an id is `row-17`, in the second table `row-2.17`.

        Raises:
            TableError: It cannot be understood.
            OSError: It cannot be read on.
        """
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        table = open_table(path)
        columns = find_columns(path, table.names, self._options)
        if columns != (self.columns or columns):
            raise TableError(path, f"its columns are others than those of {self.paths[0].name}")
        self.columns = columns
        digest.update(json.dumps([columns.stated, columns.rubric], sort_keys=True).encode())
        place = self.paths.index(path)
        for number, record in enumerate(table.records, start=1):
            line = record.line.number
            row = columns.pack_row(record, f"row-{place + 1}.{number}" if place else f"row-{number}")
            whole = not record.faults.errors
            raw = json.dumps(row, ensure_ascii=False).encode() if whole else b""
            yield ReadRow(
                Line(line, self._rows.tell(), len(raw), raw),
                row if whole else None,
                record.faults,
                str(row["id"]),
            )
            self._rows.write(raw)


def find_columns(path: Path, names: Sequence[str], table_options: TableOptions) -> Columns:
    """Return where a table has its fields.

    Raises:
        TableError: A field that it needs has no column or more than one, or a column that is named is not there.
    """
    places = {field: _places(path, field, names, table_options.columns) for field in FIELDS}
    for field, found in places.items():
        if len(found) > 1:
            candidates = _quoted([column for columns in found for column in columns])
            hint = _ADD.format(f"{field}={'|'.join(found[0])}")
            raise TableError(path, f"more than one column may be the {field}: {candidates}", hint)
    choices = places.pop("choices")
    of = {field: found[0][0] for field, found in places.items() if found}
    for field, needed in (("question", True), ("answer", bool(choices) or table_options.rubric is None)):
        if field not in of and needed:
            hint = _ADD.format("question=…, answer=…" if field == "question" else "answer=…")
            hint = hint if field == "question" or choices else _RUBRIC.format(hint)
            raise TableError(path, f"no column is found for the {field}; there are {_quoted(names)}", hint)
    if "answer" in of and table_options.rubric is not None:
        what = f"a rubric reads tables without answers, and the column {of['answer']!r} has answers"
        raise TableError(path, what, f"leave the rubric out, or {_ADD.format('answer=')}")
    return Columns(of, choices[0] if choices else (), table_options.rubric)


def _places(path: Path, field: str, names: Sequence[str], stated: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return where a field may be: a column, or for choices several."""
    if field in stated:
        wanted = stated[field]
        columns = tuple(map(str.strip, wanted.split("|"))) if wanted not in names else (wanted,)
        lost = [name for name in columns if name not in names]
        if wanted and lost:
            what = f"there is no column {lost[0]!r}; there are {_quoted(names)}"
            raise TableError(path, what, _ADD.format(f"{field}=…"))
        return [columns] if wanted else []
    free = [name for name in names if name not in {*stated.values()}]
    known = {_plain(name) for name in FIELDS[field].split(",") if name}
    found: list[tuple[str, ...]] = [(name,) for name in free if _plain(name) in known]
    by_plain = {_plain(name): name for name in free}
    for prefix in _PREFIXES if field == "choices" else ():
        for ends in _ENDS if prefix else _ENDS[:1]:
            series = tuple(by_plain[f"{prefix}{end}"] for end in ends if f"{prefix}{end}" in by_plain)
            if len(series) > 1 and f"{prefix}{ends[0]}" in by_plain:
                found.append(series)
                break
    return found


def _plain(name: str) -> str:
    return "".join(name.replace("_", "").split()).casefold()


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(json.dumps(name, ensure_ascii=False) for name in names) or "none"


def _text(value: JsonValue) -> str:
    """Return a cell as a CSV file has it, without space around it; empty for none."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if value is None or isinstance(value, str):
        return (value or "").strip()
    return json.dumps(value, ensure_ascii=False)


def _listed(value: JsonValue) -> list[str]:
    """Return the entries of a cell: a list, JSON that is one, texts with `|` between, or one text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            read = value
        value = read if isinstance(read, list) else value
    entries = value if isinstance(value, list) else _text(value).split("|")
    return [text for entry in entries if (text := _text(entry))]
