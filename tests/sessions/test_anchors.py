"""`helmbench judge check`: a judge marks replies with a known verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import captured
from pack_rows import free, worded
from packs import write_pack
from provider import Provider, Request
from trees import category, judged, write_tree

_ANCHORS = """allowed: 0
anchors:
  - {id: kind, prompt: Say hello., reply: Hello there!, verdict: pass}
  - id: rude
    prompt: Say hello.
    reply: Go away.
    verdict: fail
"""


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


def test_rows_of_packs_are_rubrics_too_and_each_judge_is_held_by_itself(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = free("listed", **{"eval.rubric": {"type": "contains_any", "accepted_answers": ["Paris"]}})
    folder = write_pack(pytester.path / "benchmark", [worded("polite"), listed])
    (folder / "anchors.yml").write_text(
        "- {prompt: Greet., reply: Hello!, verdict: pass, scenario: polite}\n"
        "- {prompt: Capital?, reply: I would not say Paris, verdict: fail, scenario: listed}\n"
        "- {prompt: Greet., reply: Shut up!, verdict: fail, rubric: The reply is polite.}\n"
    )
    _judges(provider, "Shut up", "would not say", model="test/second")
    judges = ("--marking-model", "test/judge", "--marking-model", "test/second")

    code, text, _ = captured(capsys, "judge", "check", folder, *judges, "--marking-base-url", provider.url)

    assert code == 1
    assert "the judge test/judge was right on 3 of 3 anchors" in text
    assert "the judge test/second was right on 1 of 3 anchors; wrong on anchor 2 (pass)" in text

    provider.reset()
    provider.answers(status=400, body={"error": {"message": "out"}})
    code, text, _ = captured(capsys, "judge", "check", folder, *judges, "--marking-base-url", provider.url)
    assert (code, "no verdict on 3: the judge's call failed" in text) == (1, True)


def test_judge_check_asks_the_judge_alone(
    pytester: pytest.Pytester,
    provider: Provider,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _bench(pytester)
    _judges(provider, "Go away")
    asked = ("judge", "check", pytester.path / "benchmark", "--marking-model", "test/judge")
    url = ("--marking-base-url", provider.url)

    code, text, _ = captured(capsys, *asked, *url)
    assert (code, _asked(provider)) == (0, (0, 2))
    lines = [line.split() for line in text.splitlines()]
    assert ["test/judge", "kind", "pass", "pass", "So."] in lines
    assert "the judge test/judge was right on 2 of 2 anchors" in text

    monkeypatch.setenv("JUDGE_KEY", "of-the-judges-server")
    assert captured(capsys, *asked, *url, "--marking-api-key-env", "JUDGE_KEY")[0] == 0
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
    assert not provider.requests
