"""The views of a results file, for people and queries; as the migrations create them."""

from __future__ import annotations

__all__ = ["COSTS_VIEW", "PROMPTS_VIEW", "VIEWS"]

VIEWS = (
    # One row per evaluation; a result without any (error, skipped) has one row with those columns NULL.
    """CREATE VIEW v_results AS
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
    LEFT JOIN responses ON responses.id = results.response_id""",
)


# Only what was sent costs; a call without a reply that the provider does not bill hides nothing by its NULL.
COSTS_VIEW = """CREATE VIEW v_costs AS
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


# One row per call, with what was sent as people read it. A body that is no JSON, or holds no messages, has no prompt.
PROMPTS_VIEW = """CREATE VIEW v_prompts AS
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
    LEFT JOIN results ON results.id = calls.result_id"""
