"""Shards merged into one run: read, checked against one plan, copied, scored, and put in place when it is whole."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Loader, RunFollower, SessionValues
from pytest_helmbench.benchmarks.registry import KindError, kind_of, places_named, places_of
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.job import Target
from pytest_helmbench.engine.work import Route
from pytest_helmbench.gateway.providers.endpoints import Unusable
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.results.shard_sessions import (
    MergeError,
    MissingError,
    RunName,
    ShardSession,
    check_alike,
    missing_from,
    sessions_of,
)
from pytest_helmbench.results.stored_scores import run_totals, scored_run
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.leases import iso_time
from pytest_helmbench.store.merge.shard_files import (
    MALFORMED,
    MergedFile,
    Pick,
    ShardFile,
    ShardRun,
    read_shard_file,
)
from pytest_helmbench.store.read.runs import runs as stored_runs
from pytest_helmbench.store.read.score_facts import RunFacts
from pytest_helmbench.store.write.writer import Store


@dataclass(slots=True)
class MergedRun:
    """One merged run.

    Args:
        like: A run of a shard that it is like.
        facts: The plan and verdicts that its score is computed from.
        status: `complete`, or `partial` where some case is not judged.
    """

    run_id: int
    name: RunName
    like: ShardRun
    facts: RunFacts
    score: RunScore | None
    status: str

    @property
    def tests(self) -> int:
        """Planned cases × repetitions, without tests that turned out to ask no model."""
        return self.like.tests - (len(self.like.whole) - len(self.facts.codes)) * self.facts.repeat


@dataclass(slots=True)
class MergedShards:
    """A merged file that is not in its place yet.

    Args:
        winners: The sessions whose results they have.
        missing: Sentences about the parts of the plan that they do not have.
    """

    path: Path
    runs: tuple[MergedRun, ...]
    winners: tuple[ShardSession, ...]
    missing: tuple[str, ...]
    notes: list[str] = field(default_factory=list)


@contextlib.contextmanager
def merged_shards(files: Sequence[Path], out: Path, *, partial: bool, force: bool) -> Iterator[MergedShards]:
    """Yield the run that the shards in some files are together; it is put in its place when all went well.

    Args:
        partial: Also when something of the plan is missing.
        force: Also over a file that is there, and though a shard seems to be written still.

    Raises:
        MergeError: They are not the shards of one run, or `out` must not be written.
        MissingError: Something of the plan is missing.
        StoreError: A file cannot be read or written.
    """
    _check_out(files, out, force=force)
    found = [read_shard_file(path) for path in files]
    for file in found:
        if file.held_by and not force:
            raise MergeError(
                f"{file.path} is still being written, by {file.held_by}\n"
                "  hint: wait for it; when that process or its machine is gone, --force"
            )
    sessions, notes = _sessions(found)
    check_alike(sessions)
    winners = _winners(sessions, notes)
    missing = tuple(missing_from(winners))
    if missing and not partial:
        raise MissingError(
            "\n".join(missing)
            + "\n  hint: run what is missing (--helmbench-resume goes on with a shard), or merge with"
            " --partial and go on with the merged file: --helmbench-resume"
        )
    with tempfile.TemporaryDirectory(prefix=".helmbench-merge-", dir=out.parent) as folder:
        path = Path(folder) / out.name
        runs = _made(path, sessions, winners, out)
        yield MergedShards(path, runs, tuple(winners), missing, notes)
        if _open_batches(out) - _open_batches(path):
            raise MergeError(
                f"{out} waits for calls in batches that no shard has: they are paid\n"
                "  hint: collect them with --helmbench-resume, or name another file with -o FILE"
            )
        _put_in_place(path, out, force=force)


def _open_batches(path: Path) -> set[JsonValue]:
    """Return the tokens of the batches that a results file waits for; none where it is not there, or not one."""
    with contextlib.suppress(StoreError):
        return {batch["token"] for run in stored_runs(path) for batch in run.batches}
    return set()


def _check_out(files: Sequence[Path], out: Path, *, force: bool) -> None:
    """Refuse to write over a file that the user does not mean.

    Raises:
        MergeError: It stands there, or is one of the shards.
    """
    if not out.parent.is_dir() or out.is_dir():
        raise MergeError(f"{out} cannot be written\n  hint: name a file in a folder that exists with -o FILE")
    if not out.exists():
        return
    if any(path.exists() and path.samefile(out) for path in files):
        raise MergeError(
            f"{out} is one of the shards\n  hint: name another file with -o FILE; shards stay as they are"
        )
    if not force:
        raise MergeError(
            f"{out} is there already\n  hint: name another file with -o FILE, or --force to replace it"
        )
    with contextlib.suppress(StoreError):
        held_by = read_shard_file(out).held_by
        if held_by:
            raise MergeError(f"{out} is being written, by {held_by}\n  hint: name another file with -o FILE")


def _sessions(files: Sequence[ShardFile]) -> tuple[list[ShardSession], list[str]]:
    sessions: list[ShardSession] = []
    notes: list[str] = []
    for file in files:
        kept, others = sessions_of(file)
        sessions += kept
        if others:
            notes.append(
                f"{file.path}: {others} older session{'s' if others > 1 else ''} of another plan left out"
            )
    return sessions, notes


def _winners(sessions: Sequence[ShardSession], notes: list[str]) -> list[ShardSession]:
    """Return the sessions whose results count, by place: of a shard that ran twice the later one."""
    latest: dict[tuple[int, int], ShardSession] = {}
    for session in sorted(sessions, key=lambda session: session.started_at):
        before = latest.get(session.place)
        if before is not None:
            notes.append(
                f"{session.first.shard.name} ran more than once: the session in {session.path} that began at"
                f" {session.started_at} counts; what the one of {before.started_at} in {before.path} has paid is added"
            )
        latest[session.place] = session
    return [latest[place] for place in sorted(latest)]


def _made(
    path: Path, sessions: Sequence[ShardSession], winners: Sequence[ShardSession], out: Path
) -> tuple[MergedRun, ...]:
    """Copy all sessions into a new file and close its runs."""
    first = winners[0]
    opened = [(like, _settings(like, name, sessions, out)) for name, like in first.runs.items()]
    file = MergedFile(path)
    try:
        started_at = min(session.started_at for session in sessions)
        ids = dict(zip(first.runs, file.open_runs(first.path, started_at, opened), strict=True))
        for source in dict.fromkeys(session.path for session in sessions):
            picks = [
                Pick(run, ids[name], session in winners)
                for session in sessions
                if session.path == source
                for name, run in session.runs.items()
            ]
            file.copy(source, picks)
        file.check()
        return tuple(_closed(file, ids[name], name, like, winners) for name, like in first.runs.items())
    finally:
        file.close()


def _closed(
    file: MergedFile, run_id: int, name: RunName, like: ShardRun, winners: Sequence[ShardSession]
) -> MergedRun:
    ends = [end for session in winners if (end := session.runs[name].completed_at) is not None]
    try:
        scored = scored_run(file.path, run_id)
        assert scored is not None  # it was opened
        status = "complete" if scored.facts.complete else "partial"
        file.close_run(run_id, run_totals(status, max(ends, default=iso_time(time.time())), scored))
    except MALFORMED as error:
        raise StoreError(
            winners[0].path,
            f"what the shards say of {name[1]} on {name[0]} cannot be scored ({type(error).__name__}: {error})",
            "give the files that the shards have written, as they are",
        ) from error
    return MergedRun(run_id, name, like, scored.facts, scored.score, status)


def _settings(
    like: ShardRun, name: RunName, sessions: Sequence[ShardSession], out: Path
) -> Mapping[str, object]:
    """Return the settings of a merged run: those of its shards, and what each session of them was."""
    parts = []
    for session in sorted(sessions, key=lambda session: (session.place, session.started_at)):
        run = session.runs[name]
        parts.append(
            {
                "index": run.shard.index,
                "of": run.shard.of,
                "session": run.session_id,
                "uuid": run.uuid,
                "file": session.path.name,
                "base_url": run.base_url,
                "started_at": run.started_at,
                "completed_at": run.completed_at,
                "status": run.status,
            }
        )
    settings = {key: value for key, value in like.settings.items() if key != "shard"}
    return {**settings, "db": str(out.absolute()), "merged": parts}


def _put_in_place(path: Path, out: Path, *, force: bool) -> None:
    """Move a whole file to its place: all or nothing, even if another process reads it or the machine stops meanwhile.

    Raises:
        MergeError: A file has come there meanwhile.
    """
    with path.open("rb") as file:
        os.fsync(file.fileno())
    if not force:
        try:
            out.open("xb").close()  # of two merges at once one gets the name
        except FileExistsError:
            raise MergeError(f"{out} is there already\n  hint: name another file with -o FILE") from None
    # SQLite would read those of a file that is replaced into the new one.
    for suffix in ("-wal", "-shm", "-journal"):
        out.with_name(out.name + suffix).unlink(missing_ok=True)
    path.replace(out)


def ask_totals(
    merged: MergedShards, session: SessionValues, settings: Settings, roots: Sequence[Path]
) -> list[str]:
    """Have the kinds that follow runs compute totals of the merged ones; return notes on those that are missing.

    Args:
        roots: Benchmarks of the user. Folders that a shard names are not trusted: code in them may be run.
    """
    notes: list[str] = []
    repeat = max(run.facts.repeat for run in merged.runs)
    session = replace(session, settings=replace(settings, repeat=repeat), note=notes.append)
    for kind in dict.fromkeys(run.like.kind for run in merged.runs):
        runs = [run for run in merged.runs if run.like.kind == kind]
        loader = _follower(kind, session)
        if loader is None:
            continue
        try:
            notes += _asked(merged.path, runs, loader, roots)
        finally:
            session.loop().run(loader.close())
    return notes


def _follower(kind: str, session: SessionValues) -> Loader | None:
    """Return what loads benchmarks of a kind, where it follows runs; None where it does not, or is not installed."""
    with suppress(KindError):
        loader = kind_of(places_named(kind)).open(session)
        return loader if isinstance(loader, RunFollower) else None
    return None


def _asked(path: Path, runs: Sequence[MergedRun], loader: Loader, roots: Sequence[Path]) -> Iterator[str]:
    run_ids: dict[tuple[str, str], int] = {}
    by_benchmark: dict[tuple[str, str], list[MergedRun]] = {}
    for run in runs:
        by_benchmark.setdefault((run.like.benchmark, run.like.hash), []).append(run)
    for (name, content), same in by_benchmark.items():
        found = None
        for root in roots:
            places = places_of(root)
            if places is None or places.name != same[0].like.kind:
                continue
            address = Unusable("merged shards ask nothing", "")
            targets = tuple(Target(root, Route(ModelEntry(run.name[1]), address), ()) for run in same)
            try:
                loaded = loader.load(root, targets)
            except HelmbenchError:
                continue
            if (loaded.outline.name, loaded.outline.hash) == (name, content):
                found = loaded
                run_ids |= {target.key: run.run_id for target, run in zip(targets, same, strict=True)}
                break
        if found is None:
            yield (
                f"{name} has no total of its own: it is not here as it was run\n"
                "  hint: merge where its benchmark is, or name it with --benchmark PATH"
            )
    if not run_ids or not isinstance(loader, RunFollower):
        return
    store = Store.open(path)
    try:
        loader.store_totals(store, run_ids)
    finally:
        store.close()
