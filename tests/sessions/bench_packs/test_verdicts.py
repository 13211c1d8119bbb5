"""Bench Packs' verdicts: what a pack says stands, unless something else than the model went wrong."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from bench_pack_sessions import ASKS, bench_pack_outcomes, model_reasons, run_packs, write_asking_pack
from provider import Answer, Provider, Request
from trees import rows

_FAULTS = {
    # Answers to the first requests with this text; the last one for all that follow.
    "down": [Answer(status=503, retry_after=0)],
    "refused": [Answer(status=400)],
    "broken-off": [Answer(truncated=True)],
    "once": [Answer(status=503, retry_after=0), Answer()],
    "busy": [Answer(status=429, retry_after=0), Answer()],
    "twice": [Answer(status=503, retry_after=0), Answer(status=503, retry_after=0), Answer()],
    "never": [Answer(hang=True)],
    "filtered": [Answer(status=400, body={"error": {"code": "content_filter", "message": "no"}})],
    "silent": [Answer(text="")],
}
_SAID = "{ const response = await chat('%s'); return result({ status: '%s' }); }"
_SCENARIOS = {
    "asks-no-model": ("async () => result()", "error no_model_call"),
    "asks-elsewhere": (
        "async () => { await fetch(`${context.providers[0].baseUrl}/chat/completions`, { method: 'POST',"
        " body: '{}' }); return result(); }",
        "error no_model_call",
    ),
    "down-pass": (f"async () => {_SAID % ('down 1', 'pass')}", "error overloaded"),
    "down-partial": (f"async () => {_SAID % ('down 2', 'partial')}", "error overloaded"),
    "down-fail": (f"async () => {_SAID % ('down 3', 'fail')}", "error overloaded"),
    "down-throws": ("async () => { await ask('down 4'); return result(); }", "error overloaded"),
    "down-then-another": (
        "async () => { await chat('down 5'); await ask('fine'); return result({ status: 'fail' }); }",
        "error overloaded",
    ),
    "another-then-down": (
        "async () => { await ask('fine'); await chat('down 6'); return result(); }",
        "error overloaded",
    ),
    "refused": (f"async () => {_SAID % ('refused', 'fail')}", "error rejected"),
    "broken-off": (
        "async () => { await chat('broken-off').catch(() => {}); return result(); }",
        "error truncated_body",
    ),
    "filtered": (f"async () => {_SAID % ('filtered', 'fail')}", "error blocked"),
    "fails-beside-an-open-request": (
        "async () => { await ask('fine'); chat('never').catch(() => {}); await sleep(0.3);"
        " return result({ status: 'fail' }); }",
        "error no_reply",
    ),
    "gives-up": (
        "async () => { await chat('never', {}, AbortSignal.timeout(1000)).catch(() => {});"
        " return result({ status: 'fail' }); }",
        "error no_reply",
    ),
    "answered-then-gives-up": (
        "async () => { await ask('fine'); await chat('never', {}, AbortSignal.timeout(1000)).catch(() => {});"
        " return result({ status: 'fail' }); }",
        "error no_reply",
    ),
    "does-not-wait-for-a-second-opinion": (
        "async () => { chat('never').catch(() => {}); await ask('fine'); return result(); }",
        "passed",
    ),
    "cured-by-us": ("async () => { await ask('once'); return result(); }", "passed"),
    "waited-for-by-us": ("async () => { await ask('busy'); return result(); }", "passed"),
    "cured-by-the-pack": (
        "async () => { await chat('twice'); await ask('twice'); return result(); }",
        "passed",
    ),
    "says-nothing": (
        "async () => { const said = await ask('silent'); return result({ status: said ? 'pass' : 'fail' }); }",
        "failed fail",
    ),
    "healthy": (ASKS, "passed"),
}


def _faulty(provider: Provider) -> None:
    asked: Counter[str] = Counter()

    def reply(request: Request) -> Answer | None:
        answers = _FAULTS.get(request.prompt.partition(" ")[0])
        if answers is None:
            return None
        asked[request.prompt] += 1
        return answers[min(asked[request.prompt], len(answers)) - 1]

    provider.reply = reply


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_fault_that_the_pack_was_handed_is_an_error_whatever_it_says(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_asking_pack(pytester.path / "pack", {name: act for name, (act, _) in _SCENARIOS.items()})
    _faulty(provider)

    result = run_packs(pytester, workers, "--helmbench-max-retries=1", url=provider.url)

    database = pytester.path / "helmbench.db"
    expected = {name: verdict for name, (_, verdict) in _SCENARIOS.items()}
    assert model_reasons(bench_pack_outcomes(database)) == expected
    counts = Counter(verdict.partition(" ")[0] for verdict in expected.values())
    result.assert_outcomes(passed=counts["passed"], failed=counts["failed"], errors=counts["error"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


_ASKS_VERIFIER = """async () => {
    const { url } = context.verifiers.find((one) => one.id === "exact");
    const answer = await ask(input.scenario.id);
    const checked = await fetch(`${url}/${input.scenario.id}`, { method: "POST", body: answer }).catch(() => null);
    return result({ status: checked?.ok ? "pass" : "fail", note: await checked?.text() });
}"""


def test_a_verifier_that_fell_over_is_an_error_of_the_items_that_met_it(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    service = {"id": "exact", "transport": "http", "required": True, "defaultMode": "docker"}
    manifest = {"verifiers": [service], "capabilities": {"verification": True}}
    names = ("good", "wrong", "broken", "gone")
    write_asking_pack(pytester.path / "pack", dict.fromkeys(names, _ASKS_VERIFIER), manifest=manifest)
    with _Verifier() as verifier:
        option = f"--helmbench-verifier=exact={verifier.url}"
        result = run_packs(pytester, option, url=provider.url)

    assert model_reasons(bench_pack_outcomes(pytester.path / "helmbench.db")) == {
        "good": "passed",
        "wrong": "failed fail",  # a 4xx is the verifier's word on the answer
        "broken": "error verifier",
        "gone": "error verifier",
    }
    result.stdout.fnmatch_lines(["verifier 'exact' answered 503: POST /broken*"])
    result.stdout.fnmatch_lines(["verifier 'exact' gave no answer *: POST /gone*"])
    # The pack knows the address of the counting proxy alone.
    assert verifier.asked == {"good", "wrong", "broken", "gone"}


def test_an_optional_verifier_that_is_absent_stops_nothing(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    service = {"id": "exact", "transport": "http", "required": False, "defaultMode": "custom_url"}
    manifest = {"verifiers": [service], "capabilities": {"verification": True}}
    tells = "async () => { await ask('x'); return result({ output: context.verifiers[0] }); }"
    write_asking_pack(pytester.path / "pack", {"a": tells}, manifest=manifest)

    run_packs(pytester, url=provider.url).assert_outcomes(passed=1)

    [(output,)] = rows(pytester.path / "helmbench.db", "SELECT output FROM pack_results")
    told = json.loads(output)
    assert (told["id"], told["required"], "url" in told) == ("exact", False, False)
    assert told["status"] == "missing_dependency"
    [(stated,)] = rows(pytester.path / "helmbench.db", "SELECT justification FROM evaluations")
    assert "verifier 'exact' has no URL in the manifest" in stated


class _Verifier(ThreadingHTTPServer):
    """A verifier that finds the answer to `good` right, `wrong` wrong, and is down for others."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: set[str] = set()
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *_error: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: _Verifier

    def do_GET(self) -> None:
        self._answer(200)

    def do_POST(self) -> None:
        name = self.path.strip("/")
        self.server.asked.add(name)
        self.rfile.read(int(self.headers["Content-Length"]))
        if name == "gone":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._answer({"good": 200, "wrong": 422}.get(name, 503))

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""
