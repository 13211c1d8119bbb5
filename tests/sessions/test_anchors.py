"""Anchors: a judge is held to replies with a known verdict before it judges others, by a session and by a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import captured
from provider import Provider, Request
from trees import category, clear_environment, judged, rows, run_tree, write_tree

_JUDGE = "--helmbench-marking-model=test/judge"
_ANCHORS = """allowed: 0
anchors:
  - {id: kind, prompt: Say hello., reply: Hello there!, verdict: pass}
  - id: rude
    prompt: Say hello.
    reply: Go away.
    verdict: fail
"""


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def _bench(pytester: pytest.Pytester, anchors: str = _ANCHORS) -> Path:
    folder = write_tree(
        pytester.path / "benchmark", {"P1-B1-S1": judged("fine", "fine"), "P1-B2-S1": category("RISK")}
    )
    (folder / "anchors.yml").write_text(anchors)
    return pytester.path / "helmbench.db"


def _judges(provider: Provider, *bad: str, model: str = "") -> None:
    """Let judges find replies bad that hold one of these texts; one model finds everything good."""

    def reply(request: Request) -> str | None:
        if not request.is_judge:
            return None
        shown = request.prompt.rpartition("BEGIN reply")[2]
        is_bad = request.model != model and any(text in shown for text in bad)
        options = request.body["response_format"]["json_schema"]["schema"]["properties"]["judgment"]["enum"]
        return json.dumps({"evidence": [], "justification": "So.", "judgment": options[1 if is_bad else 0]})

    provider.reply = reply


def _asked(provider: Provider) -> tuple[int, int]:
    judges = sum(request.is_judge for request in provider.requests)
    return len(provider.requests) - judges, judges


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_judge_that_holds_goes_on_and_what_it_was_asked_is_on_record(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    database = _bench(pytester)
    _judges(provider, "Go away")

    result = run_tree(pytester, workers, _JUDGE, "--helmbench-json=out.json", url=provider.url)

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "helmbench: test/good: 3 cases, 7 calls *",
            "helmbench: held to 2 anchors first: test/judge",
            "the judge test/judge was right on 2 of 2 anchors",
        ]
    )
    assert [request.is_judge for request in provider.requests[:2]] == [True, True]
    assert rows(
        database, "SELECT code, purpose, judge FROM calls WHERE code LIKE 'anchor:%' ORDER BY code"
    ) == [("anchor:kind", "judge", "test/judge"), ("anchor:rude", "judge", "test/judge")]
    paid = rows(database, "SELECT cost_usd FROM evaluation_runs")[0][0]
    assert paid == pytest.approx(rows(database, "SELECT sum(cost_usd) FROM calls")[0][0])
    judging = json.loads((pytester.path / "out.json").read_text())["runs"][0]["judging"]
    assert judging["anchors"] == [
        {"judge": "test/judge", "right": 2, "of": 2, "allowed": 0, "wrong": [], "unanswered": []}
    ]
    if workers == "-n0":
        provider.requests.clear()
        replayed = run_tree(
            pytester, _JUDGE, "--helmbench-cache=only", "--helmbench-db=helmbench.db", url=provider.url
        )
        replayed.assert_outcomes(passed=3)
        run_tree(pytester, _JUDGE, "--helmbench-cache=reuse", url=provider.url).assert_outcomes(passed=3)
        run_tree(pytester, _JUDGE, "--helmbench-dry-run", url=provider.url)
        run_tree(pytester, _JUDGE, "--collect-only", url=provider.url)
        assert not provider.requests
        # Where no judge is needed, none is held.
        run_tree(pytester, _JUDGE, "--helmbench-select=P1-B2", url=provider.url).assert_outcomes(passed=1)
        assert _asked(provider) == (1, 0)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_judge_that_fails_stops_the_session_before_a_case_is_asked(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    database = _bench(pytester)
    _judges(provider, "Hello there")

    result = run_tree(pytester, workers, _JUDGE, url=provider.url)

    assert result.ret == 4
    text = "anchors.yml: the judge test/judge was right on 0 of 2 anchors; wrong on kind (fail), rude (pass), 0 allowed"
    assert text in result.stderr.str() + result.stdout.str()
    assert _asked(provider) == (0, 2)
    assert rows(database, "SELECT status, total_tests FROM evaluation_runs") == [("partial", 3)]
    if workers == "-n2":
        return
    _judges(provider, "Go away")
    again = run_tree(pytester, _JUDGE, "--helmbench-resume", url=provider.url)
    assert again.ret == 4  # its answers are on record: the session that goes on is held to what was said
    assert _asked(provider) == (0, 2)
    (pytester.path / "benchmark" / "anchors.yml").write_text(_ANCHORS.replace("allowed: 0", "allowed: 2"))
    run_tree(pytester, _JUDGE, "--helmbench-resume", url=provider.url).assert_outcomes(passed=3)
    assert _asked(provider) == (3, 4)


def test_each_judge_is_held_by_itself_and_one_that_is_silent_stops_the_session(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _bench(pytester)
    _judges(provider, "Go away", model="test/second")
    second = "--helmbench-marking-model=test/second"

    result = run_tree(pytester, _JUDGE, second, url=provider.url)
    assert result.ret == 4
    assert "the judge test/second was right on 1 of 2 anchors; wrong on rude (pass)" in result.stderr.str()
    assert _asked(provider) == (0, 4)

    provider.reset()
    provider.answers(status=400, body={"error": {"message": "out"}})
    silent = run_tree(pytester, _JUDGE, url=provider.url)
    assert silent.ret == 4
    assert "no verdict on 2: the judge's call failed: the provider answered 400 (out)" in silent.stderr.str()
    # What stands in for a judge where only embedded models are asked is held to nothing.
    floor = run_tree(pytester, model="baseline/first")
    assert floor.ret in (0, 1)


def test_judge_check_asks_the_judge_alone(
    pytester: pytest.Pytester,
    provider: Provider,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _bench(pytester)
    _judges(provider, "Go away")
    asked = ("judge", "check", pytester.path / "benchmark", "--marking-model", "test/judge")
    url = ("--base-url", provider.url)

    code, text, _ = captured(capsys, *asked, *url)
    assert (code, _asked(provider)) == (0, (0, 2))
    lines = [line.split() for line in text.splitlines()]
    assert ["test/judge", "kind", "pass", "pass", "So."] in lines
    assert "the judge test/judge was right on 2 of 2 anchors" in text

    monkeypatch.setenv("MODEL_KEY", "of-the-models-server")
    monkeypatch.setenv("JUDGE_KEY", "of-the-judges-server")
    elsewhere = ("--base-url", "http://127.0.0.1:9/v1", "--api-key-env", "MODEL_KEY")
    own = ("--marking-base-url", provider.url, "--marking-api-key-env", "JUDGE_KEY")
    assert captured(capsys, *asked, *elsewhere, *own)[0] == 0
    assert provider.requests[-1].headers["authorization"] == "Bearer of-the-judges-server"

    _judges(provider, "Hello there")
    code, text, _ = captured(capsys, *asked, *url, "--json")
    found = json.loads(text)
    assert (code, found[0]["judges"][0]["wrong"], found[0]["judges"][0]["holds"]) == (
        1,
        ["kind", "rude"],
        False,
    )
    assert not (pytester.path / "helmbench.db").exists()

    (pytester.path / "benchmark" / "anchors.yml").unlink()
    code, _, said = captured(capsys, *asked, *url)
    assert (code, "has no anchors.yml" in said) == (2, True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- {prompt: a, reply: b, verdict: maybe}\n", "anchors.yml:1: entry 1.verdict is 'maybe'"),
        ("- {prompt: a, verdict: pass}\n", "anchors.yml:1: entry 1 has no 'reply'"),
        (
            "- {prompt: a, reply: b, verdict: pass}\n- {prompt: a, reply: b, verdict: pass, scenario: P9-B1-S1}\n",
            "anchors.yml:2: anchor 2: there is no scenario 'P9-B1-S1'",
        ),
        (
            "- {prompt: a, reply: b, verdict: pass, scenario: P1-B2-S1}\n",
            "anchors.yml:1: anchor 1: no model judges this reply to P1-B2-S1: rules do",
        ),
        (
            "anchors:\n" + 2 * "  - {id: x, prompt: a, reply: b, verdict: pass}\n",
            "anchors.yml:3: the anchor 'x' stands here twice",
        ),
    ],
)
def test_broken_anchors_are_told_by_line_and_nothing_is_asked(
    pytester: pytest.Pytester,
    provider: Provider,
    capsys: pytest.CaptureFixture[str],
    text: str,
    told: str,
) -> None:
    _bench(pytester, text)
    code, shown, _ = captured(capsys, "check", pytester.path / "benchmark")
    assert code == 1
    assert told.replace(": ", ": error: ", 1) in shown.replace("\n", " ")
    result = run_tree(pytester, _JUDGE, "--helmbench-dry-run", url=provider.url)
    assert result.ret == 4
    assert told in result.stderr.str()
    assert not provider.requests
