"""Samples of a judge's verdicts for a person to label blind, as CSV, and the labels read back."""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.problem import HelmbenchError, Problem
from pytest_helmbench.store.read.judgements import JudgedRow, Label, RowKey

_COLUMNS = ("code", "repetition", "criterion", "question", "passes_when", "prompt", "reply", "label")
_DRAWS = "draws"
_LABELS = {"pass": True, "fail": False}
_HINT = "write pass or fail: would you let the reply pass by the question?"
_RUN = "take the file that `helmbench judge sample` wrote for this run"
_SHOWN = 20


class LabelError(HelmbenchError):
    """A file of labels that cannot be stored as it is."""


def drawn(rows: Sequence[JudgedRow], labels: int, seed: int, *, by_points: bool) -> Mapping[JudgedRow, int]:
    """Draw half of the labels from the passes and half from the fails.

    Where there are too few of one verdict, all of it is taken, and the rest from the other. By points each row is
    drawn with a probability of its points, with replacement, so that the share of right labels is that of points.

    Args:
        labels: How many are wanted; by points rows are fewer, since some are drawn again.
        seed: The same rows and seed give the same sample.

    Returns:
        How often each row was drawn, in random order.
    """
    rng = random.Random(f"{'points' if by_points else 'labels'} {seed}")
    passes = [row for row in rows if row.passed]
    fails = [row for row in rows if not row.passed]
    found: list[JudgedRow] = []
    if by_points:
        of_passes = labels - labels // 2 if passes and fails else labels * bool(passes)
        for part, count in ((passes, of_passes), (fails, labels - of_passes)):
            found += rng.choices(part, weights=[row.points for row in part], k=count) if part else []
    else:
        of_passes = min(len(passes), max(labels - labels // 2, labels - len(fails)))
        found += rng.sample(passes, of_passes) + rng.sample(fails, min(len(fails), labels - of_passes))
    rng.shuffle(found)
    return Counter(found)


def question(about: JsonObject, criterion: str, severity: int) -> tuple[str, str]:
    """Return the question of a criterion and what passes; empty texts where the record does not have them."""
    criteria = about.get("criteria")
    for known in criteria if isinstance(criteria, list) else ():
        if isinstance(known, dict) and known.get("name") == criterion:
            values = known.get("pass_values")
            options = ", ".join(map(str, values if isinstance(values, list) else ()))
            inverted = bool(about.get("by_severity")) and severity < 0
            return str(known.get("rubric", "")), f"not {options}" if inverted else options
    return "", ""


def label_file(rows: Sequence[Mapping[str, object]]) -> str:
    """Return a file to be labelled, as CSV, of rows of cells by column without `label`."""
    stream = io.StringIO()
    columns = (*_COLUMNS, _DRAWS) if any(_DRAWS in row for row in rows) else _COLUMNS
    writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:  # no spreadsheet shall run a reply
        writer.writerow(
            {
                name: f"'{value}" if str(value).startswith(("=", "+", "-", "@", "\t", "\r")) else value
                for name, value in row.items()
            }
        )
    return stream.getvalue()


def read_labels(path: Path, rows: Sequence[JudgedRow]) -> dict[RowKey, Label]:
    """Return the labels of a CSV file by row; `rows` are the verdicts that may be labelled.

    Raises:
        LabelError: It cannot be read, or a row of it is unknown, has no label, or stands twice; all are named.
    """
    known = {(row.key[0], str(row.key[1]), row.key[2]): row.key for row in rows}
    found: dict[RowKey, Label] = {}
    problems: list[Problem] = []
    for line, row in _records(path):
        cells = {name: (row.get(name) or "").strip() for name in (*_COLUMNS, _DRAWS)}
        key = known.get((cells["code"], cells["repetition"], cells["criterion"]))
        shown = "-".join(filter(None, (cells["code"], cells["criterion"]))) or "a row without a code"
        if cells["repetition"] != "1":
            shown += f" (repetition {cells['repetition']})"
        if key is None:
            problems.append(Problem(path, line, f"{shown} is not a verdict of the judge", _RUN))
        elif key in found:
            problems.append(Problem(path, line, f"{shown} stands twice", "leave one of the two"))
        elif (label := _LABELS.get(cells["label"].lower())) is None:
            what = (
                f"the label of {shown} is {cells['label']!r}" if cells["label"] else f"{shown} has no label"
            )
            problems.append(Problem(path, line, what, _HINT))
        elif cells[_DRAWS] and not (cells[_DRAWS].isascii() and cells[_DRAWS].isdigit()):
            what = f"the draws of {shown} are {cells[_DRAWS]!r}"
            problems.append(Problem(path, line, what, "leave them as they were"))
        else:
            found[key] = Label(label, int(cells[_DRAWS]) if cells[_DRAWS] else None)
    if len({label.draws is None for label in found.values()}) > 1:
        problems.append(Problem(path, None, "some rows have draws and others none", _RUN))
    if not found and not problems:
        problems.append(
            Problem(path, None, "there is no row in it", "`helmbench judge sample RUN` writes one")
        )
    if problems:
        texts = [problem.text() for problem in problems[:_SHOWN]]
        more = [f"… and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        raise LabelError("\n".join(texts + more))
    return found


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, str | None]]]:
    """Yield the rows of a file with their lines."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LabelError(
            f"{path}: the labels cannot be read: {error}\n  hint: save the file as UTF-8"
        ) from error
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = [
        name for name in ("code", "repetition", "criterion", "label") if name not in (reader.fieldnames or ())
    ]
    if missing:
        raise LabelError(f"{path}:1: there is no column {', '.join(missing)}\n  hint: {_RUN}")
    line = reader.line_num + 1
    for row in reader:
        yield line, row
        line = reader.line_num + 1
