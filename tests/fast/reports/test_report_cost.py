"""The cost of one more case in the report of a stored run, in calls of functions: the same on every machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stored_runs import stored_run

from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.reports.formats import PAGE, REPORTS
from pytest_helmbench.results.run_report import run_report
from pytest_helmbench.results.standings import ReportedRuns
from pytest_helmbench.store.write.writer import Store

_MOST = {"html": 170, "markdown": 100}
"""162 and 91 on Python 3.11; 175 and 125 when the outcomes of all cases were counted one by one."""


def _calls(path: Path, run: int, form: str) -> int:
    """Return how many functions of Python are called for the report of a run."""
    count = 0

    def counted(_frame: object, event: str, _about: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        report = run_report(path, run, all_cases=form == PAGE)
        assert report is not None
        REPORTS[form](ReportedRuns.of([report]), ShownTexts.NONE, None)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("form", _MOST)
def test_one_more_case_costs_a_report_a_bounded_number_of_calls(tmp_path: Path, form: str) -> None:
    path = tmp_path / "helmbench.db"
    store = Store.open(path)
    few, many = (stored_run(store, tmp_path / f"of-{size}", 2, size) for size in (2, 6))
    store.close()
    _calls(path, few, form)  # templates are compiled once

    more = _calls(path, many, form) - _calls(path, few, form)

    assert more / (2 * 25 * 4) < _MOST[form]
