"""Clauses of short answers: who is said to be more, opposites as yes and no, whose work it is, what stands between."""

from __future__ import annotations

import pytest
from text_rows import evaluate_answer

_LAKE = "Which lake is the deepest?", "Lake Holm"
_CHIEF = "Who is the head of the guild?", "Eva Berg"
_POEM = "Who wrote the poem?", "Jan Ashe"
_WAR = "did the guild win the dispute", "no"
_MUSHROOM = "is the fly agaric safe to eat", "no"


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (_LAKE, "Lake Moor is deeper than Lake Holm.", False),
        (_LAKE, "Lake Holm is deeper than Lake Moor.", True),
        (_CHIEF, "Otto Lund runs it. Eva Berg runs the bank.", False),
        (_CHIEF, "Otto Lund was. Eva Berg was his deputy.", False),
        (_CHIEF, "Eva Berg runs it. Otto Lund runs the bank.", True),
        (_CHIEF, "eva berg", True),
        (_CHIEF, "berg", True),
        (_POEM, "It is one of Ashe's early works.", True),
        (_POEM, "Jan Ashe's brother wrote it.", False),
        (_POEM, "The Bard of Oslo, Jan Ashe.", True),
        (_POEM, "Eva Lund, Ashe's early rival.", False),
        (_CHIEF, "Otto Lund has been the head since Eva Berg left.", False),
        (_CHIEF, "Otto Lund, replaced by Eva Berg.", False),
        (("do beetles have six legs", "yes"), "They have eight legs.", False),
        (("do beetles have six legs", "yes"), "Beetles have six legs.", True),
        (("How many are left of the nuts?", "12"), "She is left with 12 of the 30 nuts.", True),
        (("How many are left of the nuts?", "30"), "She is left with 12 of the 30 nuts.", False),
        (("Which town is the capital?", "Bergen"), "Not Oslo – Bergen!", True),
        (("Which town is the capital?", "Oslo"), "Not Oslo – Bergen!", False),
        (("Which town is the capital?", "Oslo"), "Bergen – not Oslo.", False),
        (("In which valley is it?", "Dale"), "Between Dale and Moor.", False),
        (("Who came second?", "Eva Berg"), "Eva Berg was first; Otto Lund second.", False),
        (("Who came second?", "Eva Berg"), "Otto Lund was first, Eva Berg second.", True),
        (_WAR, "It lost.", True),
        (_WAR, "It did, after a year.", False),
        (("did the guild win the dispute", "yes"), "It lost the dispute.", False),
        (_MUSHROOM, "It's poisonous.", True),
        (_MUSHROOM, "It's harmless.", False),
        (("can a stone swim", "no"), "Impossible.", True),
        (("can a stone swim", "no"), "They can't because they are too heavy.", True),
        (("What is the least whole number above one?", "2"), "Since 1 isn't above one, it's 2.", True),
    ],
)
def test_what_a_clause_says_of_the_answer(row: tuple[str, str], reply: str, passed: bool) -> None:
    question, answer = row
    found = evaluate_answer(
        "short_answer", {"question": question}, {"accepted_answers": [answer]}, reply, parity=False
    )
    assert found.passed is passed


@pytest.mark.parametrize(
    ("question", "answer", "reply"),
    [
        (
            "Does ice float on water?",
            "yes",
            "Ice is a solid, and solids are heavy. So no, it sinks below water.",
        ),
        (
            "Do cats see better in the dark than people?",
            "yes",
            "Their eyes are small. Hence no, they see worse.",
        ),
        (
            "Is the moon larger than the earth?",
            "no",
            "It looks large in the sky. Therefore yes, it is larger.",
        ),
    ],
)
def test_what_a_reply_comes_to_is_not_read_from_its_other_words(
    question: str, answer: str, reply: str
) -> None:
    row = {"question": question}
    other = {"accepted_answers": [answer, "true" if answer == "yes" else "false"]}
    assert not evaluate_answer("short_answer", row, other, reply, parity=False).passed
