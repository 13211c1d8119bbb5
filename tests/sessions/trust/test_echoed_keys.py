"""Keys that a provider repeats in its answers: blanked on screen, in JUnit, reports and database."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from provider import Provider
from trees import category, clear_environment, rows, run_tree, write_tree

_KEY = "sk-or/v1+abc=0123456789abcdef"
_TAIL = "0123456789abcdef"


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


_WAYS = {
    "plain": _KEY,
    "solidus": _KEY.replace("/", "\\/").replace("+", "\\u002B"),
    "json": _escaped(_KEY),
    "percent": quote(_KEY, safe=""),
}


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)
    monkeypatch.setenv("HELMBENCH_API_KEY", _KEY)


def _answer(place: str, status: int) -> dict[str, Any]:
    if status != 200:
        return {"error": {"message": "wrong key KEY", "code": "KEY", "type": "KEY"}}
    reply = json.dumps({"response": "KEY" if place == "content" else "fine", "category": "CALM"})
    message: dict[str, Any] = {"role": "assistant", "content": reply}
    if place == "refusal":
        message = {"role": "assistant", "content": None, "refusal": "no, KEY"}
    finish = "KEY" if place == "finish_reason" else "stop"
    model = "KEY" if place == "model" else "test/good"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    return {"id": "1", "model": model, "choices": [choice], "usage": usage}


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize(
    ("place", "status"),
    [
        ("content", 200),
        ("model", 200),
        ("finish_reason", 200),
        ("refusal", 200),
        ("error", 400),
        ("error", 401),
    ],
)
def test_no_key_is_seen_anywhere(
    pytester: pytest.Pytester, provider: Provider, way: str, place: str, status: int
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    body = json.dumps(_answer(place, status)).replace("KEY", _WAYS[way])
    _check(pytester, provider, status, body.encode())


def _check(pytester: pytest.Pytester, provider: Provider, status: int, answer: bytes) -> None:
    provider.answers(status=status, body=answer)
    files = ("--junitxml=junit.xml", "--helmbench-markdown=report.md", "--helmbench-json=report.json")

    result = run_tree(pytester, *files, "--helmbench-with-text=all", "-rA", url=provider.url)

    assert provider.count == 1
    seen = result.stdout.str().encode() + result.stderr.str().encode()
    for name in ("junit.xml", "report.md", "report.json", "helmbench.db"):
        path = pytester.path / name
        seen += path.read_bytes() if path.exists() else b""
    for [body] in rows(pytester.path / "helmbench.db", "SELECT body FROM responses"):
        seen += body
    for form in (_KEY, _TAIL, _escaped(_TAIL), _escaped(_TAIL).upper(), quote(_KEY, safe="")):
        assert form.encode() not in seen
    assert b"[key]" in seen
