"""The one schema of a results file: tables, indexes and views. `docs/options.md` says what one row of each is.

A new file gets it as one script, since importing sqlite-utils to make tables costs a short session 0.2 s of CPU.
Rows that others point to have a natural key as `id`: results and replies a UUID, rows that describe
a benchmark a digest of their content. So rows of two files are put together as they are.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from pathlib import Path

from pytest_helmbench.store.fault import FOREIGN_TABLES, StoreError

VERSION = 7
"""`PRAGMA user_version` of a file that this version reads and writes."""


def id_of(*parts: str) -> str:
    """Return the id of the row that these parts name: the same in every file."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def create_tables(conn: sqlite3.Connection) -> None:
    """Make all tables, indexes and views in an empty file; inside the caller's transaction."""
    # Statement by statement: `executescript` would end that transaction. Only SQLite from 3.37 on knows STRICT.
    form = SCHEMA if sqlite3.sqlite_version_info >= (3, 37) else SCHEMA.replace(") STRICT;", ");")
    for statement in (*form.split(";\n\n"), *VIEWS, f"PRAGMA user_version = {VERSION}"):
        conn.execute(statement)


def check_form(conn: sqlite3.Connection, path: Path) -> bool:
    """See that a file can be used by this version; return False for one that holds nothing at all.

    Its tables are ordinary ones, and views with names of ours are ours: a view or virtual table in their place may
    compute for ever.

    Raises:
        StoreError: It is of another version, or of another program, or has been given what no results file has.
        sqlite3.Error: It cannot be read.
    """
    conn.execute("PRAGMA trusted_schema = OFF")
    if conn.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
        return False
    (version,) = conn.execute("PRAGMA user_version").fetchone()
    if conn.execute("SELECT 1 FROM sqlite_master WHERE name = 'evaluation_runs'").fetchone() is None:
        raise StoreError(path, *FOREIGN_TABLES)
    if version != VERSION:
        raise StoreError(
            path,
            f"written by another version of pytest-helmbench (form {version}; this one knows form {VERSION})",
            "use the version that wrote it, or give another file with --helmbench-db=PATH",
        )
    for name, kind, sql in conn.execute(_OTHER_FORMS).fetchall():
        view = _VIEW.match(str(sql)) if kind == "view" else None
        is_users = view is not None and name in view.groups() and name.lower() not in _OWN_NAMES
        if not is_users and (view is None or " ".join(str(sql).split()) not in _OWN_VIEWS):
            hint = "give the file as it was written; triggers of your own belong in another file"
            raise StoreError(path, f"it holds {name!r}, which no results file has", hint)
    return True


# SQLite goes by the statement, and not by the type that stands beside it in the form of a file.
_OTHER_FORMS = """
    SELECT name, type, sql FROM sqlite_master
    WHERE NOT coalesce(type = 'table' AND sql LIKE 'CREATE TABLE%' OR type = 'index', 0)
    UNION ALL SELECT form.name, '', '' FROM sqlite_master AS form JOIN pragma_table_xinfo(form.name) AS part
    WHERE form.type = 'table' AND part.hidden
    UNION ALL SELECT form.name, '', '' FROM sqlite_master AS form JOIN pragma_index_xinfo(form.name) AS part
    WHERE form.type = 'index' AND (part.cid = -2 OR form.sql LIKE '%)%WHERE%')
"""

_PART = """\
CREATE TABLE {} (
    id TEXT PRIMARY KEY,
    scenario_id TEXT NOT NULL REFERENCES scenarios (id),
    code TEXT NOT NULL,
    full_code TEXT NOT NULL,
    {} INTEGER NOT NULL,
    text_hash TEXT REFERENCES texts (hash),
    UNIQUE (scenario_id, full_code)
) STRICT;

"""
SCHEMA = (
    """\
CREATE TABLE benchmarks (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    description TEXT NOT NULL,
    hash TEXT NOT NULL,
    kind TEXT NOT NULL,
    UNIQUE (name, version, hash)
) STRICT;

CREATE TABLE texts (
    hash TEXT PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE pillars (
    id TEXT PRIMARY KEY,
    benchmark_id TEXT NOT NULL REFERENCES benchmarks (id),
    code TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    UNIQUE (benchmark_id, code)
) STRICT;

CREATE TABLE behaviours (
    id TEXT PRIMARY KEY,
    pillar_id TEXT NOT NULL REFERENCES pillars (id),
    code TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    compliance_criteria TEXT NOT NULL,
    weight REAL NOT NULL,
    UNIQUE (pillar_id, code)
) STRICT;

CREATE TABLE scenarios (
    id TEXT PRIMARY KEY,
    benchmark_id TEXT NOT NULL REFERENCES benchmarks (id),
    behaviour_id TEXT REFERENCES behaviours (id),
    code TEXT NOT NULL,
    full_code TEXT NOT NULL,
    title TEXT NOT NULL,
    family TEXT NOT NULL,
    expected_category TEXT,
    schema TEXT,
    evaluation TEXT NOT NULL,
    text_hash TEXT REFERENCES texts (hash),
    UNIQUE (benchmark_id, full_code)
) STRICT;

"""
    + _PART.format("conditions", "difficulty")
    + _PART.format("user_contexts", "severity")
    + _PART.format("perturbations", "severity")
    + """\
CREATE TABLE llms (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    base_url TEXT
) STRICT;

CREATE TABLE evaluation_runs (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    benchmark_id TEXT NOT NULL REFERENCES benchmarks (id),
    llm_id TEXT NOT NULL REFERENCES llms (id),
    started_at TEXT NOT NULL,
    completed_at TEXT,
    status TEXT NOT NULL CHECK (status IN ('running', 'complete', 'partial', 'interrupted')),
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
    pass_rate REAL,
    cost_usd REAL,
    known_cost_usd REAL,
    settings TEXT NOT NULL,
    benchmark_hash TEXT NOT NULL,
    benchmark_place TEXT,
    plugin_version TEXT NOT NULL,
    rescored_from INTEGER REFERENCES evaluation_runs (id),
    shard TEXT,
    baseline TEXT
) STRICT;

CREATE INDEX idx_evaluation_runs_session_id ON evaluation_runs (session_id);

CREATE TABLE plans (
    run_id INTEGER PRIMARY KEY REFERENCES evaluation_runs (id),
    codes BLOB NOT NULL,
    whole BLOB,
    defined BLOB,
    broken TEXT NOT NULL DEFAULT '[]',
    sample TEXT
) STRICT;

CREATE TABLE leases (
    session_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started TEXT NOT NULL,
    heartbeat_at TEXT NOT NULL
) STRICT;

CREATE TABLE requests (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE responses (
    id TEXT PRIMARY KEY,
    request_id INTEGER NOT NULL REFERENCES requests (id),
    request_hash TEXT NOT NULL,
    repetition INTEGER NOT NULL,
    asked TEXT,
    address TEXT,
    body BLOB,
    text TEXT,
    thoughts TEXT,
    inner_thoughts INTEGER NOT NULL DEFAULT 0,
    received_at TEXT NOT NULL
) STRICT;

CREATE INDEX idx_responses_request_id_repetition ON responses (request_id, repetition);

CREATE TABLE results (
    id TEXT PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
    code TEXT NOT NULL,
    node_id TEXT NOT NULL,
    family TEXT NOT NULL,
    repetition INTEGER NOT NULL,
    scenario_id TEXT REFERENCES scenarios (id),
    condition_id TEXT REFERENCES conditions (id),
    user_context_id TEXT REFERENCES user_contexts (id),
    perturbation_id TEXT REFERENCES perturbations (id),
    outcome TEXT NOT NULL CHECK (outcome IN ('passed', 'failed', 'error', 'skipped')),
    reason TEXT,
    score REAL,
    points_lost REAL,
    severity INTEGER NOT NULL,
    difficulty INTEGER NOT NULL,
    neutral INTEGER NOT NULL,
    response_id TEXT REFERENCES responses (id),
    latency_ms REAL,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    cached_tokens INTEGER,
    reasoning_tokens INTEGER,
    cost_usd REAL,
    started_at TEXT,
    completed_at TEXT,
    UNIQUE (run_id, code, repetition)
) STRICT;

CREATE TABLE evaluations (
    id INTEGER PRIMARY KEY,
    result_id TEXT NOT NULL REFERENCES results (id),
    criterion TEXT NOT NULL,
    rule TEXT NOT NULL,
    rule_hash TEXT NOT NULL,
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
    credit REAL NOT NULL CHECK (credit BETWEEN 0 AND 1),
    parse TEXT,
    expected TEXT NOT NULL,
    observed TEXT NOT NULL,
    observed_text TEXT,
    justification TEXT,
    beside TEXT CHECK (beside IN ('in_process', 'own_box'))
) STRICT;

CREATE INDEX idx_evaluations_result_id ON evaluations (result_id);

CREATE TABLE judgements (
    id INTEGER PRIMARY KEY,
    result_id TEXT NOT NULL REFERENCES results (id),
    criterion TEXT NOT NULL,
    judge TEXT NOT NULL,
    place INTEGER NOT NULL,
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
    credit REAL NOT NULL,
    observed TEXT NOT NULL,
    justification TEXT,
    of_record INTEGER NOT NULL
) STRICT;

CREATE INDEX idx_judgements_result_id ON judgements (result_id);

CREATE TABLE judge_labels (
    run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
    code TEXT NOT NULL,
    repetition INTEGER NOT NULL,
    criterion TEXT NOT NULL,
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
    labelled_at TEXT NOT NULL,
    of_rows INTEGER NOT NULL DEFAULT 1,
    point_draws INTEGER,
    PRIMARY KEY (run_id, code, repetition, criterion)
) STRICT;

CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
    code TEXT NOT NULL,
    repetition INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    criterion TEXT NOT NULL,
    turn INTEGER,
    sequence INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    judge TEXT,
    status_code INTEGER,
    finish_reason TEXT,
    error TEXT,
    latency_ms REAL,
    prompt_characters INTEGER,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    cached_tokens INTEGER,
    written_tokens INTEGER,
    reasoning_tokens INTEGER,
    estimated INTEGER NOT NULL DEFAULT 0,
    upper_bound INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL,
    unanswered INTEGER NOT NULL DEFAULT 0,
    reserved_usd REAL,
    provider_model TEXT,
    request_hash TEXT NOT NULL REFERENCES requests (hash),
    response_id TEXT REFERENCES responses (id),
    from_cache INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    batch TEXT
) STRICT;

CREATE INDEX idx_calls_run_id_code_repetition ON calls (run_id, code, repetition);

CREATE TABLE sent_calls (
    owner TEXT NOT NULL,
    number INTEGER NOT NULL,
    run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
    code TEXT NOT NULL,
    reserved_usd REAL NOT NULL,
    PRIMARY KEY (owner, number)
) STRICT;

CREATE TABLE batches (
    token TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    address TEXT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('planned', 'creating', 'out', 'read')),
    keys TEXT NOT NULL,
    reserved_usd REAL NOT NULL,
    created_s REAL NOT NULL,
    input_file TEXT,
    provider_id TEXT
) STRICT;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
    result_id TEXT REFERENCES results (id),
    type TEXT NOT NULL,
    payload TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;

CREATE INDEX idx_events_result_id ON events (result_id);

CREATE INDEX idx_events_run_id ON events (run_id);

CREATE TABLE pack_results (
    result_id TEXT PRIMARY KEY REFERENCES results (id),
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
) STRICT;

CREATE TABLE pack_scores (
    run_id INTEGER PRIMARY KEY REFERENCES evaluation_runs (id),
    total REAL NOT NULL,
    unit TEXT,
    categories TEXT NOT NULL,
    summary TEXT,
    partial INTEGER NOT NULL,
    extra TEXT
) STRICT;

CREATE VIEW scenario_conditions AS SELECT scenario_id, id AS condition_id FROM conditions;

CREATE VIEW scenario_user_contexts AS SELECT scenario_id, id AS user_context_id FROM user_contexts
"""
)

# One row per evaluation; a result without any (error, skipped) has one row with those columns NULL.
_RESULTS_VIEW = """CREATE VIEW v_results AS
    SELECT
        results.code,
        results.outcome,
        evaluations.expected,
        coalesce(evaluations.observed_text, evaluations.observed) AS observed,
        results.id AS result_id,
        evaluations.id AS evaluation_id,
        results.run_id,
        evaluation_runs.session_id,
        evaluation_runs.status AS run_status,
        benchmarks.name AS benchmark,
        benchmarks.version AS benchmark_version,
        llms.name AS model,
        llms.provider,
        results.repetition,
        results.family,
        pillars.code AS pillar,
        pillars.code || '-' || behaviours.code AS behaviour,
        scenarios.full_code AS scenario,
        conditions.code AS condition,
        user_contexts.code AS user_context,
        perturbations.code AS perturbation,
        results.reason,
        results.score,
        results.points_lost,
        results.severity,
        results.difficulty,
        results.neutral,
        evaluations.criterion,
        evaluations.rule,
        evaluations.passed,
        evaluations.credit,
        evaluations.parse,
        evaluations.justification,
        evaluations.beside,
        results.latency_ms,
        results.prompt_tokens,
        results.completion_tokens,
        results.cached_tokens,
        results.reasoning_tokens,
        results.cost_usd,
        responses.text AS reply,
        responses.thoughts,
        results.node_id,
        results.started_at,
        results.completed_at
    FROM results
    JOIN evaluation_runs ON evaluation_runs.id = results.run_id
    JOIN benchmarks ON benchmarks.id = evaluation_runs.benchmark_id
    JOIN llms ON llms.id = evaluation_runs.llm_id
    LEFT JOIN scenarios ON scenarios.id = results.scenario_id
    LEFT JOIN behaviours ON behaviours.id = scenarios.behaviour_id
    LEFT JOIN pillars ON pillars.id = behaviours.pillar_id
    LEFT JOIN conditions ON conditions.id = results.condition_id
    LEFT JOIN user_contexts ON user_contexts.id = results.user_context_id
    LEFT JOIN perturbations ON perturbations.id = results.perturbation_id
    LEFT JOIN evaluations ON evaluations.result_id = results.id
    LEFT JOIN responses ON responses.id = results.response_id"""

# Only what was sent costs; a call without a reply that the provider does not bill hides nothing by its NULL.
_COSTS_VIEW = """CREATE VIEW v_costs AS
    SELECT
        calls.run_id,
        evaluation_runs.session_id,
        benchmarks.name AS benchmark,
        llms.name AS model,
        calls.purpose,
        sum(calls.from_cache = 0) AS calls,
        sum(calls.from_cache = 1) AS cached_answers,
        sum(CASE WHEN calls.from_cache = 0 THEN calls.prompt_tokens END) AS prompt_tokens,
        sum(CASE WHEN calls.from_cache = 0 THEN calls.completion_tokens END) AS completion_tokens,
        sum(CASE WHEN calls.from_cache = 0 THEN calls.cached_tokens END) AS cached_tokens,
        sum(CASE WHEN calls.from_cache = 0 THEN calls.reasoning_tokens END) AS reasoning_tokens,
        CASE
            WHEN sum(calls.from_cache = 0 AND calls.cost_usd IS NULL
                AND (calls.unanswered OR calls.response_id IS NOT NULL)) > 0
            THEN NULL
            ELSE total(calls.cost_usd)
        END AS cost_usd,
        total(calls.cost_usd) AS known_cost_usd
    FROM calls
    JOIN evaluation_runs ON evaluation_runs.id = calls.run_id
    JOIN benchmarks ON benchmarks.id = evaluation_runs.benchmark_id
    JOIN llms ON llms.id = evaluation_runs.llm_id
    GROUP BY calls.run_id, calls.purpose"""

VIEWS = (_RESULTS_VIEW, _COSTS_VIEW)
_OWN_NAMES = frozenset(re.findall(r"CREATE (?:TABLE|VIEW) (\w+)", "\n".join((SCHEMA, *VIEWS))))
_VIEW = re.compile(r'CREATE VIEW (?:(\w+)|"(\w+)")[ \n(]')
_OWN_VIEWS = frozenset(
    " ".join(statement.split())
    for statement in (*SCHEMA.split(";\n\n"), *VIEWS)
    if statement.startswith("CREATE VIEW")
)
