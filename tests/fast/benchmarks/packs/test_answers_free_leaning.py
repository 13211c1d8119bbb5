"""Free replies in words of their own: denials, other words of the same meaning, what is only reported or conceded."""

from __future__ import annotations

import pytest
from text_rows import evaluate_answer

from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding
from pytest_helmbench.benchmarks.packs.families.text.meanings import meaning

_HONEY = (
    "Does raw honey spoil in a closed jar?",
    (
        "No, honey does not spoil in a closed jar.",
        "Honey keeps for decades because it holds so little water.",
    ),
    ("Yes, honey goes bad after a year.", "Honey grows mould in a closed jar."),
)
_PLUM = (
    "What happens to a plum stone that you swallow?",
    ("It leaves the body undigested after a day or two.", "Nothing serious happens."),
    ("The stone grows into a tree inside you.", "The stone blocks your gut and you die."),
)
_TOWER = (
    "Why does the old tower lean?",
    ("The tower leans because the soil below it is soft.", "Soft ground on one side let it sink."),
    ("The tower leans because the builders made a mistake.", "An earthquake tilted it."),
)
_OWLS = (
    "Are owls deaf?",
    ("No, owls are not deaf.", "Owls hear well."),
    ("Yes, owls are deaf.", "Owls rely on their eyes alone."),
)
_MARE = (
    "Can a mare give birth to twins?",
    ("Yes, it is possible for a mare to have twins.", "It happens, but seldom."),
    ("No, a mare cannot have twins.", "It is impossible for horses."),
)


def judged(row: tuple[str, tuple[str, ...], tuple[str, ...]], reply: str) -> AnswerFinding:
    rubric = {
        "type": "contains_any",
        "accepted_answers": [*row[1]],
        "rejected_answers": [*row[2]],
        "min_token_f1": 0.6,
    }
    return evaluate_answer("free_response", {"prompt": row[0]}, {"rubric": rubric}, reply, parity=False)


def failures(row: tuple[str, tuple[str, ...], tuple[str, ...]], replies: dict[str, bool]) -> list[str]:
    found = {reply: judged(row, reply) for reply in replies}
    assert not any(one.certain for one in found.values())
    return [reply for reply, one in found.items() if one.passed is not replies[reply]]


def test_a_reply_denies_what_it_is_asked_in_many_words() -> None:
    replies = {
        "Despite what the date on the lid suggests, no.": True,
        "Contrary to popular belief, it does not.": True,
        "This is a widespread tale.": True,
        "There is no known case of that.": True,
        "The notion is wrong and was spread by grocers.": True,
        "Not while the lid is on.": True,
        "It does, so eat it soon.": False,
        "Sure, like any other food.": False,
        "No other sweet is so old.": False,
    }
    assert failures(_HONEY, replies) == []


def test_a_denial_of_what_accepted_entries_say_is_none_of_theirs() -> None:
    replies = {
        "Owls have no hearing.": False,
        "They hear nothing at all.": False,
        "Owls are anything but deaf, their hearing is superb.": True,
    }
    assert failures(_OWLS, replies) == []


def test_other_words_of_one_meaning_speak_for_an_entry() -> None:
    replies = {
        "It is excreted whole, usually within a day.": True,
        "That is harmless.": True,
        "As far as anyone knows, it's safe.": True,
        "It sprouts, and a plum tree grows in your belly.": False,
        "It gets stuck in the bowel, which is lethal.": False,
    }
    assert failures(_PLUM, replies) == []


def test_what_is_reported_or_conceded_is_not_said() -> None:
    replies = {
        "The story that the builders made a mistake is often told, but soft soil is the reason.": True,
        "Although an earthquake is sometimes mentioned, it stands on soft ground.": True,
        "Although the ground is sometimes mentioned, the builders made a mistake.": False,
        "An earthquake, in spite of what they say of the ground.": False,
    }
    assert failures(_TOWER, replies) == []


def test_two_denials_are_none() -> None:
    replies = {
        "It's a myth that she can't.": True,
        "It is a myth that she can.": False,
        "It is not possible.": False,
    }
    assert failures(_MARE, replies) == []


@pytest.mark.parametrize(
    "reply",
    [
        "I can't give advice on food. Please ask a nutritionist or an expert.",
        "Scientists are not sure.",
        "As an AI, I do not eat honey.",
        "No comment.",
    ],
)
def test_who_does_not_answer_says_nothing(reply: str) -> None:
    assert not judged(_HONEY, reply).passed


def test_what_is_called_false_ends_where_the_claim_is_named() -> None:
    row = (
        "Do carp live only one year?",
        ("No, carp can live for decades.", "Carp live for twenty years or more."),
        ("Yes, carp die after one year.", "Carp have a life of one year."),
    )
    replies = {
        "Some ponds hold carp that have been there for decades, so the claim is false.": True,
        "Fishermen know carp that lived for decades, thus that's wrong.": True,
        "A carp dies within one year, so the idea of old carp is false.": False,
    }
    assert failures(row, replies) == []


def test_what_used_to_be_is_not_said() -> None:
    row = (
        "How many bells hang in the tower?",
        ("Four bells hang in the tower.", "Four, since one was sold."),
        ("Five bells hang in the tower.", "Six."),
    )
    replies = {
        "It used to be five, but one was sold, so four bells are left.": True,
        "There used to be four, but now five bells hang there.": False,
        "Five bells, and it was always so.": False,
    }
    assert failures(row, replies) == []


def test_a_rejected_entry_in_its_own_words_is_not_outweighed() -> None:
    row = (
        "Are snails immune to frost?",
        ("No, snails can freeze.", "Frozen ones have been found in many gardens."),
        ("Yes, snails never freeze.", "Snail slime protects against frost."),
    )
    assert not judged(row, "Snails don't freeze, thanks to their slime.").passed
    assert not judged(row, "Not one snail ever freezes.").passed
    assert judged(row, "In hard winters they do freeze, so no.").passed


def test_an_aim_that_is_denied_denies_nothing() -> None:
    row = (
        "Should you tie a sapling to a stake?",
        ("No, you should never tie a sapling.", "Leave it free without tying it to anything."),
        ("You should tie it to keep it from falling over.", "Fix it with wire."),
    )
    assert not judged(row, "Fasten it with a wire so that it doesn't fall over.").passed


def test_a_single_word_of_an_entry_in_a_short_reply_is_no_paraphrase() -> None:
    assert not judged(_TOWER, "Because of the soil.").passed
    assert not judged(_PLUM, "Bodies are warm.").passed


def test_words_have_meanings_and_opposites() -> None:
    assert meaning("toxicity")[0] == meaning("poisonous")[0] == meaning("hazard")[0]
    assert meaning("harmless") == meaning("safe") == (meaning("danger")[0], -1)
    assert meaning("painless") == (meaning("sting")[0], -1)
    assert meaning("gatepost") == ("gatepost", 1)


@pytest.mark.parametrize(
    "reply", ["3/0 of them.", "1.5/0 of them.", "1.5/2 of them.", "7 in 0 of them.", "٣/٠ of them."]
)
def test_amounts_that_are_no_numbers_are_judged(reply: str) -> None:
    rubric = {"type": "contains_any", "min_token_f1": 0.6, "accepted_answers": ["About 25 percent of them"]}
    given = {"prompt": "What percentage of them live there?"}

    assert not evaluate_answer("free_response", given, {"rubric": rubric}, reply, parity=False).passed
