"""Output of sessions of Bench Packs: the summary, JUnit properties."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from bench_pack_sessions import ASKS, run_packs, write_asking_pack
from provider import Answer, Provider
from trees import rows

_HALF = (
    "async () => { await emit({ type: 'model_progress', message: 'SECRET progress' }); await ask('half');"
    " return result({ status: 'partial', score: 50, points: 1, note: 'SECRET note',"
    " rawLog: 'SECRET ' + context.secrets[0].value }); }"
)


def _properties(report: Path, path: str) -> dict[str, str]:
    found = ET.parse(report).getroot().findall(f"{path}/properties/property")
    return {item.attrib["name"]: item.attrib["value"] for item in found}


def test_a_resumed_session_has_the_packs_words_of_what_it_does_not_run_again(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_asking_pack(pytester.path / "pack", {"asks": ASKS, "half": _HALF})
    provider.reply = lambda request: Answer(status=400) if request.prompt == "asks" else None
    run_packs(pytester, "-n0", url=provider.url).assert_outcomes(failed=1, errors=1)
    provider.reply = lambda _request: None
    provider.requests.clear()

    again = run_packs(pytester, "-n0", "--helmbench-resume", "--junitxml=junit.xml", url=provider.url)

    again.assert_outcomes(passed=1, failed=1)
    assert [request.prompt for request in provider.requests] == ["asks"]
    own = _properties(pytester.path / "junit.xml", "testsuite/testcase[@name='half[test/good]']")
    assert (own["pack_status"], own["pack_score"]) == ("partial", "50.0")
    assert "test/good: the pack's own total: 75; All 75" in again.outlines
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT run_id, total, partial FROM pack_scores") == [(1, 75.0, 0)]
    codes = "SELECT code, status FROM pack_results JOIN results ON results.id = result_id ORDER BY code"
    assert rows(database, codes) == [("asks", "pass"), ("half", "partial")]
    assert rows(database, "SELECT count(*) FROM events WHERE type = 'scenario_error'") == [(0,)]
