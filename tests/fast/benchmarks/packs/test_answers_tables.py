"""Replies as models write them: the default rule says what a person says, the parity rule what was published."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import yaml
from paths import DATA
from text_rows import evaluate_answer

from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, Sureness
from pytest_helmbench.benchmarks.packs.task import ConfigError

_DATA = DATA
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a second less, for every worker that collects
_FAMILIES = ("multiple_choice", "short_answer", "free_response")
_GOLDENS = json.loads((_DATA / "pack-scoring.json").read_text(encoding="utf-8"))["scoring"]


def groups(family: str) -> list[dict[str, Any]]:
    """Return the questions of a family's table, each with `input`, `eval` and its replies."""
    text = (_DATA / "answers" / f"{family}.yaml").read_text("utf-8")
    loaded: list[dict[str, Any]] = yaml.load(text, _Loader)
    return loaded


def questions() -> Iterator[Any]:
    for family in _FAMILIES:
        for number, group in enumerate(groups(family), 1):
            yield pytest.param(family, group, id=f"{family}-{number}")


@pytest.mark.parametrize(("family", "group"), [*questions()])
def test_both_rules_give_the_verdicts_of_the_table(family: str, group: dict[str, Any]) -> None:
    wrong = []
    for person, published, reply in group["replies"]:
        for parity, expected in ((False, person), (True, published)):
            finding = evaluate_answer(family, group["input"], group["eval"], reply, parity=parity)
            if finding.passed is not expected:
                wrong.append((reply, "parity" if parity else "default", finding))
    assert not wrong


# Replies that no rule of ours reads as a person does: what the number counts stands in other words.
_MISREAD = {
    "71% is land",
    "I'd need to see the recipe to say; 250 pages could hold it.",
    "3,000 more than last year's 12,500",
    "Mostly nitrogen, with oxygen second.",
}


def test_habits_of_models_are_read_as_a_person_reads_them() -> None:
    rows = [(group, *row) for group in groups("short_answer_habits") for row in group["replies"]]
    wrong = {
        reply
        for group, person, reply in rows
        if evaluate_answer("short_answer", group["input"], group["eval"], reply, parity=False).passed
        is not person
    }
    assert len(rows) > 450
    assert wrong == _MISREAD


@pytest.mark.parametrize(
    ("table", "replies", "certain", "misjudged", "sure"),
    [
        ("free_response_habits", 66, 16, 2, 2),
        ("free_response_unseen", 104, 34, 7, 5),
        ("free_response_unseen_2", 27, 5, 2, 2),
        ("free_response_unseen_3", 191, 0, 10, 0),
        ("free_response_unseen_4", 66, 0, 0, 0),
        ("free_response_unseen_5", 66, 0, 4, 0),
        ("free_response_unseen_6", 66, 0, 4, 1),
        ("free_response_unseen_7", 126, 0, 17, 2),
        ("free_response_unseen_8", 66, 0, 5, 4),
        ("free_response_unseen_9", 66, 0, 1, 0),
        ("free_response_unseen_10", 66, 0, 6, 1),
    ],
)
def test_what_words_alone_say_for_certain_about_free_answers_is_right(
    table: str, replies: int, certain: int, misjudged: int, sure: int
) -> None:
    """All else a marking model reads, where there is one: see tests/sessions/packs/test_read_replies.py."""
    rows = [(group, *row) for group in groups(table) for row in group["replies"]]
    found = [
        (person, evaluate_answer("free_response", group["input"], group["eval"], reply, parity=False))
        for group, person, reply in rows
    ]
    assert len(found) >= replies
    assert [finding for person, finding in found if finding.certain and finding.passed is not person] == []
    assert sum(finding.certain for _, finding in found) >= certain
    _assert_misjudged(found, misjudged, sure)


# Misjudged by words alone, of the replies that a person can tell; before the rules had seen them 53, 42, 10, 52,
# 13, 26, 39, 11, 9, 10, 13, 42, 10, 40, 26, 9 and 8.
@pytest.mark.parametrize(
    ("table", "replies", "misjudged", "sure"),
    [
        ("short_answer_unseen", 289, 3, 1),
        ("short_answer_unseen_2", 185, 5, 3),
        ("short_answer_unseen_3", 93, 0, 0),
        ("short_answer_unseen_4", 294, 4, 4),
        ("short_answer_unseen_5", 78, 4, 1),
        ("short_answer_unseen_6", 192, 0, 0),
        ("short_answer_unseen_7", 192, 11, 6),
        ("short_answer_unseen_8", 189, 0, 0),
        ("short_answer_unseen_9", 189, 0, 0),
        ("short_answer_unseen_10", 189, 2, 2),
        ("short_answer_unseen_11", 189, 4, 0),
        ("short_answer_unseen_12", 421, 15, 7),
        ("short_answer_unseen_13", 200, 0, 0),
        ("short_answer_unseen_14", 200, 7, 4),
        ("short_answer_unseen_15", 200, 15, 4),
        ("short_answer_unseen_16", 190, 5, 1),
        ("short_answer_unseen_17", 190, 3, 0),
        ("short_answer_invented", 933, 26, 99),
    ],
)
def test_no_verdict_on_a_short_answer_is_certain_and_wrong(
    table: str, replies: int, misjudged: int, sure: int
) -> None:
    """What words do not say for certain a marking model reads, where there is one."""
    found = [
        (reply, person, evaluate_answer("short_answer", group["input"], group["eval"], reply, parity=False))
        for group in groups(table)
        for person, reply in group["replies"]
    ]
    assert [
        reply for reply, person, finding in found if finding.certain and finding.passed is not person
    ] == []
    told = [(person, finding) for _, person, finding in found if person is not None]
    assert len(told) == replies
    assert sum(finding.certain for _, finding in told) >= replies // 25
    _assert_misjudged(told, misjudged, sure)
    assert sum(finding.sureness is Sureness.UNSURE for _, finding in told) <= 0.32 * replies


def _assert_misjudged(told: Sequence[tuple[bool, AnswerFinding]], misjudged: int, sure: int) -> None:
    """Hold verdicts to what a person says: at most so many are wrong, and so many of those not said to be unsure."""
    wrong = [finding for person, finding in told if finding.passed is not person]
    assert len(wrong) <= misjudged
    assert sum(finding.sureness is not Sureness.UNSURE for finding in wrong) <= sure


@pytest.mark.parametrize("family", _FAMILIES)
def test_tables_are_large_and_repeat_nothing(family: str) -> None:
    rows = [
        (json.dumps(group["input"]), reply) for group in groups(family) for _, _, reply in group["replies"]
    ]
    assert len(rows) >= 300
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("row", _GOLDENS, ids=[f"{row['family']}: {row['note']}" for row in _GOLDENS])
def test_the_parity_rule_gives_the_published_verdict(row: dict[str, Any]) -> None:
    if row["upstream"] == "ConfigError":
        with pytest.raises(ConfigError):
            evaluate_answer(row["family"], row["input"], row["eval"], row["candidate"], parity=True)
        return
    finding = evaluate_answer(row["family"], row["input"], row["eval"], row["candidate"], parity=True)
    shapes: dict[str, Any] = {
        "multiple_choice": finding.passed,
        "short_answer": [finding.passed, finding.matched, finding.strategy],
        "free_response": [
            finding.passed,
            finding.matched,
            finding.rejected,
            round(finding.accepted_f1 or 0.0, 6),
            round(finding.rejected_f1 or 0.0, 6),
        ],
    }
    assert shapes[row["family"]] == row["upstream"]
