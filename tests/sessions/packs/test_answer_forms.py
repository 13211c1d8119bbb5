"""Answers in a form that rows ask for: what is sent, what is read, what the record keeps apart."""

from __future__ import annotations

import pytest
from packed import answer_rows, asked_rows, choice, free, short
from packs import write_pack
from provider import Provider
from trees import clear_environment, rows, run_tree

_OUTCOMES = """
    SELECT code, outcome, reason FROM results
    WHERE run_id = (SELECT max(id) FROM evaluation_runs) ORDER BY code
"""
_HASHES = (
    "SELECT DISTINCT rule_hash FROM evaluations JOIN results ON results.id = result_id WHERE code = 'b-short'"
)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def test_a_fixed_form_is_asked_for_and_read_exactly(pytester: pytest.Pytester, provider: Provider) -> None:
    made = [
        choice("a-choice"),
        short("b-short"),
        free("c-free"),
        short("d-short"),
        short("e-text", answer_form="text"),
    ]
    write_pack(pytester.path / "benchmark", made, "id: quiz\nversion: 1\nanswer_form: line\n")
    answer_rows(
        provider,
        {
            "a-choice": "It is not C.\n\n**ANSWER: B**",
            "b-short": "Spiders are no insects, which have 6 legs.\nANSWER: 8",
            "c-free": "They come from California.",
            "d-short": "The answer is 8.",
            "e-text": "The answer is 8.",
        },
    )
    run_tree(pytester, url=provider.url).assert_outcomes(passed=4, failed=1)
    prompts = [request.prompt for request in provider.requests]
    assert ["ANSWER: " in prompt for prompt in prompts] == [True, True, False, True, False]
    assert not any("Answer: …" in prompt for prompt in prompts if "ANSWER: " in prompt)
    database = pytester.path / "helmbench.db"
    assert rows(database, _OUTCOMES) == [
        ("a-choice", "passed", None),
        ("b-short", "passed", None),
        ("c-free", "passed", None),
        ("d-short", "failed", "no_answer_line"),
        ("e-text", "passed", None),
    ]

    asked_rows(provider)
    answer_rows(
        provider,
        {
            "a-choice": '{"answer": "B"}',
            "b-short": 'Eight.\n```json\n{"answer": 8}\n```',
            "c-free": "They come from California.",
            "d-short": "8",
            "e-text": '{"answer": "no idea, 8 or 10"}',
        },
    )
    result = run_tree(pytester, "--helmbench-answer-form=json", "--helmbench-cache=reuse", url=provider.url)
    result.assert_outcomes(passed=3, failed=2)
    schemas = {request.prompt.rpartition("(item ")[2][0]: request.schema for request in provider.requests}
    assert set(schemas) == {"a", "b", "d", "e"}  # of the others the reply to another form is no answer
    assert schemas["a"] is not None
    assert schemas["a"]["properties"]["answer"]["enum"] == ["A", "B", "C"]
    assert schemas["b"] is not None
    assert schemas["b"]["properties"]["answer"] == {"type": "string"}
    assert rows(database, _OUTCOMES)[-2:] == [
        ("d-short", "failed", "schema_violation"),
        ("e-text", "failed", "several"),
    ]
    assert rows(database, "SELECT json_extract(settings, '$.answer_form') FROM evaluation_runs") == [
        (None,),
        ("json",),
    ]
    assert len(rows(database, _HASHES)) == 2


def test_a_form_that_is_not_known_is_a_problem_of_the_pack(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_pack(pytester.path / "benchmark", [short("a", answer_form="xml")], "id: quiz\nversion: 1\n")
    result = run_tree(pytester, url=provider.url)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*tasks.jsonl:1: answer_form: this is no form of an answer*", "*one of text, line, json*"]
    )
