"""Answers in a form that rows ask for: what is sent, what is read, what the record keeps apart."""

from __future__ import annotations

import json

import pytest
from commands import run_command
from pack_rows import answer_rows, asked_rows, choice, short
from packs import write_pack
from provider import Provider
from trees import rows, run_tree

_OUTCOMES = """
    SELECT code, outcome, reason FROM results
    WHERE run_id = (SELECT max(id) FROM evaluation_runs) ORDER BY code
"""
_HASHES = (
    "SELECT DISTINCT rule_hash FROM evaluations JOIN results ON results.id = result_id WHERE code = 'b-short'"
)


def test_rows_ask_for_a_line_for_json_or_for_nothing(pytester: pytest.Pytester, provider: Provider) -> None:
    made = [choice("a-choice"), short("b-short"), short("c-none"), short("d-text", answer_form="text")]
    write_pack(pytester.path / "benchmark", made)
    answer_rows(
        provider,
        {
            "a-choice": "It is not C.\n\n**Answer: B**",
            "b-short": "Spiders are not insects, which have 6 legs.\nAnswer: 8",
            "c-none": "Let me count. There are eight of them.",
            "d-text": "The answer is 8.",
        },
    )
    result = run_tree(pytester, url=provider.url)
    result.assert_outcomes(passed=3, failed=1)
    prompts = [request.prompt for request in provider.requests]
    assert ["`Answer: " in prompt for prompt in prompts] == [True, True, True, False]
    result.stdout.fnmatch_lines(
        [
            "*the reply states no answer*",
            "test/good: 1 of 4 replies state no answer: counted as wrong; --helmbench-marking-model=ID has them read,"
            " --helmbench-answer-form=json asks more firmly",
        ]
    )
    said = result.stdout.str()
    assert said.count("state no answer: counted") == 1
    assert said.index("95 % interval") < said.index("state no answer: counted"), "beside the score"
    assert "for the form of the reply" not in said, "no fault of form"
    database = pytester.path / "helmbench.db"
    assert rows(database, _OUTCOMES) == [
        ("a-choice", "passed", None),
        ("b-short", "passed", None),
        ("c-none", "failed", "no_answer"),
        ("d-text", "passed", None),
    ]
    judged_by = "SELECT DISTINCT rule FROM evaluations ORDER BY rule"
    assert rows(database, judged_by) == [("multiple_choice (words)",), ("short_answer (words)",)]
    report = json.loads(run_command(pytester, "report", "--format=json").stdout.str())
    assert report["runs"][0]["judging"]["no_answer"] == 1
    for command in (["show"], ["rescore", "last"]):
        run_command(pytester, *command).stdout.fnmatch_lines(["test/good: 1 of 4 replies state no answer:*"])

    asked_rows(provider)
    answer_rows(
        provider,
        {
            "a-choice": '{"reasoning": "A fruit.", "answer": "B"}',
            "b-short": 'Eight.\n```json\n{"answer": 8}\n```',
            "c-none": '{"reasoning": "", "answer": "8 or 10"}',
            "d-text": "No JSON. Answer: 8",
        },
    )
    result = run_tree(pytester, "--helmbench-answer-form=json", "--helmbench-cache=reuse", url=provider.url)
    result.assert_outcomes(passed=3, failed=1)
    schemas = {request.prompt.rpartition("(item ")[2][0]: request.schema for request in provider.requests}
    assert set(schemas) == {"a", "b", "c", "d"}  # the reply to another form is not an answer
    assert schemas["a"] is not None
    assert [*schemas["a"]["properties"]] == ["reasoning", "answer"]
    assert schemas["a"]["properties"]["answer"]["enum"] == ["A", "B", "C"]
    assert schemas["b"] is not None
    assert schemas["b"]["properties"]["answer"] == {"type": "string"}
    assert all('"answer"' not in request.prompt for request in provider.requests), "no example to send back"
    assert len(rows(database, _HASHES)) == 2


def test_published_rules_ask_the_question_alone(pytester: pytest.Pytester, provider: Provider) -> None:
    write_pack(pytester.path / "benchmark", [short("a")])
    answer_rows(provider, {"a": "I count eight."})
    parity = "--helmbench-pack-rules=parity"
    run_tree(pytester, parity, url=provider.url).assert_outcomes(passed=1)
    run_tree(pytester, parity, "--helmbench-answer-form=line", url=provider.url).assert_outcomes(passed=1)
    assert ["Answer: …" in request.prompt for request in provider.requests] == [False, True]


def test_a_form_that_is_not_known_is_a_problem_of_the_pack(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_pack(pytester.path / "benchmark", [short("a", answer_form="xml")], "id: quiz\nversion: 1\n")
    result = run_tree(pytester, url=provider.url)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*tasks.jsonl:1: answer_form is 'xml'*", "*known values: line, json, text*"])
