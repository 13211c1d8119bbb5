"""Free replies held to their entries: what contradicts, what stands for an entry, what words are sure of."""

from __future__ import annotations

import pytest
from text_rows import evaluate_answer

from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, Sureness

_BEES = "How much honey does a hive give?"
_HONEY = ("The hive gives about twenty kilograms per year",)
_OPEN = "Is the museum open on Mondays?"
_SHUT = ("No, the museum is closed on Mondays", "It is not open on Mondays")


def found(prompt: str, accepted: tuple[str, ...], reply: str, *rejected: str) -> AnswerFinding:
    rubric = {"type": "contains_any", "accepted_answers": [*accepted], "min_token_f1": 0.6}
    if rejected:
        rubric["rejected_answers"] = [*rejected]
    return evaluate_answer("free_response", {"prompt": prompt}, {"rubric": rubric}, reply, parity=False)


@pytest.mark.parametrize(
    "reply",
    [
        "The hive gives about twenty kilograms per week.",
        "The hive gives about fifty kilograms per year.",
        "The hive gives about twenty grams per year.",
        "The hive never gives about twenty kilograms per year.",
    ],
)
def test_another_number_unit_or_period_is_no_match(reply: str) -> None:
    assert not found(_BEES, _HONEY, reply).passed


@pytest.mark.parametrize(
    "reply",
    [
        "The hive gives 20 kg a year.",
        "Around 20 kilograms yearly.",
        "A hive gives roughly 20,000 g each year, but it depends on the weather.",
    ],
)
def test_numbers_units_and_periods_have_one_form(reply: str) -> None:
    assert found(_BEES, _HONEY, reply).passed


def test_the_same_words_the_other_way_round_are_no_match() -> None:
    accepted = ("The hare beat the tortoise",)
    assert not found("Who won?", accepted, "The tortoise beat the hare.").passed
    assert found("Who won?", ("Ann and Bob beat Carl",), "Bob and Ann beat Carl.").passed


def test_an_opposite_word_is_no_match() -> None:
    accepted = ("The pressure decreases with height",)
    assert not found("What about pressure?", accepted, "The pressure increases with height.").passed
    twice = ("It is lower since the pressure is lower",)
    assert not found("What of it?", twice, "It is higher since the pressure is lower").passed
    assert not found(
        "Is it safe?", ("It is safe only while fully closed",), "It is safe only while partly closed"
    ).passed


def test_what_the_prompt_says_need_not_be_said_again() -> None:
    prompt, accepted = "Which town produces the most cider?", ("Ashby produces the most cider",)
    rejected = "Corley produces the most cider"
    assert found(prompt, accepted, "Ashby", rejected).passed
    assert found(prompt, accepted, "It is Ashby, not Corley.", rejected).passed
    assert not found(prompt, accepted, "Corley", rejected).passed


@pytest.mark.parametrize(
    ("reply", "passed"),
    [
        ("No. They clean it.", True),
        ("Yes, from nine to five.", False),
        ("The museum cannot be visited on Mondays.", True),
        ("No other day is as busy.", False),
    ],
)
def test_a_question_for_yes_or_no_is_answered_by_one_of_them(reply: str, passed: bool) -> None:
    assert found(_OPEN, _SHUT, reply, "Yes, it is open on Mondays").passed is passed


def test_a_name_in_another_role_is_not_the_answer() -> None:
    names = ("Ida Holm",), "Anna Berg"
    assert found("Who won?", names[0], "Ida Holm, ahead of Anna Berg.", names[1]).passed
    assert found("Who won?", names[0], "Ida Holm; Anna Berg came later.", names[1]).passed
    assert not found("Who won?", names[0], "Anna Berg, ahead of Ida Holm.", names[1]).passed
    assert not found("Who won?", names[0], "Ida Holm and Anna Berg", names[1]).passed


@pytest.mark.parametrize(
    ("reply", "passed", "certain"),
    [
        ("Snails cannot fly. They crawl on a foot of muscle.", True, True),
        ("Snails can't fly: they crawl.", True, True),
        ("Snails cannot fly, or so they say.", True, False),
        ("Snails cannot fly. But some glide.", True, False),
        ("Snails can fly.", False, True),
        ("Snails can fly when the wind is strong.", False, False),
        ("Some snails fly. They glide on a film of slime.", False, True),
        ("Some snails fly. They glide.", False, False),
    ],
)
def test_what_begins_with_an_entry_and_goes_on_is_sure(reply: str, passed: bool, certain: bool) -> None:
    one = found("What can snails do?", ("Snails cannot fly",), reply, "Some snails fly")
    assert (one.passed, one.certain) == (passed, certain)


@pytest.mark.parametrize(
    ("reply", "sureness"),
    [
        ("No, they eat nothing at all once they are grown up.", Sureness.GUESSED),
        ("Most of them are drawn to lamps.", Sureness.UNSURE),
        ("Adult moths chew holes in clothes, day and night.", Sureness.GUESSED),
    ],
)
def test_a_failure_is_unsure_where_a_reply_meets_and_denies_no_entry(reply: str, sureness: Sureness) -> None:
    one = found(
        "Do adult moths eat clothes?", ("Yes, they do eat them",), reply, "Adult moths chew holes in clothes"
    )
    assert (one.passed, one.sureness) == (False, sureness)


_BOILS = "Water boils at a lower temperature at high altitude"
_MYTH = "Water boils at a higher temperature at high altitude"


@pytest.mark.parametrize(
    ("reply", "passed", "sureness"),
    [
        (f"{_BOILS}. That statement is incorrect.", False, Sureness.UNSURE),
        (f"{_BOILS}. This claim does not hold.", False, Sureness.UNSURE),
        (f"{_BOILS}. I made that up.", False, Sureness.UNSURE),
        (f"{_BOILS}. Scratch that, it is higher.", False, Sureness.UNSURE),
        (f"{_BOILS}. April fools!", False, Sureness.UNSURE),
        (f"{_BOILS}. Just kidding: it is the other way round.", False, Sureness.UNSURE),
        (f"{_MYTH}. Correction: {_BOILS.lower()}.", True, Sureness.UNSURE),
        (f"{_MYTH}. False!", True, Sureness.UNSURE),
        (f"{_BOILS}. That is why pasta takes longer there.", True, Sureness.CERTAIN),
        (f"{_BOILS}. That is not a problem for cooks.", True, Sureness.GUESSED),
        (f"{_BOILS}. The idea that it boils later is a myth.", True, Sureness.GUESSED),
    ],
)
def test_what_a_reply_takes_back_it_has_not_said(reply: str, passed: bool, sureness: Sureness) -> None:
    one = found("How does altitude change boiling?", (_BOILS,), reply, _MYTH)
    assert (one.passed, one.sureness) == (passed, sureness)


def test_a_number_far_from_the_entrys_in_its_own_words_is_surely_wrong() -> None:
    accepted = ("A spider has eight legs",)
    assert found("Legs?", accepted, "A spider has six legs.").certain
    assert not found("Legs?", accepted, "A spider has six long legs.").certain
    assert not found("Weight?", ("It weighs 10 kg",), "It weighs 9.8 kg").certain


_MOTH = "What does a clothes moth eat?"
_LARVAE = ("The larvae eat wool, adult moths eat nothing", "Moth larvae feed on wool and other animal fibres")
_GROWN = ("Adult moths chew holes in clothes", "Moths live on cotton and dust")


@pytest.mark.parametrize(
    ("reply", "passed"),
    [
        ("It's the larvae that do the damage: wool, silk and similar fibres are their food.", True),
        ("That adult moths chew holes is a myth; their young live in wool.", True),
        ("Contrary to the old saying, grown moths don't chew on anything. Larvae go for wool.", True),
        ("The adults chew their way through cotton clothes.", False),
        ("It is a myth that larvae eat wool: the moths live on cotton.", False),
        ("I'm not sure whether the larvae eat wool or other animal fibres.", False),
        ("Moths are drawn to light.", False),
        ("That grown moths chew holes in clothes is a trope; wool is food for the larvae.", True),
        ("Adult moths chew holes in clothes, larvae don't eat wool.", False),
    ],
)
def test_a_paraphrase_leans_to_the_entries_whose_words_it_says(reply: str, passed: bool) -> None:
    one = found(_MOTH, _LARVAE, reply, *_GROWN)
    assert (one.passed, one.certain) == (passed, False)


def test_a_paraphrase_of_a_rubric_without_a_second_side_is_no_match() -> None:
    reply = "Woollen things, or rather the wool in those: larvae are able to live on that alone."
    assert found(_MOTH, _LARVAE, reply, *_GROWN).passed
    assert not found(_MOTH, _LARVAE, reply).passed


@pytest.mark.parametrize(
    ("reply", "passed"),
    [
        ("Nope! Cleaning goes on all day.", True),
        ("Almost certainly not.", True),
        ("That's a popular misconception.", True),
        ("That the museum is open on Mondays is simply false.", True),
        ("There's no evidence for that.", True),
        ("It is closed on Mondays.", True),
        ("Absolutely, from nine to five.", False),
        ("I don't know whether it is open on Mondays.", False),
    ],
)
def test_yes_and_no_have_many_words(reply: str, passed: bool) -> None:
    assert found(_OPEN, _SHUT, reply, "Yes, it is open on Mondays").passed is passed


def test_an_entry_that_only_denies_the_prompt_is_met_by_all_of_it() -> None:
    accepted, rejected = ("No, owls are not deaf", "Owls hear well"), "Yes, owls are deaf"
    assert not found("Are owls deaf?", accepted, "Owls have no hearing.", rejected).passed


def test_an_entry_that_begins_with_no_denies_once() -> None:
    accepted = ("No, owls are not deaf", "Owls hear well")
    one = found(
        "Are owls deaf?", accepted, "Owls aren't deaf. Some of them hear a mouse.", "Yes, owls are deaf"
    )
    assert one.passed
