"""Replies by which a row proves itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from paths import ROOT
from text_rows import evaluate_answer, render, self_check_replies

_CHOICES = {"question": "Which city is the capital of Australia?", "choices": ["Sydney", "Canberra"]}
_SHORT = {"question": "What is the capital of France?", "context": "Its capital is Paris, on the Seine."}


def violations(family: str, given: Any, wanted: Any, *, parity: bool = False, prompt: str = "") -> list[str]:
    return [
        label
        for label, reply, must_pass in self_check_replies(family, given, wanted, prompt)
        if evaluate_answer(family, given, wanted, reply, parity=parity).passed is not must_pass
    ]


def test_the_replies_of_a_multiple_choice_row() -> None:
    assert [*self_check_replies("multiple_choice", _CHOICES, {"answer": "Canberra"}, "The prompt.")] == [
        ("the letter of the answer", "B", True),
        ("the letter of the answer, behind `Answer:`", "Answer: B", True),
        ("the text of the answer", "Canberra", True),
        ("the text of the answer, behind `Answer:`", "Answer: Canberra", True),
        ("the letter of another choice", "A", False),
        (
            "the question and its choices",
            "Which city is the capital of Australia?\n\nA) Sydney\nB) Canberra",
            False,
        ),
        ("a list of all choices", "A) Sydney\nB) Canberra", False),
        ("a list of all letters", "A, B", False),
        ("the whole prompt", "The prompt.", False),
        ("an empty reply", "", False),
        ("'I do not know'", "I do not know", False),
    ]


def test_the_replies_of_a_short_answer_row() -> None:
    assert [*self_check_replies("short_answer", _SHORT, {"accepted_answers": ["Paris", 7]})] == [
        ("accepted answer 1", "Paris", True),
        ("accepted answer 1, behind `Answer:`", "Answer: Paris", True),
        ("accepted answer 2", "7", True),
        ("accepted answer 2, behind `Answer:`", "Answer: 7", True),
        ("the question", "What is the capital of France?", False),
        ("the context", "Its capital is Paris, on the Seine.", False),
        ("an empty reply", "", False),
        ("'I do not know'", "I do not know", False),
    ]


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize(
    ("family", "given", "wanted", "labels"),
    [
        ("multiple_choice", _CHOICES, {"answer": [0, 1]}, []),
        ("multiple_choice", {"question": "?", "choices": ["B", "A"]}, {"answer": "A"}, []),
        ("multiple_choice", {"question": "?", "choices": ["x", "x"]}, {"answer": "A"}, []),
        ("short_answer", {"question": "?"}, {"accepted_answers": ["I do not know"]}, ["'I do not know'"]),
        (
            "short_answer",
            {"question": "?", "context": "Paris"},
            {"accepted_answers": ["Paris"]},
            ["the context"],
        ),
        (
            "free_response",
            {"prompt": "Why?"},
            {"rubric": {"accepted_answers": ["red"], "rejected_answers": ["Red."]}},
            ["rejected answer 1"],
        ),
        (
            "free_response",
            {"prompt": "Why?"},
            {"rubric": {"accepted_answers": ["because"]}, "reference_answer": "For no reason"},
            ["the reference answer"],
        ),
    ],
)
def test_rows_that_contradict_themselves_are_found(
    family: str, given: Any, wanted: Any, labels: list[str], *, parity: bool
) -> None:
    found = violations(family, given, wanted, parity=parity)
    if parity:  # the published rules let a dump and a spray through, and a rejected entry always fails
        assert set(labels) - {"the context", "rejected answer 1"} <= set(found)
    else:
        assert found == labels


@pytest.mark.parametrize(
    ("pack", "family"),
    [
        ("basic-science", "multiple_choice"),
        ("school-numbers", "short_answer"),
        ("study-help", "free_response"),
    ],
)
def test_the_packs_of_the_demo_are_sound(pack: str, family: str) -> None:
    tasks = ROOT / "benchmark" / "packs" / pack / "tasks.jsonl"
    for line in tasks.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        parity = family == "free_response"  # only the published rule decides by words
        prompt = render(family, row["input"])
        assert violations(family, row["input"], row["eval"], prompt=prompt, parity=parity) == []
