"""Columns of a table: which one holds the question, the answer, the choices; and its rows as rows of a pack."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import TypeVar

from pytest_helmbench.benchmarks.authoring import counted
from pytest_helmbench.benchmarks.packs.families.registry import table_family
from pytest_helmbench.benchmarks.packs.format.cell_shapes import (
    CellError,
    ChoiceTexts,
    answers_of,
    choices_of,
    context_of,
    kinds_of_answer,
    plain_name,
    question_of,
    text_of,
)
from pytest_helmbench.benchmarks.packs.format.prompt_template import field_text
from pytest_helmbench.benchmarks.packs.format.row_files import HeldRows, ReadRow, TableError, open_table
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault
from pytest_helmbench.files.strict_json import a_mapping

FIELDS: Mapping[str, str] = {
    "question": "question, question stem, prompt, input, query, problem, instruction",
    "answer": "answer, answers, answer key, accepted answers, target, expected, expected output, output, gold, ideal,"
    " label, solution",
    "choices": "choices, options",
    "context": "context, passage, document",
    "id": "id, name, key",
    "tolerance": "",
}
"""Names under which each field is found; case, spaces and underscores do not count."""

_CHUNK = 2**20
_PREFIXES = ("", "choice", "option")
_ENDS = (tuple(ascii_lowercase), tuple(map(str, range(1, 27))), tuple(map(str, range(26))))
T = TypeVar("T")
_ANSWER_FIELDS = frozenset({"answer", "answers"})
_FIRST_LABELS: Mapping[str, int | None] = {"0": 0, "1": 1, "": None}
_MOST_DIGITS = 3
_LABELS = (re.compile(r"[a-z]"), re.compile(r"\d+"))
_ADD = "add --helmbench-columns='{}'"
_FIRST = f"{_ADD.format('first_label=0')}, or 1; 'first_label=' where numbers are the texts of choices"
_RUBRIC = '{}, or --helmbench-rubric="…" with --helmbench-marking-model=ID'


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Columns by field, and a rubric, as the user or a manifest names them.

    An empty column leaves its field out. Several columns of choices have `|` between them. `answers` says of the column
    of answers that a text may hold several. `first_label` is the number of the first choice, empty where numbers are
    texts.
    """

    columns: Mapping[str, str]
    rubric: str | None = None

    def before(self, other: TableOptions) -> TableOptions:
        """Return these, and where they say nothing what another says."""
        theirs = other.columns
        if self.columns.keys() & _ANSWER_FIELDS:
            theirs = {field: column for field, column in theirs.items() if field not in _ANSWER_FIELDS}
        return TableOptions({**theirs, **self.columns}, self.rubric or other.rubric)


NO_TABLE_OPTIONS = TableOptions({})


@dataclass(frozen=True, slots=True)
class Columns:
    """Where a table has its fields.

    Args:
        of: The columns of each field: one, or of choices one for each.
        rubric: For tables without answers.
        splits: A text in the column of answers may hold several.
        first_label: As the user states it: `0`, `1`, or empty where a number is the text of a choice; None for no word.
        counts_from: The number of the first choice; None where a number is the text of a choice.
    """

    of: Mapping[str, tuple[str, ...]]
    rubric: str | None
    splits: bool
    first_label: str | None
    counts_from: int | None

    @property
    def family(self) -> str:
        """The family of every row."""
        return table_family(self.of)

    @property
    def stated(self) -> dict[str, str]:
        """The columns as a manifest names them."""
        names = {"answer": "answers"} if self.splits else {}
        of = {names.get(field, field): self.column(field) for field in self.of}
        return of | ({} if self.first_label is None else {"first_label": self.first_label})

    def pack_row(self, record: ReadRow, name: str) -> dict[str, JsonValue]:
        """Return a row as a pack has it, under a name where it has no id, and add to the record what is wrong."""
        cells = record.row or {}
        context: JsonValue = self._read(record, "context", context_of, None)
        unread: tuple[str, list[JsonValue]] = ("", [])
        question, before = self._read(record, "question", question_of, unread)
        answers = self._answers(record)
        shown: dict[str, JsonValue] = {"messages": before} if before else {}
        if "choices" in self.of:
            choices = self._choices(record)
            passage = field_text("context")({"context": context})
            shown["question"] = f"{passage}\n\n{question}" if passage else question
            shown["choices"] = [*choices.texts]
            hidden: dict[str, JsonValue] = {"answer": [self._choice(one, choices) for one in answers]}
        else:
            has_answers = "answer" in self.of
            shown["question" if has_answers else "prompt"] = question
            shown |= {"context": context} if context else {}
            hidden = {"accepted_answers": [*answers]} if has_answers else {"rubric": self.rubric}
        tolerance = self._read(record, "tolerance", text_of, "")
        if tolerance:
            hidden["tolerance"] = float(tolerance) if tolerance.replace(".", "", 1).isdecimal() else tolerance
        used = {column for columns in self.of.values() for column in columns}
        return {
            "id": self._read(record, "id", text_of, "") or name,
            "family": self.family,
            "input": shown,
            "eval": hidden,
            "metadata": {
                key: cell for key, cell in cells.items() if key not in used and cell not in (None, "")
            },
        }

    def column(self, field: str) -> str:
        """Return the column of a field, as options name it; empty for none."""
        return "|".join(self.of.get(field, ()))

    def cell(self, record: ReadRow, field: str) -> JsonValue:
        """Return the cell of a field; the cells of choices that have a column each."""
        cells = [(record.row or {}).get(column) for column in self.of.get(field, ())]
        return cells if len(cells) > 1 else next(iter(cells), None)

    def _answers(self, record: ReadRow) -> list[str]:
        return self._read(record, "answer", partial(answers_of, split=self.splits), [])

    def _choices(self, record: ReadRow) -> ChoiceTexts:
        """Return the choices of a row; the last ones may be left empty."""
        columns = self.of["choices"]
        found = self._read(record, "choices", choices_of, ChoiceTexts([], []))
        if "" in found.texts:
            at = found.texts.index("")
            which = columns[at] if len(columns) > 1 else at + 1
            what = f"choice {which} is empty, and a later one is not"
            hint = "fill the cell, or move the later ones up"
            record.faults.errors.append(Fault(record.line.number, what, hint))
        return found if len(columns) == 1 else ChoiceTexts(found.texts, [*columns])

    def numbers(self, record: ReadRow) -> Iterator[tuple[int | None, ...]]:
        """Yield the places of the choices that each number may name, in the order of `_FIRST_LABELS`."""
        choices = self._choices(record)
        for answer in self._answers(record):
            if answer.isdecimal() and _labelled(answer, choices) is None:
                places = tuple(_place(answer, choices, first) for first in _FIRST_LABELS.values())
                yield places

    def _read(self, record: ReadRow, field: str, read: Callable[[JsonValue], T], default: T) -> T:
        """Return what the cell of a field says; the default after adding to its record why it cannot be read."""
        if field not in self.of:
            return default
        try:
            return read(self.cell(record, field))
        except CellError as error:
            column = self.column(field)
            shown = "" if column == field else f" (column {_quoted([column])})"
            if record.row:
                fault = Fault(record.line.number, f"{field} is {error}{shown}", error.hint)
                record.faults.errors.append(fault)
            return default

    def _choice(self, answer: str, choices: ChoiceTexts) -> JsonValue:
        """Return the choice that an answer names, as a pack has it: a letter, a text, or -1 where it names none."""
        place = _labelled(answer, choices)
        if place is None and answer.isdecimal():
            place = _place(answer, choices, self.counts_from)
            if place is None:
                return -1
        return answer if place is None else ascii_uppercase[place : place + 1] or place


def _labelled(answer: str, choices: ChoiceTexts) -> int | None:
    """Return the place of the choice whose own label an answer is; -1 for a label of none, None for no label."""
    labels, name = [*map(plain_name, choices.labels)], plain_name(answer)
    if name in labels:
        return labels.index(name)
    is_label = any(all(map(kind.fullmatch, (name, *labels))) for kind in _LABELS) if labels else False
    return -1 if is_label and answer not in choices.texts else None


def _place(answer: str, choices: ChoiceTexts, counts_from: int | None) -> int | None:
    """Return the place of the choice that a number names, counted as in `Columns`; None for none."""
    if counts_from is None:
        return choices.texts.index(answer) if answer in choices.texts else None
    place = int(answer) - counts_from if len(answer) <= _MOST_DIGITS else -1
    return place if 0 <= place < len(choices.texts) else None


class Tables(HeldRows):
    """The tables of a pack, all with the same columns.

    Attributes:
        columns: None before the first table is read.
        several: Rows with several answers.
        whole: Rows whose answer looks like several texts and is taken whole.
    """

    def __init__(self, paths: Sequence[Path], table_options: TableOptions) -> None:
        super().__init__()
        self.paths = paths
        self.columns: Columns | None = None
        self.several = self.whole = 0
        self._options = table_options

    def understood(self, groups: Sequence[str]) -> str:
        """Return what was understood, in words: `question = "Frage", answer = "Antwort", groups by topic`."""
        stated = {} if self.columns is None else self.columns.stated
        found = [f"{name} = {_quoted([column])}" for name, column in stated.items()]
        if self.several:
            found.append(f"{counted(self.several, 'row')} with several answers")
        if self.whole:
            option = f"--helmbench-columns='answers={stated['answer']}'"
            found.append(
                f"{counted(self.whole, 'answer')} with | or a JSON list taken whole ({option} splits)"
            )
        return ", ".join([*found, *([f"groups by {', '.join(groups)}"] if groups else [])])

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
        columns = self._counted(path, find_columns(path, table.names, self._options))
        if columns != (self.columns or columns):
            raise TableError(path, f"its columns are others than those of {self.paths[0].name}")
        self.columns = columns
        digest.update(json.dumps([columns.stated, columns.rubric], sort_keys=True).encode())
        place = self.paths.index(path)
        kinds = Counter[str]()
        for number, record in enumerate(table.records, start=1):
            row = columns.pack_row(record, f"row-{place + 1}.{number}" if place else f"row-{number}")
            kinds.update(kinds_of_answer(columns.cell(record, "answer")))
            answers = next(iter(a_mapping(row["eval"]).values()))
            self.several += isinstance(answers, list) and len({*map(str, answers)}) > 1
            whole = not record.faults.errors
            raw = json.dumps(row, ensure_ascii=False).encode() if whole else b""
            line = self.hold(record.line.number, raw)
            yield ReadRow(line, row if whole else None, record.faults, str(row["id"]))
        self.whole += 0 if columns.splits else kinds["list"]
        self._check_answers(path, columns, kinds)

    def _counted(self, path: Path, columns: Columns) -> Columns:
        """Return the columns of a table with what numbers of its answers count from, as all tables tell it.

        Raises:
            TableError: They do not tell.
        """
        if "choices" not in columns.of or columns.first_label is not None:
            return columns
        if self.columns is not None:
            return replace(columns, counts_from=self.columns.counts_from)
        records = (record for one in self.paths for record in open_table(one).records)
        numbers = [places for record in records for places in columns.numbers(record) if {*places} != {None}]
        readings = zip(_FIRST_LABELS.values(), zip(*numbers, strict=True), strict=False)
        fitting = {first: places for first, places in readings if None not in places}
        if not numbers or len({*fitting.values()}) == 1:
            return replace(columns, counts_from=next(iter(fitting), 0))
        column = _quoted([columns.column("answer")])
        ways = ["be texts of choices" if first is None else f"count from {first}" for first in fitting]
        what = f"may {' or '.join(ways)}" if ways else "fit no one way to count the choices"
        raise TableError(path, f"the numbers in the column {column} {what}", _FIRST)

    def _check_answers(self, path: Path, columns: Columns, kinds: Counter[str]) -> None:
        """Refuse answers that are not texts to compare with: other tools' assertions, numbers of classes.

        Raises:
            TableError: Most of the answers are.
        """
        column = columns.column("answer")
        named = f"the column {_quoted([column])}"
        if kinds["assertion"] > (0 if column.startswith("__expected") else kinds["text"] / 2):
            rows = counted(kinds["assertion"], "row")
            what = f"{named} has assertions of another tool, such as `contains: …`, in {rows}"
            raise TableError(path, what, "write the accepted answers alone, or a rubric for a marking model")
        is_stated = bool(self._options.columns.keys() & _ANSWER_FIELDS)
        is_class = plain_name(column) == "label" and not is_stated and "choices" not in columns.of
        if is_class and 0 < kinds["text"] == kinds["number"]:
            hint = f"{_ADD.format('choices=…')}, or 'answer={column}' where the numbers are the answers"
            raise TableError(
                path, f"{named} has numbers alone, and no column has the names of the classes", hint
            )


def find_columns(path: Path, names: Sequence[str], table_options: TableOptions) -> Columns:
    """Return where a table has its fields.

    Raises:
        TableError: A field that it needs has no column or more than one, or a column that is named is not there.
    """
    stated = {field: column for field, column in table_options.columns.items() if field != "first_label"}
    splits = "answers" in stated
    stated |= {"answer": stated.pop("answers")} if splits else {}
    places = {field: _places(path, field, names, stated) for field in FIELDS}
    for field, found in places.items():
        if len(found) > 1:
            candidates = _quoted([column for columns in found for column in columns])
            hint = _ADD.format(f"{field}={'|'.join(found[0])}")
            raise TableError(path, f"more than one column may be the {field}: {candidates}", hint)
    places["choices"] = places.pop("choices")  # behind the others, as users are shown them
    of = {field: found[0] for field, found in places.items() if found}
    needed = ("question", "answer") if "choices" in of or table_options.rubric is None else ("question",)
    for field in needed:
        if field not in of:
            used = {columns[0] for one, columns in of.items() if one != "choices"}
            hint = _ADD.format(_offered(field, [name for name in names if name not in used]))
            hint = hint if field == "question" or "choices" in of else _RUBRIC.format(hint)
            raise TableError(path, f"no column is found for the {field}; there are {_quoted(names)}", hint)
    if "answer" in of and table_options.rubric is not None:
        what = f"a rubric reads tables without answers, and the column {of['answer'][0]!r} has answers"
        raise TableError(path, what, f"leave the rubric out, or {_ADD.format('answer=')}")
    first = table_options.columns.get("first_label")
    if first is not None and first not in _FIRST_LABELS:
        raise TableError(path, f"first_label is {first!r}, and not the number of the first choice", _FIRST)
    counts_from = _FIRST_LABELS[first or ""] if first is not None else 0
    return Columns(of, table_options.rubric, splits, first, counts_from)


def _offered(field: str, names: Sequence[str]) -> str:
    """Return columns of a table for a field that none is found for, as the option names them."""
    fields = ("question", "answer") if field == "question" else (field,)
    return ", ".join(f"{one}={name}" for one, name in zip(fields, [*names, "…", "…"], strict=False))


def _places(path: Path, field: str, names: Sequence[str], stated: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return where a field may be: a column, or for choices several."""
    if field in stated:
        wanted = stated[field]
        several = field == "choices" and wanted not in names
        columns = tuple(map(str.strip, wanted.split("|"))) if several else (wanted,)
        lost = [name for name in columns if name not in names]
        if wanted and lost:
            what = f"there is no column {lost[0]!r}; there are {_quoted(names)}"
            near = get_close_matches(lost[0], names, n=1, cutoff=0) or ["…"]
            raise TableError(path, what, _ADD.format(f"{field}={near[0]}"))
        return [columns] if wanted else []
    free = [name for name in names if name not in {*stated.values()}]
    known = {plain_name(name) for name in FIELDS[field].split(",") if name}
    found: list[tuple[str, ...]] = [(name,) for name in free if plain_name(name) in known]
    by_plain = {plain_name(name): name for name in free}
    for prefix in _PREFIXES if field == "choices" else ():
        for ends in _ENDS if prefix else _ENDS[:1]:
            series = tuple(by_plain[f"{prefix}{end}"] for end in ends if f"{prefix}{end}" in by_plain)
            if len(series) > 1 and f"{prefix}{ends[0]}" in by_plain:
                found.append(series)
                break
    return found


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(json.dumps(name, ensure_ascii=False) for name in names) or "none"
