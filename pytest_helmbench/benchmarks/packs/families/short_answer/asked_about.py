"""Clauses of a short_answer statement, held to the words of the question: which of them speaks of what is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

from pytest_helmbench.benchmarks.packs.families.text.calendar_words import MONTHS_AND_DAYS
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.number_words import WRITTEN_NUMBERS
from pytest_helmbench.benchmarks.packs.families.text.stems import stem
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import FUNCTION_WORDS, folded, sentences, words

__all__ = [
    "LEAST_SHARED",
    "MOST_CLAUSES",
    "SUBORDINATE",
    "asked_clause",
    "asked_stems",
    "clauses",
    "content",
    "names_in",
    "shared_words",
]

MOST_CLAUSES = 60
_CLAUSE_END = re.compile(
    r"[;:!?\n]\s*|\.(?=\s|$)|,(?!(?<=\d,)\s[12]\d{3}(?!\d))\s"
    r"|\s(?:-|but|however|yet)\s|(?<![.!?])\s(?:while|whereas|although|though)\s",
    re.IGNORECASE,
)
_NUMBER_CLAUSE_END = re.compile(rf"{_CLAUSE_END.pattern}|\s(?P<joined>and)\s", re.IGNORECASE)
_QUESTIONS = re.compile(r"[^.!?;\n]{1,200}\?")
_BEGINS_WITH_VALUE = re.compile(
    r"\s*[$€£~≈]?\s?(?:\d|(?:" + "|".join(WRITTEN_NUMBERS) + r")(?!\w))", re.IGNORECASE
)
_CONCLUDES = re.compile(
    r"(?<!\w)(?:so|therefore|thus|hence|then|altogether|total|finally|answer|result|gives?|makes?|leaves?"
    r"|actually|rather|instead|correction|pay|left|remain\w*)(?!\w)|[=→≈⇒]"
)
_CONTRASTS = re.compile(r"\s*(?:while|whereas)\s", re.IGNORECASE)
_LEADS_ON = re.compile(
    r"^(?:and\s)?(?:so|therefore|thus|hence|this means|that means),?\s(?:that\s)?", re.IGNORECASE
)
_AMOUNT_BEHIND = re.compile(r":\s[$€£]?[\d.,]*\d(?:\s?[^\W\d]+)?[.!]?\s*$")
"""`..., plus 15 more: 45 days.`"""
_ASKS_SOMETHING = word_set(
    "what which who whom whose when where why how many much long far old is are was were do does did has have had can",
    "could will would should name give list find solve calculate compute convert simplify determine answer",
    "the a an of in on at to for by with from and or it its there that this one your be as",
)
SUBORDINATE = re.compile(
    rf"\s*{any_of('after before when while although though because since if as once until despite')}\s",
    re.IGNORECASE,
)
LEAST_SHARED = 2
_WRITES, _PAINTS = {"author", "writer"}, {"painter", "artist"}
_LIKE = {
    "left": {"remain", "keep"},
    "old": {"ag", "aged"},
    "wrote": _WRITES,
    "written": _WRITES,
    "write": _WRITES,
    "painted": _PAINTS,
    "composed": {"composer"},
    "directed": {"director"},
    "invented": {"inventor"},
    "founded": {"founder"},
    "designed": {"designer", "architect"},
    "discovered": {"discoverer"},
}
"""What else answers a question with one of these words."""
_NAME_INSIDE = re.compile(r"(?<=[\w,;:]\s)[A-ZÀ-Þ][^\W\d_]+")
_STARTS = word_set(
    "each every some many several most both all another other these those such later today however originally also",
    "one two three its their his her our no only just even still here now first second then although though despite",
    "according among between until upon once whose yet unlike like over under more less about born known named located",
)
"""Words that begin a sentence with a capital letter and are no names."""
_ASKS_FOR_DATE = re.compile(r"(?<!\w)(?:when|months?|days?|dates?|weekdays?)(?!\w)")
_NAME = re.compile(r"(?<![\w'])[A-ZÀ-Þ][^\W\d_]+")


def asked_stems(question: str) -> frozenset[str]:
    """Return what the words of the asking sentence have in common with other forms of them, without small words."""
    asking = [sentence for sentence in sentences(question) if sentence.strip()]
    sentence = next((one for one in reversed(asking) if one.endswith("?")), asking[-1] if asking else "")
    stems = {stem(word) for word in content(sentence) if not word[0].isdigit() and len(word) > 1}
    asked = words(lowered(sentence))
    return frozenset(stems.union(*(others for one, others in _LIKE.items() if one in asked)))


def asked_clause(statement: str, question: str, *, has_value: re.Pattern[str]) -> str | None:
    """Return the clause that speaks of what is asked more than every other one with a value; None where none does.

    A statement that works its way to a conclusion (`so`, `=`) has its answer at the end, whatever its clauses speak of.

    Args:
        statement: Plain.
        question: As asked.
        has_value: What a clause must hold to count.
    """
    stems = asked_stems(question)
    if not stems:
        return None
    stated = _QUESTIONS.sub(" ", statement)
    parts = [
        part for part in _joined(clauses(stated, _NUMBER_CLAUSE_END)) if has_value.search(part) is not None
    ]
    main = [part for part in parts if SUBORDINATE.match(part) is None or _CONTRASTS.match(part) is not None]
    if len(parts) > len(main) == 1:
        return main[0]
    concludes = bool(parts) and _concludes(lowered(statement), len(parts[0]), has_value)
    if concludes and (said := _last_sentence(statement)) is not None:
        return asked_clause(said, question, has_value=has_value)
    if len(parts) < 2 or concludes:
        return None
    if _AMOUNT_BEHIND.search(statement) is not None:
        return None
    names = {stem(folded(name)) for name in _NAME_INSIDE.findall(question)}
    shared = [
        2 * shared_words(part, stems - names) + min(1, shared_words(part, stems & names)) for part in parts
    ]
    best = max(shared)
    place = shared.index(best)
    is_only_worked_out = "=" in parts[place] and _leads_on(parts[place + 1 :])
    return parts[place] if best and shared.count(best) == 1 and not is_only_worked_out else None


def _leads_on(parts: Sequence[str]) -> bool:
    """Return whether a clause that begins a sentence leads to another one: `After eating two, he has 10.`"""
    return any(
        SUBORDINATE.match(one) is not None and SUBORDINATE.match(other) is None
        for one, other in pairwise(parts)
    )


def _concludes(low: str, start: int, has_value: re.Pattern[str]) -> bool:
    """Return whether a text in lower case works its way to a value: `so the solution is acidic` has none."""
    return any(
        has_value.search(next(iter(sentences(low[found.end() :])), "")) is not None
        for found in islice(_CONCLUDES.finditer(low, start), MOST_CLAUSES)
    )


def _last_sentence(statement: str) -> str | None:
    """Return the sentence behind the conclusion of a statement: `So x = 12. Bob is 12 and Ann is 24.`"""
    parts = [*islice(sentences(statement), MOST_CLAUSES)]
    last = _LEADS_ON.sub("", parts[-1]) if parts else ""
    return last if last and last != statement.strip() else None


def clauses(statement: str, ends: re.Pattern[str] = _CLAUSE_END) -> Iterator[str]:
    start = 0
    for found in islice(ends.finditer(statement), MOST_CLAUSES):
        if statement[start : found.start()].strip():
            yield statement[start : found.start()]
        start = found.start() if found.groupdict().get("joined") else found.end()
    if statement[start:].strip():
        yield statement[start:]


def _joined(parts: Iterable[str]) -> list[str]:
    """Return clauses, without those that `and` has cut between two values: `two hundred and fifty`."""
    joined: list[str] = []
    for part in parts:
        behind = part.lstrip()
        is_cut = behind.lower().startswith("and ")
        if joined and is_cut and _BEGINS_WITH_VALUE.match(behind[4:]) and _is_value(joined[-1]):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def _is_value(part: str) -> bool:
    """Return whether a clause ends in a number, or in one word behind a number."""
    last = part.split()[-2:]
    return any(_BEGINS_WITH_VALUE.match(word) is not None for word in last) or last[-1:] in (
        ["hundred"],
        ["thousand"],
    )


def content(text: str) -> list[str]:
    return [
        word
        for word in words(lowered(text))
        if word not in _ASKS_SOMETHING and (word not in FUNCTION_WORDS or word == "won")
    ]


def shared_words(part: str, stems: frozenset[str]) -> int:
    return len(stems & {stem(word) for word in words(lowered(part))})


def names_in(part: str, known: str) -> list[str]:
    """Return the names in a part, folded, that the question does not have; a small word at its start is none.

    Nor is a month or a day of the week, unless the question asks for one.
    """
    found = (folded(name) for name in _NAME.findall(part))
    dates = frozenset[str]() if _ASKS_FOR_DATE.search(known) is not None else MONTHS_AND_DAYS
    return [
        name
        for name in found
        if name not in FUNCTION_WORDS
        and name not in _ASKS_SOMETHING
        and name not in known
        and name not in dates
        and name not in _STARTS
    ]
