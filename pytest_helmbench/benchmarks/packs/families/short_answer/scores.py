"""Scores of two sides: one form for them, and who has won by how many: `Germany won 7-1`, `Spain 1, Netherlands 0`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.text.number_words import WRITTEN_NUMBERS
from pytest_helmbench.benchmarks.packs.families.text.plain import plain
from pytest_helmbench.benchmarks.packs.families.text.wording import sentences
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["says_score", "steps_of_scores"]

_MOST_SENTENCES = 40
_SIDE = r"[A-ZÀ-Þ][\w.']+(?:\s[A-ZÀ-Þ&][\w.']*){0,3}"
_SCORE = re.compile(rf"(?:{_SIDE}\s)?\d{{1,3}}\s?[-–]\s?\d{{1,3}}(?:\s{_SIDE})?")
_SIDES = re.compile(
    rf"(?P<one>{_SIDE})\s(?P<first>\d{{1,3}})\s?(?:,|and|-|–)?\s(?P<other>{_SIDE})\s(?P<second>\d{{1,3}})(?![\w%]|[.,-]\d)"
)
"""`England 4, West Germany 2`."""
_WORDS = WRITTEN_NUMBERS[:21]  # zero to twenty: each stands where its value says
_COLON = re.compile(r"(?<![\w:.,])(\d{1,3})\s?:\s?(\d{1,3})(?![\w:]|[.,]\d)")
_TO = re.compile(
    rf"(?<![\w-])(?P<first>{'|'.join(_WORDS)}|\d{{1,3}})\s(?:goals?\s|points?\s|runs?\s|games?\s|sets?\s)?"
    rf"to\s(?P<second>{'|'.join(_WORDS)}|nil|love|\d{{1,3}})(?![\w-])",
    re.IGNORECASE,
)
_BOTH = re.compile(rf"(?P<one>{_SIDE})\s(?P<first>\d{{1,3}})-(?P<second>\d{{1,3}})\s(?P<other>{_SIDE})")
_TO_SIDE = re.compile(rf"(?P<first>\d{{1,3}})-(?P<second>\d{{1,3}})\s(?:to|for)\s(?:the\s)?(?P<one>{_SIDE})")
_BARE = re.compile(r"(?<![\w.,-])(?P<first>\d{1,3})-(?P<second>\d{1,3})(?![\w%-]|[.,]\d)")
_WINS = (
    r"(?:w[io]n(?:s|ning|ners?)?|beat(?:s|ing)?|defeat(?:ed|s|ing)?|thrash\w*|triumph\w*|victor\w*|overcame)"
)
_LOSES = r"(?:lost|loses?|losing|(?:was|were|been)\s(?:\w+ly\s)?(?:beaten|defeated|thrashed)|went\sdown|fell)"
_VERB = re.compile(rf"(?<!\w)(?:(?P<loses>{_LOSES})|(?P<wins>{_WINS}))(?!\w)[^.;!?\d]{{0,60}}$")
_BEHIND = re.compile(
    r"\s?(?:(?:win|victory|triumph)\s(?:for|by)|in\sfavou?r\sof|to|for)\s(?:the\s)?(?P<name>[A-ZÀ-Þ][\w.']*(?:\s[A-ZÀ-Þ][\w.']*){0,4})"
)
_ASKS_FOR_SCORE = re.compile(r"(?<!\w)(?:scores?|scoreline|results?)(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Score:
    """A score of two sides.

    Args:
        high: What the winner has.
        low: What the other side has.
        winner: Empty for one that is not named.
        loser: Likewise.
    """

    high: int
    low: int
    winner: str = ""
    loser: str = ""

    def agrees(self, other: _Score) -> bool:
        """Return whether two scores may be one: the same numbers, and no side that wins one and loses the other."""
        if (self.high, self.low) != (other.high, other.low):
            return False
        if self.high == self.low:
            return True
        sides = ((self.winner, other.winner), (self.loser, other.loser))
        if any(mine and theirs and mine != theirs for mine, theirs in sides):
            return False
        return not (self.winner and self.winner == other.loser) and not (
            self.loser and self.loser == other.winner
        )


def says_score(statement: str, accepted: Sequence[str], question: str) -> bool | None:
    """Return whether a statement says who has won by how many as the accepted answers do; None where it does not say.

    Args:
        statement: Plain, its scores in one form.
        accepted: As the row has them, in the same form.
        question: As asked.
    """
    if _ASKS_FOR_SCORE.search(question) is None:
        return None
    wanted = [score for answer in accepted if (score := _accepted(plain(answer))) is not None]
    wanted = [score for score in wanted if score.winner or score.loser] or wanted
    sides = sorted(
        {side for score in wanted for side in (score.winner, score.loser) if side}, key=len, reverse=True
    )
    if not sides:
        return None
    said = [*_scores(statement, sides)]
    if not said:
        return None
    return all(any(one.agrees(other) for other in wanted) for one in said)


def _accepted(answer: str) -> _Score | None:
    """Return the score that an accepted answer is; None for any other answer."""
    answer = answer.strip(" .")
    both = _BOTH.fullmatch(answer)
    if both is not None:
        return _of(both, both["one"], both["other"])
    one = _TO_SIDE.fullmatch(answer)
    if one is not None:
        high, low = sorted((int(one["first"]), int(one["second"])), reverse=True)
        return _Score(high, low, one["one"])
    bare = _BARE.fullmatch(answer)
    return None if bare is None else _of(bare, "", "")


def _of(found: re.Match[str], one: str, other: str) -> _Score:
    first, second = int(found["first"]), int(found["second"])
    return _Score(first, second, one, other) if first >= second else _Score(second, first, other, one)


def _scores(statement: str, sides: Sequence[str]) -> Iterator[_Score]:
    """Yield the scores of a statement whose winner or loser it names."""
    for sentence in islice(sentences(statement), _MOST_SENTENCES):
        for found in islice(_BARE.finditer(sentence), _MOST_SENTENCES):
            high, low = sorted((int(found["first"]), int(found["second"])), reverse=True)
            lead, behind = sentence[max(0, found.start() - 160) : found.start()], sentence[found.end() :]
            before = next((side for side in sides if lead.rstrip().endswith(side)), "")
            after = next((side for side in sides if behind.lstrip().startswith(side)), "")
            if before and after and before != after:
                yield _of(found, before, after)
                continue
            verb, to = _VERB.search(lead), _BEHIND.match(behind)
            subject = "" if verb is None else _last_side(lead[: verb.start()], sides)
            if subject and verb is not None:
                yield _Score(high, low, loser=subject) if verb["loses"] else _Score(high, low, subject)
            elif to is not None and to["name"].strip(".'") in sides:
                yield _Score(high, low, to["name"].strip(".'"))


def _last_side(text: str, sides: Sequence[str]) -> str:
    """Return the side that is named last in a text; empty for none."""
    places = [(text.rfind(side) + len(side), side) for side in sides if side in text]
    return max(places, default=(0, ""))[1]


def steps_of_scores(answers: Sequence[str]) -> Iterator[Callable[[str], str]]:
    """Yield what brings the scores of two sides into one form, where an answer is one."""
    if any(_SCORE.fullmatch(answer) is not None for answer in answers):
        yield lambda text: _COLON.sub(r"\1-\2", text)
        yield lambda text: _TO.sub(_score, _SIDES.sub(r"\g<one> \g<first>-\g<second> \g<other>", text))


def _score(found: re.Match[str]) -> str:
    return f"{_goals(found['first'])}-{_goals(found['second'])}"


def _goals(written: str) -> str:
    low = written.lower()
    return "0" if low in ("nil", "love") else str(_WORDS.index(low)) if low in _WORDS else written
