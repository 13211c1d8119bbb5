"""The tables, indexes and views, as migrations. What one row is stands in `docs/database.md`.

A new file does not go through them: after a change, `python tests/support/newest_form_sql.py` writes what it gets.
"""

from __future__ import annotations

import sqlite3

from pytest_helmbench.store.benchmark_places import ADD_PLACE
from pytest_helmbench.store.benchmark_sizes import CREATE_SIZES
from pytest_helmbench.store.broken_cases import CREATE_BROKEN_CASES
from pytest_helmbench.store.first_tables import FIRST_TABLES
from pytest_helmbench.store.judgement_rows import CREATE_JUDGEMENTS
from pytest_helmbench.store.sample_rows import CREATE_SAMPLES
from pytest_helmbench.store.sent_calls import CREATE_SENT_CALLS
from pytest_helmbench.store.shard_rows import ADD_SHARDS
from pytest_helmbench.store.sqlite_tools import Database, Migrations
from pytest_helmbench.store.views import COSTS_VIEW, PROMPTS_VIEW, VIEWS

__all__ = ["migrate"]

_MIGRATIONS = Migrations("helmbench")


def migrate(conn: sqlite3.Connection) -> None:
    """Bring the tables to the newest form; inside the caller's transaction when there is one."""
    _MIGRATIONS.apply(Database(conn, execute_plugins=False))


@_MIGRATIONS()
def create_tables(db: Database) -> None:
    """Create what stands in the documentation, but for what came later."""
    # Statement by statement: `executescript` would end the transaction that the migration runs in.
    for statement in (*FIRST_TABLES, *VIEWS):
        db.conn.execute(statement)


@_MIGRATIONS()
def keep_plans(db: Database) -> None:
    """Keep what a run has planned, so that its score can be found again with what was never judged."""
    db.conn.execute(
        """CREATE TABLE plans (
            run_id INTEGER PRIMARY KEY REFERENCES evaluation_runs (id),
            codes BLOB NOT NULL
        )"""
    )


@_MIGRATIONS()
def keep_packs(db: Database) -> None:
    """Let a row of a question pack stand among the scenarios (it belongs to no behaviour); keep transcripts."""
    db.conn.execute("ALTER TABLE scenarios ADD COLUMN benchmark_id INTEGER REFERENCES benchmarks (id)")
    db.conn.execute("CREATE INDEX idx_scenarios_benchmark_id_code ON scenarios (benchmark_id, code)")
    db.conn.execute(
        """CREATE TABLE events (
            id INTEGER PRIMARY KEY,
            run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
            result_id INTEGER REFERENCES results (id),
            type TEXT NOT NULL,
            payload TEXT NOT NULL,
            at TEXT NOT NULL
        )"""
    )
    db.conn.execute("CREATE INDEX idx_events_result_id ON events (result_id)")


@_MIGRATIONS()
def keep_hosted(db: Database) -> None:
    """Keep what Bench Packs say of results and runs, on their own scales."""
    db.conn.execute(
        """CREATE TABLE pack_results (
            result_id INTEGER PRIMARY KEY REFERENCES results (id),
            status TEXT NOT NULL,
            score REAL,
            points REAL,
            note TEXT,
            summary TEXT,
            raw_log TEXT,
            output TEXT,
            verifier TEXT,
            artifacts TEXT,
            timings TEXT
        )"""
    )
    db.conn.execute(
        """CREATE TABLE pack_scores (
            run_id INTEGER PRIMARY KEY REFERENCES evaluation_runs (id),
            total REAL NOT NULL,
            unit TEXT,
            categories TEXT NOT NULL,
            summary TEXT,
            partial INTEGER NOT NULL
        )"""
    )
    db.conn.execute("CREATE INDEX idx_events_run_id ON events (run_id)")


@_MIGRATIONS()
def keep_unknown_costs(db: Database) -> None:
    """Keep which costs are estimates, and which calls were sent, not answered, and may be billed all the same."""
    db.conn.execute("ALTER TABLE calls ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0")
    db.conn.execute("ALTER TABLE calls ADD COLUMN unanswered INTEGER NOT NULL DEFAULT 0")
    db.conn.execute("ALTER TABLE calls ADD COLUMN reserved_usd REAL")
    db.conn.execute("DROP VIEW IF EXISTS v_costs")
    db.conn.execute(COSTS_VIEW)


@_MIGRATIONS()
def keep_leases(db: Database) -> None:
    """Keep who owns a run that is open."""
    db.conn.execute(
        """CREATE TABLE leases (
            run_id INTEGER PRIMARY KEY REFERENCES evaluation_runs (id),
            owner TEXT NOT NULL,
            process TEXT NOT NULL,
            renewed_at TEXT NOT NULL,
            boot TEXT,
            boot_s REAL
        )"""
    )


@_MIGRATIONS()
def keep_sent_calls(db: Database) -> None:
    """Keep which calls are out that a budget has to count, also when their process is killed."""
    db.conn.execute(CREATE_SENT_CALLS)


@_MIGRATIONS()
def keep_comparisons(db: Database) -> None:
    """Keep how the runs of a session stood to their baselines."""
    db.conn.execute(
        """CREATE TABLE comparisons (
            id INTEGER PRIMARY KEY,
            session_id TEXT NOT NULL,
            run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
            baseline_run TEXT,
            model TEXT NOT NULL,
            scope TEXT NOT NULL,
            score REAL,
            baseline_score REAL,
            change REAL,
            low REAL,
            high REAL,
            level REAL,
            p REAL,
            max_drop REAL,
            unit TEXT,
            units INTEGER,
            changed INTEGER,
            down INTEGER,
            up INTEGER,
            least_p REAL,
            cases_compared INTEGER NOT NULL,
            cases_left_out INTEGER NOT NULL,
            common REAL,
            detectable REAL,
            verdict TEXT NOT NULL,
            reason TEXT NOT NULL,
            behaviours TEXT NOT NULL,
            at TEXT NOT NULL
        )"""
    )
    db.conn.execute("CREATE INDEX idx_comparisons_run_id ON comparisons (run_id)")


@_MIGRATIONS()
def keep_chunk_times(db: Database) -> None:
    """Keep when the events of streams have arrived."""
    db.conn.execute("ALTER TABLE responses ADD COLUMN chunk_times TEXT")


@_MIGRATIONS()
def keep_where_judged(db: Database) -> None:
    """Keep which verdicts what was judged might have forged."""
    db.conn.execute("DROP VIEW IF EXISTS v_results")
    db.conn.execute("ALTER TABLE evaluations ADD COLUMN in_process INTEGER NOT NULL DEFAULT 0")
    for view in VIEWS:
        db.conn.execute(view)


@_MIGRATIONS()
def keep_sizes(db: Database) -> None:
    """Keep what the files of a benchmark defined when a run began."""
    db.conn.execute(CREATE_SIZES)


@_MIGRATIONS()
def keep_judge_labels(db: Database) -> None:
    """Keep what a person says of a judge's verdicts."""
    db.conn.execute(
        """CREATE TABLE judge_labels (
            run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
            code TEXT NOT NULL,
            repetition INTEGER NOT NULL,
            criterion TEXT NOT NULL,
            passed INTEGER NOT NULL,
            labelled_at TEXT NOT NULL,
            PRIMARY KEY (run_id, code, repetition, criterion)
        )"""
    )


@_MIGRATIONS()
def keep_pack_extras(db: Database) -> None:
    """Keep what Bench Packs say of runs beyond the protocol."""
    db.conn.execute("ALTER TABLE pack_scores ADD COLUMN extra TEXT")


@_MIGRATIONS()
def keep_broken_cases(db: Database) -> None:
    """Keep which cases of a run could not run since their files are broken."""
    db.conn.execute(CREATE_BROKEN_CASES)
    db.conn.execute("CREATE INDEX idx_broken_cases_run_id ON broken_cases (run_id)")


@_MIGRATIONS()
def keep_samples(db: Database) -> None:
    """Keep which sample of its benchmark a run is."""
    db.conn.execute(CREATE_SAMPLES)


@_MIGRATIONS()
def keep_judgements(db: Database) -> None:
    """Keep what each of several judges said, and which judge a call asked."""
    for statement in CREATE_JUDGEMENTS:
        db.conn.execute(statement)


@_MIGRATIONS()
def keep_weighted_labels(db: Database) -> None:
    """Keep which labels are of a sample of rows, and how often a sample by points drew each."""
    db.conn.execute("ALTER TABLE judge_labels ADD COLUMN of_rows INTEGER NOT NULL DEFAULT 1")
    db.conn.execute("ALTER TABLE judge_labels ADD COLUMN point_draws INTEGER")


@_MIGRATIONS()
def keep_asked_models(db: Database) -> None:
    """Keep which model gave a reply: two servers may know different ones by the same name."""
    db.conn.execute("ALTER TABLE responses ADD COLUMN asked TEXT")


@_MIGRATIONS()
def keep_shards(db: Database) -> None:
    """Keep which runs are shares of a plan, and what that plan was."""
    for statement in ADD_SHARDS:
        db.conn.execute(statement)


@_MIGRATIONS()
def keep_prompts_view(db: Database) -> None:
    """Let people read what was sent as text."""
    db.conn.execute(PROMPTS_VIEW)


@_MIGRATIONS()
def keep_observed_texts(db: Database) -> None:
    """Keep what was observed in the running text of a reply apart from values."""
    db.conn.execute("DROP VIEW IF EXISTS v_results")
    db.conn.execute("ALTER TABLE evaluations ADD COLUMN observed_text TEXT")
    for view in VIEWS:
        db.conn.execute(view)


@_MIGRATIONS()
def keep_benchmark_places(db: Database) -> None:
    """Keep where the benchmark of a run lies: others may have its name."""
    db.conn.execute(ADD_PLACE)
