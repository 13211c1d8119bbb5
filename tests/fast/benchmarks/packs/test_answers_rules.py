"""The text rules beyond their verdicts: what findings carry, what is wrong with a row, what parity means in detail."""

from __future__ import annotations

from typing import Any

import pytest
from text_rows import evaluate_answer

from pytest_helmbench.benchmarks.packs.families.registry import FAMILY_NAMES, family_named
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, Sureness
from pytest_helmbench.benchmarks.packs.families.text.text_family import TextFamily
from pytest_helmbench.benchmarks.packs.task import ConfigError

_CITIES: dict[str, Any] = {
    "question": "Which city is the capital of Australia?",
    "choices": ["Sydney", "Canberra", "Perth"],
}


def choice(reply: str, answer: Any = "B", *, parity: bool = False, **given: Any) -> AnswerFinding:
    return evaluate_answer("multiple_choice", {**_CITIES, **given}, {"answer": answer}, reply, parity=parity)


def short(reply: str, *accepted: Any, parity: bool = False, **wanted: Any) -> AnswerFinding:
    given = {"question": "Which one?", "context": wanted.pop("context", None)}
    return evaluate_answer(
        "short_answer", given, {"accepted_answers": [*accepted], **wanted}, reply, parity=parity
    )


def free(reply: str, *, parity: bool = False, **rubric: Any) -> AnswerFinding:
    return evaluate_answer("free_response", {"prompt": "Why?"}, {"rubric": rubric}, reply, parity=parity)


@pytest.mark.parametrize(
    ("reply", "strategy", "matched", "statement", "reason"),
    [
        ("B", "label", 1, "B", None),
        ("Hm.\n\nThe answer is **B**.\n\nBye!", "cue", 1, "The answer is B.", None),
        ("\\boxed{A}", "marked", 0, "A", None),
        ("Canberra", "choice_text", 1, "Canberra", None),
        ("I'd go with Perth.", "choice", 2, "I'd go with Perth.", None),
        ("It was built for that, so B.", "conclusion", 1, "It was built for that, so B.", None),
        ("It could be B.", "guess", 1, "It could be B.", None),
        ("I am sure that B is correct.", "verdict", 1, "I am sure that B is correct.", None),
        ("Surely Canberra, I think", "mention", 1, "Surely Canberra, I think", None),
        ("A or B", "line", None, "A or B", "several"),
        ("Answer: Berlin", "cue", None, "Answer: Berlin", None),
        ("No idea.", None, None, "No idea.", "no_statement"),
        (" \n", None, None, "", "empty"),
        ("<think>B", None, None, "", "no_statement"),
    ],
)
def test_a_choice_is_reported_with_the_words_it_rests_on(
    reply: str, strategy: str | None, matched: int | None, statement: str, reason: str | None
) -> None:
    assert choice(reply) == AnswerFinding(
        passed=matched == 1, strategy=strategy, matched=matched, statement=statement, reason=reason
    )


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (short("42.0", 7, 42), AnswerFinding(True, "numeric_exact", 1, statement="42.0")),
        (
            short("It is 42.4 km", 42, tolerance=0.5),
            AnswerFinding(True, "numeric_tolerance", 0, statement="It is 42.4 km"),
        ),
        (
            short("the blue one", "Blue one"),
            AnswerFinding(True, "normalized_exact", 0, statement="the blue one"),
        ),
        (
            short("It is the blue one.", "blue"),
            AnswerFinding(True, "answer_span", 0, statement="It is the blue one.", sureness=Sureness.GUESSED),
        ),
        (
            short("blue or red", "blue"),
            AnswerFinding(False, statement="blue or red", reason="several", sureness=Sureness.UNSURE),
        ),
        (
            short("Which one?", "one"),
            AnswerFinding(False, statement="Which one?", reason="echo", sureness=Sureness.GUESSED),
        ),
        (short("", "one"), AnswerFinding(False, reason="empty")),
        (short("<think>one", "one"), AnswerFinding(False, reason="empty")),
        (short("***", "one"), AnswerFinding(False, statement="***", reason="no_statement")),
    ],
    ids=lambda value: value.statement if isinstance(value, AnswerFinding) else None,
)
def test_a_short_answer_is_reported_with_what_it_met(finding: AnswerFinding, expected: AnswerFinding) -> None:
    assert finding == expected


def test_a_free_response_is_reported_with_its_scores() -> None:
    accepted: dict[str, Any] = {
        "accepted_answers": ["red deer", "two red deer"],
        "rejected_answers": ["blue deer"],
        "min_token_f1": 0.5,
    }
    finding = free("Two red deer run.", **accepted)
    assert finding.passed
    assert (finding.strategy, finding.matched, finding.rejected) == ("contained", 0, None)
    assert finding.accepted_f1 == pytest.approx(6 / 7)
    assert finding.rejected_f1 == pytest.approx(1 / 3)
    assert free("blue deer", **accepted).rejected == 0
    by_score = free("red stags, deer", **accepted)
    assert (by_score.passed, by_score.strategy) == (True, "token_f1")
    assert free("Why?", **accepted).reason == "no_statement"
    assert free("", **accepted).reason == "empty"


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize("family", ["multiple_choice", "short_answer", "free_response"])
def test_a_finding_shows_the_start_of_the_models_words_and_nothing_hidden(
    family: str, *, parity: bool
) -> None:
    rows: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "multiple_choice": (_CITIES, {"answer": "Canberra"}),
        "short_answer": ({"question": "?"}, {"accepted_answers": ["Canberra"]}),
        "free_response": ({"prompt": "?"}, {"rubric": {"accepted_answers": ["Canberra"]}}),
    }
    given, wanted = rows[family]
    reply = "word\x1b[31m\ud800 " * 500
    finding = evaluate_answer(family, given, wanted, reply, parity=parity)
    assert not finding.passed
    assert finding.statement.startswith("word\\x1b[31m\N{REPLACEMENT CHARACTER} word")
    assert len(finding.statement) == 200
    assert "Canberra" not in repr(finding)


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize(
    ("family", "given", "wanted", "message"),
    [
        (
            "multiple_choice",
            {"question": "?", "choices": ["x", "y"]},
            {"answer": 17},
            "eval.answer: names none of the 2 choices\n  hint: a zero-based index, a letter or the text of a choice",
        ),
        (
            "multiple_choice",
            {"question": "?"},
            {"answer": "A"},
            "input.choices: not a list of choices\n  hint: list at least one text",
        ),
        (
            "multiple_choice",
            {"choices": ["x", " "]},
            {"answer": "A"},
            "input.choices: holds something that is no text, or blank\n  hint: write every choice as a string",
        ),
        (
            "multiple_choice",
            {"choices": ["x"] * 27},
            {"answer": "A"},
            "input.choices: 27 choices\n  hint: at most 26, one letter each",
        ),
        (
            "short_answer",
            {},
            {"accepted_answers": []},
            "eval.accepted_answers: not a list of answers\n  hint: list at least one answer",
        ),
        (
            "short_answer",
            {},
            {"accepted_answers": ["x", True]},
            "eval.accepted_answers: holds something that is neither text nor number\n"
            "  hint: write every answer as a string or a number",
        ),
        (
            "short_answer",
            {},
            {"accepted_answers": [1], "tolerance": -1},
            "eval.tolerance: not a number of at least 0\n  hint: leave it out for exact answers",
        ),
        (
            "free_response",
            {},
            {"rubric": "Be kind."},
            "eval.rubric: not an object\n  hint: a rubric in words is judged by the marking model",
        ),
        (
            "free_response",
            {},
            {},
            "eval.rubric: not an object\n  hint: write {'type': 'contains_any', 'accepted_answers': [...]}",
        ),
        (
            "free_response",
            {},
            {"rubric": {"type": "regex", "accepted_answers": ["x"]}},
            "eval.rubric.type: not a known type\n  hint: the only one is 'contains_any'",
        ),
        (
            "free_response",
            {},
            {"rubric": {"accepted_answers": ["x"], "min_token_f1": 1.5}},
            "eval.rubric.min_token_f1: not a number from 0 to 1\n  hint: leave it out for 1.0",
        ),
        (
            "free_response",
            {},
            {"rubric": {"accepted_answers": "x"}},
            "eval.rubric.accepted_answers: not a list of texts\n  hint: list at least one text",
        ),
        (
            "free_response",
            {},
            {"rubric": {"accepted_answers": ["x"], "rejected_answers": [3]}},
            "eval.rubric.rejected_answers: holds something that is no text, or blank\n"
            "  hint: write every entry as a string",
        ),
    ],
)
def test_a_row_that_cannot_be_judged_says_why_without_its_hidden_values(
    family: str, given: dict[str, Any], wanted: dict[str, Any], message: str, *, parity: bool
) -> None:
    with pytest.raises(ConfigError) as caught:
        evaluate_answer(family, given, wanted, "reply", parity=parity)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("answer", "reply", "passed"),
    [
        (1, "B", True),
        (1.0, "B", True),
        ("(b)", "B", True),
        ("Answer: B", "B", True),
        ("canberra.", "B", True),
        (["Sydney", 2], "C", True),
        (["Sydney", 99], "A", True),
        (["Sydney", 99], "B", False),
        ("Berlin", "B", "ConfigError"),
        (1.5, "B", "ConfigError"),
        (-1, "C", "ConfigError"),
        (True, "B", "ConfigError"),
        (None, "B", "ConfigError"),
        ([], "B", "ConfigError"),
    ],
)
def test_the_answer_of_a_row_may_be_an_index_a_letter_or_a_text(
    answer: Any, reply: str, passed: bool | str
) -> None:
    if passed == "ConfigError":
        with pytest.raises(ConfigError):
            choice(reply, answer)
    else:
        assert choice(reply, answer).passed is passed


def test_choices_of_the_same_text_are_one_answer() -> None:
    twins = ["north", "North.", "south"]
    assert choice("B", "A", choices=twins).passed
    assert choice("north", 1, choices=twins).passed
    assert choice("A or B", "A", choices=twins).passed
    assert not choice("A or C", "A", choices=twins).passed


@pytest.mark.parametrize("parity", [False, True])
def test_a_letter_beyond_the_choices_is_a_text(*, parity: bool) -> None:
    letters = ["x", "y", "z"]
    assert choice("C", "z", choices=letters, parity=parity).passed
    assert not choice("Z", "x", choices=letters, parity=parity).passed
    assert not choice("D", "C", choices=letters, parity=parity).passed


_GROUPS = ["A", "B", "AB", "O"]
_SIGNS = ["^", "$", ".", "*"]
_POINTERS = ["p", "*p", "&p", "**p"]


@pytest.mark.parametrize(
    ("choices", "answer", "reply", "passed"),
    [
        (_GROUPS, "O", "Answer: O", True),
        (_GROUPS, "O", "**Answer:** O", True),
        (_GROUPS, "O", "The universal donor is O.", True),
        (_GROUPS, "O", "D", True),
        (_GROUPS, "O", "Answer: A", False),
        (_GROUPS, "O", "O or AB", False),
        (_GROUPS, "A", "Answer: O", False),
        (["I", "II", "III", "IV"], "I", "Answer: I", True),
        (["I", "II", "III", "IV"], "II", "I think II", True),
        (["木", "水", "火"], "木", "答案：木", True),
        (["木", "水", "火"], "木", "答案：水", False),
        (_SIGNS, "$", "$", True),
        (_SIGNS, "$", "Answer:$", True),
        (_SIGNS, "$", "It anchors at the end.\n\n**Answer:** `$`", True),
        (_SIGNS, "$", "B", True),
        (_SIGNS, "$", ".", False),
        (_SIGNS, "$", "$ or .", False),
        (_SIGNS, "$", "I do not know.", False),
        (_SIGNS, ".", "Answer: .", True),
        (_POINTERS, "*p", "`*p`", True),
        (_POINTERS, "*p", "p", False),
        (_POINTERS, "*p", "A", False),
        (_POINTERS, "*p", "Answer: **p", False),
        (["A and B", "A", "B"], "A and B", "Answer: A and B", True),
    ],
)
def test_the_text_of_a_choice_word_for_word_is_this_choice(
    choices: list[str], answer: str, reply: str, *, passed: bool
) -> None:
    assert choice(reply, answer, choices=choices).passed is passed


_ACME = (
    "Acme announced that it would close its plant in Ohio.",
    "Demand for its engines had fallen for six years.",
    "High energy costs were not the reason, it said.",
    "About 900 workers will lose their jobs.",
)


@pytest.mark.parametrize(
    ("reply", "context", "reason"),
    [
        (" ".join(_ACME), " ".join(_ACME), "echo"),
        (" ".join(_ACME[:3]), " ".join(_ACME), "echo"),
        ("\n".join(_ACME[1:]), " ".join(_ACME), "echo"),
        ("Demand", "Demand", None),
        ("Text: demand / year: 1990 / 7", {"text": "demand", "year": 1990, "n": 7}, "echo"),
        ("demand, 1990 and 7", ["demand", 1990, 7], "echo"),
    ],
)
def test_pouring_out_the_context_is_an_echo(reply: str, context: Any, reason: str | None) -> None:
    for finding in (
        short(reply, "demand", context=context),
        evaluate_answer(
            "free_response",
            {"prompt": "Why?", "context": context},
            {"rubric": {"accepted_answers": ["demand"]}},
            reply,
            parity=False,
        ),
    ):
        assert (finding.passed, finding.reason) == (reason is None, reason)


def test_one_quoted_sentence_of_the_context_answers() -> None:
    assert short(_ACME[1], "demand", context=" ".join(_ACME)).passed


@pytest.mark.parametrize(
    ("reply", "accepted", "strategy"),
    [
        (".5", 0.5, "numeric_tolerance"),
        ("about 5.", "5 km", "numeric_tolerance"),
        ("...", "…", None),
        ("...", "..", "normalized_exact"),
        ("answer", "answer", "normalized_exact"),
        ("So:\nFinal   Answer  is - twelve", "twelve", "answer_span"),
        ("٣", 3, "numeric_tolerance"),
    ],
)
def test_parity_reads_numbers_and_edges_as_published(reply: str, accepted: Any, strategy: str | None) -> None:
    assert short(reply, accepted, parity=True, tolerance=0).strategy == strategy


def test_numbers_of_absurd_size_are_compared_without_trouble() -> None:
    huge = 10**3000
    for parity in (False, True):
        assert not short("1", huge, tolerance=0, parity=parity).passed
        assert not short("9" * 3000, 1, tolerance=10**400, parity=parity).passed
        assert short(str(huge), huge, parity=parity).passed
    assert not short("1e999999999", 1, tolerance=0).passed
    with pytest.raises(ConfigError) as caught:
        short("1", 10**5000)
    assert str(caught.value) == (
        "eval.accepted_answers: holds a number of thousands of digits\n  hint: write it as a string"
    )


def test_families_that_run_code_are_not_judged_by_text() -> None:
    judged_by_text = {name for name in FAMILY_NAMES if isinstance(family_named(name), TextFamily)}
    assert judged_by_text == {"multiple_choice", "short_answer", "free_response"}
