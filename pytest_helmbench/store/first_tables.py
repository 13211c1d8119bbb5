"""The tables that the first migration creates, as they were then; what came later stands in `schema`."""

from __future__ import annotations

__all__ = ["FIRST_TABLES"]

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

FIRST_TABLES = (*_BENCHMARK_TABLES, *_RUN_TABLES, *_RECORD_TABLES)
"""In the order in which they refer to each other."""
