"""A run as a log of Inspect AI, for Inspect View and for what reads such logs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pytest_helmbench.reports.exports.exported import MAIN, Exported, ExportError, ExportWish
from pytest_helmbench.results.run_report import RecordedRun

__all__ = ["inspect_export"]

_FORMS: Mapping[str, Literal["eval", "json"]] = {".eval": "eval", ".json": "json", "": "json"}


def inspect_export(runs: Sequence[RecordedRun], wish: ExportWish, /) -> Exported:
    """Return a log: a sample per case and repetition (epoch), a score per criterion, our numbers as its metrics.

    Errors and skipped cases are samples with an error and without a score.

    Raises:
        ExportError: inspect-ai is not installed, the runs are several, or the file's name is no log's.
    """
    if len(runs) != 1:
        raise ExportError(
            "a log of Inspect holds one run\n  hint: export them one by one; Inspect View shows a whole folder"
        )
    form = _FORMS.get(Path(wish.name).suffix)
    if form is None:
        raise ExportError(f"{wish.name}: Inspect reads no such file\n  hint: name it *.eval or *.json")
    try:
        from inspect_ai.log import write_eval_log

        from pytest_helmbench.reports.exports.inspect_log import inspect_log
    except ImportError as error:
        raise ExportError(
            "Inspect's logs are written by inspect-ai, which is not installed\n"
            "  hint: pip install 'pytest-helmbench[inspect]'"
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"log.{form}")
        write_eval_log(inspect_log(runs[0], with_text=wish.with_text), str(path), format=form)
        return {MAIN: path.read_text(encoding="utf-8") if form == "json" else path.read_bytes()}
