"""What one more case costs the page of a stored run, in calls of functions: that is the same on every machine."""

from __future__ import annotations

import sys
from pathlib import Path

from stored_runs import stored_run

from pytest_helmbench.core.shown_texts import ShownTexts
from pytest_helmbench.reports.formats import REPORTS
from pytest_helmbench.session.run_report import run_report
from pytest_helmbench.store.writer import Store

_MOST = 200
"""175 on Python 3.11; it was 299 where each number went through all rows anew."""


def _calls(path: Path, run: int) -> int:
    """Return how many functions of Python are called for the page of a run."""
    count = 0

    def counted(_frame: object, event: str, _about: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        report = run_report(path, run, all_cases=True)
        assert report is not None
        REPORTS["html"]([report], texts=ShownTexts.NONE)
    finally:
        sys.setprofile(None)
    return count


def test_one_more_case_costs_a_page_a_bounded_number_of_calls(tmp_path: Path) -> None:
    path = tmp_path / "helmbench.db"
    store = Store.open(path)
    few, many = (stored_run(store, tmp_path / f"of-{size}", 2, size) for size in (2, 6))
    store.close()
    _calls(path, few)  # templates are compiled once

    more = _calls(path, many) - _calls(path, few)

    assert more / (2 * 25 * 4) < _MOST
