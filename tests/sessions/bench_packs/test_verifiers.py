"""Sessions with a verifier that dies: what it does to the scenario at hand, and to those that wait."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_pack_sessions import bench_pack_outcomes, model_reasons, run_packs, write_asking_pack
from provider import Provider
from trees import rows
from verifiers import PROCESS, SERVER

_ASKS_VERIFIER = (
    "await ask('hello'); const answer = await fetch(context.verifiers[0].url + '%s').catch(() => undefined);"
    " return result({ note: String(answer?.status) });"
)
_VERIFIER = {
    "id": "exact",
    "transport": "http",
    "required": True,
    "defaultMode": "docker",
    "docker": {"buildContext": "./verification", "listenPort": 4010, "healthcheckPath": "/health"},
}


@pytest.mark.flaky(
    reruns=2
)  # once in some ten runs of all tests the request never reaches the verifier: see A's limit
@pytest.mark.parametrize("prepare", ["item", "session"])
def test_a_dead_verifier_is_an_error_and_who_waits_gets_a_new_one(
    pytester: pytest.Pytester, provider: Provider, prepare: str
) -> None:
    runs = {
        "A": f"async () => {{ {_ASKS_VERIFIER % '/end'} }}",
        "B": f"async () => {{ {_ASKS_VERIFIER % '/check'} }}",
        "C": f"async () => {{ {_ASKS_VERIFIER % '/check'} }}",
    }
    pack = write_asking_pack(pytester.path / "pack", runs, manifest={"verifiers": [_VERIFIER]})
    (pack / "verification").mkdir()
    (pack / "verification" / "server.py").write_text(SERVER)
    options = (f"--helmbench-verifier={PROCESS}", f"--helmbench-prepare={prepare}")

    result = run_packs(pytester, *options, "-rA", url=provider.url)

    outcomes = model_reasons(bench_pack_outcomes(pytester.path / "helmbench.db"))
    assert outcomes == {"A": "error verifier", "B": "passed", "C": "passed"}
    assert _notes(pytester.path / "helmbench.db") == {"B": "200", "C": "200"}
    result.stdout.no_fnmatch_line("*with your rights*")


def _notes(database: Path) -> dict[str, str]:
    query = (
        "SELECT code, note FROM pack_results JOIN results ON results.id = result_id WHERE outcome = 'passed'"
    )
    return dict(rows(database, query))
