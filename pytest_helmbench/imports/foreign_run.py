"""A run of another tool, in values that every reader makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt

__all__ = ["ForeignCase", "ForeignRun", "ImportFileError", "tidied"]


class ImportFileError(HelmbenchError):
    """A file that is no result of a tool that is known here, or a damaged one; the text names it."""


@dataclass(frozen=True, slots=True)
class ForeignCase:
    """One case × repetition.

    Args:
        code: What the tool calls it; unique with its repetition.
        repetition: From 1.
        passed: None where it was not judged.
        reason: Why it was not judged; empty for a verdict.
        rule: What judged it, in the tool's words.
        expected: For people; empty for nothing.
        observed: Likewise.
        groups: What it shares with other cases, by name.
        usage: Tokens and cost.
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
        benchmark: Name.
        version: Of the benchmark; empty for none.
        model: As the tool names it.
        started_at: ISO 8601 UTC.
        completed_at: Likewise.
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


_LONGEST_NAME = 200


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
