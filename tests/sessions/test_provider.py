"""The test server keeps its promises: other tests stand on it."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from provider import Answer, Provider, build_reply


def ask(
    provider: Provider, prompt: str = "", schema: dict[str, Any] | None = None, model: str = "test/good"
) -> str:
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    if schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    request = urllib.request.Request(f"{provider.url}/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        text: str = json.load(answer)["choices"][0]["message"]["content"]
        return text


JUDGE = {
    "type": "object",
    "properties": {"judgment": {"enum": ["PASS", "FAIL"]}, "justification": {"type": "string"}},
}


def test_it_answers_what_the_prompt_orders(provider: Provider) -> None:
    schema = {
        "type": "object",
        "properties": {"c": {"enum": ["A", "B"]}, "t": {"type": "array", "items": {}}},
    }
    assert ask(provider, "x\nANSWER: B\n") == "B"
    assert json.loads(ask(provider, "x\nANSWER: B", schema))["c"] == "B"
    assert json.loads(ask(provider, "x", schema))["c"] == "A"


def test_a_judge_gives_the_verdict_it_is_told_not_the_order_of_the_case(provider: Provider) -> None:
    assert json.loads(ask(provider, "ANSWER: FAIL", JUDGE))["judgment"] == "PASS"
    provider.verdict = "FAIL"
    assert json.loads(ask(provider, "ANSWER: PASS", JUDGE))["judgment"] == "FAIL"


def test_scripts_are_used_up_in_order_and_only_where_they_hold(provider: Provider) -> None:
    provider.answers(text="bad", when=lambda request: request.model == "test/bad")
    provider.answers(text="one", times=1)
    provider.answers(text="two", times=1)
    provider.answers(text="rest")
    assert [ask(provider) for _ in range(4)] == ["one", "two", "rest", "rest"]
    provider.answers(text="new")
    assert ask(provider) == "new"
    provider.reset()
    provider.reply = lambda request: Answer(text=request.prompt.upper()) if request.prompt else None
    assert [ask(provider, "hi"), ask(provider)] == ["HI", "ok"]
    assert provider.count == 2


@pytest.mark.parametrize(
    ("schema", "answer", "built"),
    [
        ({"const": 5}, None, 5),
        ({"enum": [1, 2]}, "2", 2),
        ({"type": ["null", "integer"]}, "7", 7),
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}}, "a, c, x", ["a", "c"]),
        ({"anyOf": [{"type": "boolean"}]}, None, True),
        ({"type": "string"}, None, "ok"),
    ],
)
def test_what_it_builds_fits_the_schema(schema: dict[str, Any], answer: str | None, built: object) -> None:
    assert build_reply(schema, answer) == built
