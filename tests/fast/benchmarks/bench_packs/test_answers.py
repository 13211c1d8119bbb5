"""Answers of Bench Packs: how they are read, and every message about a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore, PackStatus
from pytest_helmbench.benchmarks.bench_packs.node.answers import (
    MalformedAnswerError,
    result_of,
    scenarios_of,
    score_of,
)
from pytest_helmbench.core.json_types import JsonValue

RESULT: dict[str, Any] = {"scenarioId": "A", "status": "pass"}


def test_scenarios_keep_their_order_and_all_that_was_said_of_them() -> None:
    listed: Any = [
        {
            "id": "B 2",
            "title": "Second",
            "category": "Words",
            "description": "What it is for.",
            "promptText": "Say it.",
            "tags": ["short", "easy"],
            "detailCards": [{"title": "What this tests", "content": "Saying."}],
            "weight": 3,
        },
        {"id": "A", "title": " ", "category": None, "tags": None},
        {"id": "C"},
    ]
    first, second, third = scenarios_of(listed)
    assert (first.id, first.title, first.category) == ("B 2", "Second", "Words")
    assert (first.description, first.prompt_text, first.tags) == (
        "What it is for.",
        "Say it.",
        ("short", "easy"),
    )
    assert first.cards == (("What this tests", "Saying."),)
    assert first.stated == listed[0]
    assert (second.title, second.category, second.tags, second.cards) == ("A", "", (), ())
    assert third.title == "C"


@pytest.mark.parametrize(
    ("listed", "sentence"),
    [
        (None, "listScenarios() returned null, not a list"),
        ("[circular]", "listScenarios() returned '[circular]', not a list"),
        ([], "listScenarios() returned 0 scenarios, not 1 to 100,000"),
        ([None] * 100_001, "listScenarios() returned 100,001 scenarios, not 1 to 100,000"),
        ([{"id": "A"}, "B"], "scenario 2 is 'B', not an object"),
        ([{"id": " "}], "scenario 1: id is blank text, not a text with something in it"),
        ([{"id": "a\nb"}], "scenario 1: id is 'a\nb', not one line of at most 500 characters"),
        ([{"id": "\ud800"}], "scenario 1: id is '\ufffd', not one line of at most 500 characters"),
        ([{"id": "x" * 501}], f"scenario 1: id is '{'x' * 59}…', not one line of at most 500 characters"),
        ([{"id": "A"}, {"id": "B"}, {"id": "A"}], "scenario 3 has the id of scenario 1: 'A'"),
        (
            [{"id": "A", "title": 1, "category": [], "tags": ["x", 2]}],
            "scenario 1: title is 1, not text; category is a list, not text; tags is a list, not a list of texts",
        ),
    ],
)
def test_what_is_no_list_of_scenarios_is_told(listed: Any, sentence: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        scenarios_of(listed)
    assert str(caught.value) == sentence


def test_a_result_keeps_all_that_was_said() -> None:
    answer = {
        **RESULT,
        "status": "partial",
        "score": 50,
        "points": 1.5,
        "summary": "Half of it.",
        "note": None,
        "rawLog": "…",
        "errorType": "execution_error",
        "verifier": {"pass": False},
        "colour": "green",
    }
    result = result_of(answer, "A")
    assert (result.scenario, result.status) == ("A", PackStatus.PARTIAL)
    assert (result.score, result.points) == (50.0, 1.5)
    assert (result.summary, result.note, result.raw_log) == ("Half of it.", "", "…")
    assert result.stated == answer
    assert result.timings_valid


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (None, "the pack returned nothing (undefined or null)"),
        (True, "the pack returned true, not an object"),
        ({}, "there is no scenarioId; there is no status"),
        ({**RESULT, "scenarioId": "B"}, "scenarioId is 'B', not 'A'"),
        ({**RESULT, "status": "passed"}, "status is 'passed'; it is one of pass, partial, fail"),
        ({**RESULT, "status": None}, "status is null; it is one of pass, partial, fail"),
        ({**RESULT, "score": "NaN"}, "score is 'NaN', not a finite number"),
        ({**RESULT, "score": "12"}, "score is '12', not a finite number"),
        ({**RESULT, "score": True}, "score is true, not a finite number"),
        ({**RESULT, "score": 10**400}, f"score is 1{'0' * 58}…, not a finite number"),
        ({**RESULT, "summary": 3}, "summary is 3, not text"),
        (
            {"scenarioId": "x" * 99, "status": "\x1b[31m", "[cut]": "…"},
            f"scenarioId is '{'x' * 59}…', not 'A'; status is '\\x1b[31m'; it is one of pass, partial, fail"
            " (the answer was too large and was cut)",
        ),
    ],
)
def test_what_is_no_result_is_told(answer: Any, sentence: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        result_of(answer, "A")
    assert str(caught.value) == sentence


def test_a_score_keeps_its_categories_and_its_unit() -> None:
    answer: JsonValue = {
        "totalScore": 73,
        "categories": [
            {"id": "speed", "label": "Speed", "score": 21.5, "weight": 40, "colour": "green"},
            {"id": "words", "score": "NaN"},  # nothing of it was selected: 0 / 0
            {"label": "Only a label", "score": None},
        ],
        "summary": "Good",
        "unit": "tokens/s",
    }
    assert score_of(answer) == PackScore(
        total=73.0,
        categories=(
            {"id": "speed", "label": "Speed", "score": 21.5, "weight": 40, "colour": "green"},
            {"id": "words", "label": "words", "score": None},
            {"id": "Only a label", "label": "Only a label", "score": None},
        ),
        summary="Good",
        unit="tokens/s",
    )
    assert score_of({"totalScore": 0}) == PackScore(total=0.0, categories=())


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (None, "scoreModelResults() returned nothing (undefined or null)"),
        (73, "scoreModelResults() returned 73, not an object"),
        ({"totalScore": None}, "totalScore is null, not a finite number"),
        (
            {"totalScore": "NaN", "categories": {}},
            "totalScore is 'NaN', not a finite number; categories is an object, not a list",
        ),
        (
            {"totalScore": 1, "summary": 2, "unit": 3, "categories": ["x", {"score": 1}]},
            "summary is 2, not text; unit is 3, not text; category 1 is 'x', not an object;"
            " category 2 has neither an id nor a label",
        ),
    ],
)
def test_what_is_no_score_is_told(answer: Any, sentence: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        score_of(answer)
    assert str(caught.value) == sentence
