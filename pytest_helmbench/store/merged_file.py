"""Runs of shards copied into one results file: rows get new ids, links are kept, and every call counts."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.broken_cases import write_broken
from pytest_helmbench.store.cells import as_json
from pytest_helmbench.store.database_file import open_database, transaction
from pytest_helmbench.store.fault import StoreError, store_error
from pytest_helmbench.store.merged_catalogue import contradiction, copy_benchmark, forget_maps, make_maps
from pytest_helmbench.store.merged_values import check_values
from pytest_helmbench.store.plans import write_plan
from pytest_helmbench.store.run_rows import RunTotals, write_totals
from pytest_helmbench.store.shard_claims import UNCHANGED
from pytest_helmbench.store.shard_files import ShardRun, read_only_uri

__all__ = ["MergedFile", "MergedRun", "Pick"]

_TIMEOUT_S = 30.0
_JUDGED = "('passed', 'failed')"
_MAPS = """
    CREATE TEMP TABLE runs (old INTEGER PRIMARY KEY, new INTEGER NOT NULL, wins INTEGER NOT NULL);
    CREATE TEMP TABLE replies (old INTEGER PRIMARY KEY);
    CREATE TEMP TABLE taken (old INTEGER PRIMARY KEY);
    CREATE TEMP TABLE lost (old INTEGER PRIMARY KEY);
"""
_WITH_OWN_IDS = ("results", "responses", "evaluations", "judgements", "events", "calls")
_OF_STATEMENTS = (
    "SELECT tables.name FROM main.sqlite_master AS tables JOIN pragma_table_info(tables.name) AS part"
    " WHERE tables.type = 'table' AND part.name = 'result_id' AND part.pk"
)
_END = "run_finished"
"""Said of each share by itself; the merged run has an end of its own."""


@dataclass(frozen=True, slots=True)
class MergedRun:
    """The run that runs of shards are together.

    Args:
        session_id: Of the merged session.
        like: The run whose model, benchmark and versions it has.
        settings: Of the whole.
        started_at: Of the first.
    """

    session_id: str
    like: ShardRun
    settings: Mapping[str, object]
    started_at: str


@dataclass(frozen=True, slots=True)
class Pick:
    """A run of a file that is to be copied.

    Args:
        run: In the file.
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
            self._conn = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None
            )
            # Nobody sees the file before it is whole, so nothing of it has to be on disk sooner.
            for pragma in (
                "journal_mode = MEMORY",
                "synchronous = OFF",
                "foreign_keys = ON",
                "trusted_schema = OFF",
            ):
                self._conn.execute(f"PRAGMA {pragma}")
            self._conn.execute("PRAGMA cell_size_check = ON")
            self._conn.executescript(_MAPS)
            make_maps(self._conn)
            self._statements = [name for (name,) in self._conn.execute(_OF_STATEMENTS)]
        except sqlite3.Error as error:
            raise store_error(path, error) from error

    def close(self) -> None:
        """Close it; it is one file then, without a log."""
        self._conn.close()

    def open_runs(self, path: Path, runs: Sequence[MergedRun]) -> list[int]:
        """Insert the merged runs and return their ids.

        Args:
            path: The file that has what they are like.
            runs: In order.

        Raises:
            StoreError: That file contradicts itself.
        """
        with self._attached(path):
            return [self._open_run(run) for run in runs]

    def copy(self, path: Path, sessions: Sequence[Sequence[Pick]]) -> None:
        """Copy runs of a file; where two sessions have judged a case, the first verdict stands.

        Args:
            path: The file.
            sessions: Its runs, session by session.

        Raises:
            StoreError: The file contradicts itself.
        """
        with self._attached(path):
            offsets = {table: self._largest_id(table) for table in _WITH_OWN_IDS}
            picks = [pick for session in sessions for pick in session]
            for benchmark_id in dict.fromkeys(pick.run.benchmark_id for pick in picks):
                copy_benchmark(self._conn, benchmark_id)
            if odd := contradiction(self._conn):
                raise StoreError(path, f"{odd} is another one than in the other shards", UNCHANGED)
            self._take_runs(picks)
            self._copy_replies(offsets)
            for session in sessions:
                self._take_runs(session)
                self._copy_results(offsets)
                self._copy_calls(offsets)

    def link_calls(self) -> None:
        """Let the calls of what did not win belong to the result of their case."""
        with self._faults(self.path):
            self._conn.execute(
                "UPDATE main.calls SET result_id = (SELECT id FROM main.results AS found"
                " WHERE found.run_id = calls.run_id AND found.code = calls.code"
                " AND found.repetition = calls.repetition) WHERE result_id IS NULL"
            )

    def check(self) -> None:
        """See that no value stands where none of its type belongs.

        Raises:
            StoreError: One does.
        """
        with self._faults(self.path):
            check_values(self._conn, self.path)

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
                    forget_maps(self._conn)
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

    def _open_run(self, run: MergedRun) -> int:
        conn, like = self._conn, run.like
        benchmark_id = copy_benchmark(conn, like.benchmark_id)
        conn.execute("INSERT OR IGNORE INTO main.llms (name, provider, base_url) VALUES (?, ?, ?)", like.llm)
        (llm_id,) = conn.execute(
            "SELECT id FROM main.llms WHERE name = ? AND provider = ? AND base_url IS ?", like.llm
        ).fetchone()
        run_id = conn.execute(
            "INSERT INTO main.evaluation_runs (session_id, benchmark_id, llm_id, started_at, status, scope,"
            " total_tests, settings, benchmark_hash, plugin_version, benchmark_place)"
            " VALUES (?, ?, ?, ?, 'partial', ?, ?, ?, ?, ?, ?)",
            (
                run.session_id,
                benchmark_id,
                llm_id,
                run.started_at,
                like.scope,
                like.tests,
                as_json(run.settings),
                like.benchmark[2],
                like.plugin_version,
                like.place,
            ),
        ).lastrowid
        assert run_id is not None  # an INSERT always has one
        write_plan(conn, run_id, like.whole)
        write_broken(conn, run_id, like.broken)
        for table in ("benchmark_sizes", "samples"):
            names = [name for name in self._common(table) if name != "run_id"]
            conn.execute(
                f"INSERT INTO main.{table} (run_id, {', '.join(names)})"
                f" SELECT ?, {', '.join(names)} FROM shard.{table} WHERE run_id = ?",
                (run_id, like.run_id),
            )
        return run_id

    def _take_runs(self, picks: Sequence[Pick]) -> None:
        self._conn.execute("DELETE FROM temp.runs")
        self._conn.executemany(
            "INSERT INTO temp.runs (old, new, wins) VALUES (?, ?, ?)",
            [(pick.run.run_id, pick.new_id, pick.wins) for pick in picks],
        )

    def _copy_replies(self, offsets: Mapping[str, int]) -> None:
        """Copy all requests and replies of the runs, once, whichever of its sessions have used them."""
        conn = self._conn
        conn.execute("DELETE FROM temp.replies")
        conn.execute(
            "INSERT INTO temp.replies SELECT response_id FROM shard.calls JOIN temp.runs ON runs.old = run_id"
            " WHERE response_id IS NOT NULL"
            " UNION SELECT response_id FROM shard.results JOIN temp.runs ON runs.old = run_id"
            " WHERE response_id IS NOT NULL"
        )
        conn.execute(
            "INSERT OR IGNORE INTO main.requests (hash, body) SELECT hash, body FROM shard.requests WHERE hash IN"
            " (SELECT request_hash FROM shard.calls JOIN temp.runs ON runs.old = run_id"
            "  UNION SELECT request_hash FROM shard.responses JOIN temp.replies ON replies.old = responses.id)"
        )
        self._insert(
            "responses", "JOIN temp.replies ON replies.old = part.id", {"id": "part.id + :responses"}, offsets
        )

    def _copy_results(self, offsets: Mapping[str, int]) -> None:
        conn = self._conn
        conn.execute("DELETE FROM temp.taken")
        conn.execute(_TAKE)
        self._drop_losers()
        of_results = "JOIN temp.taken ON taken.old = part.result_id"
        self._insert(
            "results",
            "JOIN temp.taken ON taken.old = part.id JOIN temp.runs ON runs.old = part.run_id",
            {
                "id": "part.id + :results",
                "run_id": "runs.new",
                "response_id": _REPLY,
                **{
                    f"{name}_id": f"(SELECT new FROM temp.{name}_ids WHERE old = part.{name}_id)"
                    for name in ("scenario", "condition", "user_context", "perturbation")
                },
            },
            offsets,
        )
        for table in ("evaluations", "judgements"):
            ids = {"id": f"part.id + :{table}", "result_id": "part.result_id + :results"}
            self._insert(table, of_results, ids, offsets)
        for table in self._statements:
            self._insert(table, of_results, {"result_id": "part.result_id + :results"}, offsets)
        of_runs = "JOIN temp.runs ON runs.old = part.run_id AND runs.wins"
        ids = {"id": "part.id + :events", "run_id": "runs.new", "result_id": "part.result_id + :results"}
        self._insert("events", f"{of_runs} {of_results}", ids, offsets)
        payload = "iif(json_type(part.payload, '$.runId') = 'text',"
        payload += " json_set(part.payload, '$.runId', CAST(runs.new AS TEXT)), part.payload)"
        said = "SELECT type, payload FROM main.events WHERE run_id = runs.new AND result_id IS NULL"
        news = f"part.result_id IS NULL AND part.type <> '{_END}' AND (part.type, {payload}) NOT IN ({said})"
        self._insert("events", f"{of_runs} WHERE {news}", {**ids, "payload": payload}, offsets)
        self._insert("judge_labels", of_runs, {"run_id": "runs.new"}, offsets, "OR IGNORE")

    def _copy_calls(self, offsets: Mapping[str, int]) -> None:
        of_runs = "JOIN temp.runs ON runs.old = part.run_id"
        self._insert(
            "calls",
            of_runs,
            {
                "id": "part.id + :calls",
                "run_id": "runs.new",
                "response_id": _REPLY,
                "result_id": "(SELECT old + :results FROM temp.taken WHERE old = part.result_id)",
            },
            offsets,
        )
        self._insert("sent_calls", of_runs, {"run_id": "runs.new"}, offsets, "OR IGNORE")

    def _drop_losers(self) -> None:
        """Take out what was copied before of cases that another shard has judged first."""
        conn = self._conn
        conn.execute("DELETE FROM temp.lost")
        conn.execute(
            "INSERT INTO temp.lost SELECT found.id FROM temp.taken JOIN shard.results AS part ON part.id = taken.old"
            " JOIN temp.runs ON runs.old = part.run_id JOIN main.results AS found"
            " ON found.run_id = runs.new AND found.code = part.code AND found.repetition = part.repetition"
        )
        if conn.execute("SELECT 1 FROM temp.lost LIMIT 1").fetchone() is None:
            return
        conn.execute("UPDATE main.calls SET result_id = NULL WHERE result_id IN (SELECT old FROM temp.lost)")
        for table in ("evaluations", "judgements", "events", *self._statements):
            conn.execute(f"DELETE FROM main.{table} WHERE result_id IN (SELECT old FROM temp.lost)")
        conn.execute("DELETE FROM main.results WHERE id IN (SELECT old FROM temp.lost)")

    def _insert(
        self, table: str, joined: str, cells: Mapping[str, str], offsets: Mapping[str, int], rule: str = ""
    ) -> None:
        """Copy rows of a table, in order; what is not said of a column is copied as it is."""
        names = self._common(table)
        values = ", ".join(cells.get(name, f"part.{name}") for name in names)
        self._conn.execute(
            f"INSERT {rule} INTO main.{table} ({', '.join(names)}) SELECT {values} FROM shard.{table} AS part {joined}"
            " ORDER BY part.rowid",
            offsets,
        )

    def _common(self, table: str) -> list[str]:
        """Return the columns that a table has in both files: an older one lacks some."""
        found: list[list[str]] = [
            [
                name
                for (name,) in self._conn.execute("SELECT name FROM pragma_table_info(?, ?)", (table, place))
            ]
            for place in ("main", "shard")
        ]
        return [name for name in found[0] if name in found[1]]

    def _largest_id(self, table: str) -> int:
        (value,) = self._conn.execute(f"SELECT coalesce(max(id), 0) FROM main.{table}").fetchone()
        return int(value)


_REPLY = "(SELECT old + :responses FROM temp.replies WHERE old = part.response_id)"
_TAKE = f"""
    INSERT INTO temp.taken SELECT part.id FROM shard.results AS part
    JOIN temp.runs ON runs.old = part.run_id AND runs.wins
    WHERE NOT EXISTS (
        SELECT 1 FROM main.results AS found
        WHERE found.run_id = runs.new AND found.code = part.code AND found.repetition = part.repetition
        AND (
            found.outcome IN {_JUDGED} AND part.outcome NOT IN {_JUDGED}
            OR (found.outcome IN {_JUDGED}) = (part.outcome IN {_JUDGED})
            AND coalesce(found.completed_at, '~') <= coalesce(part.completed_at, '~')
        )
    )
"""
"""What a case was judged as first stands; where nobody has judged it, what came of it first."""
