"""A run in the form of Every Eval Ever (schema 0.3.0): an aggregate, and one line per case beside it.

Source: https://github.com/evaleval/every_eval_ever, `schemas/eval.schema.json` and `instance_level_eval.schema.json`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import UUID

from pytest_helmbench.core.case import is_judgement
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.core.tools import MadeCall
from pytest_helmbench.reports.cards import numbered_calls, prompt_text
from pytest_helmbench.reports.exports import ExportedFiles, ExportError
from pytest_helmbench.reports.tables import UNKNOWN, readable_json
from pytest_helmbench.results.run_report import RecordedRun
from pytest_helmbench.store.read.results import ResultRow
from pytest_helmbench.store.read.runs import RunDetail

_SCHEMA = "0.3.0"
_RESULT = "score"
_LEVEL, _METHOD = 0.95, "Wilson, with the effective number of clusters"


def eee_export(runs: Sequence[RecordedRun], texts: ShownTexts, _name: str) -> ExportedFiles:
    """Return per run an aggregate and its judged cases, at the paths that the project's data store has for them.

    Cases that were not judged (error, skipped) have no score and are counted in the aggregate. An unknown
    property of a model is "unknown"; fill it in before publishing.

    Raises:
        ExportError: A run has no score.
    """
    found: dict[str, str | bytes] = {}
    for run in runs:
        if run.detail.score is None:
            raise ExportError(f"run {run.detail.id} has no score: nothing to export")
        path = _path(run.detail)
        cases = f"{path}_samples.jsonl"
        rows = [
            _line(row, run.detail, with_text=texts.of(row.outcome)) for row in run.results if row.evaluations
        ]
        text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        detailed = {
            "format": "jsonl",
            "file_path": cases,
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(text.encode()).hexdigest(),
            "total_rows": len(rows),
        }
        aggregate = _aggregate(run) | {"detailed_evaluation_results": detailed}
        found |= {f"{path}.json": readable_json(aggregate, indent=2) + "\n", cases: text}
    return found


def _path(detail: RunDetail) -> str:
    """Return where the data store has a run; the same run always has the same name."""
    developer, _, model = detail.model.rpartition("/")
    named = hashlib.sha256(f"{detail.session_id} {detail.id}".encode()).digest()[:16]
    parts = (_part(detail.benchmark), _part(developer), _part(model), str(UUID(bytes=named, version=4)))
    return "/".join(("data", *parts))


def _part(name: str) -> str:
    """Return a name as a part of a path, whatever characters it has."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._") or UNKNOWN


def _evaluation_id(detail: RunDetail) -> str:
    return f"{detail.benchmark}/{detail.model}/{_epoch(detail.started_at)}"


def _epoch(time: str) -> str:
    return f"{datetime.fromisoformat(time).timestamp():.0f}"


def _aggregate(run: RecordedRun) -> dict[str, JsonValue]:
    detail = run.detail
    return {
        "schema_version": _SCHEMA,
        "evaluation_id": _evaluation_id(detail),
        "evaluation_timestamp": detail.started_at,
        "retrieved_timestamp": _epoch(detail.completed_at or detail.started_at),
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "pytest-helmbench", "version": detail.plugin_version},
        "model_info": {
            **_model(detail.model, detail.provider),
            "id": detail.settings.get("variant_of") or detail.model,
        },
        "evaluation_results": [_result(run)],
    }


def _model(name: str, provider: str) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {
        "name": name,
        "id": name,
        "additional_details": {"deployment_type": UNKNOWN, "model_availability": UNKNOWN},
    }
    return found | ({"inference_platform": provider} if provider else {})


def _sampling(detail: RunDetail) -> dict[str, JsonValue]:
    names = ("temperature", "top_p", "top_k", "max_tokens")
    given = detail.settings.get("sampling")
    return {name: given[name] for name in names if name in given} if isinstance(given, dict) else {}


def _result(run: RecordedRun) -> dict[str, JsonValue]:
    detail = run.detail
    judged = detail.count("passed") + detail.count("failed")
    uncertainty: dict[str, JsonValue] = {"num_samples": judged}
    if detail.score_low is not None and detail.score_high is not None:
        uncertainty["confidence_interval"] = {
            "lower": detail.score_low,
            "upper": detail.score_high,
            "confidence_level": _LEVEL,
            "method": _METHOD,
        }
    return {
        "evaluation_result_id": _RESULT,
        "evaluation_name": detail.benchmark,
        "source_data": {
            "dataset_name": detail.benchmark,
            "source_type": "other",
            "additional_details": {"version": detail.version, "sha256": detail.benchmark_hash},
        },
        "metric_config": {
            "metric_id": "helmbench.score",
            "metric_name": "score",
            "metric_unit": "proportion",
            "evaluation_description": "share of right verdicts, weighed by severity",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
            **_judges(run),
        },
        "score_details": {
            "score": detail.score,
            "details": {
                "coverage": _text(detail.coverage),
                "judged": str(judged),
                "errors": str(detail.count("error")),
                "skipped": str(detail.count("skipped")),
                "cost_usd": _text(detail.cost_usd),
            },
            "uncertainty": uncertainty,
        },
        "generation_config": {"generation_args": _sampling(detail)},
    }


def _judges(run: RecordedRun) -> dict[str, JsonValue]:
    judge = run.detail.settings.get("judge")
    asked = any(is_judgement(evaluation.rule) for row in run.results for evaluation in row.evaluations)
    if not isinstance(judge, str) or not judge or not asked:
        return {}
    # The template's text is the user's; its hash is on record.
    template = _text(run.detail.settings.get("judge_template"))
    return {"llm_scoring": {"judges": [{"model_info": _model(judge, "")}], "input_prompt": template}}


def _text(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _line(row: ResultRow, detail: RunDetail, *, with_text: bool) -> dict[str, JsonValue]:
    prompt = prompt_text(row) if with_text else ""
    expected = [evaluation.expected for evaluation in row.evaluations]
    found: dict[str, JsonValue] = {
        "schema_version": _SCHEMA,
        "evaluation_id": _evaluation_id(detail),
        "model_id": detail.model,
        "evaluation_name": detail.benchmark,
        "evaluation_result_id": _RESULT,
        "sample_id": row.code if row.repetition == 1 else f"{row.code}#{row.repetition}",
        "interaction_type": "single_turn",
        "input": {"raw": prompt, "reference": [*expected]},
        "output": {"raw": [row.reply if with_text and row.reply is not None else ""]},
        "answer_attribution": [*_attribution(row)],
        "evaluation": {"score": row.score or 0.0, "is_correct": row.outcome == "passed"},
        "metadata": {
            "family": row.family,
            "severity": str(row.severity),
            "difficulty": str(row.difficulty),
            "repetition": str(row.repetition),
        },
    }
    if row.prompt_tokens is not None and row.completion_tokens is not None:
        found["token_usage"] = {
            "input_tokens": row.prompt_tokens,
            "output_tokens": row.completion_tokens,
            "total_tokens": row.prompt_tokens + row.completion_tokens,
        }
    if row.latency_ms is not None:
        found["performance"] = {"latency_ms": row.latency_ms}
    return found | (_conversation(row, with_text=with_text) if row.conversation else {})


def _conversation(row: ResultRow, *, with_text: bool) -> dict[str, JsonValue]:
    """Return what a line says of a conversation in place of one output."""
    messages, places = list[JsonValue](), dict[int, int]()
    for said, calls in numbered_calls(row.conversation):
        places[said.turn] = len(messages)
        message: dict[str, JsonValue] = {"role": said.role, "content": said.text}
        if calls:
            message["tool_calls"] = [
                {"id": identity, "name": call.name, "arguments": _arguments(call)} for identity, call in calls
            ]
        answers: list[dict[str, JsonValue]] = [
            {"role": "tool", "content": call.answer, "tool_call_id": [identity]} for identity, call in calls
        ]
        messages += [{"turn_idx": len(messages) + n, **one} for n, one in enumerate((message, *answers))]
    last = places[row.conversation[-1].turn]
    attribution: list[JsonValue] = [
        {**one, "turn_idx": places.get(evaluation.turn or 0, last), "source": "messages[turn_idx].content"}
        for one, evaluation in zip(_attribution(row), row.evaluations, strict=True)
    ]
    return {
        "interaction_type": "agentic" if any(said.calls for said in row.conversation) else "multi_turn",
        "output": None,
        "messages": messages if with_text else [],
        "answer_attribution": attribution,
    }


def _arguments(call: MadeCall) -> JsonValue:
    """Return the arguments of a call, each as text; None where they are not a JSON object."""
    if not isinstance(call.arguments, dict):
        return None
    return {
        name: value if isinstance(value, str) else json.dumps(value) for name, value in call.arguments.items()
    }


def _attribution(row: ResultRow) -> Iterator[dict[str, JsonValue]]:
    for evaluation in row.evaluations:
        yield {
            "turn_idx": 0,
            "source": "output.raw",
            "extracted_value": evaluation.observed,
            "extraction_method": "llm_judge" if is_judgement(evaluation.rule) else evaluation.rule,
            "is_terminal": True,
        }
