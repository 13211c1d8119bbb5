"""What holds for every reply: no crash, no verdict for silence or echo, time that grows with the length alone."""

from __future__ import annotations

import json
import time
from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from text_rows import evaluate_answer, render

_ROWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "multiple_choice": (
        {"question": "Which is it?", "choices": ["Paris", "B12", "3.5", "a, b"]},
        {"answer": "A"},
    ),
    "short_answer": (
        {"question": "Which is it?", "context": "Some words about Paris. Other words follow here."},
        {"accepted_answers": ["Paris", 42], "tolerance": 0.5},
    ),
    "free_response": (
        {"prompt": "Which is it?", "context": "Some words about Paris. Other words follow here."},
        {
            "rubric": {
                "accepted_answers": ["Paris is old", "London. It is big"],
                "rejected_answers": ["not Paris"],
                "min_token_f1": 0.5,
            }
        },
    ),
}
_PIECES = st.sampled_from(
    [
        *(
            "answer",
            "Answer:",
            "final answer",
            "is",
            "A",
            "B",
            "(C)",
            "\\boxed{",
            "}",
            "{",
            '"answer":',
            "<answer>",
        ),
        *(
            "</answer>",
            "<think>",
            "</think>",
            "**",
            "*",
            "_",
            "`",
            "```",
            "\n",
            "\n\n",
            " ",
            "|",
            "$",
            "~~",
            "[x]",
        ),
        *(
            "- ",
            "\\frac{1}{2}",
            "1,234",
            "3/4",
            "10^",
            "e9",
            "%",
            "not",
            "but",
            "or",
            "and",
            ",",
            ".",
            "?",
            "!",
        ),
        *(
            "Paris",
            "42",
            "B12",
            "答案",
            "是",
            "选",
            "\ud800",
            "\x00",
            "\x02",
            "\x03",
            "\u202e",
            "İ",
            "ß",
            "ﬃ",
            "½",
        ),
        *(
            "the correct",
            "could be",
            "correct",
            "I'd go with",
            "\\",
            "&amp;",
            "<b>",
            "Which is it?",
            "myth",
            "no",
        ),
        *("²", "wait, no"),
    ]
)
_SENTENCES = st.lists(_PIECES, max_size=50).map(" ".join) | st.lists(_PIECES, max_size=50).map("".join)
_REPLIES = _SENTENCES | st.text(st.characters(), max_size=150)
_WORDS = st.lists(
    st.sampled_from(["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron"]),
    min_size=3,
    max_size=30,
)
_EXAMPLES = examples(300)

pytestmark = pytest.mark.timeout(20)  # what is wrong here does not end


def passes(family: str, given: Any, wanted: Any, reply: str) -> bool:
    return evaluate_answer(family, given, wanted, reply, parity=False).passed


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize("family", list(_ROWS))
@_EXAMPLES
@given(reply=_REPLIES)
def test_any_reply_is_judged(family: str, reply: str, *, parity: bool) -> None:
    finding = evaluate_answer(family, *_ROWS[family], reply, parity=parity)
    assert len(finding.statement) <= 200
    assert finding.statement.isprintable() or "\ufffd" in finding.statement or finding.statement.encode()
    if not reply.strip():
        assert not finding.passed
        assert finding.reason == "empty"


@_EXAMPLES
@given(
    question=st.text(max_size=60) | _SENTENCES,
    choices=st.lists(
        st.text(min_size=1, max_size=20).filter(str.strip) | _WORDS.map(" ".join),
        min_size=2,
        max_size=6,
        unique_by=lambda choice: choice.strip().casefold(),
    ),
    shape=st.sampled_from(
        ["{letter}) {choice}", "{letter}. {choice}", "({letter}) {choice}", "- {choice}", "{choice}"]
    ),
    right=st.integers(0, 5),
)
def test_repeating_the_question_and_all_choices_is_no_answer(
    question: str, choices: list[str], shape: str, right: int
) -> None:
    lines = [
        shape.format(letter=letter, choice=choice)
        for letter, choice in zip(ascii_uppercase, choices, strict=False)
    ]
    row = {"question": question, "choices": choices}, {"answer": right % len(choices)}
    listed = "\n".join(lines)
    assert not passes("multiple_choice", *row, listed)
    assert not passes("multiple_choice", *row, f"{question}\n\n{listed}")


@_EXAMPLES
@given(
    words=_WORDS,
    choices=st.lists(_WORDS.map(" ".join), min_size=2, max_size=8, unique=True),
    right=st.integers(0, 7),
)
def test_repeating_the_whole_prompt_of_a_multiple_choice_row_is_no_answer(
    words: list[str], choices: list[str], right: int
) -> None:
    public = {"question": f"What of {' '.join(words)}?", "choices": choices}
    prompt = render("multiple_choice", public)
    assert not passes("multiple_choice", public, {"answer": right % len(choices)}, prompt)


@_EXAMPLES
@given(words=_WORDS, place=st.integers(0, 29), as_object=st.booleans())
def test_pouring_out_the_context_is_no_answer(words: list[str], place: int, *, as_object: bool) -> None:
    text = f"{' '.join(words)}. It says {words[place % len(words)]} twice; {' '.join(reversed(words))}."
    context: Any = {"title": words[0], "text": text} if as_object else text
    accepted = words[place % len(words)]
    rows: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        (
            "short_answer",
            {"question": "What is twice?", "context": context},
            {"accepted_answers": [accepted]},
        ),
        (
            "free_response",
            {"prompt": "What is twice?", "context": context},
            {"rubric": {"accepted_answers": [accepted], "min_token_f1": 0.1}},
        ),
    ]
    for family, public, wanted in rows:
        assert not passes(family, public, wanted, text)
        assert not passes(family, public, wanted, f"Here is the text:\n\n{text}")
        assert not passes(family, public, wanted, text if not as_object else json.dumps(context))
        assert not passes(family, public, wanted, render(family, public))
        assert passes(family, public, wanted, accepted)


@_EXAMPLES
@given(
    body=_SENTENCES,
    letter=st.sampled_from("ABCDE"),
    announced=st.sampled_from(["Answer: ", "**Answer:** ", ""]),
)
def test_a_letter_on_the_last_line_is_read_the_same_way_in_haste_and_at_leisure(
    body: str, letter: str, announced: str
) -> None:
    body = body.replace("[", "").replace("<", "").replace("◁", "")
    padding = "So many words are said here that no short cut for short replies can be taken by the rule."
    hasty = evaluate_answer(
        "multiple_choice", *_ROWS["multiple_choice"], f"{body}\n{padding}\n{announced}{letter}", parity=False
    )
    leisurely = evaluate_answer(
        "multiple_choice",
        *_ROWS["multiple_choice"],
        f"{body}\n{padding}[1]\n{announced}{letter}",
        parity=False,
    )
    assert (hasty.passed, hasty.matched) == (leisurely.passed, leisurely.matched)


_HOSTILE = [
    "answer ",
    "answer: B\n",
    "\\boxed{",
    "\\boxed{B} ",
    '{"a":',
    '{"answer": "B"} ',
    "<think>",
    "</think>",
    "*",
    "**a",
    "_",
    "~~",
    "| ",
    "--- |",
    " ",
    "\n",
    "(",
    "'",
    "A) ",
    "B\n",
    ".",
    "!",
    "?",
    "B is correct. ",
    "so B. ",
    "not ",
    "wait, no ",
    "1 ",
    "1,",
    "1/",
    "12:34:",
    "Paris or ",
    "Paris, ",
    "Paris. ",
    "Some words about Paris. ",
    "Which is it? ",
    "u.s. ",
    "a.b.",
    "can't ",
    "myth ",
    "İ",
    "½",
    "²",
    "答案",
    "\ud800",
    "\x00",
    "\u202e",
    "\\frac{1}{",
    "[x](",
    "<sup>2",
    "&amp;",
    "x",
]


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize("piece", _HOSTILE, ids=[ascii(piece)[1:-1] for piece in _HOSTILE])
def test_a_long_reply_costs_no_more_than_its_length(piece: str, *, parity: bool) -> None:
    """Four times the length costs about four times as much; cost that grew with the square costs sixteen times."""
    _time_of(piece, 2_000, parity=parity)  # what is made once is made here
    short = _time_of(piece, 4_000, parity=parity)
    assert _time_of(piece, 16_000, parity=parity) < 9 * short + 0.02


def _time_of(piece: str, length: int, *, parity: bool) -> float:
    """Return the CPU seconds of this thread for a reply of every family."""
    reply = piece * (length // len(piece))
    start = time.thread_time()
    for family, row in _ROWS.items():
        evaluate_answer(family, *row, f"{reply}Paris", parity=parity)
    return time.thread_time() - start


def test_two_megabytes_are_judged() -> None:
    reply = "Let me think about Paris and other cities for a while.\n" * 37_000 + "Answer: A"
    assert len(reply) > 2_000_000
    assert passes("multiple_choice", *_ROWS["multiple_choice"], reply)
    assert not passes("free_response", *_ROWS["free_response"], reply)
