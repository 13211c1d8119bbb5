"""Results files of shards: opened to be read and nothing else, and copied as they are into one file.

Nothing in a shard's file is trusted: the tables of the merged one refuse what is not of its type or points nowhere.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.ids import new_id
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.shard import Shard, case_share, hashed_share
from pytest_helmbench.store.database_file import open_database, transaction
from pytest_helmbench.store.fault import EmptyStoreError, StoreError, store_error
from pytest_helmbench.store.leases import leases_of, seconds_since_epoch
from pytest_helmbench.store.plan_rows import IS_CASE, write_broken, write_plan
from pytest_helmbench.store.schema import check_form
from pytest_helmbench.store.table_rows import as_json, columns_of, from_row, named_rows, statement_tables
from pytest_helmbench.store.write.run_rows import RunTotals, write_totals

MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    zlib.error,
)
"""Errors that values of another program than pytest-helmbench raise."""
UNCHANGED = "give the files that the shards have written, as they are"

_TIMEOUT_S = 30.0
_LONGEST_PLAN = 2**30


@dataclass(frozen=True, slots=True)
class ShardRun:
    """One run of a shard: a benchmark on a model.

    Args:
        run_id: `evaluation_runs.id` in its file.
        scope: Of the whole plan.
        tests: Cases × repetitions of the whole plan.
        codes: Of this share.
        whole: Of all shards, in order.
        broken: Those that cannot run, in all shards.
        completed_at: None for a run that has not ended.
        in_batch: How many of its results are of cases whose calls have been left in batches.
        benchmark_id: Row of its benchmark in the file.
        benchmark: Its name; `version`, `hash` and `kind` likewise.
        model: Id; `provider` and `base_url` likewise.
        plugin_version: Of the program that wrote it.
        place: Where its benchmark lies; None where the file does not say.
    """

    run_id: int
    uuid: str
    session_id: str
    shard: Shard
    scope: str
    tests: int
    codes: tuple[str, ...]
    whole: tuple[str, ...]
    broken: tuple[BrokenCase, ...]
    started_at: str
    completed_at: str | None
    status: str
    results: int
    in_batch: int
    total_tests: int
    benchmark_id: str
    benchmark: str
    version: str
    hash: str
    kind: str
    model: str
    provider: str
    base_url: str | None
    settings: Mapping[str, Any]
    plugin_version: str
    place: str | None


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A results file with its runs of shards.

    Args:
        runs: Oldest first; those of other sessions are left out.
        newest_is_shard: Whether its last session is a shard.
        held_by: Who still writes it, for people; empty for none.
    """

    path: Path
    runs: tuple[ShardRun, ...]
    newest_is_shard: bool
    held_by: str


def read_only_uri(path: Path) -> str:
    """Return how a file is opened without a trace: nothing is written beside it unless its log has to be read."""
    has_log = any(_size(path.with_name(path.name + suffix)) for suffix in ("-wal", "-journal"))
    return f"{path.absolute().as_uri()}?{'mode=ro' if has_log else 'mode=ro&immutable=1'}"


def read_shard_file(path: Path) -> ShardFile:
    """Return what a results file says of the shards in it.

    Raises:
        StoreError: It is missing, damaged, no results file, of another version, or holds no run.
    """
    with _opened(path) as conn:
        try:
            _check_form(conn, path)
            newest = conn.execute(
                "SELECT shard IS NOT NULL FROM evaluation_runs ORDER BY id DESC LIMIT 1"
            ).fetchone()
            if newest is None:
                hint = f"what a killed session has written is in {path.name}-wal: copy it along"
                raise StoreError(path, "it holds no run", hint)
            runs = tuple(_runs(conn))
            for run in runs:
                _check_share(conn, path, run)
            held_by = _holder(conn, runs)
        except MALFORMED as error:
            raise StoreError(
                path, f"its table of shards cannot be read ({type(error).__name__})", UNCHANGED
            ) from error
    return ShardFile(path, runs, bool(newest[0]), held_by)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise StoreError(path, "it is not a file" if path.exists() else "there is no such file", UNCHANGED)
    try:
        with contextlib.closing(sqlite3.connect(read_only_uri(path), uri=True, timeout=30)) as conn:
            conn.execute("PRAGMA cell_size_check = ON")
            conn.execute("PRAGMA query_only = ON")
            yield conn
    except sqlite3.Error as error:
        raise store_error(path, error) from error


def _check_form(conn: sqlite3.Connection, path: Path) -> None:
    """See that the file is one of ours, undamaged.

    Raises:
        StoreError: It is not.
    """
    if not check_form(conn, path):
        raise EmptyStoreError(path)
    damage = conn.execute("PRAGMA quick_check(1)").fetchone()
    if damage is None or damage[0] != "ok":
        raise StoreError(path, f"the database is damaged ({damage and damage[0]})", "take an undamaged copy")


def _runs(conn: sqlite3.Connection) -> Iterator[ShardRun]:
    rows = conn.execute(f"""
        SELECT runs.*, runs.id AS run_id, plans.codes, plans.whole, benchmarks.name AS benchmark, benchmarks.version,
            benchmarks.hash, benchmarks.kind, llms.name AS model, llms.provider, llms.base_url,
            (SELECT count(*) FROM results WHERE results.run_id = runs.id AND {IS_CASE}) AS results,
            (SELECT count(*) FROM results WHERE results.run_id = runs.id AND reason = 'in_batch') AS in_batch
        FROM evaluation_runs AS runs JOIN plans ON plans.run_id = runs.id
        JOIN benchmarks ON benchmarks.id = runs.benchmark_id JOIN llms ON llms.id = runs.llm_id
        WHERE runs.shard IS NOT NULL AND runs.rescored_from IS NULL ORDER BY runs.id
    """)
    named = ("benchmark_id", "benchmark", "version", "hash", "kind", "model", "provider")
    texts = ("uuid", "session_id", "started_at", "status", "plugin_version", *named)
    for row in named_rows(rows):
        about = json.loads(_text(row["shard"]))
        shard = Shard(_whole(about["index"]), _whole(about["of"]))
        if not 1 <= shard.index <= shard.of <= 10**9:
            raise ValueError("shard")
        settings = json.loads(_text(row["settings"]))
        if row["status"] not in ("running", "complete", "partial", "interrupted") or not isinstance(
            settings, dict
        ):
            raise ValueError("run")
        seconds_since_epoch(_text(row["started_at"]))
        yield from_row(
            ShardRun,
            {"base_url": None, "completed_at": None}
            | {name: _text(row[name]) for name in texts}
            | {name: _whole(row[name]) for name in ("run_id", "results", "in_batch", "total_tests")}
            | {name: _codes(row[name]) for name in ("codes", "whole")}
            | {name: _text(row[name]) for name in ("base_url", "completed_at") if row[name] is not None},
            shard=shard,
            scope="whole" if about["scope"] == "whole" else "selected",
            tests=_whole(about["tests"]),
            broken=tuple(BrokenCase(_text(code), *map(_whole, rest)) for code, *rest in about["broken"]),
            settings=settings,
            place=None if (place := row["benchmark_place"]) is None else _text(place),
        )


def _check_share(conn: sqlite3.Connection, path: Path, run: ShardRun) -> None:
    """See that a run has planned and judged nothing but cases of its share.

    Raises:
        StoreError: It speaks for the cases of others.
    """
    own = set(run.codes)
    foreign = own.difference(run.whole)
    if foreign:
        raise StoreError(path, f"its plan names {min(foreign)}, which is not in {run.shard.name}", UNCHANGED)
    results = "SELECT code, repetition, node_id FROM results WHERE run_id = ?"
    for code, number, item in conn.execute(results, (run.run_id,)):
        if code not in own:
            raise StoreError(path, f"it holds a result of {code}, which is not in its plan", UNCHANGED)
        share = case_share(run.benchmark, code, _whole(number), run.shard.of)
        if run.shard.index not in (share, hashed_share(item, run.shard.of)):
            problem = f"it holds a result of {code}, which is not in {run.shard.name}"
            raise StoreError(path, problem, UNCHANGED)


def _holder(conn: sqlite3.Connection, runs: tuple[ShardRun, ...]) -> str:
    """Return who writes one of these runs, for people; empty for none."""
    leases = leases_of(conn)
    for run in runs:
        lease = leases.get(run.session_id)
        if run.status == "running" and lease is not None and lease.is_held(time.time()):
            return lease.holder
    return ""


def _codes(packed: object) -> tuple[str, ...]:
    if not isinstance(packed, bytes):
        raise TypeError("plan")
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(packed, _LONGEST_PLAN)
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ValueError("plan")
    return tuple(filter(None, text.decode().split("\n")))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or not -(2**53) < value < 2**53:
        raise TypeError("number")
    return value


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class Pick:
    """A run of a file that is to be copied.

    Args:
        new_id: `evaluation_runs.id` of the merged run.
        wins: Its results count; else only what it has paid.
    """

    run: ShardRun
    new_id: int
    wins: bool


class MergedFile:
    """A results file in the making.

    Args:
        path: Where it is made; nothing stands there.

    Raises:
        StoreError: It cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            open_database(path, _TIMEOUT_S).close()
            uri = f"{path.absolute().as_uri()}?mode=rw"
            self._conn = sqlite3.connect(uri, uri=True, isolation_level=None)
            # No reader sees the file before it is whole, so nothing of it has to be on disk sooner, nor to agree.
            for pragma in ("journal_mode = MEMORY", "synchronous = OFF", "foreign_keys = OFF"):
                self._conn.execute(f"PRAGMA {pragma}")
            self._conn.execute("PRAGMA trusted_schema = OFF")
            self._conn.execute("PRAGMA cell_size_check = ON")
            self._of_results = ("evaluations", "judgements", *statement_tables(self._conn))
        except sqlite3.Error as error:
            raise store_error(path, error) from error

    def close(self) -> None:
        """Close it; it is one file then, without a log."""
        self._conn.close()

    def open_runs(
        self, path: Path, started_at: str, runs: Sequence[tuple[ShardRun, Mapping[str, object]]]
    ) -> list[int]:
        """Insert the merged runs of a new session and return their ids.

        Args:
            path: The file that has what they are like.
            runs: The run whose model, benchmark and versions each has, and the settings of the whole.

        Raises:
            StoreError: That file contradicts itself.
        """
        with self._attached(path):
            about = (new_id(), started_at)
            return [self._open_run(about, like, settings) for like, settings in runs]

    def copy(self, path: Path, picks: Sequence[Pick]) -> None:
        """Copy runs of a file; where two have judged a case, the first verdict stands.

        Raises:
            StoreError: The file contradicts itself, or the others.
        """
        with self._attached(path):
            for benchmark_id in dict.fromkeys(pick.run.benchmark_id for pick in picks):
                self._copy_benchmark(benchmark_id, path)
            for pick in picks:
                ids = {"old": pick.run.run_id, "new": pick.new_id}
                self._copy_calls(ids)
                if pick.wins:
                    self._copy_results(ids)
            merged = {"session_id": "(SELECT DISTINCT session_id FROM main.evaluation_runs)"}
            for session_id in dict.fromkeys(pick.run.session_id for pick in picks):
                self._copy("batches", "part.session_id = :old", {"old": session_id}, given=merged)

    _USED = (
        "latency_ms",
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "cost_usd",
    )
    _ODD = (
        *((table, f"{name} NOT BETWEEN 0 AND 1e12") for name in _USED for table in ("calls", "results")),
        *((table, "reserved_usd NOT BETWEEN 0 AND 1e12") for table in ("calls", "batches")),
        ("batches", "created_s NOT BETWEEN 0 AND 1e10 OR json_type(keys) <> 'object'"),
        ("batches", "EXISTS (SELECT 1 FROM json_each(keys) WHERE type <> 'integer')"),
        ("scenarios", "NOT json_valid(evaluation) OR json_type(evaluation) <> 'object'"),
        ("events", "NOT json_valid(payload)"),
    )
    """Tables, and conditions on rows that pytest-helmbench never writes."""

    def check(self) -> None:
        """See that every row points to one that is there, and that no value stands where it cannot be used.

        Raises:
            StoreError: One does not: a shard's file was made by something else.
        """
        with self._faults(self.path):
            odd = self._conn.execute("PRAGMA foreign_key_check").fetchone()
            queries = (f"SELECT '{table}' FROM main.{table} WHERE {odd_row}" for table, odd_row in self._ODD)
            odd = odd or self._conn.execute(" UNION ALL ".join(queries)).fetchone()
        if odd is not None:
            raise StoreError(
                self.path,
                f"the shards hold values that {odd[0]} cannot have",
                "merge them one by one to find out which file it is; it was not written by pytest-helmbench",
            )

    def close_run(self, run_id: int, totals: RunTotals) -> None:
        """Give a run its end; counts and costs are taken from the rows."""
        with self._faults(self.path), transaction(self._conn):
            write_totals(self._conn, run_id, totals)

    @contextlib.contextmanager
    def _attached(self, path: Path) -> Iterator[None]:
        with self._faults(path):
            self._conn.execute("ATTACH DATABASE ? AS shard", (read_only_uri(path),))
            try:
                with transaction(self._conn):
                    yield
            finally:
                self._conn.execute("DETACH DATABASE shard")

    @contextlib.contextmanager
    def _faults(self, path: Path) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise StoreError(
                path, f"its rows contradict each other ({error})", "take another copy of it"
            ) from error
        except sqlite3.Error as error:
            raise store_error(path, error) from error

    def _open_run(self, about: tuple[str, str], like: ShardRun, settings: Mapping[str, object]) -> int:
        conn = self._conn
        self._copy_benchmark(like.benchmark_id, self.path)
        llm = "part.id = (SELECT llm_id FROM shard.evaluation_runs WHERE id = :old)"
        self._copy("llms", llm, {"old": like.run_id}, "OR IGNORE")
        copied = "benchmark_id, llm_id, benchmark_hash, benchmark_place, plugin_version"
        run_id = conn.execute(
            "INSERT INTO main.evaluation_runs (uuid, session_id, started_at, status, scope, total_tests, settings,"
            f" {copied}) SELECT ?, ?, ?, 'partial', ?, ?, ?, {copied} FROM shard.evaluation_runs WHERE id = ?",
            (new_id(), *about, like.scope, like.tests, as_json(settings), like.run_id),
        ).lastrowid
        assert run_id is not None  # an INSERT always has one
        write_plan(conn, run_id, like.whole)
        write_broken(conn, run_id, like.broken)
        conn.execute(
            "UPDATE plans SET (defined, sample) = (SELECT defined, sample FROM shard.plans WHERE run_id = ?)"
            " WHERE run_id = ?",
            (like.run_id, run_id),
        )
        return run_id

    _OF_SCENARIO = "part.scenario_id IN (SELECT id FROM shard.scenarios WHERE benchmark_id = :old)"
    _CATALOGUE = (
        ("benchmarks", "part.id = :old", "name, hash, kind"),
        ("pillars", "part.benchmark_id = :old", "code, id"),
        (
            "behaviours",
            "part.pillar_id IN (SELECT id FROM shard.pillars WHERE benchmark_id = :old)",
            "code, id",
        ),
        ("scenarios", "part.benchmark_id = :old", "full_code, id, family, evaluation"),
        ("conditions", _OF_SCENARIO, "full_code, id, difficulty"),
        ("user_contexts", _OF_SCENARIO, "full_code, id, severity"),
        ("perturbations", _OF_SCENARIO, "full_code, id, severity"),
    )
    """Tables, which of their rows belong to a benchmark, and the columns in which all shards agree."""

    def _copy_benchmark(self, benchmark_id: str, path: Path) -> None:
        """Copy what describes a benchmark; files of one benchmark say the same of what decides scores and rules."""
        ids = {"old": benchmark_id}
        for table, which, says in self._CATALOGUE:
            if "text_hash" in columns_of(self._conn, table):
                texts = f"part.hash IN (SELECT text_hash FROM shard.{table} AS part WHERE {which})"
                self._copy("texts", texts, ids, "OR IGNORE")
            self._copy(table, which, ids, "OR IGNORE")
            theirs = f"SELECT {says} FROM shard.{table} AS part WHERE {which}"
            odd = self._conn.execute(
                f"{theirs} EXCEPT SELECT {says} FROM main.{table} LIMIT 1", ids
            ).fetchone()
            if odd is not None:
                raise StoreError(path, f"{odd[0]} is another one than in the other shards", UNCHANGED)

    def _copy_calls(self, ids: Mapping[str, int]) -> None:
        """Copy what a run has paid, with all requests and replies, which its results may have from other sessions."""
        of_run = "part.run_id = :old"
        replies = " UNION ".join(
            f"SELECT response_id FROM shard.{table} WHERE run_id = :old" for table in ("calls", "results")
        )
        asked = (
            "SELECT request_hash FROM shard.calls WHERE run_id = :old"
            f" UNION SELECT request_hash FROM shard.responses WHERE id IN ({replies})"
        )
        self._copy("requests", f"part.hash IN ({asked})", ids, "OR IGNORE")
        request = {"request_id": "(SELECT id FROM main.requests WHERE hash = part.request_hash)"}
        self._copy("responses", f"part.id IN ({replies})", ids, "OR IGNORE", given=request)
        self._copy("calls", of_run, ids)
        self._copy("sent_calls", of_run, ids, "OR IGNORE")

    _FIRST_VERDICT = (
        "ON CONFLICT (run_id, code, repetition) DO UPDATE SET {changes} WHERE"
        " (results.outcome NOT IN {judged} AND excluded.outcome IN {judged})"
        " OR ((results.outcome IN {judged}) = (excluded.outcome IN {judged})"
        " AND coalesce(results.completed_at, '~') > coalesce(excluded.completed_at, '~'))"
    )
    _PAYLOAD = (
        "iif(json_type(part.payload, '$.runId') = 'text',"
        " json_set(part.payload, '$.runId', CAST(:new AS TEXT)), part.payload)"
    )
    # Every share has its own `run_finished`; the merged run has an end of its own.
    _EVENTS_OF_RUN = (
        "part.run_id = :old AND part.result_id IS NULL AND part.type <> 'run_finished'"
        f" AND (part.type, {_PAYLOAD}) NOT IN"
        " (SELECT type, payload FROM main.events WHERE run_id = :new AND result_id IS NULL)"
    )

    def _copy_results(self, ids: Mapping[str, int]) -> None:
        """Copy results: the first verdict of a case stands; of a case that was never judged, its first outcome."""
        columns = [name for name in columns_of(self._conn, "results") if name != "run_id"]
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
        first = self._FIRST_VERDICT.format(changes=changes, judged="('passed', 'failed')")
        self._copy("results", "part.run_id = :old", ids, after=first)
        own = "(SELECT ours.id FROM shard.results AS ours JOIN main.results USING (id) WHERE ours.run_id = :old)"
        gone = "result_id NOT IN (SELECT id FROM main.results)"
        for table in self._of_results:
            self._conn.execute(f"DELETE FROM main.{table} WHERE {gone}")
            self._copy(table, f"part.result_id IN {own}", ids)
        self._conn.execute(f"DELETE FROM main.events WHERE result_id IS NOT NULL AND {gone}")
        self._copy("events", f"part.run_id = :old AND part.result_id IN {own}", ids)
        self._copy("events", self._EVENTS_OF_RUN, ids, given={"payload": self._PAYLOAD})
        self._copy("judge_labels", "part.run_id = :old", ids, "OR IGNORE")

    _COUNTED = ("requests", "calls", "evaluations", "judgements", "events")
    """Tables whose ids only count the rows of one file."""

    def _copy(
        self,
        table: str,
        which: str,
        ids: Mapping[str, int | str],
        rule: str = "",
        *,
        after: str = "",
        given: Mapping[str, str] = {},
    ) -> None:
        """Copy rows of a table as they are, in their order, but for the id of their run and ids that only count.

        Args:
            which: Condition on its rows, `part`.
            ids: What represents `:old` and `:new` in it.
            rule: `OR IGNORE` for rows that may be there already.
            after: What is done on a conflict.
            given: What is written in place of a column.
        """
        names = [name for name in columns_of(self._conn, table) if name != "id" or table not in self._COUNTED]
        cells = ({"run_id": ":new"} if "run_id" in names else {}) | dict(given)
        values = ", ".join(cells.get(name, f"part.{name}") for name in names)
        self._conn.execute(
            f"INSERT {rule} INTO main.{table} ({', '.join(names)}) SELECT {values} FROM shard.{table} AS part"
            f" WHERE {which} ORDER BY part.rowid {after}",
            ids,
        )
