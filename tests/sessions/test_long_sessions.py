"""Memory of finished cases: a session keeps nothing that pytest would search once per failure."""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from statistics import median

import pytest
from provider import Provider
from trees import category, run_tree, write_tree

from pytest_helmbench.pytest_side.collect.items import CaseItem
from pytest_helmbench.pytest_side.session_plugin import SessionPlugin


@pytest.mark.parametrize(("waits", "bound"), [(True, 3_000), (False, 1_500)])
def test_one_more_case_costs_as_many_calls_whatever_their_number(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    waits: bool,
    bound: int,
) -> None:
    """Functions that pytest's thread calls from one case to the next; pytester's recorder has its part in them."""
    plain = SessionPlugin.has_passed
    called: list[int] = []
    count = 0

    def counts(_frame: object, event: str, _about: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    def look(plugin: SessionPlugin, item: CaseItem) -> bool:
        sys.setprofile(None)
        called.append(count)
        while not waits and not plain(plugin, item):
            time.sleep(0.001)
        sys.setprofile(counts)
        return not waits

    monkeypatch.setattr(SessionPlugin, "has_passed", look)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 100)})
    try:
        result = run_tree(pytester, "--junitxml=junit.xml", "-p", "no:cacheprovider", url=provider.url)
    finally:
        sys.setprofile(None)

    result.assert_outcomes(passed=100)
    each = [after - before for before, after in pairwise(called)]
    assert len(each) == 97  # the first and the last case are pytest's
    first, last = median(each[:30]), median(each[-30:])  # the clock has its part in some of them
    assert last == pytest.approx(first, rel=0.02)
    assert last < bound  # 1,410 and 938 were seen alone, up to 2,507 behind other tests
