"""Addresses of runs: `12`, `last`, `last~1`, `old.db`, `old.db#3`, `main.json`; each represents its session."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeGuard, TypeVar

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.results.comparing import ComparedRun, RunRef
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey, names_of, seen_from
from pytest_helmbench.store.read.judged_replies import CasePoints, JudgedCase
from pytest_helmbench.store.read.runs import RunSummary, runs

_LAST = re.compile(r"last(?:~(\d{1,9}))?\Z", re.ASCII)
_Run = TypeVar("_Run")
_NUMBER = re.compile(r"\d{1,18}\Z", re.ASCII)


class RunAddressError(HelmbenchError):
    """An address that cannot be read, or names no run."""


@dataclass(frozen=True, slots=True)
class Addressed:
    """The runs that an address represents.

    Args:
        named: The run it names; None where it names a session (`last`, a file).
        session: All runs of that session, in the order they were opened; of a baseline file, all in it.
        baselines: The runs of a baseline file; empty for a results file.
        passed_over: That a newer session is not complete, where a complete one is wanted; empty for none.
    """

    address: str
    named: RunRef | None
    session: tuple[RunRef, ...]
    baselines: tuple[ComparedRun, ...] = ()
    passed_over: str = ""

    def of_benchmark(self, benchmark: BenchmarkKey, beside: Collection[BenchmarkKey]) -> list[RunRef]:
        """Return the runs of a benchmark; where there are none, those of its name, if the user has named them.

        Runs of the benchmarks beside it are left out: those are asked for themselves.
        """
        is_named = not _LAST.match(self.address)
        found = _of_benchmark(self.session, lambda ref: ref.benchmark, benchmark, is_named=is_named)
        return [ref for ref in found if ref.benchmark == benchmark or ref.benchmark not in beside]

    def run(self, ref: RunRef) -> ComparedRun | None:
        """Return a run of it with its replies; None where it is gone."""
        if self.baselines:
            return next(run for run in self.baselines if run.ref == ref)
        return ComparedRun.stored(ref)


def resolve(
    address: str,
    own: Path,
    start: Path,
    *,
    benchmark: BenchmarkKey | None = None,
    shown: str = "--db",
) -> Addressed:
    """Return the runs that an address represents.

    Args:
        own: The results file of the command or session.
        start: Folder that paths are relative to.
        benchmark: The one whose newest complete session is `last`; with None `last` is the newest, complete or not.
        shown: Name of the option that names another results file.

    Raises:
        RunAddressError: It cannot be read, or there is no such run.
        BaselineFileError: A baseline file cannot be read.
        StoreError: A results file cannot be read.
    """
    text = address.strip()
    if _NUMBER.match(text):
        return _numbered(text, own, own, int(text))
    if found := _LAST.match(text):
        return _last(text, (own, own), int(found[1] or 0), benchmark)
    file, hash_sign, number = text.rpartition("#")
    if not hash_sign or not _NUMBER.match(number):
        file, number = text, ""
    path = (start / Path(file).expanduser()).absolute()
    if path.suffix == ".json" and not number:
        baselines = read_baseline(path)
        if not baselines:
            raise RunAddressError(f"{path}: the baseline holds no run\n  hint: export one into it")
        refs = tuple(run.ref for run in baselines)
        return Addressed(text, refs[0] if len(refs) == 1 else None, refs, baselines)
    if not path.is_file():
        raise RunAddressError(
            f"{text!r} names no run: there is no file {path}\n  hint: a run is a number as `helmbench runs` lists"
            f" them, last, last~1, FILE.db, FILE.db#3 or a baseline FILE.json; {shown} names the results file"
        )
    if number:
        return _numbered(text, path, own, int(number))
    return _last(text, (path, own), 0, benchmark)


def shown_session(found: Addressed) -> str:
    """Return `run 12`, or `runs 12, 13` for a session of several."""
    if found.named is not None:
        return found.named.name
    numbers = ", ".join(str(ref.run_id) for ref in found.session)
    plural = "s" if len(found.session) > 1 else ""
    of_file = f" of {found.session[0].path.name}" if " of " in found.session[0].name else ""
    return f"run{plural} {numbers}{of_file}"


def _numbered(address: str, path: Path, own: Path, number: int) -> Addressed:
    known = runs(path)
    run = next((run for run in known if run.id == number), None)
    if run is None:
        numbers = f"it has {known[0].id} to {known[-1].id}" if known else "it holds no run yet"
        raise RunAddressError(f"{path} has no run {number}\n  hint: {numbers}; `helmbench runs` lists them")
    return Addressed(address, RunRef.of(path, run, own), _session(path, known, run.session_id, own))


def _last(address: str, files: tuple[Path, Path], back: int, benchmark: BenchmarkKey | None) -> Addressed:
    """Return the newest session of any benchmark, or an earlier one; of one benchmark the newest complete one.

    Args:
        files: Where it is looked for, and our own results file.
        back: How many sessions before the newest.
        benchmark: Only its runs have to be complete; None for any benchmark, complete or not.
    """
    path, own = files
    known = runs(path) if path.exists() else ()
    asked: Sequence[RunSummary] = known
    passed_over: Sequence[RunSummary] = ()
    if benchmark is not None:
        asked = _of_benchmark(
            known, lambda run: seen_from(run.key, path, own), benchmark, is_named=path != own
        )
        passed_over = [run for run in asked if run.status != "complete"]
    unfinished = {run.session_id for run in passed_over}
    sessions = dict.fromkeys(run.session_id for run in reversed(asked))
    wanted = [session_id for session_id in sessions if session_id not in unfinished]
    if len(wanted) <= back:
        names = names_of(() if benchmark is None else (benchmark, *(run.key for run in known)))
        what = "session" if benchmark is None else f"complete session of {names[benchmark]}"
        hint = (
            "name a run by its number; `helmbench runs` lists them"
            if known
            else "run a benchmark first: pytest PATH --helmbench-model=MODEL"
            if benchmark is None
            else "run once without a baseline: later sessions can be compared with that one"
        )
        raise RunAddressError(
            f"{path} has no {what} for {address!r}: {len(wanted)} found\n  hint: {hint}",
        )
    session = _session(path, known, wanted[back], own)
    newer = [run for run in passed_over if run.id > session[-1].run_id]
    return Addressed(
        address, None, session, passed_over=f"run {newer[-1].id} is {newer[-1].status}" if newer else ""
    )


def _of_benchmark(
    runs: Sequence[_Run], key: Callable[[_Run], BenchmarkKey], benchmark: BenchmarkKey, *, is_named: bool
) -> list[_Run]:
    """Return the runs of a benchmark; where there are none, those of its name, if the user has named run or file."""
    found = [run for run in runs if key(run) == benchmark]
    return found if found or not is_named else [run for run in runs if key(run).name == benchmark.name]


def _session(path: Path, known: Sequence[RunSummary], session: str, own: Path) -> tuple[RunRef, ...]:
    return tuple(RunRef.of(path, run, own) for run in known if run.session_id == session)


BASELINE_FORMAT = "helmbench-baseline/1"

_HINT = "`helmbench export RUN --format baseline -o FILE.json` writes one"


class BaselineFileError(HelmbenchError):
    """A file that is not a baseline."""


def read_baseline(path: Path) -> tuple[ComparedRun, ...]:
    """Return the runs of a baseline file.

    Raises:
        BaselineFileError: It cannot be read, or is not a baseline.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BaselineFileError(
            f"{path}: the baseline cannot be read: {error.strerror}\n  hint: {_HINT}"
        ) from error
    except ValueError as error:
        raise BaselineFileError(f"{path}: this is not JSON: {error}\n  hint: {_HINT}") from error
    if not isinstance(document, dict) or document.get("format") != BASELINE_FORMAT:
        raise BaselineFileError(f"{path}: this is not a {BASELINE_FORMAT} file\n  hint: {_HINT}")
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
            raise TypeError("run is not a number")
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
        scoring = run.get("scoring")
        sample, known = str(run.get("sample", "")), scoring if isinstance(scoring, dict) else None
        yield ComparedRun(ref, str(run["hash"]), {}, read, sample, scoring=known)


def _read_case(case: JsonValue, rules: Sequence[JsonValue]) -> JudgedCase:
    if not isinstance(case, list) or not isinstance(case[1], dict):
        raise TypeError("a case is not a list of content and criteria")
    credits_: dict[str, list[JsonValue]] = {}
    hashes: dict[str, str | None] = {}
    for name, cells in case[1].items():
        if not isinstance(cells, list):
            raise TypeError("a criterion is not a list")
        rule, *credits_[name] = cells
        hashes[name] = str(rules[rule]) if isinstance(rule, int) else None
    replies = tuple(
        {name: float(credit) for name, found in credits_.items() if _is_credit(credit := found[number])}
        for number in range(max(map(len, credits_.values()), default=0))
    )
    points = [
        value
        for value in (case[2] if len(case) > 2 and isinstance(case[2], list) else ())
        if isinstance(value, int)
    ]
    return JudgedCase(
        None if case[0] is None else str(case[0]),
        hashes,
        replies,
        points=CasePoints(points[0], points[1], bool(points[2])) if len(points) == 3 else None,
    )


def _is_credit(value: JsonValue) -> TypeGuard[float]:
    return isinstance(value, int | float) and 0 <= value <= 1
