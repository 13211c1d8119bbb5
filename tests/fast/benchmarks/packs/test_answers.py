"""The rule on answers: ask for a form, read the form, compare plainly, leave meaning to a model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from growth import grows_in_proportion
from hypothesis import example, given
from hypothesis import strategies as st
from paths import DATA
from properties import examples
from specs import task_from_spec
from text_rows import evaluate_answer, render, text_spec

from pytest_helmbench.benchmarks.packs.families.text.text_family import AnswerFinding
from pytest_helmbench.benchmarks.packs.task import ConfigError

_GOLDENS = json.loads((DATA / "pack-scoring.json").read_text(encoding="utf-8"))["scoring"]
_LINES = [json.loads(line) for line in (DATA / "answer_lines.jsonl").read_text("utf-8").splitlines()]
_FAMILIES = ("multiple_choice", "short_answer", "free_response")
_CITIES = ["Sydney", "Canberra", "Perth"]
_ELEMENTS = ["mercury", "iron", "zinc", "tin", "lead"]


def choice(reply: str, answer: Any = "B", *, parity: bool = False, **public: Any) -> AnswerFinding:
    public = {"question": "Which city is the capital of Australia?", "choices": _CITIES, **public}
    return evaluate_answer("multiple_choice", public, {"answer": answer}, reply, parity=parity)


def short(question: str, accepted: Any, reply: str, *, parity: bool = False, **wanted: Any) -> AnswerFinding:
    answers = accepted if isinstance(accepted, list) else [accepted]
    public = {"question": question, "context": wanted.pop("context", None)}
    return evaluate_answer(
        "short_answer", public, {"accepted_answers": answers, **wanted}, reply, parity=parity
    )


def free(reply: str, *, parity: bool = False, **rubric: Any) -> AnswerFinding:
    return evaluate_answer("free_response", {"prompt": "Why?"}, {"rubric": rubric}, reply, parity=parity)


@pytest.mark.parametrize("row", _GOLDENS, ids=[f"{row['family']}: {row['note']}" for row in _GOLDENS])
def test_the_parity_rule_gives_the_published_verdict(row: dict[str, Any]) -> None:
    if row["upstream"] == "ConfigError":
        with pytest.raises(ConfigError):
            task_from_spec(text_spec(row["family"], row["input"], row["eval"]))
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


def test_lines_as_models_would_end_their_replies_are_judged_as_a_person_does() -> None:
    """Lines that were written before any rule was looked at; none that words decide is judged wrong."""
    found = [
        (
            person,
            line,
            evaluate_answer("short_answer", public, wanted, f"So be it.\n\nAnswer: {line}", parity=False),
        )
        for public, wanted, line, person in _LINES
    ]
    assert [line for person, line, one in found if one.certain and one.passed is not person] == []
    assert sum(one.passed is person for person, _, one in found) >= 0.9 * len(found)
    assert sum(one.passed and not person for person, _, one in found) <= 1


@pytest.mark.parametrize(
    ("question", "accepted", "reply", "passed", "certain"),
    [
        # Cases 02 and 13 of a list of what once went wrong: long whole numbers, marks of sources.
        ("What is 2 to the power of 40?", 1099511627776, "1099511627777", False, True),
        ("What is the order number?", "1234567890", "The order number is 1234567891.", False, False),
        ("What is the speed of light in m/s?", 299792458, "299792459", False, True),
        ("How many legs has a spider?", 8, "A spider has 8 [1].", True, True),
        ("How many legs has a spider?", 8, "Answer: 8 [1]", True, True),
        ("How many legs has a spider?", 8, "Answer: 8【3†source】", True, True),
        ("How many legs has a spider?", 8, "8 legs.[1]\n\nSources:\n[1] https://example.org/7", True, True),
        # Rule 4: text, number, date, yes or no, list.
        ("Which city is the capital?", "Canberra", "Answer: The **Canberra**.", True, True),
        ("How far is it in km?", "1,200", "Answer: 1200 km", True, True),
        ("How far is it?", "1200 km", "Answer: 1.2e3 kilometres", True, True),
        ("How far is it?", "1200 km", "Answer: 1200 m", False, False),
        ("What share is it?", "1/4", "Answer: 25%", True, True),
        ("How many are there?", 21, "Answer: twenty-one", True, True),
        ("When was it?", "1 March 2024", "Answer: 2024-03-01", True, True),
        ("When was it?", "1 March 2024", "Answer: 2 March 2024", False, True),
        ("Is it so?", "yes", "Yes, it is.", True, True),
        ("Is it so?", "yes", "No", False, True),
        ("Which two are they?", "Asia and Europe", "Answer: Europe, Asia", True, True),
        ("Name them.", "red, green", "Answer:\n- green\n- red", True, True),
        # Rule 5: an accepted name among the words, or its surname; nothing is listed or denied.
        ("Who wrote it?", "Jane Austen", "Answer: Austen", True, False),
        ("Who wrote it?", "Jane Austen", "Jane Austen wrote this famous novel.", True, False),
        ("Who wrote it?", "Jane Austen", "Answer: Austen or Brontë", False, False),
        ("Who wrote it?", "Jane Austen", "It was not Jane Austen.", False, False),
        # Rule 6: everything else fails, and a model may read it.
        ("What is the chemical name?", "sodium", "Answer: natrium", False, False),
        # Rule 2: a reply of several sentences states no answer.
        ("How many legs has a spider?", 8, "It depends. It has 8.", False, False),
        ("Is it a myth?", "no", "It is a common myth.", False, False),
        # Silence and repeats are not answers.
        ("Which is it?", "one", "I do not know.", False, True),
        ("Which is it?", "one", "", False, True),
        ("Which one of the three is it?", "three", "Which one of the three is it?", False, True),
        # Accepted answers of odd shapes, alone and behind the cue.
        ("What does the line say?", "Answer: 42", "Answer: 42", True, True),
        ("What does the line say?", "Answer: 42", "Answer: Answer: 42", True, True),
        ("Which sign is it?", "*", "*", True, True),
        ("Which sign is it?", "*", "Answer: *", True, True),
        ("What is it?", "\ud800", "Answer: \ud800", True, True),
        ("What is it?", "a\nb", "Answer: a\nb", True, True),
    ],
)  # fmt: skip
def test_a_short_answer_is_compared_plainly(
    question: str, accepted: Any, reply: str, *, passed: bool, certain: bool
) -> None:
    finding = short(question, accepted, reply)
    assert (finding.passed, finding.certain) == (passed, certain)


@pytest.mark.parametrize(
    ("reply", "matched", "certain", "reason"),
    [
        ("B", 1, True, None),
        ("(b)", 1, True, None),
        ("**Answer: B**", 1, True, None),
        ("Answer: B) Canberra", 1, True, None),
        ("B. Canberra", 1, True, None),
        ("Canberra", 1, True, None),
        ("Surely it is Canberra.", 1, True, None),
        ("\\boxed{A}", 0, True, None),
        ('{"reasoning": "…", "answer": "C"}', 2, True, None),
        ("Answer: B. It has been the capital since 1913.", 1, True, None),
        ("A or B", None, True, "several"),
        ("A, B, C", None, True, "several"),
        ("I do not know.", None, True, None),
        ("Answer: Berlin", None, False, None),
        ("It is not B.", None, False, None),
        ("One thinks of Sydney. It is Canberra.", None, False, "no_answer"),
        ("Which city is the capital of Australia?", None, True, "echo"),
        ("A) Sydney\nB) Canberra\nC) Perth", None, True, "echo"),
    ],
)
def test_a_choice_is_its_letter_its_text_or_the_only_one_mentioned(
    reply: str, matched: int | None, reason: str | None, *, certain: bool
) -> None:
    finding = choice(reply)
    assert (finding.passed, finding.matched, finding.certain, finding.reason) == (
        matched == 1,
        matched,
        certain,
        reason,
    )


@pytest.mark.parametrize(
    ("choices", "answer", "reply", "passed"),
    [
        (_ELEMENTS, "A", "A, B, C, D, E", False),
        ([*_ELEMENTS, "gold", "silver", "nickel"], "A", "A, B, C, D, E, F, G and H", False),
        (_ELEMENTS[:4], "A", "A, B, C, D", False),
        (["B", "A"], 0, "A", True),
        (["A", "B", "AB", "O"], "O", "Answer: O", True),
        (["$", "^", ".", "*"], "$", "Answer: `$`", True),
        (["$", "^", ".", "*"], "*", "Answer: *", True),
        (["A and B", "A", "B"], 0, "Answer: A and B", True),
        (["x", "x", "y"], "A", "B", True),
        (["木", "水", "火"], 0, "木", True),
        (_CITIES, ["Sydney", 2], "C", True),
        (_CITIES, 1.0, "B", True),
    ],
)
def test_choices_of_odd_texts(choices: list[str], answer: Any, reply: str, *, passed: bool) -> None:
    assert choice(reply, answer, choices=choices).passed is passed


@pytest.mark.parametrize(
    ("reply", "passed", "certain"),
    [
        ("From California.", True, True),
        ("They come from China", False, True),
        ("I don't know", False, True),
        ("", False, True),
        ("Why?", False, True),
        ("They were first made in California, it seems.", False, False),
    ],
)
def test_words_decide_of_a_free_reply_that_is_an_entry(reply: str, *, passed: bool, certain: bool) -> None:
    lists: dict[str, Any] = {
        "accepted_answers": ["from California"],
        "rejected_answers": ["They come from China."],
    }
    finding = free(reply, **lists)
    assert (finding.passed, finding.certain) == (passed, certain)


def test_the_published_rule_says_what_it_met() -> None:
    rubric = {
        "accepted_answers": ["red deer", "two red deer"],
        "rejected_answers": ["blue deer"],
        "min_token_f1": 0.5,
    }
    finding = free("Two red deer run.", parity=True, **rubric)
    assert (finding.passed, finding.strategy, finding.matched, finding.rejected) == (
        True,
        "contained",
        0,
        None,
    )
    assert finding.accepted_f1 == pytest.approx(6 / 7)
    assert free("red stags, deer", parity=True, **rubric).strategy == "token_f1"


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize("family", _FAMILIES)
def test_a_finding_shows_the_models_words_and_nothing_hidden(family: str, *, parity: bool) -> None:
    public, wanted = _ROWS[family]
    finding = evaluate_answer(family, public, wanted, "word\x1b[31m\ud800 " * 500, parity=parity)
    assert not finding.passed
    assert finding.statement.startswith("word\\x1b[31m\N{REPLACEMENT CHARACTER} word")
    assert len(finding.statement) == 200
    assert "Paris" not in repr(finding)


_NAMES_NONE = (
    "eval.answer: names none of the 2 choices\n  hint: a zero-based index, a letter or the text of a choice"
)
_IN_WORDS = "eval.rubric: not an object\n  hint: a rubric in words is judged by the marking model"


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize(
    ("family", "public", "wanted", "message"),
    [
        ("multiple_choice", {"choices": ["x", "y"]}, {"answer": 17}, _NAMES_NONE),
        ("multiple_choice", {"choices": ["x", "y"]}, {"answer": True}, _NAMES_NONE),
        ("multiple_choice", {"choices": ["x", "y"]}, {"answer": 1.5}, _NAMES_NONE),
        ("free_response", {}, {"rubric": "Be kind."}, _IN_WORDS),
    ],
)
def test_a_row_that_cannot_be_judged_says_why_without_its_hidden_values(
    family: str, public: dict[str, Any], wanted: dict[str, Any], message: str, *, parity: bool
) -> None:
    with pytest.raises(ConfigError) as caught:
        evaluate_answer(family, public, wanted, "reply", parity=parity)
    assert str(caught.value) == message


def test_numbers_of_absurd_size_are_compared_without_trouble() -> None:
    huge = 10**3000
    for parity in (False, True):
        assert not short("?", huge, "1", tolerance=0, parity=parity).passed
        assert not short("?", 1, "9" * 3000, tolerance=1, parity=parity).passed
        assert short("?", huge, str(huge), parity=parity).passed
    assert not short("?", 1, "1e999999999", tolerance=0).passed


_ROWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "multiple_choice": (
        {"question": "Which is it?", "choices": ["Paris", "B12", "3.5", "a, b"]},
        {"answer": "A"},
    ),
    "short_answer": (
        {"question": "Which is it?", "context": "Some words about Paris. Other words follow here."},
        {"accepted_answers": ["Paris", 42, "1 May 2020", "yes"], "tolerance": 0.5},
    ),
    "free_response": (
        {"prompt": "Which is it?", "context": "Some words about Paris. Other words follow here."},
        {
            "rubric": {
                "accepted_answers": ["Paris is old"],
                "rejected_answers": ["not Paris"],
                "min_token_f1": 0.5,
            }
        },
    ),
}


def pieces(text: str) -> list[str]:
    """Return what stands between bars."""
    return text.split("¦")


_PIECES = pieces(
    'answer¦Answer:¦final answer¦is¦A¦B¦(C)¦\\boxed{¦}¦{¦"answer":¦<answer>¦</answer>¦<think>¦</think>¦**¦*¦_¦`¦```'
    "¦\n¦\n\n¦ ¦|¦$¦~~¦[x]¦- ¦\\frac{1}{2}¦1,234¦3/4¦10^¦e9¦%¦not¦but¦or¦,¦.¦?¦!¦Paris¦42¦B12¦答案¦\ud800¦\x00¦\u202e"
    "¦İ¦ß¦ﬃ¦½¦²¦could be¦\\¦<b>¦Which is it?¦myth¦no¦wait, no¦5:30 pm¦May¦2020¦thousand¦km¦minus¦=¦≈"
)
_JOINED = st.lists(st.sampled_from(_PIECES), max_size=50)
_REPLIES = _JOINED.map(" ".join) | _JOINED.map("".join) | st.text(st.characters(), max_size=150)


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize("family", _FAMILIES)
@examples(300)
@given(reply=_REPLIES)
@example(reply="İ")  # `[A-Z]` matches it where case is ignored
def test_any_reply_is_judged(family: str, reply: str, *, parity: bool) -> None:
    finding = evaluate_answer(family, *_ROWS[family], reply, parity=parity)
    assert len(finding.statement) <= 200
    if not reply.strip():
        assert (finding.passed, finding.reason) == (False, "empty")


@examples(300)
@given(
    choices=st.lists(st.text(min_size=1, max_size=20).filter(str.strip), min_size=2, max_size=6, unique=True),
    right=st.integers(0, 5),
)
def test_repeating_the_prompt_or_all_choices_is_no_answer(choices: list[str], right: int) -> None:
    public: dict[str, Any] = {"question": "What of amber, birch and cedar?", "choices": choices}
    prompt = render("multiple_choice", public)
    listed = "\n".join(f"{letter}) {text}" for letter, text in zip("ABCDEF", choices, strict=False))
    for reply in (prompt, listed, ", ".join("ABCDEF"[: len(choices)])):
        assert not choice(reply, right % len(choices), **public).passed


_HOSTILE = pieces(
    '\n¦ ¦*¦answer ¦Answer: x\n¦\\boxed{¦$¦$x ¦{¦{"answer": ¦<think>¦1¦1,000,¦\\frac{1}{¦\\¦A. ¦(¦()¦word '
    "¦# ¦e\u0301¦²¦`¦<|¦- ¦or ¦Paris ¦Paris, ¦a.b.¦[1] https://x\n¦İ¦1/¦12:34:¦\ud800¦May ¦minus one ¦half "
)


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize("piece", _HOSTILE, ids=[ascii(piece)[1:-1] for piece in _HOSTILE])
def test_a_long_reply_costs_no_more_than_its_length(piece: str, *, parity: bool) -> None:

    def judged(reply: str) -> None:
        for family, row in _ROWS.items():
            evaluate_answer(family, *row, f"{reply}Paris", parity=parity)
            evaluate_answer(family, *row, f"Answer: {reply}", parity=parity)

    judged(piece)  # what is made once is made here
    assert grows_in_proportion(judged, lambda length: piece * (length // len(piece)), 100_000)
