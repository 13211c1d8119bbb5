"""Choices that a multiple_choice reply merely mentions: enough for an answer where there is one only."""

from __future__ import annotations

import re
from functools import lru_cache

from pytest_helmbench.benchmarks.packs.families.multiple_choice.labels import (
    Choices,
    Picks,
    read_picks,
)
from pytest_helmbench.benchmarks.packs.families.multiple_choice.statements import SHORT, Statement
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import is_denied_answer
from pytest_helmbench.benchmarks.packs.families.text.wording import sentences, unmarked, whole_places

__all__ = ["mentions", "only_mention"]

_NO = re.compile(r"(?:no|nope)(?!\w)", re.IGNORECASE)


def mentions(text: str, choices: Choices, start: int = 0) -> list[Statement]:
    """Return the only choice that a short plain text, or the last line of a long one, mentions; else nothing.

    Args:
        text: Plain.
        choices: Of the row.
        start: What stands before it does not count.
    """
    own = unmarked(text[start:]).strip()
    candidates = [*sentences(own.rpartition("\n")[2][-SHORT:])][-1:]
    if len(own) <= SHORT:
        candidates.append(" ".join(filter(_states, sentences(own))))
    for candidate in candidates:
        picks = only_mention(candidate, choices)
        if picks is not None:
            return [Statement(max(start, text.rfind(candidate[:20])), len(text), picks.indices, "mention")]
    return []


def _states(sentence: str) -> bool:
    """Return whether a sentence states something: it asks nothing, and does not say no to what was asked."""
    return not sentence.endswith("?") and _NO.match(sentence) is None


def only_mention(text: str, choices: Choices) -> Picks | None:
    """Return the one choice that a text mentions without denying it; None for none or several."""
    text = " ".join(text.split())
    if text.endswith("?"):
        return None
    low = lowered(text)
    named: dict[int, tuple[int, int]] = {}
    for found in _mention_pattern(choices.letters).finditer(text):
        picks = read_picks(found[0].strip("()[]"), choices)
        if picks is not None:
            named[min(picks.indices)] = found.span()
    covered = low
    for index in choices.by_length:
        choice = choices.texts[index]
        if len(choice) == 1 and choice.isalpha():
            continue
        place = next(whole_places(covered, choice), None)
        if place is not None:
            named.setdefault(min(choices.same(index)), place)
            covered = covered.replace(choice, "\0" * len(choice))
    affirmed = [
        index
        for index, place in named.items()
        if not is_denied_answer(low, *place, wrong_wanted=choices.wrong_wanted)
    ]
    return Picks(choices.same(affirmed[0]), len(text)) if len(affirmed) == 1 else None


@lru_cache(maxsize=26)
def _mention_pattern(letters: str) -> re.Pattern[str]:
    no_words = "".join(letter for letter in letters if letter.isascii() and letter not in "AIO") or "B"
    return re.compile(
        rf"[(\[][{letters}][)\]]"
        rf"|(?<![\w'-])(?:[{no_words}](?![\w'+#&/-])|[AIO](?=\s*(?:[.,!;)/]|(?:and|or)\b|$)))"
    )
