-- Made of the migrations in schema.py: python tests/support/newest_form_sql.py
-- migration: create_tables
-- migration: keep_plans
-- migration: keep_packs
-- migration: keep_hosted
-- migration: keep_unknown_costs
-- migration: keep_leases
-- migration: keep_sent_calls
-- migration: keep_comparisons
-- migration: keep_chunk_times
-- migration: keep_where_judged
-- migration: keep_sizes
-- migration: keep_judge_labels
-- migration: keep_pack_extras
-- migration: keep_broken_cases
-- migration: keep_samples
-- migration: keep_judgements
-- migration: keep_weighted_labels
-- migration: keep_asked_models
-- migration: keep_shards
-- migration: keep_prompts_view
-- migration: keep_observed_texts
-- migration: keep_benchmark_places

CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);

CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");

CREATE TABLE benchmarks (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        version TEXT NOT NULL,
        description TEXT NOT NULL,
        hash TEXT NOT NULL,
        kind TEXT NOT NULL,
        UNIQUE (name, version, hash)
    );

CREATE TABLE texts (
        id INTEGER PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE,
        body TEXT NOT NULL
    );

CREATE TABLE pillars (
        id INTEGER PRIMARY KEY,
        benchmark_id INTEGER NOT NULL REFERENCES benchmarks (id),
        code TEXT NOT NULL,
        name TEXT NOT NULL,
        description TEXT NOT NULL,
        UNIQUE (benchmark_id, code)
    );

CREATE TABLE behaviours (
        id INTEGER PRIMARY KEY,
        pillar_id INTEGER NOT NULL REFERENCES pillars (id),
        code TEXT NOT NULL,
        title TEXT NOT NULL,
        description TEXT NOT NULL,
        compliance_criteria TEXT NOT NULL,
        weight REAL NOT NULL,
        UNIQUE (pillar_id, code)
    );

CREATE TABLE scenarios (
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
    , benchmark_id INTEGER REFERENCES benchmarks (id));

CREATE INDEX idx_scenarios_behaviour_id ON scenarios (behaviour_id);

CREATE TABLE conditions (
        id INTEGER PRIMARY KEY,
        code TEXT NOT NULL,
        full_code TEXT NOT NULL,
        difficulty INTEGER NOT NULL,
        text_id INTEGER REFERENCES texts (id)
    );

CREATE TABLE user_contexts (
        id INTEGER PRIMARY KEY,
        code TEXT NOT NULL,
        full_code TEXT NOT NULL,
        severity INTEGER NOT NULL,
        text_id INTEGER REFERENCES texts (id)
    );

CREATE TABLE perturbations (
        id INTEGER PRIMARY KEY,
        scenario_id INTEGER NOT NULL REFERENCES scenarios (id),
        code TEXT NOT NULL,
        full_code TEXT NOT NULL,
        severity INTEGER NOT NULL,
        text_id INTEGER REFERENCES texts (id)
    );

CREATE INDEX idx_perturbations_scenario_id ON perturbations (scenario_id);

CREATE TABLE scenario_conditions (
        scenario_id INTEGER NOT NULL REFERENCES scenarios (id),
        condition_id INTEGER NOT NULL REFERENCES conditions (id),
        PRIMARY KEY (scenario_id, condition_id)
    );

CREATE TABLE scenario_user_contexts (
        scenario_id INTEGER NOT NULL REFERENCES scenarios (id),
        user_context_id INTEGER NOT NULL REFERENCES user_contexts (id),
        PRIMARY KEY (scenario_id, user_context_id)
    );

CREATE TABLE llms (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        provider TEXT NOT NULL,
        base_url TEXT
    );

CREATE UNIQUE INDEX idx_llms_identity ON llms (name, provider, coalesce(base_url, ''));

CREATE TABLE evaluation_runs (
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
    , shard TEXT, benchmark_place TEXT);

CREATE INDEX idx_evaluation_runs_session_id ON evaluation_runs (session_id);

CREATE TABLE requests (
        hash TEXT NOT NULL PRIMARY KEY,
        body BLOB NOT NULL
    );

CREATE TABLE responses (
        id INTEGER PRIMARY KEY,
        request_hash TEXT NOT NULL REFERENCES requests (hash),
        repetition INTEGER NOT NULL,
        body BLOB,
        text TEXT,
        received_at TEXT NOT NULL
    , chunk_times TEXT, asked TEXT);

CREATE INDEX idx_responses_request_hash_repetition ON responses (request_hash, repetition);

CREATE TABLE results (
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
    );

CREATE TABLE evaluations (
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
    , in_process INTEGER NOT NULL DEFAULT 0, observed_text TEXT);

CREATE INDEX idx_evaluations_result_id ON evaluations (result_id);

CREATE TABLE calls (
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
    , estimated INTEGER NOT NULL DEFAULT 0, unanswered INTEGER NOT NULL DEFAULT 0, reserved_usd REAL, judge TEXT);

CREATE INDEX idx_calls_run_id_code_repetition ON calls (run_id, code, repetition);

CREATE TABLE plans (
            run_id INTEGER PRIMARY KEY REFERENCES evaluation_runs (id),
            codes BLOB NOT NULL
        , whole BLOB);

CREATE INDEX idx_scenarios_benchmark_id_code ON scenarios (benchmark_id, code);

CREATE TABLE events (
            id INTEGER PRIMARY KEY,
            run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
            result_id INTEGER REFERENCES results (id),
            type TEXT NOT NULL,
            payload TEXT NOT NULL,
            at TEXT NOT NULL
        );

CREATE INDEX idx_events_result_id ON events (result_id);

CREATE TABLE pack_results (
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
        );

CREATE TABLE pack_scores (
            run_id INTEGER PRIMARY KEY REFERENCES evaluation_runs (id),
            total REAL NOT NULL,
            unit TEXT,
            categories TEXT NOT NULL,
            summary TEXT,
            partial INTEGER NOT NULL
        , extra TEXT);

CREATE INDEX idx_events_run_id ON events (run_id);

CREATE VIEW v_costs AS
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
    GROUP BY calls.run_id, calls.purpose;

CREATE TABLE leases (
            run_id INTEGER PRIMARY KEY REFERENCES evaluation_runs (id),
            owner TEXT NOT NULL,
            process TEXT NOT NULL,
            renewed_at TEXT NOT NULL,
            boot TEXT,
            boot_s REAL
        );

CREATE TABLE sent_calls (
    owner TEXT NOT NULL,
    number INTEGER NOT NULL,
    run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
    code TEXT NOT NULL,
    reserved_usd REAL NOT NULL,
    PRIMARY KEY (owner, number)
);

CREATE TABLE comparisons (
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
        );

CREATE INDEX idx_comparisons_run_id ON comparisons (run_id);

CREATE TABLE benchmark_sizes (
    run_id INTEGER PRIMARY KEY REFERENCES evaluation_runs (id),
    cases INTEGER NOT NULL,
    codes BLOB NOT NULL
);

CREATE TABLE judge_labels (
            run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
            code TEXT NOT NULL,
            repetition INTEGER NOT NULL,
            criterion TEXT NOT NULL,
            passed INTEGER NOT NULL,
            labelled_at TEXT NOT NULL, of_rows INTEGER NOT NULL DEFAULT 1, point_draws INTEGER,
            PRIMARY KEY (run_id, code, repetition, criterion)
        );

CREATE TABLE broken_cases (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
    code TEXT NOT NULL,
    severity INTEGER NOT NULL,
    difficulty INTEGER NOT NULL,
    evaluations INTEGER NOT NULL
);

CREATE INDEX idx_broken_cases_run_id ON broken_cases (run_id);

CREATE TABLE samples (
    run_id INTEGER PRIMARY KEY REFERENCES evaluation_runs (id),
    rule TEXT NOT NULL,
    seed INTEGER NOT NULL,
    cases INTEGER NOT NULL,
    of_cases INTEGER NOT NULL,
    weights BLOB NOT NULL
);

CREATE TABLE judgements (
        id INTEGER PRIMARY KEY,
        result_id INTEGER NOT NULL REFERENCES results (id),
        criterion TEXT NOT NULL,
        judge TEXT NOT NULL,
        place INTEGER NOT NULL,
        passed INTEGER NOT NULL,
        credit REAL NOT NULL,
        observed TEXT NOT NULL,
        justification TEXT,
        of_record INTEGER NOT NULL
    );

CREATE INDEX idx_judgements_result_id ON judgements (result_id);

CREATE VIEW v_prompts AS
    SELECT
        calls.id AS call_id,
        calls.run_id,
        llms.name AS model,
        calls.code,
        calls.repetition,
        calls.purpose,
        calls.criterion,
        calls.attempt,
        results.outcome,
        CASE WHEN json_valid(CAST(requests.body AS TEXT)) THEN (
            SELECT group_concat(
                coalesce(json_extract(message.value, '$.role') || ': ', '')
                || coalesce(json_extract(message.value, '$.content'), ''),
                char(10) || char(10)
            )
            FROM json_each(CAST(requests.body AS TEXT), '$.messages') AS message
        ) END AS prompt,
        responses.text AS reply,
        calls.started_at
    FROM calls
    JOIN evaluation_runs ON evaluation_runs.id = calls.run_id
    JOIN llms ON llms.id = evaluation_runs.llm_id
    JOIN requests ON requests.hash = calls.request_hash
    LEFT JOIN responses ON responses.id = calls.response_id
    LEFT JOIN results ON results.id = calls.result_id;

CREATE VIEW v_results AS
    SELECT
        results.id AS result_id,
        evaluations.id AS evaluation_id,
        results.run_id,
        evaluation_runs.session_id,
        evaluation_runs.status AS run_status,
        benchmarks.name AS benchmark,
        benchmarks.version AS benchmark_version,
        llms.name AS model,
        llms.provider,
        results.code,
        results.repetition,
        results.family,
        pillars.code AS pillar,
        pillars.code || '-' || behaviours.code AS behaviour,
        scenarios.full_code AS scenario,
        conditions.code AS condition,
        user_contexts.code AS user_context,
        perturbations.code AS perturbation,
        results.outcome,
        results.reason,
        results.score,
        results.severity,
        results.difficulty,
        results.neutral,
        evaluations.criterion,
        evaluations.rule,
        evaluations.passed,
        evaluations.credit,
        evaluations.parse,
        evaluations.expected,
        coalesce(evaluations.observed_text, evaluations.observed) AS observed,
        evaluations.justification,
        evaluations.in_process,
        results.latency_ms,
        results.prompt_tokens,
        results.completion_tokens,
        results.cached_tokens,
        results.reasoning_tokens,
        results.cost_usd,
        responses.text AS reply,
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
    LEFT JOIN responses ON responses.id = results.response_id
