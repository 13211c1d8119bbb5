"""The soak in small: after faults of every kind, what the server was asked is what is on record, to the request."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from inner_pytest import pytest_command
from perf.soak import run_soak

_CASES = int(os.environ.get("HELMBENCH_SOAK_CASES", "150"))


@pytest.mark.parametrize("workers", [0, 2])
def test_every_request_and_every_case_is_accounted_for(tmp_path: Path, workers: int) -> None:
    books = run_soak(tmp_path, _CASES, seed=7 + workers, workers=workers, pytest=pytest_command())
    assert books.asked == books.sent == books.first + books.retries
    assert books.unequal == 0
    assert sum(books.verdicts.values()) == _CASES
    assert books.wrong == 0
    # Faults that no retry can mend, and only these, left cases unjudged.
    assert books.verdicts.get("error", 0) <= _CASES // 20
    assert books.retries > _CASES // 10
    assert {"reply", "rate_limited", "provider_error", "overloaded"} <= books.faults.keys()
    assert books.check == "ok"
    assert books.exit_code == 1
