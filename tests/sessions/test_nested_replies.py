"""JSON that Python can just decode, wherever a reply holds it: a wrong answer, never an error of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from packs import row, write_pack
from provider import Answer, Provider, Request
from trees import Part, Tree, clear_environment, run_tree, write_tree

_DEEP = "[" * 900 + "7" + "]" * 900
_DEEP_MAPPING = '{"n":' * 900 + "7" + "}" * 900
_TEXTS: Mapping[str, str] = {
    "list": f'{{"shade":{_DEEP}}}',
    "mapping": f'{{"shade":{_DEEP_MAPPING}}}',
    "fence": f'Here:\n```json\n{{"shade":{_DEEP}}}\n```',
    "alone": _DEEP,
}
_RULES: Mapping[str, str] = {  # contributors of an evaluation type add one of it
    "category_match": "{type: category_match, field: shade, expected: teal}",
    "contains": "{type: contains, expected: teal}",
    "not_contains": "{type: not_contains, expected: '7'}",
    "equals": "{type: equals, expected: teal}",
    "regex": "{type: regex, pattern: te+al}",
    "json_path": "{type: json_path, path: $.shade, expected: teal}",
    "json_path of all": "{type: json_path, path: '$.*'}",
    "length": "{type: length, max: 5}",
    "all": "{type: all, of: [{type: json_path, path: $.shade}, {type: contains, expected: teal}]}",
    "any": "{type: any, of: [{type: json_path, path: $.shade}, {type: contains, expected: teal}]}",
    "python": "{type: python, function: 'checks:knows'}",
    "turns": "{type: contains, expected: teal, each: {type: json_path, path: $.shade}}",
}
_MESSAGES: Mapping[str, str] = {
    "text": f'"content":{json.dumps(_TEXTS["list"])}',
    "field of a server": f'"content":"red","trace":{_DEEP}',
    "thoughts": f'"content":"red","reasoning_details":{_DEEP}',
    "parts": f'"content":[{{"type":"text","text":"red","trace":{_DEEP}}}]',
    "arguments": f'"content":"red","tool_calls":[{{"id":"c1","function":{{"name":"dye",'
    f'"arguments":{_DEEP_MAPPING}}}}}]',
    "text of arguments": '"content":"red","tool_calls":[{"id":"c1","function":{"name":"dye","arguments":'
    + json.dumps(_DEEP_MAPPING)
    + "}}]",
}
_TRUSTED = ("-o", "helmbench_trusted=benchmark")
_TOOL = "- {name: dye, parameters: {type: object}, returns: [{value: done}]}\n"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def _tree(rule: str, says: Mapping[str, str]) -> Tree:
    parts = {f"PT{number}": Part(f"Shape {name}.", 5) for number, name in enumerate(says, 1)}
    schema = {"type": "object"} if "category_match" in rule else None
    return Tree((f"evaluation: {rule}",), schema, parts)


def test_every_evaluation_type_fails_a_reply_that_is_nested_too_deeply(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    trees = {f"P1-B1-S{number}": _tree(rule, _TEXTS) for number, rule in enumerate(_RULES.values(), 1)}
    write_tree(pytester.path / "benchmark", trees)
    (pytester.path / "benchmark" / "checks.py").write_text(
        "def knows(reply):\n    return reply.json is not None\n"
    )
    _answer(provider, {name: f'"content":{json.dumps(text)}' for name, text in _TEXTS.items()})

    result = run_tree(pytester, "-q", *_TRUSTED, url=provider.url)

    result.assert_outcomes(failed=len(_RULES) * len(_TEXTS))


@pytest.mark.parametrize(
    "rule",
    [
        "{type: tool_calls, required: [{name: dye, arguments: {required: [hue]}}]}",
        _RULES["contains"],
        _RULES["python"],
    ],
)
def test_whatever_part_of_a_message_is_nested_too_deeply(
    pytester: pytest.Pytester, provider: Provider, rule: str
) -> None:
    tree = write_tree(pytester.path / "benchmark", {"P1-B1-S1": _tree(rule, _MESSAGES)})
    (tree / "scenarios" / "P1-B1-S1" / "tools.yml").write_text(_TOOL)
    (tree / "checks.py").write_text("def knows(reply):\n    return 'teal' in reply.text\n")
    _answer(provider, _MESSAGES)

    result = run_tree(pytester, "-q", *_TRUSTED, url=provider.url)

    result.assert_outcomes(failed=len(_MESSAGES))


@pytest.mark.parametrize("rules", ["answer-form=json", "answer-form=text", "pack-rules=parity"])
def test_every_family_that_reads_text_fails_it(
    pytester: pytest.Pytester, provider: Provider, rules: str
) -> None:
    families = {"multiple_choice": "question", "short_answer": "question", "free_response": "prompt"}
    says = {name: f'"content":{json.dumps(text.replace("shade", "answer"))}' for name, text in _TEXTS.items()}
    made = [
        row(family, {f"input.{field}": f"Shape {name}."}, f"{family}-{name}")
        for family, field in families.items()
        for name in says
    ]
    write_pack(pytester.path / "benchmark", made)
    _answer(provider, says)

    result = run_tree(pytester, "-q", f"--helmbench-{rules}", url=provider.url)

    judged = len(made) if "parity" in rules else 2 * len(says)  # a free response needs a judge
    result.assert_outcomes(failed=judged, skipped=len(made) - judged)


@pytest.mark.parametrize("answer", [f'{{"said":{json.dumps(_DEEP)}}}', f'{{"said":"red","trace":{_DEEP}}}'])
def test_an_application_that_answers_so_is_judged(
    pytester: pytest.Pytester, provider: Provider, answer: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": _tree(_RULES["contains"], {"any": ""})})
    pytester.makefile(".yml", models=f"- {{id: app, url: {provider.url}/say, response: said}}")
    provider.answers(body=answer.encode())

    result = run_tree(pytester, "-q", "--helmbench-models-file=models.yml", "--helmbench-model=app")

    result.assert_outcomes(failed=1)


def _answer(provider: Provider, says: Mapping[str, str]) -> None:
    def reply(request: Request) -> Answer | None:
        name = request.prompt.rpartition("Shape ")[2].partition(".")[0]
        if any(message.get("role") == "tool" for message in request.body["messages"]):
            return Answer("red")
        body = f'{{"choices":[{{"finish_reason":"stop","message":{{"role":"assistant",{says[name]}}}}}]}}'
        return Answer(body=body.encode())

    provider.reply = reply
