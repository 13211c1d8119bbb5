"""Amounts, times and scores of short answers in the words of models."""

from __future__ import annotations

import pytest
from text_rows import evaluate_answer


def _passes(question: str, accepted: str, reply: str) -> bool:
    given, wanted = {"question": question}, {"accepted_answers": [accepted]}
    return evaluate_answer("short_answer", given, wanted, reply, parity=False).passed


_APPLES = "Tom has 5 red apples and buys 7 more. How many apples does he have?"
_MASS = "What is the molar mass of water?"
_TOKYO = "If it is 11 p.m. in London, what time is it in Tokyo?"
_FINAL = "What was the score of the final?"


@pytest.mark.parametrize(
    ("question", "accepted", "reply"),
    [
        (_APPLES, "12 apples", "12"),
        (_APPLES, "12 apples", "So Tom has \\boxed{12}."),
        ("How many cups of flour are needed?", "7.5 cups", "You need 7 and a half cups."),
        ("How many cups of flour are needed?", "2.5 cups", "\\frac{5}{2}"),
        (_MASS, "18.015 g/mol", "about 18 grams per mole"),
        (_MASS, "18.015 g/mol", "18.02 g/mol"),
        ("What is the speed of sound in air at 20 °C?", "343 m/s", "About 343 m/s, or roughly 1,235 km/h."),
        ("What is the boiling point of ethanol at 1 atm?", "78.37 °C", "Around 78 degrees Celsius."),
        (
            "What is the speed of light?",
            "299,792,458 m/s",
            "3.00 × 10^8 m/s (more precisely 299 792 458 m/s).",
        ),
        ("How much change do you get?", "£6.35", "6 pounds and 35 pence."),
        (_TOKYO, "8 a.m. the next day", "It is 8:00 AM the following day."),
        (_FINAL, "England 4-2 West Germany", "**England 4, West Germany 2**"),
        (_FINAL, "4-2", "England won by four goals to two."),
        (
            "Who composed The Planets?",
            "Gustav Holst",
            "The Planets, Op. 32, is by the composer Gustav Holst.",
        ),
        ("In which museum is it?", "British Museum", "The British Museum, London."),
        ("Who directed it?", "Akira Kurosawa", "It (Shichinin no Samurai) was directed by Akira Kurosawa."),
        ("Is Pluto larger than the Moon?", "No", "Pluto is smaller than the Moon."),
    ],
)
def test_right_in_other_words(question: str, accepted: str, reply: str) -> None:
    assert _passes(question, accepted, reply)


@pytest.mark.parametrize(
    ("question", "accepted", "reply"),
    [
        (_APPLES, "12 apples", "13"),
        ("What is the derivative of x^2?", "2x", "2x^2"),
        (_MASS, "18.015 g/mol", "44 g/mol"),
        (_MASS, "18.015 g/mol", "18.015 kg/mol"),
        (_TOKYO, "8 a.m. the next day", "9 a.m. the next day"),
        (_FINAL, "England 4-2 West Germany", "England 3, West Germany 2"),
        ("What does HTTP stand for?", "Hypertext Transfer Protocol", "Hypertext Transport Protocol"),
        ("Is Pluto larger than the Moon?", "No", "The Moon is smaller than Pluto."),
        (
            "What is the worst-case complexity of binary search?",
            "O(log n)",
            "The worst case is O(n), and the average case is O(log n).",
        ),
    ],
)
def test_wrong_though_alike(question: str, accepted: str, reply: str) -> None:
    assert not _passes(question, accepted, reply)
