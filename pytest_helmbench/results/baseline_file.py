"""The baseline file: the verdicts of a session's runs, small enough to commit. Codes and hashes, no texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import quoted_json
from pytest_helmbench.results.compared_runs import ComparedRun, RunRef
from pytest_helmbench.store.benchmark_places import BenchmarkKey
from pytest_helmbench.store.judged_replies import JudgedCase

__all__ = ["BASELINE_FORMAT", "BaselineFileError", "baseline_text", "read_baseline"]

BASELINE_FORMAT = "helmbench-baseline/1"

_HINT = "`helmbench export RUN --format baseline -o FILE.json` writes one"


class BaselineFileError(HelmbenchError):
    """A file that is no baseline."""


def baseline_text(runs: Sequence[ComparedRun]) -> str:
    """Return runs as the text of a baseline file, one case a line, so that changes of it can be read."""
    parts = ",\n".join(_run_text(run) for run in runs)
    return f'{{"format": "{BASELINE_FORMAT}", "runs": [\n{parts}\n]}}\n'


def _run_text(run: ComparedRun) -> str:
    rules = sorted({rule for case in run.cases.values() for rule in case.rules.values() if rule is not None})
    numbers = {rule: number for number, rule in enumerate(rules)}
    head = {
        "run": run.ref.run_id,
        "session": run.ref.session_id,
        "benchmark": run.ref.benchmark.name,
        "hash": run.benchmark_hash,
        "model": run.ref.model,
        "status": run.ref.status,
        "scope": run.ref.scope,
        "rules": rules,
        **({"sample": run.sample} if run.sample else {}),
        "kind": run.ref.benchmark.kind,
        "place": run.ref.benchmark.place,
    }
    opened = json.dumps(head)[:-1]
    cases = ",\n".join(
        f"{json.dumps(code)}: {json.dumps(_case(case, numbers))}" for code, case in sorted(run.cases.items())
    )
    return quoted_json(f'{opened}, "cases": {{\n{cases}\n}}}}')


def _case(case: JudgedCase, numbers: Mapping[str, int]) -> list[object]:
    """Return content, and per criterion its rule and its credits by reply."""
    return [
        case.content,
        {
            name: [
                None if rule is None else numbers[rule],
                *(_short(reply.get(name)) for reply in case.replies),
            ]
            for name, rule in sorted(case.rules.items())
        },
    ]


def _short(credit: float | None) -> float | None:
    return credit if credit is None or credit % 1 else int(credit)


def read_baseline(path: Path) -> tuple[ComparedRun, ...]:
    """Return the runs of a baseline file.

    Raises:
        BaselineFileError: It cannot be read, or is no such file.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BaselineFileError(
            f"{path}: the baseline cannot be read: {error.strerror}\n  hint: {_HINT}"
        ) from error
    except ValueError as error:
        raise BaselineFileError(f"{path}: this is no JSON: {error}\n  hint: {_HINT}") from error
    if not isinstance(document, dict) or document.get("format") != BASELINE_FORMAT:
        raise BaselineFileError(f"{path}: this is no {BASELINE_FORMAT} file\n  hint: {_HINT}")
    try:
        return tuple(_runs(path, document["runs"]))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise BaselineFileError(
            f"{path}: the baseline is damaged ({type(error).__name__}: {error})\n  hint: {_HINT}"
        ) from error


def _runs(path: Path, runs: Iterable[dict[str, JsonValue]]) -> Iterator[ComparedRun]:
    for run in runs:
        run_id = run["run"]
        if not isinstance(run_id, int):
            raise TypeError("run is no number")
        rules, place = run["rules"], run.get("place")
        cases = run["cases"]
        if not isinstance(rules, list) or not isinstance(cases, dict):
            raise TypeError("rules or cases")
        ref = RunRef(
            path,
            run_id,
            f"run {run_id} of {path.name}",
            str(run["session"]),
            BenchmarkKey(
                str(run["benchmark"]), str(run.get("kind", "")), None if place is None else str(place)
            ),
            str(run["model"]),
            str(run["status"]),
            str(run["scope"]),
        )
        read = {code: _read_case(case, rules) for code, case in cases.items()}
        yield ComparedRun(ref, str(run["hash"]), {}, read, str(run.get("sample", "")))


def _read_case(case: JsonValue, rules: Sequence[JsonValue]) -> JudgedCase:
    if not isinstance(case, list) or not isinstance(case[1], dict):
        raise TypeError("a case is no list of content and criteria")
    credits_: dict[str, list[JsonValue]] = {}
    hashes: dict[str, str | None] = {}
    for name, cells in case[1].items():
        if not isinstance(cells, list):
            raise TypeError("a criterion is no list")
        rule, *credits_[name] = cells
        hashes[name] = str(rules[rule]) if isinstance(rule, int) else None
    replies = tuple(
        {name: float(credit) for name, found in credits_.items() if _is_credit(credit := found[number])}
        for number in range(max(map(len, credits_.values()), default=0))
    )
    return JudgedCase(None if case[0] is None else str(case[0]), hashes, replies)


def _is_credit(value: JsonValue) -> TypeGuard[float]:
    return isinstance(value, int | float) and 0 <= value <= 1
