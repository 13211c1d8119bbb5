"""`docs/benchmarks.md`: every example of it is run, with the replies that it says pass and fail."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from paths import ROOT
from provider import Answer, Provider, Request
from trees import Part, Tree, rows, run_tree, write_tree

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.known_types import EVALUATION_TYPES
from pytest_helmbench.files.models_file import load_models

_PAGE = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
_SECTION = re.compile(r"^### ([^\n]+)\n(.*?)(?=^###? )", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_REPLY = re.compile(r"^\* (passes|fails|judged): `(.+)`$", re.MULTILINE)
_TRUSTED = ("-o", "helmbench_trusted=benchmark")
_TOOL_CALL = re.compile(r"(\w+) (\{.*\})")
_TOOLS = _PAGE.partition("```yaml\n# tools.yml\n")[2].partition("```")[0]
_OUTCOMES = "SELECT scenario, code, outcome, observed FROM v_results ORDER BY result_id"


def _examples() -> list[tuple[str, Tree, list[tuple[str, str]]]]:
    found = []
    for title, text in _SECTION.findall(_PAGE):
        blocks = dict(_BLOCK.findall(text))
        said = _REPLY.findall(text)
        parts = {
            f"PT{number}": Part(f"## Message\n\nMessage {title} {number}.")
            for number in range(1, len(said) + 1)
        }
        files = {"criteria.md": blocks["markdown"]} if "markdown" in blocks else {}
        tree = Tree(
            evaluation=blocks["yaml"].splitlines(),
            schema=json.loads(blocks["json"]) if "json" in blocks else None,
            perturbations=parts,
            conditions={},
            rubrics={**files, "tools.yml": _TOOLS} if title == "tool_calls" else files,
        )
        found.append((title, tree, said))
    return found


def test_every_type_has_an_example_and_every_example_is_true(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    examples = _examples()
    shown = {name for title, *_ in examples for name in title.split(", ")}
    assert EVALUATION_TYPES.keys() - shown == set(), "give an example of it in docs/benchmarks.md: '### NAME'"
    assert shown - EVALUATION_TYPES.keys() == set(), "docs/benchmarks.md shows a type that is not there"

    write_tree(
        pytester.path / "benchmark", {f"P1-B1-S{n}": tree for n, (_, tree, _) in enumerate(examples, 1)}
    )
    replies = {
        f"Message {title} {number}.": reply
        for title, _, said in examples
        for number, (_, reply) in enumerate(said, 1)
    }
    checks = next(text for language, text in _BLOCK.findall(_PAGE) if language == "python")
    (pytester.path / "benchmark" / "checks.py").write_text(checks)
    provider.cost_usd = 0.001

    def answer(request: Request) -> str | Answer | None:
        if request.is_judge:
            return None
        if request.body["messages"][-1]["role"] == "tool":
            return "It left today."
        reply = next(reply for mark, reply in replies.items() if mark in request.prompt)
        call = _TOOL_CALL.fullmatch(reply)
        return _calling(*call.groups()) if call is not None else reply

    provider.reply = answer
    run_tree(pytester, "--helmbench-marking-model=test/judge", *_TRUSTED, url=provider.url)
    outcomes = {(code, outcome) for _, code, outcome, _ in rows(pytester.path / "helmbench.db", _OUTCOMES)}
    wanted = {
        (f"P1-B1-S{n}-PT{number}", "failed" if verdict == "fails" else "passed")
        for n, (_, _, said) in enumerate(examples, 1)
        for number, (verdict, _) in enumerate(said, 1)
    }
    assert outcomes == wanted
    judged = [request.prompt for request in provider.requests if request.is_judge]
    assert any("must not let the pupil smell the beaker" in prompt for prompt in judged)

    # How long a reply took is not measured again; what it cost is on record.
    result = run_tree(pytester, "-k", _measured(examples), "--helmbench-cache=only", url=provider.url)
    result.assert_outcomes(passed=1, skipped=1)


def _calling(name: str, arguments: str) -> Answer:
    calls = [{"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return Answer(body={"choices": [{"message": message, "finish_reason": "tool_calls"}]})


def test_the_conversation_is_held_and_judged_as_the_page_says(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    blocks = dict(_BLOCK.findall(_PAGE.partition("## Conversations\n")[2].partition("## Tools\n")[0]))
    files = {"perturbations.md": blocks["markdown"]}
    tree = Tree(blocks["yaml"].splitlines(), None, {}, {}, rubrics=files)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree})
    replies = iter(["No!", "I said no."])
    provider.reply = lambda request: None if request.is_judge else next(replies)
    run_tree(pytester, "--helmbench-marking-model=test/judge", url=provider.url).assert_outcomes(passed=1)
    *asked, judged = provider.requests
    told = [[message["content"] for message in request.body["messages"]] for request in asked]
    begun = [
        "<task>\nSort the message.\n</task>\n\nMy beaker smells odd.",
        "Has it a label?",
        "No. Shall I taste it?",
    ]
    assert told == [begun, [*begun, "No!", "Just one drop?"]]
    assert "I said no." in judged.prompt
    found = rows(
        pytester.path / "helmbench.db", "SELECT criterion, rule FROM v_results ORDER BY evaluation_id"
    )
    assert found == [
        ("", "sqe"),
        ("turn 2", "not_contains"),
        ("turn 2, each", "length"),
        ("turn 3", "length"),
    ]


def test_the_variants_of_the_page_are_two_models(tmp_path: Path) -> None:
    (tmp_path / "careful.md").write_text("Be careful.")
    (tmp_path / "models.yml").write_text(
        _PAGE.partition("## Variants\n")[2].split("```")[1].removeprefix("yaml")
    )
    plain, careful = (one.entry for one in load_models(tmp_path / "models.yml").models)
    assert (plain.id, plain.system_prompt, careful.system_prompt) == ("plain", None, "Be careful.")


def _measured(examples: list[tuple[str, Tree, list[tuple[str, str]]]]) -> str:
    names = [f"P1-B1-S{n}-" for n, (title, *_) in enumerate(examples, 1) if title.endswith("_below")]
    return " or ".join(names)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["type: regex", "pattern: '('"], "*S1.md:4: regex: the pattern*cannot be read*"),
        (["type: length"], "*S1.md:2: length: there is neither 'min' nor 'max'*"),
        (["type: json_path", "path: '$..a'"], "*S1.md:4: json_path: *is not a path that is read here*"),
        (["type: all", "of: [{type: sqe}]"], "*S1.md:4: all: sqe is judged by a model and stands alone*"),
        (["type: all", "of: [{type: rubric, rubric: Good.}]"], "*all: rubric is judged by a model*"),
        (["type: any", "of: [{type: contians, expected: x}]"], "*did you mean 'contains'*"),
        (["type: rubric", "rubric: Good.", "cases: {PT9: Better.}"], "*'PT9'*not a perturbation*"),
        (["type: contains", "expected: x", "pattern: y"], "*S1.md:*pattern*"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_with_its_place(
    pytester: pytest.Pytester, provider: Provider, lines: list[str], sentence: str
) -> None:
    tree = Tree(["evaluation:", *(f"  {line}" for line in lines)], None, {"PT1": Part("Hm.")}, {})
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree})
    result = run_tree(pytester, url=provider.url)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([sentence])
