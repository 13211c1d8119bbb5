"""The files of other tools that can be imported, told apart by what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_helmbench.imports.documents import read_json
from pytest_helmbench.imports.foreign_run import ForeignRun, ImportFileError, tidied
from pytest_helmbench.imports.lm_eval import is_lm_eval, lm_eval_runs
from pytest_helmbench.imports.promptfoo import is_promptfoo, promptfoo_runs

__all__ = ["foreign_runs"]


def foreign_runs(path: Path) -> Sequence[ForeignRun]:
    """Return the runs in a file of another tool.

    Args:
        path: A log of Inspect AI (`.eval`, or `.json`), a result of promptfoo, or a `results_….json` of lm-eval.

    Raises:
        ImportFileError: It is none of these, is damaged, or needs a package that is not installed.
    """
    return [tidied(run) for run in _read(path)]


def _read(path: Path) -> Iterable[ForeignRun]:
    if path.suffix == ".eval":
        return [_inspect(path)]
    document = read_json(path)
    if is_promptfoo(document):
        return promptfoo_runs(path, document)
    if is_lm_eval(document):
        return lm_eval_runs(path, document)
    if "eval" in document and "status" in document:
        return [_inspect(path)]
    raise ImportFileError(
        f"{path}: of no tool that is known here\n"
        "  hint: a log of Inspect AI, `promptfoo eval -o FILE.json`, or results_….json of lm_eval --log_samples"
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
