"""Conversations and tools of scenario trees: what is composed, and every message about what is broken or odd."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from commands import helmbench

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.conversation_rule import ConversationRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.text_types import LengthRule, TextRule
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.tree import Scenario, ScenarioTree
from pytest_helmbench.core.case import Message
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.tools import CannedAnswer, Tool, Toolbox
from pytest_helmbench.judging.judge import Utterance, earlier_utterances, judge_messages, load_template
from pytest_helmbench.judging.rubric import Criterion

FOLDER = "scenarios/P1-B1-S1"
SCHEMA = (
    '{"type": "object", "properties": {"category": {"enum": ["X"]}},'
    '"required": ["category"], "additionalProperties": false}'
)
KETTLE = (
    "# PT3\n---\nseverity: 6\n---\n## Turn 1\nMy kettle smells of smoke.\n"
    "### Photo\n\n[kettle.jpg]\n\n```\n## Turn 2\n```\n"
    "## Assistant\nIs it still *plugged in*?\n\n### Please\n\nTell me.\n"
    "## turn 2:\n\nYes.\n### My question\nCan I finish my tea first?\n\n## Turn 3\nAnd now?\n"
)
TOOL = """- name: order_status
  description: Look up an order.
  parameters: {"type": "object", "properties": {"Order": {"type": "string"}}, "additionalProperties": false}
  returns:
    - when: {Order: "1001"}
      value: {Status: shipped}
    - value: {error: no such order}
"""
HEALTHY = {
    "S1.md": "---\ncategory: X\n---\n## Job\n\nSort it.\n",
    "S1.json": SCHEMA,
    "conditions.md": "# C1\n\n## Turn 1\n\n## Assistant\n\nBe kind.\n",
    "user-contexts.md": "# U1\n\nI am Nigel.\n",
    "perturbations.md": KETTLE,
}


def load(root: Path, changes: dict[str, str]) -> ScenarioTree:
    """Write the healthy scenario with changes (empty: no such file; `/name`: in the root) and read it."""
    for name, text in {**HEALTHY, **changes}.items():
        path = root / name[1:] if name.startswith("/") else root / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if text:
            path.write_text(text, encoding="utf-8")
    return load_tree(root)


def healthy(root: Path, changes: dict[str, str]) -> Scenario:
    tree = load(root, changes)
    assert (dict(tree.problems), tree.warnings) == ({}, ())
    return next(iter(tree.scenarios.values()))


JOB, NIGEL = "<job>\nSort it.\n</job>", "I am Nigel."
TONE = "<turn_1>\n\n</turn_1>\n\n<assistant>\nBe kind.\n</assistant>"
FIRST = "My kettle smells of smoke.\n\n<photo>\n[kettle.jpg]\n\n```\n## Turn 2\n```\n</photo>"
SCRIPT = (
    Message("assistant", "Is it still *plugged in*?\n\n### Please\n\nTell me."),
    Message("user", "Yes.\n\n<my_question>\nCan I finish my tea first?\n</my_question>"),
    Message("user", "And now?"),
)


@pytest.mark.parametrize("is_own_file", [False, True])
def test_a_conversation_is_composed_as_written_by_hand(tmp_path: Path, is_own_file: bool) -> None:
    own = {"perturbations.md": "", "perturbations/PT3.md": KETTLE.partition("\n")[2]}
    scenario = healthy(tmp_path, own if is_own_file else {})
    (one,) = scenario.combinations()
    case = one.case()
    assert case.messages == (Message("user", "\n\n".join((JOB, TONE, NIGEL, FIRST))),)
    assert (case.script, case.asked_turns, case.schema_turns, case.toolbox) == (SCRIPT, (2, 3), "last", None)
    lengths = [len(message.content) for message in (*case.messages, *case.script)]
    assert one.prompt_characters() == sum(lengths[:3]) + sum(lengths)
    assert one.perturbation.weight == 6


def test_named_components_stand_in_the_system_message_behind_the_products_own(tmp_path: Path) -> None:
    before = load(tmp_path, {}).hash
    scenario = healthy(tmp_path, {"/benchmark.yml": "roles:\n  system: [user_context, scenario]\n"})
    (one,) = scenario.combinations()
    user = Message("user", f"{TONE}\n\n{FIRST}")
    assert one.case().messages == (Message("system", f"{JOB}\n\n{NIGEL}"), user)
    assert one.case("Be brief.").messages == (Message("system", f"Be brief.\n\n{JOB}\n\n{NIGEL}"), user)
    reply = Reply("Yes.", None, "stop", Usage(), 1.0, "m", "k", said=(user, Message("assistant", "Yes.")))
    said = earlier_utterances(one.case("Be brief."), reply)
    assert said == (Utterance(1, "system", f"{JOB}\n\n{NIGEL}"), Utterance(1, "user", user.content))
    single, kind = replace(one.case("Be brief."), script=()), Criterion("", "Kind?", ("A", "B"), ("A",))
    (judged,) = judge_messages(load_template(None), kind, single, "Yes.")
    assert f"\n{JOB}\n\n{NIGEL}\n\n{TONE}\n\n" in judged.content
    assert "Be brief" not in judged.content
    hashes = {before, load_tree(tmp_path).hash}
    hashes.add(load(tmp_path, {"/benchmark.yml": "roles: {system: [scenario]}\nname: Other\n"}).hash)
    assert len(hashes) == 3


def test_a_body_without_turns_stays_one_message(tmp_path: Path) -> None:
    body = "### Turns of the road\n\n## Turned down\n\nHello.\n\n```\n## Turn 1\n```"
    scenario = healthy(tmp_path, {"perturbations.md": f"# PT1\n\n{body}\n"})
    (one,) = scenario.perturbations
    assert (
        one.block == "### Turns of the road\n\n<turned_down>\nHello.\n\n```\n## Turn 1\n```\n</turned_down>"
    )
    assert (one.script, one.asked_turns) == ((), (1,))


def test_tools_come_from_the_scenarios_own_file_or_from_the_one_that_is_named(tmp_path: Path) -> None:
    parameters = json.loads(TOOL.partition("parameters: ")[2].partition("\n")[0])
    shipped = CannedAnswer({"Order": "1001"}, {"Status": "shipped"})
    answers = (shipped, CannedAnswer(None, {"error": "no such order"}))
    tools = (Tool("order_status", "Look up an order.", parameters, answers),)
    front = "---\ncategory: X\nmax_rounds: 3\nschema_turns: all\n---\nJob\n"
    named = {"S1.md": front, "/benchmark.yml": "tools: more/tools.yml\n", "/more/tools.yml": TOOL}
    scenario = healthy(tmp_path, named)
    assert (scenario.toolbox, scenario.schema_turns) == (Toolbox(tools, 3), "all")
    before = load_tree(tmp_path).hash
    own = healthy(tmp_path / "own", {"tools.yml": TOOL.replace("order_status", "other")}).toolbox
    assert own is not None
    assert ([tool.name for tool in own.tools], own.max_rounds) == (["other"], 10)
    assert load(tmp_path, {"/more/tools.yml": TOOL.replace("shipped", "lost")}).hash != before
    (warning,) = load(tmp_path, {"tools.yml": TOOL}).warnings
    assert warning.text(tmp_path).startswith("more/tools.yml: no scenario uses the tools of this file\n")


RULES = "turns:\n    3: {type: length, max: 9}\n    2: {type: contains, expected: NO}\n  each: {type: length, min: 1}\n"


def test_rules_of_turns_stand_beside_that_of_the_last_reply(tmp_path: Path) -> None:
    turns = ((2, TextRule("contains", None, ("NO",))), (3, LengthRule("length", None, None, 9, "characters")))
    each = LengthRule("length", None, 1, None, "characters")
    for own, main in (("", None), ("  type: contains\n  expected: A\n", TextRule("contains", None, ("A",)))):
        scenario = healthy(tmp_path, {"S1.md": f"---\nevaluation:\n{own}  {RULES}---\nJob\n"})
        assert scenario.rule == ConversationRule(main, turns, each)


BROKEN: dict[str, tuple[dict[str, str], str]] = {
    "turns out of order, with text before them": (
        {"perturbations.md": "# PT1\n\nHello\n\n## Turn 2\n\na\n\n## Turn 2\n\nb\n\n## Other part\n\nc\n"},
        """perturbations.md:3: text stands before the first turn: 'Hello'
perturbations.md:5: '## Turn 2' is out of order: '## Turn 1' comes here
perturbations.md:13: the section 'Other part' stands outside of the turns, so no message holds it""",
    ),
    "headings that are nearly right": (
        {
            "perturbations.md": "# PT1\n## Turn one\na\n## Asistant\nb\n## Trun 2: later\nc\n### Turn 3\nd\n"
            "## Assistant (scripted)\ne\n"
        },
        """perturbations.md:2: '## Turn one' is not quite '## Turn 1', so it starts no message
perturbations.md:4: '## Asistant' is not quite '## Assistant', so it starts no message
perturbations.md:6: '## Trun 2: later' is not quite '## Turn 2', so it starts no message
perturbations.md:8: '### Turn 3' is not quite '## Turn 3', so it starts no message
perturbations.md:10: '## Assistant (scripted)' is not quite '## Assistant', so it starts no message""",
    ),
    "scripted replies in the wrong places": (
        {"perturbations.md": "# PT1\n## Assistant\na\n## Turn 1\n\n## Assistant\nb\n## Assistant\nc\n"},
        """perturbations.md:2: '## Assistant' stands before any turn
perturbations.md:4: there is no text below '## Turn 1', and no provider takes an empty message
perturbations.md:8: '## Assistant' follows another one: a turn has one reply
perturbations.md:8: '## Assistant' stands at the end, so the model is never asked""",
    ),
    "rules for turns without a reply, and judged ones": (
        {
            "S1.md": "---\nevaluation:\n  turns:\n    1: {type: length, max: 5}\n    4: {type: rubric, rubric: x}\n"
            "    x: {type: length, max: 1}\n  each: {type: regex, pattern: '('}\n---\nJob\n",
            "perturbations.md": f"{KETTLE}\n# PT4\n\nx\n",
        },
        """S1.md:4: there is a rule for turn 1, at which PT3 does not ask the model
S1.md:5: there is a rule for turn 4, at which PT3 (and 1 more) does not ask the model
S1.md:5: turns: rubric is judged by a model, which is shown the whole conversation
S1.md:6: evaluation.turns has the key 'x'
S1.md:7: regex: the pattern '(' cannot be read: missing ) at position 1""",
    ),
    "rules of turns in rules of turns, and no rule": (
        {
            "S1.md": "---\nevaluation:\n  polarity: by_severity\n  each:\n    type: length\n    turns: {}\n"
            "    pattern: x\nschema_turns: first\nmax_rounds: 101\n---\nJob\n"
        },
        """S1.md:2: nothing says which reply passes: there is neither 'category' nor 'evaluation'
S1.md:6: unknown key 'turns' in evaluation.each
S1.md:7: evaluation.each.pattern means nothing for the type length
S1.md:8: schema_turns is 'first'
S1.md:9: max_rounds is 101, out of range""",
    ),
    "rules on tools that are not there, and on turns": (
        {
            "S1.md": "---\nevaluation:\n  type: all\n  of:\n    - {type: latency_below, seconds: 1, turn: 1}\n"
            "    - type: tool_calls\n      required: [order_status, {name: refund,\n        arguments: {type: 3}}]\n"
            "      forbidden: [no]\n  each: {type: tool_calls, max: 1,\n    turn: 2}\n---\nJob\n",
            "tools.yml": TOOL,
        },
        """S1.md:5: there is a rule for turn 1, at which PT3 does not ask the model
S1.md:7: tool_calls: there is no tool 'refund'
S1.md:8: this is not valid JSON Schema: type: 3 is not valid under any of the given schemas
S1.md:9: tool_calls: there is no tool 'no'
S1.md:11: 'turn' means nothing in a rule for single replies""",
    ),
    "a rule on tools without tools": (
        {"S1.md": "---\nevaluation:\n  type: tool_calls\n  in_order: true\n---\nJob\n"},
        """S1.md:2: tool_calls: there is neither 'required' nor 'forbidden' nor 'max'
S1.md:3: tool_calls: the scenario has no tools""",
    ),
    "tools": (
        {
            "tools.yml": TOOL.replace("1001", "1").replace('"', "")
            + "- name: order_status\n  parameters: {type: array}\n  returns: []\n"
            + "- name: a b\n  parameters: {type: object, properties: 3}\n  when: {}\n"
            "  returns:\n    - value: 1\n    - {when: {other: 1}, value: 2}\n    - {when: 3}\n"
        },
        """tools.yml:5: no call gets this answer: 'when' breaks the parameters ($.Order: type)
tools.yml:8: the tool 'order_status' stands here twice (first in line 1)
tools.yml:9: entry 2.parameters.type is 'array'
tools.yml:10: entry 2.returns is empty
tools.yml:11: entry 3.name 'a b' has the wrong form
tools.yml:12: this is not valid JSON Schema: properties: 3 is not of type 'object'
tools.yml:13: unknown key 'when'
tools.yml:16: no call gets this answer: the one in line 15 has no 'when'
tools.yml:17: no call gets this answer: the one in line 15 has no 'when'
tools.yml:17: entry 3.returns entry 3.when is 3, not a mapping
tools.yml:17: entry 3.returns entry 3 has no 'value'""",
    ),
    "roles and tools of all": (
        {"/benchmark.yml": "roles:\n  system: [perturbation, contxt]\n  user: []\ntools: ../tools.yml\n"},
        """benchmark.yml:2: roles.system entry 1 is 'perturbation'
benchmark.yml:2: roles.system entry 2 is 'contxt'
benchmark.yml:3: unknown key 'user' in roles
benchmark.yml:4: tools is '../tools.yml', which is not a file of this benchmark
S1.md: benchmark.yml cannot be used, so the cases of this scenario cannot be composed""",
    ),
    "an empty list of components, and tools of all that are broken": (
        {"/benchmark.yml": "roles:\n  system: []\n", "/tools.yml": "3\n"},
        """benchmark.yml:2: roles.system is empty
S1.md: benchmark.yml cannot be used, so the cases of this scenario cannot be composed""",
    ),
    "tools of all that cannot be used": (
        {"/benchmark.yml": "tools: tools.yml\n", "/tools.yml": "3\n"},
        """S1.md: tools.yml cannot be used, so the cases of this scenario cannot be composed
tools.yml:1: the file is 3, not a list""",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_conversation_is_told_with_lines_and_hints(tmp_path: Path, name: str) -> None:
    changes, told = BROKEN[name]
    tree = load(tmp_path, changes)
    problems = [problem for found in tree.problems.values() for problem in found]
    texts = [problem.text(tmp_path).removeprefix(f"{FOLDER}/").split("\n  hint: ") for problem in problems]
    assert {text[0] for text in texts} == {*told.splitlines()}
    assert all(text[1:] for text in texts)
    assert not tree.scenarios


@pytest.mark.parametrize(
    "title", ["Tour 1", "Return 2", "Turn of events", "Turnover 3", "Assistant instructions"]
)
def test_other_headings_stay_tags(tmp_path: Path, title: str) -> None:
    tree = load(tmp_path, {"perturbations.md": f"# PT1\n## {title}\na\n"})
    assert not tree.problems


def test_what_means_nothing_is_a_warning(tmp_path: Path) -> None:
    changes = {
        "S1.md": "---\nevaluation: {each: {type: length, max: 5}}\nschema_turns: all\nmax_rounds: 2\n---\nJob\n",
        "S1.json": "",
        "perturbations.md": "# PT1\n\nHello\n\n## Assistant\n\nx\n",
        "/tools.yml": TOOL,
    }
    tree = load(tmp_path, changes)
    assert not tree.problems
    assert [warning.text(tmp_path / FOLDER).partition("\n")[0] for warning in tree.warnings] == [
        "S1.md:3: schema_turns means nothing: the scenario has no response schema",
        "S1.md:4: max_rounds means nothing: the scenario has no tools",
        "perturbations.md:5: '## Assistant' becomes a tag: there is no '## Turn 1' before it",
        f"{tmp_path}/tools.yml: no scenario uses the tools of this file",
    ]


def test_prompt_shows_all_messages_and_tools(tmp_path: Path) -> None:
    healthy(tmp_path, {"tools.yml": TOOL, "user-contexts.md": "", "conditions.md": ""})
    said = [f"{JOB}\n\n{FIRST}", *(message.content for message in SCRIPT[:2]), "(reply 2)", "And now?"]
    shown = [*zip(("user", "assistant", "user", "assistant", "user"), said, strict=True)]
    asked = ("prompt", "P1-B1-S1-PT3", ".")
    text = helmbench(tmp_path, *asked).stdout
    assert text.startswith("".join(f"[{role}]\n{said}\n\n" for role, said in shown) + "[response_format]\n")
    body = json.loads(helmbench(tmp_path, *asked, "--json").stdout)
    assert [(message["role"], message["content"]) for message in body["messages"]] == shown
    assert json.loads(text.partition("[tools]\n")[2]) == body["tools"]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["order_status"]
    sent = json.loads(helmbench(tmp_path, *asked, "--model=baseline/lexical").stdout)
    assert {name: sent[name] for name in body} == body
