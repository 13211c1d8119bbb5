"""short_answer: right answers with more around them than the row has, and wrong ones that look alike."""

from __future__ import annotations

import pytest
from text_rows import evaluate_answer

_YEAR = ("In what year did the guild leave the league?", ["1975"])
_MONTH = ("In what month and year did the mill burn down?", ["April 1986"])
_SHIP = ("On which ship did the painter sail?", ["HMS Plover"])
_TRAIN = ("A cart goes 156 km in 2 hours. What is its average speed?", ["78 km/h"])
_SALT = ("Which two elements is the powder made of?", ["Zinc and tin"])
_DICE = ("What is the probability of a sum of 9 with two dice?", ["1/9"])
_BOILS = ("What is the boiling point of the spirit, in degrees Celsius?", ["78.37 °C", "78 °C"])
_SIZE = ("How long is the race, in kilometres?", ["42.195"])
_MANY = ("How many grains are in a mole?", ["6.022 × 10^23"])
_PRIZE = ("Did the chemist win the prize for dyes?", ["No"])
_BERRY = ("Botanically speaking, is a marrow a berry?", ["Yes"])
_NOT_BERRY = ("In the kitchen, is a marrow a berry?", ["No"])
_FOUNDER = ("Who founded the mill?", ["Eva Berg"])
_RIVER = ("Which river flows through Varde?", ["Lune"])
_MONEY = ("What is the currency of Japan?", ["Japanese yen"])


@pytest.mark.parametrize(
    ("row", "reply", "passed"),
    [
        (_YEAR, "1975. The league had been joined in 1952.", True),
        (_YEAR, "1975 - two years after the treaty of 1973.", True),
        (_YEAR, "1975. More than 1,500 members followed.", True),
        (_YEAR, "1973. The guild had voted for 1975.", False),
        (_YEAR, "1973. The vote was in 1975.", False),
        (_YEAR, "1973. So two years later: 1975.", True),
        (_YEAR, "1975. Wait, no: it was 1976.", False),
        (_YEAR, "1975. Adding a year gives 1976.", False),
        (("Which river is the longest?", ["Lune"]), "1. Lune", True),
        (("Which river is the longest?", ["Lune"]), "1. The Lune, which has 200 km.", True),
        (_MONTH, "It burned down on April 26, 1986, when lightning struck.", True),
        (_MONTH, "26/04/1986", True),
        (_MONTH, "In April of 1986.", True),
        (_MONTH, "On 26 April 1987.", False),
        (_MONTH, "On 4 March 1986.", False),
        (_MONTH, "March 1986; it was rebuilt by April.", False),
        (_SHIP, "He sailed aboard the *Plover*, a brig.", True),
        (_SHIP, "HMS Lark", False),
        (_SHIP, "On the Lark, not the Plover.", False),
        (("Which ship is it?", ["HMS Plover"]), "It is the Lark, a sister of the other one.", False),
        (_TRAIN, "Speed = 156 / 2 = 78 \\text{ km/h}.\n\n\\[\\boxed{78}\\]", True),
        (_TRAIN, "Speed = 78 m/s.\n\n\\boxed{78}", False),
        (_TRAIN, "156 / 2 = 78\n\n\\boxed{78}", False),
        (_TRAIN, "It goes 156 km/h.\n\n\\boxed{156}", False),
        (("What is its area?", ["40 cm²"]), "8 × 5 = 40 cm^2\n\n**Answer: 40**", True),
        (("What is its area?", ["40 cm²"]), "8 × 5 = 40 cm\n\n**Answer: 40**", False),
        (_SALT, "It is made of zinc (Zn) and tin (Sn), which form an alloy.", True),
        (_SALT, "Tin and zinc make up the powder.", True),
        (_SALT, "It is made of zinc (Zn) and lead (Pb).", False),
        (_SALT, "It is made of copper, zinc and tin.", False),
        (_SALT, "It is made of zinc and tin and lead.", False),
        (_SALT, "It is made of zinc but not of tin.", False),
        (_SALT, "It is not zinc and tin.", False),
        (_DICE, "4 of 36 are favourable, so it is 4/36 ≈ 0.1111, or about 11.11%.", True),
        (_DICE, "approximately 11.1%", True),
        (_DICE, "5/36 ≈ 0.1389, or about 13.9%", False),
        (_DICE, "approximately 11%", False),
        (("What is 4/36 as a fraction in lowest terms?", ["1/9"]), "11.1%", False),
        (_BOILS, "It is approximately 78.4°C.", True),
        (_BOILS, "78.3 °C", False),
        (_BOILS, "78.5 °C", False),
        (_BOILS, "77.9 °C", False),
        (_SIZE, "42.2 km", True),
        (_SIZE, "42.1 km", False),
        (_SIZE, "26.2 km", False),
        (("How long is the race, to three decimals?", ["42.195"]), "42.2 km", False),
        (("What is 84.39 halved?", ["42.195"]), "42.2", False),
        (_MANY, "6.02214 × 10²³ per mole", True),
        (_MANY, "6.02214 × 10²² per mole", False),
        (_MANY, "6.04 × 10²³ per mole", False),
        (_PRIZE, "The chemist won the prize, but for medicines and not for dyes.", True),
        (_PRIZE, "It was given for medicines rather than dyes.", True),
        (_PRIZE, "The chemist won the prize for dyes, not for medicines.", False),
        (_PRIZE, "The chemist won the prize not only for dyes.", False),
        (_PRIZE, "The chemist won the prize for dyes because nobody else had any.", False),
        (_BERRY, "Botanically, a marrow is a berry.", True),
        (_BERRY, "A marrow isn't a berry.", False),
        (_BERRY, "A marrow is a root, not a berry.", False),
        (_BERRY, "Marrows aren't.", False),
        (_NOT_BERRY, "In the kitchen a marrow is a vegetable rather than a berry.", True),
        (_NOT_BERRY, "In the kitchen a marrow is a berry, not a vegetable.", False),
        (("Is Moor larger than Dale?", ["Yes"]), "Moor is the larger one, not Dale.", True),
        (("Is Moor in Africa?", ["No"]), "It's in Asia.", True),
        (_FOUNDER, "The mill was founded on September 23, 1889 by Eva Berg in Oslo, Norway.", True),
        (
            _FOUNDER,
            "The mill was founded on September 23, 1889 by Otto Lund. Eva Berg was the first miller.",
            False,
        ),
        (_RIVER, "Lune\n\nQuestion: Which river flows through Oslo?\nAnswer: Aker", True),
        (_RIVER, "Aker\n\nQuestion: Which river flows through Varde?\nAnswer: Lune", False),
        (_RIVER, "Question: Which river flows through Varde?\nAnswer: Lune", True),
        (_RIVER, "Let us see:\n\nQuestion: Which river flows through Varde?\nAnswer: Lune", True),
        (_MONEY, "The yen.", True),
        (_MONEY, "The won.", False),
    ],
)
def test_what_stands_around_an_answer(row: tuple[str, list[str]], reply: str, passed: bool) -> None:
    question, accepted = row
    found = evaluate_answer(
        "short_answer", {"question": question}, {"accepted_answers": accepted}, reply, parity=False
    )
    assert found.passed is passed
