"""The sessions of shards that are to be merged: that they are of one plan, which of them count, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.options.recorded_settings import PER_SHARD
from pytest_helmbench.store.merge.shard_files import ShardFile, ShardRun
from pytest_helmbench.store.read.runs import judges_of
from pytest_helmbench.store.table_rows import as_json

_SHOWN = 5
RunName: TypeAlias = tuple[str, str, int]
"""Name of the benchmark, id of the model, and which of those that have both, from 0."""


class MergeError(HelmbenchError):
    """The files are not the shards of one run."""


class MissingError(MergeError):
    """They are, but not all of it."""


@dataclass(frozen=True, slots=True)
class ShardSession:
    """One session of one shard in a file, with its runs by name."""

    path: Path
    runs: Mapping[RunName, ShardRun]

    @property
    def first(self) -> ShardRun:
        """One of its runs: which shard it is, they all say alike."""
        return next(iter(self.runs.values()))

    @property
    def started_at(self) -> str:
        """ISO 8601: when its first run began."""
        return min(run.started_at for run in self.runs.values())

    @property
    def place(self) -> tuple[int, int]:
        """Which share of the plan it is."""
        return self.first.shard.index, self.first.shard.of

    @property
    def text(self) -> str:
        """For people: `shard 2 of 8 (b.db)`."""
        return f"{self.first.shard.name} ({self.path})"


def sessions_of(file: ShardFile) -> tuple[list[ShardSession], int]:
    """Return the sessions of a file that are of the same plan as its last one, and how many others were left out.

    Raises:
        MergeError: Its last session is not a shard.
    """
    if not file.runs or not file.newest_is_shard:
        raise MergeError(
            f"{file.path}: its last session is not a shard\n"
            "  hint: give the files of sessions with --helmbench-shard; a merged file is made of those alone"
        )
    by_session: dict[str, list[ShardRun]] = {}
    for run in file.runs:
        by_session.setdefault(run.session_id, []).append(run)
    found = [ShardSession(file.path, _named(runs)) for runs in by_session.values()]
    kept = [session for session in found if next(_differences(found[-1], session), None) is None]
    return kept, len(found) - len(kept)


def _named(runs: Iterable[ShardRun]) -> dict[RunName, ShardRun]:
    """Return the runs of a session by name; of the same names, by folder."""
    counts: Counter[tuple[str, str]] = Counter()
    named = {}
    for run in sorted(runs, key=lambda run: (str(run.settings.get("benchmark_path")), run.run_id)):
        pair = (run.benchmark, run.model)
        named[*pair, counts[pair]] = run
        counts[pair] += 1
    return dict(sorted(named.items(), key=lambda item: item[1].run_id))


def check_alike(sessions: Sequence[ShardSession]) -> None:
    """See that all sessions are of one plan, each of them once.

    Raises:
        MergeError: One is of another, or is given twice.
    """
    seen: dict[str, ShardSession] = {}
    for session in sessions:
        same = seen.setdefault(session.first.session_id, session)
        if same is not session:
            raise MergeError(
                f"{session.path} holds the same session as {same.path}: {session.first.shard.name} would count twice\n"
                "  hint: give each file once; of a file that went on and an older copy of it, the one that went on"
            )
    first, *others = sessions
    for session in others:
        found = next(_differences(first, session), None)
        if found is not None:
            raise MergeError(
                f"{session.path}: {found}\n  hint: the shards of one run differ in their share alone"
            )


def _differences(first: ShardSession, other: ShardSession) -> Iterator[str]:
    """Yield in what a session is of another plan than the first, sentence by sentence."""
    for name in first.runs.keys() ^ other.runs.keys():
        has, has_not = (first, other) if name in first.runs else (other, first)
        yield f"{has.path} has a run of {name[1]} on {name[0]}, {has_not.path} has none"
    for name in first.runs.keys() & other.runs.keys():
        yield from _other_run(first.runs[name], other.runs[name], first.path)


def _other_run(first: ShardRun, other: ShardRun, path: Path) -> Iterator[str]:
    for name in ("hash", "version", "kind"):
        before, now = getattr(first, name), getattr(other, name)
        if before != now:
            yield f"the {name} of {first.benchmark} is {now[:16]}, in {path} it is {before[:16]}"
    if first.plugin_version != other.plugin_version:
        yield f"written by pytest-helmbench {other.plugin_version}, {path} by {first.plugin_version}"
    names = (first.settings.keys() | other.settings.keys()) - PER_SHARD
    for name in sorted(names, key=lambda name: (name != "judges", name)):  # its sampling follows from it
        before, now = (_comparable(name, run.settings) for run in (first, other))
        if before != now:
            yield f"{name} of {first.model} is {now}, in {path} it is {before}"
    gone, new = set(first.whole) - set(other.whole), set(other.whole) - set(first.whole)
    if gone or new:
        code = min(gone or new)
        where = "only there" if gone else "not there"
        yield f"{len(other.whole):,} cases are planned, in {path} {len(first.whole):,}: {code} is {where}"
    if (first.scope, first.tests, set(first.broken)) != (other.scope, other.tests, set(other.broken)):
        yield f"another selection of cases is planned than in {path}"


def _comparable(name: str, settings: Mapping[str, Any]) -> str:
    if name == "judges":
        return as_json(judges_of(settings))
    value = settings.get(name)
    if name == "judge_template" and isinstance(value, str):
        return Path(value).name  # its text is part of every rule's hash
    return as_json(value)


def missing_from(winners: Sequence[ShardSession]) -> Iterator[str]:
    """Yield what of the plan is missing, sentence by sentence: whole shards, and what a shard did not come to."""
    of = {session.first.shard.of for session in winners}
    if len(of) == 1:
        known = {session.first.shard.index for session in winners}
        for index in range(1, min(of) + 1):
            if index not in known:
                yield f"shard {index} of {min(of)} is missing"
    for session in winners:
        runs = session.runs.values()
        left = sum(max(0, run.total_tests - run.results) for run in runs)
        in_all = sum(run.total_tests for run in runs)
        if waiting := sum(run.in_batch for run in runs):
            yield f"{session.text} waits for its batches: {waiting:,} of its {in_all:,} cases are in them"
        if left:
            yield f"{session.text} did not come to its end: {left:,} of its {in_all:,} cases have no result"
    for name, like in winners[0].runs.items():
        planned = {code for session in winners for code in session.runs[name].codes}
        gone = [code for code in like.whole if code not in planned]
        if gone:
            shown = ", ".join(gone[:_SHOWN]) + (
                f" and {len(gone) - _SHOWN:,} more" if len(gone) > _SHOWN else ""
            )
            yield (
                f"{len(gone):,} of {len(like.whole):,} cases of {name[1]} on {name[0]} are in no shard that was given:"
                f" {shown}"
            )
