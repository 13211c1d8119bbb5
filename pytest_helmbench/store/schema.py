"""The tables, indexes and views, as migrations. What one row is stands in `docs/database.md`."""

from __future__ import annotations

import contextlib

from sqlite_utils import Database, Migrations

from pytest_helmbench.store.views import COSTS_VIEW, VIEWS

__all__ = ["migrate", "unknown_migrations"]

_MIGRATIONS = Migrations("helmbench")


def migrate(db: Database) -> None:
    """Bring the tables to the newest form; inside the caller's transaction when there is one."""
    if _MIGRATIONS.pending(db):
        _MIGRATIONS.apply(db)


def unknown_migrations(db: Database) -> tuple[str, ...]:
    """Return the names of applied migrations that this version does not have."""
    with contextlib.closing(Database(memory=True)) as empty:
        ours = {migration.name for migration in _MIGRATIONS.pending(empty)}
    return tuple(step.name for step in _MIGRATIONS.applied(db) if step.name not in ours)


_BENCHMARK_TABLES = (
    """CREATE TABLE benchmarks (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        version TEXT NOT NULL,
        description TEXT NOT NULL,
        hash TEXT NOT NULL,
        kind TEXT NOT NULL,
        UNIQUE (name, version, hash)
    )""",
    """CREATE TABLE texts (
        id INTEGER PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE,
        body TEXT NOT NULL
    )""",
    """CREATE TABLE pillars (
        id INTEGER PRIMARY KEY,
        benchmark_id INTEGER NOT NULL REFERENCES benchmarks (id),
        code TEXT NOT NULL,
        name TEXT NOT NULL,
        description TEXT NOT NULL,
        UNIQUE (benchmark_id, code)
    )""",
    """CREATE TABLE behaviours (
        id INTEGER PRIMARY KEY,
        pillar_id INTEGER NOT NULL REFERENCES pillars (id),
        code TEXT NOT NULL,
        title TEXT NOT NULL,
        description TEXT NOT NULL,
        compliance_criteria TEXT NOT NULL,
        weight REAL NOT NULL,
        UNIQUE (pillar_id, code)
    )""",
    """CREATE TABLE scenarios (
        id INTEGER PRIMARY KEY,
        behaviour_id INTEGER REFERENCES behaviours (id),
        code TEXT NOT NULL,
        full_code TEXT NOT NULL,
        title TEXT NOT NULL,
        family TEXT NOT NULL,
        expected_category TEXT,
        schema TEXT,
        evaluation TEXT NOT NULL,
        text_id INTEGER REFERENCES texts (id)
    )""",
    "CREATE INDEX idx_scenarios_behaviour_id ON scenarios (behaviour_id)",
    """CREATE TABLE conditions (
        id INTEGER PRIMARY KEY,
        code TEXT NOT NULL,
        full_code TEXT NOT NULL,
        difficulty INTEGER NOT NULL,
        text_id INTEGER REFERENCES texts (id)
    )""",
    """CREATE TABLE user_contexts (
        id INTEGER PRIMARY KEY,
        code TEXT NOT NULL,
        full_code TEXT NOT NULL,
        severity INTEGER NOT NULL,
        text_id INTEGER REFERENCES texts (id)
    )""",
    """CREATE TABLE perturbations (
        id INTEGER PRIMARY KEY,
        scenario_id INTEGER NOT NULL REFERENCES scenarios (id),
        code TEXT NOT NULL,
        full_code TEXT NOT NULL,
        severity INTEGER NOT NULL,
        text_id INTEGER REFERENCES texts (id)
    )""",
    "CREATE INDEX idx_perturbations_scenario_id ON perturbations (scenario_id)",
    """CREATE TABLE scenario_conditions (
        scenario_id INTEGER NOT NULL REFERENCES scenarios (id),
        condition_id INTEGER NOT NULL REFERENCES conditions (id),
        PRIMARY KEY (scenario_id, condition_id)
    )""",
    """CREATE TABLE scenario_user_contexts (
        scenario_id INTEGER NOT NULL REFERENCES scenarios (id),
        user_context_id INTEGER NOT NULL REFERENCES user_contexts (id),
        PRIMARY KEY (scenario_id, user_context_id)
    )""",
)

_RUN_TABLES = (
    """CREATE TABLE llms (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        provider TEXT NOT NULL,
        base_url TEXT
    )""",
    # An expression, since a plain UNIQUE would let any number of rows without a base URL in.
    "CREATE UNIQUE INDEX idx_llms_identity ON llms (name, provider, coalesce(base_url, ''))",
    """CREATE TABLE evaluation_runs (
        id INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL,
        benchmark_id INTEGER NOT NULL REFERENCES benchmarks (id),
        llm_id INTEGER NOT NULL REFERENCES llms (id),
        started_at TEXT NOT NULL,
        completed_at TEXT,
        status TEXT NOT NULL,
        scope TEXT NOT NULL,
        total_tests INTEGER NOT NULL,
        passed_tests INTEGER,
        failed_tests INTEGER,
        error_tests INTEGER,
        skipped_tests INTEGER,
        neutral_tests INTEGER,
        total_evaluations INTEGER,
        score REAL,
        score_low REAL,
        score_high REAL,
        score_raw REAL,
        coverage REAL,
        cost_usd REAL,
        known_cost_usd REAL,
        settings TEXT NOT NULL,
        benchmark_hash TEXT NOT NULL,
        plugin_version TEXT NOT NULL,
        rescored_from INTEGER REFERENCES evaluation_runs (id),
        heartbeat_at TEXT
    )""",
    "CREATE INDEX idx_evaluation_runs_session_id ON evaluation_runs (session_id)",
)

_RECORD_TABLES = (
    """CREATE TABLE requests (
        hash TEXT NOT NULL PRIMARY KEY,
        body BLOB NOT NULL
    )""",
    """CREATE TABLE responses (
        id INTEGER PRIMARY KEY,
        request_hash TEXT NOT NULL REFERENCES requests (hash),
        repetition INTEGER NOT NULL,
        body BLOB,
        text TEXT,
        received_at TEXT NOT NULL
    )""",
    "CREATE INDEX idx_responses_request_hash_repetition ON responses (request_hash, repetition)",
    """CREATE TABLE results (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
        code TEXT NOT NULL,
        node_id TEXT NOT NULL,
        family TEXT NOT NULL,
        repetition INTEGER NOT NULL,
        scenario_id INTEGER REFERENCES scenarios (id),
        condition_id INTEGER REFERENCES conditions (id),
        user_context_id INTEGER REFERENCES user_contexts (id),
        perturbation_id INTEGER REFERENCES perturbations (id),
        outcome TEXT NOT NULL,
        reason TEXT,
        score REAL,
        severity INTEGER NOT NULL,
        difficulty INTEGER NOT NULL,
        neutral INTEGER NOT NULL,
        response_id INTEGER REFERENCES responses (id),
        latency_ms REAL,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        cached_tokens INTEGER,
        reasoning_tokens INTEGER,
        cost_usd REAL,
        started_at TEXT,
        completed_at TEXT,
        UNIQUE (run_id, code, repetition)
    )""",
    """CREATE TABLE evaluations (
        id INTEGER PRIMARY KEY,
        result_id INTEGER NOT NULL REFERENCES results (id),
        criterion TEXT NOT NULL,
        rule TEXT NOT NULL,
        rule_hash TEXT NOT NULL,
        passed INTEGER NOT NULL,
        credit REAL NOT NULL,
        parse TEXT,
        expected TEXT NOT NULL,
        observed TEXT NOT NULL,
        justification TEXT
    )""",
    "CREATE INDEX idx_evaluations_result_id ON evaluations (result_id)",
    """CREATE TABLE calls (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
        result_id INTEGER REFERENCES results (id),
        code TEXT NOT NULL,
        repetition INTEGER NOT NULL,
        criterion TEXT NOT NULL,
        purpose TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        status_code INTEGER,
        finish_reason TEXT,
        error TEXT,
        latency_ms REAL,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        cached_tokens INTEGER,
        reasoning_tokens INTEGER,
        cost_usd REAL,
        provider_model TEXT,
        request_hash TEXT NOT NULL REFERENCES requests (hash),
        response_id INTEGER REFERENCES responses (id),
        from_cache INTEGER NOT NULL,
        started_at TEXT NOT NULL
    )""",
    "CREATE INDEX idx_calls_run_id_code_repetition ON calls (run_id, code, repetition)",
)


@_MIGRATIONS()
def create_tables(db: Database) -> None:
    """Create what stands in the documentation, but for what came later."""
    # Statement by statement: `executescript` would end the transaction that the migration runs in.
    for statement in (*_BENCHMARK_TABLES, *_RUN_TABLES, *_RECORD_TABLES, *VIEWS):
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
    db.conn.execute(
        """CREATE TABLE sent_calls (
            owner TEXT NOT NULL,
            number INTEGER NOT NULL,
            run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
            code TEXT NOT NULL,
            reserved_usd REAL NOT NULL,
            PRIMARY KEY (owner, number)
        )"""
    )


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
