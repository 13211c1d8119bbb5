"""Conversations with tool calls where people and programs read them, as a session has stored them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import captured
from jsonschema import validate
from provider import Answer, Provider, Request
from trees import Part, Tree, rows, run_tree, write_tree

from pytest_helmbench.reports.json_report import own_schema

_TURNS = "## Turn 1\nHello.\n## Assistant\nWhich order?\n## Turn 2\nIt is 1001.\n## Turn 3\nWhen?"
_RULES = ("evaluation: {type: contains, expected: Soon, turns: {2: {type: contains, expected: lost}}}",)
_TOOLS = """- name: order
  description: Look up an order.
  parameters: {type: object, properties: {id: {type: string}}, required: [id]}
  returns: [{when: {id: "1001"}, value: {status: shipped}}]
"""
_CALLS = (("order", '{"id": "1001"}'), ("order", "{no"), ("re fund", '{"to": ["\\ud800\\u001b"]}'))
_SHOWN = """conversation
  | [turn 1: user]
  |   Help.
  |
  |   Hello.
  | [turn 1: assistant (scripted)]
  |   Which order?
  | [turn 2: user]
  |   It is 1001.
  | [turn 2: assistant]
  |   Let me see.
  | [turn 2: tool call]
  |   order(id="1001") → {"status": "shipped"}
  | [turn 2: tool call]
  |   order({no) (broken arguments) → {"error": "the arguments are not a JSON object (100 levels, each key once)"}
  | [turn 2: tool call]
  |   re fund(to=["\ufffd\\\\x1b"]) (unknown tool) → {"error": "there is no tool 're fund'; the tools are: order"}
  | [turn 2: assistant]
  |   It was shipped.
  | [turn 3: user]
  |   When?

reply
  | Soon.
"""


def _reply(request: Request) -> str | Answer:
    said = request.body["messages"]
    if said[-1]["content"] == "It is 7.":
        return Answer(status=500)
    if said[-1]["role"] == "tool" or said[-1]["content"] == "When?":
        return "It was shipped." if said[-1]["role"] == "tool" else "Soon."
    calls = [{"id": "same", "function": {"name": name, "arguments": text}} for name, text in _CALLS]
    message = {"role": "assistant", "content": "Let me see.", "tool_calls": calls}
    return Answer(body={"choices": [{"message": message}], "usage": {"cost": 0.5}})


def _run(pytester: pytest.Pytester, provider: Provider, *orders: int) -> pytest.RunResult:
    """Run a conversation about each order; those that end fail at turn 2."""
    parts = {f"PT{n}": Part(_TURNS.replace("1001", str(order)), 5) for n, order in enumerate(orders, 1)}
    root = write_tree(pytester.path / "benchmark", {"P1-B1-S1": Tree(_RULES, None, parts, {}, body="Help.")})
    (root / "scenarios/P1-B1-S1/tools.yml").write_text(_TOOLS, "utf-8")
    provider.reply = _reply
    return run_tree(pytester, "--helmbench-max-retries=0", url=provider.url)


def test_a_failure_names_its_turn_and_shows_the_reply_there(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["  asked:    It is 1001.", "  expected: turn 2: contains lost", "  observed: It was shipped."]
    _run(pytester, provider, 1001, 7).stdout.fnmatch_lines(lines)
    assert "turn 2: contains lost  It was shipped." in captured(capsys, "show", "1", "--failed")[1]
    assert rows(pytester.path / "helmbench.db", "SELECT calls, cost_usd FROM v_costs") == [(4, 0.502)]
    provider.reply = lambda request: _reply(request) if "1001" in request.prompt else "Soon."
    again = run_tree(pytester, "-v", "--helmbench-resume=1", url=provider.url)
    again.stdout.fnmatch_lines(["*reply turn 2*", "It was shipped."])
    assert provider.count == 6


def test_turns_and_tool_calls_are_readable_in_every_form(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*words: str) -> str:
        code, out, complaint = captured(capsys, *words)
        assert code == 0, complaint
        return out

    _run(pytester, provider, 1001)
    assert _SHOWN in said("show", "1", "P1-B1-S1-PT1")
    (case,) = json.loads(said("show", "1", "P1-B1-S1-PT1", "--json"))
    assert [call["turn"] for call in case["calls"]] == [2, 2, 3]
    turns = case["conversation"]
    assert [(one["turn"], one["scripted"]) for one in turns[:3]] == [(1, False), (1, True), (2, False)]
    calls = [(call["name"], call["fault"]) for call in turns[3]["tool_calls"]]
    assert calls == [("order", ""), ("order", "broken_arguments"), ("re fund", "unknown_tool")]
    exported = json.loads(said("export", "1", "--format", "json", "--with-text=all"))
    validate(exported, own_schema("export"))
    report = json.loads(said("report", "1", "--format", "json", "--with-text=failures"))
    validate(report, own_schema("report"))
    failure = report["runs"][0]["failures"][0]
    assert turns == exported["results"][0]["conversation"] == failure["conversation"]
    assert len(failure["messages"]) == 9  # as sent
    prompt = _SHOWN.partition("\n\nreply")[0].partition("  |\n")[2].replace("  | ", "")
    assert prompt in said("report", "1", "--format", "markdown", "--with-text=failures")
    assert prompt.replace('"', '""') in said("export", "1", "--format", "csv", "--with-text=all")
    assert "conversation" not in said("export", "1", "--format", "json")
    said("export", "1", "--format", "eee", "-o", "eee", "--with-text=all")
    (line,) = [json.loads(path.read_text()) for path in Path("eee").rglob("*.jsonl")]
    assert (line["interaction_type"], line["output"], len(line["messages"])) == ("agentic", None, 10)
    judged = [line["messages"][one["turn_idx"]]["content"] for one in line["answer_attribution"]]
    assert judged == ["Soon.", "It was shipped."]

    log_module = pytest.importorskip("inspect_ai.log", reason="the extra `inspect` is not installed")
    said("export", "1", "--format", "inspect", "-o", "log.eval", "--with-text=all")
    (sample,) = log_module.read_eval_log("log.eval").samples
    _, scripted, _, calling, *answers = sample.messages[:7]
    assert (sample.input, sample.output.completion) == (sample.messages[:1], "Soon.")
    assert (scripted.source, scripted.model, calling.model) == ("input", None, "test/good")
    found = [(call.arguments, call.parse_error) for call in calling.tool_calls]
    assert found == [({"id": "1001"}, None), ({}, "{no"), ({"to": ["\ufffd\\x1b"]}, None)]
    assert [one.tool_call_id for one in answers] == [call.id for call in calling.tool_calls]
    assert [one.error and one.error.type for one in answers] == [None, "parsing", "unknown"]


def test_every_report_shows_the_place_of_a_text_that_must_not_occur(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{'The ferry leaves at ten. ' * 30}Bring no DOGS, please. {'It is small. ' * 30}"
    provider.reply = lambda _: text
    unwanted = "{type: not_contains, expected: DOGS}"
    rules = {
        "P1-B1-S1": f"evaluation: {{each: {unwanted}}}",
        "P1-B1-S2": f"evaluation: {{type: all, of: [{unwanted}]}}",
        "P1-B1-S3": "evaluation: {type: regex, pattern: 'D[OU]GS', polarity: by_severity}",
    }
    parts = {"PT1": Part("When does it leave?", -3)}
    trees = {code: Tree((rule,), None, parts, {}) for code, rule in rules.items()}
    write_tree(pytester.path / "benchmark", trees)
    result = run_tree(
        pytester,
        "--junit-xml=x.xml",
        "--helmbench-with-text=failures",
        "--helmbench-html=page.html",
        "--helmbench-markdown=report.md",
        url=provider.url,
    )
    result.assert_outcomes(failed=3)
    shown = {
        "terminal": result.stdout.str().replace("»", "").replace("«", ""),
        "list": captured(capsys, "show", "1", "--failed")[1],
        **{code: captured(capsys, "show", "1", f"{code}-PT1")[1].partition("\nreply")[0] for code in rules},
        **{name: (pytester.path / name).read_text() for name in ("x.xml", "page.html", "report.md")},
    }
    counts = {name: text.count("Bring no DOGS, please") for name, text in shown.items()}
    assert all(counts.values()), counts
    assert min(counts[name] for name in ("terminal", "x.xml", "report.md")) >= 3, counts
