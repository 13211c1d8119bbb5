"""Conversations and tools over a real server: what is sent, what survives a kill, and what hostile calls come to."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from provider import Answer, Provider, Request
from records import final_state
from sessions import Session, run_undisturbed, until
from trees import Part, Tree, rows, run_tree, write_tree

from pytest_helmbench.cli.main import main

_TALK = """## Turn 1

My kettle smells, case {0}.

## Turn 2

### Seen

Smoke.

## Turn 3

It is off, case {0}.

## Assistant

Good. Is it cold?

## Turn 4

Yes. May I drink my tea?"""
_RULES = (
    *("evaluation:", "  type: sqe", "  turns:", "    2: {type: contains, expected: unplug}"),
    "  each: {type: not_contains, expected: drink}",
)
_RUBRIC = {"criteria.md": "---\noptions: [GOOD, BAD]\npass_values: [GOOD]\n---\n\nIs it safe?\n"}
_TOOLS = """- name: order_status
  description: Look up an order.
  parameters: {type: object, properties: {order: {type: string}}, required: [order], additionalProperties: false}
  returns:
    - when: {order: "1001"}
      value: {status: shipped}
    - value: {error: no such order}
"""


def _said(request: Request) -> Answer:
    """Answer a turn by its number, the last one of the third conversation wrongly; judges pass all but the fifth."""
    if request.is_judge:
        judgment = "BAD" if "case 5" in request.prompt else "GOOD"
        return Answer(text=json.dumps({"evidence": [], "justification": "So it is.", "judgment": judgment}))
    turn = sum(message["role"] == "user" for message in request.body["messages"])
    wrong = turn == 4 and "case 3" in request.prompt
    return Answer(text=f"Reply {turn}: {'drink' if wrong else 'unplug'} it")


def _write_talks(folder: Path) -> None:
    talks = {f"PT{number}": Part(_TALK.format(number), 5) for number in range(1, 6)}
    write_tree(folder / "benchmark", {"P1-B1-S1": Tree(_RULES, None, talks, rubrics=_RUBRIC)})


def _sent(request: Request) -> tuple[tuple[str, str], ...]:
    return tuple((message["role"], message["content"]) for message in request.body["messages"])


def _written(case: int) -> tuple[tuple[str, str], ...]:
    """Return a conversation as a person would write it, up to what the model is asked last."""
    job = "<task>\nSort the message.\n</task>\n\n<tone>\nBe calm.\n</tone>"
    return (
        ("user", f"{job}\n\nMy kettle smells, case {case}."),
        ("assistant", "Reply 1: unplug it"),
        ("user", "<seen>\nSmoke.\n</seen>"),
        ("assistant", "Reply 2: unplug it"),
        ("user", f"It is off, case {case}."),
        ("assistant", "Good. Is it cold?"),
        ("user", "Yes. May I drink my tea?"),
    )


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_session_killed_in_the_middle_of_conversations_asks_nothing_twice(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    _write_talks(pytester.path)
    options = ("-q", workers, "--helmbench-marking-model=test/judge")
    provider.reply = _said
    run_undisturbed(pytester, provider.url, *options, f"--helmbench-db={pytester.path / 'undisturbed.db'}")
    asked = sorted(_sent(request) for request in provider.requests if not request.is_judge)
    assert asked == sorted(_written(case)[:said] for case in range(1, 6) for said in (1, 3, 7))
    assert provider.count == len(asked) + 5
    provider.reset()
    provider.reply = lambda request: Answer(held=True) if "Smoke" in request.prompt else _said(request)

    session = Session(pytester.path, provider.url, *options)
    until(lambda: provider.count == 10, "every conversation is at its second turn")
    session.kill()
    provider.reply = _said
    assert Session(pytester.path, provider.url, *options, "--helmbench-resume").end() == 1

    twice = {sent for sent, times in Counter(map(_sent, provider.requests)).items() if times > 1}
    assert twice == {_written(case)[:3] for case in range(1, 6)}, "to which no reply had come"
    assert final_state(pytester.path / "helmbench.db") == final_state(pytester.path / "undisturbed.db")
    by_turn = "SELECT turn, count(*) FROM calls WHERE purpose = 'case' AND NOT from_cache GROUP BY turn"
    assert rows(pytester.path / "helmbench.db", by_turn) == [(1, 5), (2, 5), (4, 5)]


def _hostile(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a message that calls tools by what the user says, until they are answered."""
    calls = {
        "twice": [("order_status", '{"order": "1001"}'), ("order_status", '{"order": "7"}')],
        "broken": [("order_status", '{"order": 1001'), ("order_status", '{"order": 1001}')],
        "unknown": [("rm\x1b[31m -rf", "{}")],
        "ever": [("order_status", '{"order": "1001"}')],
    }
    word = next(word for word in calls if word in messages[0]["content"])
    if word != "ever" and messages[-1]["role"] == "tool":
        return {"role": "assistant", "content": "It is shipped."}
    functions = [{"name": name, "arguments": text} for name, text in calls[word]]
    called = [
        {"id": function["arguments"], "type": "function", "function": function} for function in functions
    ]
    return {"role": "assistant", "content": None, "tool_calls": called}


def _calling(request: Request) -> Answer:
    choice = {"message": _hostile(request.body["messages"]), "finish_reason": "stop"}
    return Answer(body={"choices": [choice], "usage": {"cost": 0.001}})


def _write_tools(folder: Path) -> None:
    lines = ("max_rounds: 3", "evaluation:", "  type: all", "  of:")
    rules = (
        "    - {type: contains, expected: shipped}",
        "    - {type: tool_calls, required: [{name: order_status, arguments: {required: [order]}}], max: 2}",
    )
    asks = {f"PT{n}": Part(word, 5) for n, word in enumerate(("twice", "broken", "unknown", "for ever"), 1)}
    root = write_tree(folder / "benchmark", {"P1-B1-S2": Tree((*lines, *rules), None, asks)})
    (root / "scenarios" / "P1-B1-S2" / "tools.yml").write_text(_TOOLS, encoding="utf-8")


@pytest.mark.parametrize("model", ["test/good", "python:shop:answer"])
def test_whatever_a_model_calls_is_answered_on_record_and_ends(
    pytester: pytest.Pytester, provider: Provider, model: str
) -> None:
    _write_tools(pytester.path)
    provider.reply = _calling
    answer = "def answer(messages):\n    said = _hostile(messages)\n    return said.get('content') or said\n"
    source = f"from typing import Any\n\n{inspect.getsource(_hostile)}\n\n{answer}"
    (pytester.path / "shop.py").write_text(source, encoding="utf-8")

    result = run_tree(pytester, f"--helmbench-model={model}", url=provider.url)

    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT perturbation, outcome, reason FROM v_results ORDER BY code") == [
        ("PT1", "passed", None),
        ("PT2", "failed", None),
        ("PT3", "failed", None),
        ("PT4", "failed", "too_many_rounds"),
    ]
    events = "events JOIN results ON results.id = result_id WHERE type = 'tool' ORDER BY code, events.id"
    found = rows(database, f"SELECT code, payload FROM {events}")
    made = [(code[-1], json.loads(payload)) for code, payload in found]
    assert [(which, call["name"], call["fault"]) for which, call in made] == [
        ("1", "order_status", ""),
        ("1", "order_status", ""),
        ("2", "order_status", "broken_arguments"),
        ("2", "order_status", "broken_arguments"),
        ("3", "rm\x1b[31m -rf", "unknown_tool"),
        *[("4", "order_status", "")] * 3,
    ]
    assert rows(database, "SELECT count(*) FROM calls") == [(2 + 2 + 2 + 4,)]
    assert "\x1b" not in result.stdout.str()


def test_a_conversation_that_breaks_off_keeps_what_it_took_and_called(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _write_tools(pytester.path)
    goes_on = {"tool": Answer(status=500)}
    provider.reply = lambda request: goes_on.get(request.body["messages"][-1]["role"]) or _calling(request)
    for reason, option in (
        ("provider_error", "--helmbench-max-retries=0"),
        ("budget", "--helmbench-max-cost=0.0015"),
    ):
        run_tree(pytester, "--helmbench-select=P1-B1-S2-PT1", option, url=provider.url)
        found = (
            "SELECT cost_usd, count(*) FROM results JOIN events ON result_id = results.id WHERE reason = '{}'"
        )
        assert rows(pytester.path / "helmbench.db", found.format(reason)) == [(0.001, 2)]


def test_shards_with_workers_and_a_rescore_give_the_same_verdicts(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _write_talks(pytester.path)
    _write_tools(pytester.path)
    provider.reply = lambda request: (_calling if "tools" in request.body else _said)(request)
    judge = "--helmbench-marking-model=test/judge"
    run_tree(pytester, judge, url=provider.url)
    for number in (1, 2):
        run_tree(pytester, "-n2", judge, f"--helmbench-shard={number}/2", url=provider.url)
    asked = provider.count

    assert main(["rescore", "1"]) == 0
    assert main(["merge", "helmbench-1of2.db", "helmbench-2of2.db", "-o", "merged.db"]) == 0

    assert provider.count == asked
    verdicts = "SELECT code, outcome, reason, expected, observed FROM v_results WHERE run_id = {} ORDER BY 1, criterion"
    whole = rows(pytester.path / "helmbench.db", verdicts.format(1))
    outcomes = {code[6:].replace("C1-", ""): outcome for code, outcome, *_ in whole}
    assert {code for code, outcome in outcomes.items() if outcome == "passed"} == {
        *("S1-PT1", "S1-PT2", "S1-PT4", "S2-PT1")
    }
    assert len(outcomes) == 9
    assert rows(pytester.path / "helmbench.db", verdicts.format(2)) == whole
    assert rows(pytester.path / "merged.db", verdicts.format(1)) == whole
