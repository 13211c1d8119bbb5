"""The files of other tools that can be imported: Inspect AI, promptfoo, lm-evaluation-harness, the BenchLocal app."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from pytest_helmbench.core.json_types import JsonObject, json_object, json_objects
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.imports.documents import (
    ForeignCase,
    ForeignRun,
    ImportFileError,
    amount,
    number,
    read_json,
    read_lines,
    text,
    tidied,
    time_text,
    whole,
)


def foreign_runs(path: Path) -> Sequence[ForeignRun]:
    """Return the runs in a file of another tool.

    Args:
        path: A log of Inspect AI (`.eval`, or `.json`), a result of promptfoo, a `results_….json` of lm-eval, or a
            `summary.json` of the BenchLocal app.

    Raises:
        ImportFileError: It is none of these, is damaged, or needs a package that is not installed.
    """
    return [tidied(run) for run in _read(path)]


def _read(path: Path) -> Iterable[ForeignRun]:
    if path.suffix == ".eval":
        return [_inspect(path)]
    if path.suffix == ".jsonl" and any("doc_id" in sample for _, sample in islice(read_lines(path), 1)):
        results = f"results_{path.stem.rpartition('_')[2]}.json"
        hint = f"name {results}, which says the model and what its metrics mean"
        raise ImportFileError(f"{path}: these are the samples of one task of lm-eval\n  hint: {hint}")
    document = read_json(path)
    if document.keys() >= {"evalId", "results"}:
        return promptfoo_runs(path, document)
    if document.keys() >= {"results", "configs", "versions"}:
        return lm_eval_runs(path, document)
    if "resultsByModel" in document:
        return benchlocal_runs(path, document)
    if "eval" in document and "status" in document:
        return [_inspect(path)]
    raise ImportFileError(
        f"{path}: of no tool that is known here\n"
        "  hint: a log of Inspect AI, `promptfoo eval -o FILE.json`, results_….json of lm_eval --log_samples, or"
        " summary.json of the BenchLocal app"
    )


def _inspect(path: Path) -> ForeignRun:
    try:
        from pytest_helmbench.imports.inspect_logs import inspect_run
    except ImportError as error:
        raise ImportFileError(
            f"{path}: Inspect's logs are read by inspect-ai, which is not installed\n"
            "  hint: pip install 'pytest-helmbench[inspect]'"
        ) from error
    return inspect_run(path)


def lm_eval_runs(path: Path, document: JsonObject) -> Iterator[ForeignRun]:
    """Yield a run per task, and per filter of its answers where there are several.

    A case's verdict is that of the task's first metric that says right or wrong (0 or 1) of every case.

    Raises:
        ImportFileError: There are no samples, or none has a verdict; the file's line where one is damaged.
    """
    at = path.stem.removeprefix("results_")
    config = json_object(document.get("config"))
    model = text(document.get("model_name")) or text(config.get("model")) or "unknown"
    began = time_text(document.get("date"), path.stat().st_mtime)
    found = 0
    for task, version in json_object(document.get("versions")).items():
        samples = _beside(path, f"samples_{task}_{at}.jsonl")
        if samples is None:
            continue
        read = [(f"{samples}:{line}", sample) for line, sample in read_lines(samples)]
        metric = _metric([sample for _, sample in read])
        right = 1.0 if _is_better_high(document, task, metric) else 0.0
        by_filter: dict[str, list[ForeignCase]] = {}
        for place, sample in read:
            case = _case(sample, place, metric, right)
            by_filter.setdefault(text(sample.get("filter")), []).append(case)
        for name, cases in by_filter.items():
            found += 1
            yield ForeignRun(
                tool=f"lm-eval {text(document.get('lm_eval_version'))}".strip(),
                benchmark=task if len(by_filter) == 1 else f"{task} ({name})",
                version=text(version),
                model=model,
                started_at=began,
                completed_at=began,
                cases=tuple(cases),
                settings={"filter": name, "n_shot": json_object(document.get("n-shot")).get(task)},
            )
    if not found:
        raise ImportFileError(
            f"{path}: no samples beside it (samples_TASK_{at}.jsonl)\n  hint: lm_eval writes them with --log_samples"
        )


def _beside(path: Path, name: str) -> Path | None:
    """Return a file in the folder of another one; None for none, also where it is a link out of that folder."""
    try:
        found = path.with_name(name)
        is_beside = found.is_file() and found.resolve().parent == path.resolve().parent
    except (OSError, ValueError):  # no name of a file
        return None
    return found if is_beside else None


def _metric(samples: Sequence[JsonObject]) -> str:
    """Return the first metric that is 0 or 1 wherever a sample has a value of it; else the first that ever is."""
    listed = [
        name for sample in samples if isinstance(names := sample.get("metrics"), list) for name in names
    ]
    values = {
        name: {value for sample in samples if (value := _value(sample, name)) is not None}
        for name in dict.fromkeys(map(text, listed))
    }
    says = [name for name, found in values.items() if found & {0.0, 1.0}]
    return next((name for name in says if values[name] <= {0.0, 1.0}), says[0] if says else "")


def _is_better_high(document: JsonObject, task: str, metric: str) -> bool:
    """Return whether 1 is right for a metric, as results say in one of two places."""
    stated = [json_object(json_object(document.get("higher_is_better")).get(task)).get(metric)]
    listed = json_objects(json_object(json_object(document.get("configs")).get(task)).get("metric_list"))
    stated += [one.get("higher_is_better") for one in listed if one.get("metric") == metric]
    return False not in stated


def _case(sample: JsonObject, place: str, metric: str, right: float) -> ForeignCase:
    if "doc_id" not in sample:
        raise ImportFileError(f"{place}: no doc_id\n  hint: a sample of lm_eval --log_samples has one")
    value = _value(sample, metric)
    is_verdict = value in (0.0, 1.0)
    return ForeignCase(
        code=text(sample["doc_id"]),
        repetition=1,
        passed=value == right if is_verdict else None,
        reason="" if is_verdict else "no_verdict",
        rule=metric or "lm-eval",
        expected=text(sample.get("target")),
        observed=text(sample.get("filtered_resps")),
    )


def _value(sample: JsonObject, metric: str) -> float | None:
    """Return what a metric says of a sample; None for nothing, and for NaN."""
    value = sample.get(metric)
    return float(value) if isinstance(value, bool) else number(value)


_ERROR = 2  # promptfoo's ResultFailureReason: 0 none, 1 an assertion, 2 an error


def promptfoo_runs(path: Path, document: JsonObject) -> Iterator[ForeignRun]:
    """Yield a run per provider, its cases named by prompt and test: `p1-t3`.

    Raises:
        ImportFileError: It holds no result.
    """
    results = json_object(document["results"])
    rows = json_objects(results.get("results"))
    if not rows:
        raise ImportFileError(f"{path}: no results in it\n  hint: promptfoo eval -o FILE.json writes them")
    config, about = json_object(document.get("config")), json_object(document.get("metadata"))
    at = time_text(results.get("timestamp"), path.stat().st_mtime)
    by_model: dict[str, list[JsonObject]] = {}
    for row in rows:
        provider = json_object(row.get("provider"))
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
        test = json_object(row.get("testCase"))
        number_of_test = tests.setdefault(text([row.get("vars"), test.get("assert")]), len(tests) + 1)
        code = f"p{(whole(row.get('promptIdx')) or 0) + 1}-t{number_of_test}"
        seen[code] += 1
        yield _promptfoo_case(row, code, seen[code])


def _promptfoo_case(row: JsonObject, code: str, repetition: int) -> ForeignCase:
    grading, response = json_object(row.get("gradingResult")), json_object(row.get("response"))
    tokens = json_object(response.get("tokenUsage"))
    is_error = row.get("failureReason") == _ERROR or (
        "failureReason" not in row and bool(row.get("error")) and not grading
    )
    assertions = [json_object(one.get("assertion")) for one in json_objects(grading.get("componentResults"))]
    kinds = [text(assertion.get("type")) for assertion in assertions]
    return ForeignCase(
        code=code,
        repetition=repetition,
        passed=None if is_error else row.get("success") is True,
        reason="provider" if is_error else "",
        rule=" and ".join(dict.fromkeys(filter(None, kinds))) or "promptfoo",
        expected=text(assertions[0].get("value")) if assertions else "",
        observed=text(response.get("output")),
        groups={"prompt": code.partition("-")[0]},
        usage=Usage(
            whole(tokens.get("prompt")), whole(tokens.get("completion")), cost_usd=amount(row.get("cost"))
        ),
        latency_ms=amount(row.get("latencyMs")),
    )


def benchlocal_runs(path: Path, document: JsonObject) -> Iterator[ForeignRun]:
    """Yield a run per model of a run of the BenchLocal app; only `pass` passes, as in a run of ours.

    Cases that a model was not asked, and those that failed for a fault, have no verdict.

    Raises:
        ImportFileError: It holds no result.
    """
    by_model = {
        model: json_objects(found) for model, found in json_object(document["resultsByModel"]).items()
    }
    results = (*json_objects(document.get("events")), *(one for found in by_model.values() for one in found))
    codes = dict.fromkeys(text(one.get("scenarioId")) for one in results if one.get("scenarioId"))
    if not any(by_model.values()):
        raise ImportFileError(f"{path}: no results in it\n  hint: name summary.json of a run that has ended")
    ended = path.stat().st_mtime
    for model, found in by_model.items():
        cases: list[ForeignCase] = []
        for code in codes:
            own = [one for one in found if text(one.get("scenarioId")) == code] or [{"errorType": "not_run"}]
            cases += [_benchlocal_case(one, code, count) for count, one in enumerate(own, 1)]
        score = json_object(json_object(document.get("scores")).get(model))
        yield ForeignRun(
            tool="benchlocal",
            benchmark=text(document.get("benchPackId") or document.get("pluginId")) or path.parent.name,
            version=text(document.get("packVersion")),
            model=model,
            started_at=time_text(document.get("startedAt"), ended),
            completed_at=time_text(document.get("completedAt"), ended),
            cases=tuple(cases),
            settings={"run_id": text(document.get("runId")), "own_total": number(score.get("totalScore"))},
        )


def _benchlocal_case(result: JsonObject, code: str, repetition: int) -> ForeignCase:
    status, fault = result.get("status"), text(result.get("errorType"))
    is_judged = not fault and status in ("pass", "partial", "fail")
    return ForeignCase(
        code=code,
        repetition=repetition,
        passed=status == "pass" if is_judged else None,
        reason="" if is_judged else fault or "no_verdict",
        rule="status",
        expected="pass",
        observed=text(status),
        latency_ms=amount(json_object(result.get("timings")).get("durationMs")),
    )
