"""Runs of other tools as values, and their JSON files, read with bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt

_LONGEST_NAME = 200
_MOST_BYTES = 1 << 30
_MOST = 10**15


class ImportFileError(HelmbenchError):
    """A file that is not a result of a known tool, or is damaged; the text names it."""


@dataclass(frozen=True, slots=True)
class ForeignCase:
    """One case × repetition.

    Args:
        code: What the tool calls it; unique with its repetition.
        passed: None where it was not judged.
        reason: Why it was not judged; empty for a verdict.
        rule: What judged it, in the tool's words.
        expected: For people; empty for nothing.
        observed: Likewise.
        groups: What it shares with other cases, by name.
        latency_ms: None when unknown.
    """

    code: str
    repetition: int
    passed: bool | None
    reason: str = ""
    rule: str = ""
    expected: str = ""
    observed: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = Usage()
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ForeignRun:
    """One model on one benchmark.

    Args:
        tool: `inspect`, `promptfoo` or `lm-eval`, with its version.
        version: Of the benchmark; empty for none.
        started_at: ISO 8601 UTC.
        cases: At least one.
        settings: What the tool says of the run, in JSON types.
    """

    tool: str
    benchmark: str
    version: str
    model: str
    started_at: str
    completed_at: str
    cases: tuple[ForeignCase, ...]
    settings: Mapping[str, JsonValue] = field(default_factory=dict)


def tidied(run: ForeignRun) -> ForeignRun:
    """Return a run whose names stand on one line each; cases whose names were no longer apart have a number behind."""
    codes: dict[str, str] = {}
    taken: set[str] = set()
    for case in run.cases:
        if case.code not in codes:
            codes[case.code] = _apart(_line(case.code) or "-", taken)
    return replace(
        run,
        benchmark=_line(run.benchmark),
        version=_line(run.version),
        model=_line(run.model),
        cases=tuple(replace(case, code=codes[case.code]) for case in run.cases),
    )


def _line(name: str) -> str:
    return excerpt(" ".join(name.split()), _LONGEST_NAME)


def _apart(name: str, taken: set[str]) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}~{number}"
    taken.add(found)
    return found


def read_json(path: Path) -> JsonObject:
    """Return the object that a JSON file holds.

    Raises:
        ImportFileError: It cannot be read, is too large, or holds something else.
    """
    found = _loaded(_content(path), str(path))
    if not isinstance(found, dict):
        raise ImportFileError(f"{path}: no JSON object\n  hint: name a file of results")
    return found


def read_lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """Yield the objects of a JSON Lines file with their lines, from 1.

    Raises:
        ImportFileError: As `read_json`, with the line.
    """
    for line, content in enumerate(_content(path).split("\n"), 1):
        if content.strip():
            found = _loaded(content, f"{path}:{line}")
            if not isinstance(found, dict):
                raise ImportFileError(f"{path}:{line}: no JSON object")
            yield line, found


def check_file(path: Path) -> None:
    """See that a file can be read in bounded time and memory: no device, no pipe, no address, none too large.

    Raises:
        ImportFileError: It cannot.
    """
    try:
        about = path.stat()
    except (OSError, ValueError) as error:
        raise ImportFileError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from error
    if not S_ISREG(about.st_mode):
        raise ImportFileError(f"{path}: no file\n  hint: name a file of results")
    if about.st_size > _MOST_BYTES:
        raise ImportFileError(f"{path}: {about.st_size:,} bytes; results of up to {_MOST_BYTES:,} are read")


def _content(path: Path) -> str:
    check_file(path)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ImportFileError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ImportFileError(f"{path}: no UTF-8 text") from error


def _loaded(content: str, place: str) -> JsonValue:
    try:
        found: JsonValue = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ImportFileError(f"{place}: no JSON: {error}") from error
    return found


def text(value: JsonValue) -> str:
    """Return a value for people: a text as it is, nothing for null, all else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def number(value: JsonValue) -> float | None:
    """Return a number of up to 10¹⁵ on either side of 0; None for anything else, truth values too.

    So a float holds it, and so does the sum of millions.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_MOST <= value <= _MOST:
        return None
    return float(value)


def amount(value: JsonValue) -> float | None:
    """Return a number that is not below 0; None for anything else."""
    found = number(value)
    return None if found is None or found < 0 else found


def whole(value: JsonValue) -> int | None:
    """Return a count; None for anything else."""
    found = amount(value)
    return None if found is None else int(found)


def time_text(value: JsonValue, otherwise: float) -> str:
    """Return a time as ISO 8601 UTC, given so or in seconds since 1970.

    Args:
        otherwise: Seconds since 1970, where there is no time.
    """
    seconds = number(value)
    try:
        if seconds is None and isinstance(value, str):
            seconds = datetime.fromisoformat(value).timestamp()
        return datetime.fromtimestamp(otherwise if seconds is None else seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(otherwise, UTC).isoformat()
