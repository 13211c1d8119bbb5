"""Results of lm-evaluation-harness: `results_TIME.json` with the `samples_TASK_TIME.jsonl` beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.imports.documents import entries, number, read_lines, text, time_text
from pytest_helmbench.imports.foreign_run import ForeignCase, ForeignRun, ImportFileError

__all__ = ["is_lm_eval", "lm_eval_runs"]


def is_lm_eval(document: JsonObject) -> bool:
    """Return whether a JSON file is a result of lm-eval."""
    return "results" in document and "configs" in document and "versions" in document


def lm_eval_runs(path: Path, document: JsonObject) -> Iterator[ForeignRun]:
    """Yield a run per task, and per filter of its answers where there are several.

    A case's verdict is the first metric of the task that says right or wrong (0 or 1).

    Raises:
        ImportFileError: There are no samples, or none has a verdict; the file's line where one is damaged.
    """
    at = path.stem.removeprefix("results_")
    config = entries(document.get("config"))
    model = text(document.get("model_name")) or text(config.get("model")) or "unknown"
    began = time_text(document.get("date"), path.stat().st_mtime)
    found = 0
    for task, version in entries(document.get("versions")).items():
        samples = _beside(path, f"samples_{task}_{at}.jsonl")
        if samples is None:
            continue
        by_filter: dict[str, list[ForeignCase]] = {}
        for line, sample in read_lines(samples):
            by_filter.setdefault(text(sample.get("filter")), []).append(_case(sample, f"{samples}:{line}"))
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
                settings={"filter": name, "n_shot": entries(document.get("n-shot")).get(task)},
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


def _case(sample: JsonObject, place: str) -> ForeignCase:
    if "doc_id" not in sample:
        raise ImportFileError(f"{place}: no doc_id\n  hint: a sample of lm_eval --log_samples has one")
    named = sample.get("metrics")
    metrics = [text(name) for name in named] if isinstance(named, list) else []
    verdicts = [(name, value) for name in metrics if (value := _verdict(sample.get(name))) is not None]
    metric, passed = verdicts[0] if verdicts else ("", None)
    return ForeignCase(
        code=text(sample["doc_id"]),
        repetition=1,
        passed=passed,
        reason="" if verdicts else "no_verdict",
        rule=metric or "lm-eval",
        expected=text(sample.get("target")),
        observed=text(sample.get("filtered_resps")),
    )


def _verdict(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    found = number(value) if isinstance(value, int | float) else None
    return None if found not in (0.0, 1.0) else found == 1.0
