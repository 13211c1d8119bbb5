"""Results that `promptfoo eval -o FILE.json` has written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.imports.documents import amount, entries, objects, text, time_text, whole
from pytest_helmbench.imports.foreign_run import ForeignCase, ForeignRun, ImportFileError

__all__ = ["is_promptfoo", "promptfoo_runs"]

_ERROR = 2  # promptfoo's ResultFailureReason: 0 none, 1 an assertion, 2 an error


def is_promptfoo(document: JsonObject) -> bool:
    """Return whether a JSON file is a result of promptfoo."""
    return "evalId" in document and "results" in document


def promptfoo_runs(path: Path, document: JsonObject) -> Iterator[ForeignRun]:
    """Yield a run per provider, its cases named by prompt and test: `p1-t3`.

    Raises:
        ImportFileError: It holds no result.
    """
    results = entries(document["results"])
    rows = objects(results.get("results"))
    if not rows:
        raise ImportFileError(f"{path}: no results in it\n  hint: promptfoo eval -o FILE.json writes them")
    config, about = entries(document.get("config")), entries(document.get("metadata"))
    at = time_text(results.get("timestamp"), path.stat().st_mtime)
    by_model: dict[str, list[JsonObject]] = {}
    for row in rows:
        provider = entries(row.get("provider"))
        model = text(provider.get("label")) or text(provider.get("id")) or text(row.get("provider"))
        by_model.setdefault(model, []).append(row)
    for model, found in by_model.items():
        yield ForeignRun(
            tool=f"promptfoo {text(about.get('promptfooVersion'))}".strip(),
            benchmark=text(config.get("description")) or path.stem,
            version="",
            model=model,
            started_at=at,
            completed_at=at,
            cases=tuple(_cases(found)),
            settings={"eval_id": text(document.get("evalId"))},
        )


def _cases(rows: list[JsonObject]) -> Iterator[ForeignCase]:
    """Yield the cases in order. To promptfoo a repetition is a test of its own, with the same words."""
    tests: dict[str, int] = {}
    seen: Counter[str] = Counter()
    for row in sorted(
        rows, key=lambda row: (whole(row.get("testIdx")) or 0, whole(row.get("promptIdx")) or 0)
    ):
        test = entries(row.get("testCase"))
        number_of_test = tests.setdefault(text([row.get("vars"), test.get("assert")]), len(tests) + 1)
        code = f"p{(whole(row.get('promptIdx')) or 0) + 1}-t{number_of_test}"
        seen[code] += 1
        yield _case(row, code, seen[code])


def _case(row: JsonObject, code: str, repetition: int) -> ForeignCase:
    grading, response = entries(row.get("gradingResult")), entries(row.get("response"))
    tokens = entries(response.get("tokenUsage"))
    is_error = row.get("failureReason") == _ERROR or (
        "failureReason" not in row and bool(row.get("error")) and not grading
    )
    asserted = [
        text(entries(one.get("assertion")).get("type")) for one in objects(grading.get("componentResults"))
    ]
    first = next(iter(objects(grading.get("componentResults"))), {})
    return ForeignCase(
        code=code,
        repetition=repetition,
        passed=None if is_error else row.get("success") is True,
        reason="provider" if is_error else "",
        rule=" and ".join(dict.fromkeys(filter(None, asserted))) or "promptfoo",
        expected=text(entries(first.get("assertion")).get("value")),
        observed=text(response.get("output")),
        groups={"prompt": code.partition("-")[0]},
        usage=Usage(
            whole(tokens.get("prompt")), whole(tokens.get("completion")), cost_usd=amount(row.get("cost"))
        ),
        latency_ms=amount(row.get("latencyMs")),
    )
