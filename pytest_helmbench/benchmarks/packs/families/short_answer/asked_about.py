"""Clauses of a short_answer statement, held to the words of the question: which of them speaks of what is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.short_answer.opposites import (
    says_another,
    says_opposite,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.people import PARTICLES, asks_for_person
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import denials
from pytest_helmbench.benchmarks.packs.families.text.number_words import WRITTEN_NUMBERS
from pytest_helmbench.benchmarks.packs.families.text.stems import stem
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import (
    FUNCTION_WORDS,
    folded,
    sentences,
    whole_places,
    words,
)

__all__ = ["asked_clause", "asked_stems", "comes_second", "opens_with_rival", "polarity", "rival_is_asserted"]

_MOST_CLAUSES = 60
_CLAUSE_END = re.compile(
    r"[;:!?\n]\s*|\.(?=\s|$)|,\s|\s(?:-|but|while|whereas|although|though|however|yet)\s", re.IGNORECASE
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
_AMOUNT_BEHIND = re.compile(r":\s[$€£]?[\d.,]*\d(?:\s?[^\W\d]+)?[.!]?\s*$")
"""`..., plus 15 more: 45 days.`"""
_ASKS_SOMETHING = word_set(
    "what which who whom whose when where why how many much long far old is are was were do does did has have had can",
    "could will would should name give list state find solve calculate compute convert simplify determine answer",
    "the a an of in on at to for by with from and or it its there that this one your be as",
)
_RANKED_BEHIND = re.compile(r"(?<!\w)(?:followed\sby|second\sto|ahead\sof|beating)\s(?:only\s|the\s|by\s)*$")
_ASKS_FOR_NEXT = re.compile(r"(?<!\w)(?:second|next|follow\w*|after|behind|beat\w*|lost|lose)(?!\w)")
_SUBORDINATE = re.compile(
    rf"\s*{any_of('after before when while although though because since if as once until despite')}\s",
    re.IGNORECASE,
)
_LEAST_SHARED = 2
_LIKE = {"left": {"remain", "keep"}, "old": {"ag", "aged"}}
"""What else answers a question with one of these words."""
_NAME_INSIDE = re.compile(r"(?<=[\w,;:]\s)[A-ZÀ-Þ][^\W\d_]+")
_BEFORE_ANSWER = re.compile(
    r"(?<!\w)(?:followed\sby|second\sto|next\sto|ahead\sof|after|before|since|behind|beating|over|rather\sthan|instead\sof)\s"
    r"(?:only\s|the\s|by\s)*$"
    r"|,\s(?:then|(?:together\s|along\s)?with(?:\s[\w'-]+){0,3}?(?:\s(?:in|of|by|to|for))?)\s(?:the\s)?$"
)
_OBJECT_OF = re.compile(
    rf"(?<!\w)(?P<verb>{any_of('beat beats defeated defeating edged replaced replacing succeeded succeeding preceded')}"
    r"|(?:(?:inspired|taught|mentored|influenced|commissioned|succeeded|replaced) by)"
    r"|in front of|alongside|against)\s(?:the\s)?$"
)
_ASKS_FOR_LOSER = re.compile(
    r"(?<!\w)(?:los[et]\w*|beaten|defeated|runners?-up|second|opponents?|rivals?|against|both)(?!\w)"
)
_EXCEEDS = re.compile(r"(?:is|are|was|were)\s(?:\w+\s)?(?:\w+er|more\s\w+|less\s\w+)\sthan\s(?:the\s)?$")
_ASKS_FOR_MOST = re.compile(r"(?<!\w)(?:\w{2,}est|most|least|best|worst)(?!\w)")
_RELATED_TO = re.compile(r",\s(?:(?:an?|the)\s)?(?:[\w'-]+\s){1,3}(?:of|to)\s(?:the\s)?$")
"""`Irène Joliot-Curie, daughter of`: where a person is asked for, the one named first is meant."""
_RELATED_BY_PLACE = re.compile(r",\s(?:[\w'.-]+\s){1,4}(?:to|from)\s(?:the\s)?$")
"""`Barcelona, 620 km from`, `the sequel to`."""
_LONGEST_NAME = 5
_RECONSIDERS = re.compile(
    rf"(?<!\w){any_of('actually no not but wait rather correct correction answer sorry however known called')}(?!\w)"
)
_HEAD_END = re.compile(
    r",\s|;\s|\s-\s|\s\(|\s(?:in|for|by|at|with|of)\s|\s(?:was|is|did|does)(?=\W*$)|\s\w+\s(?:it|this|that)(?!\w)"
)
_IT_IS = re.compile(
    r"\W*(?:[Ii]t|[Tt]hat|[Tt]his|[Tt]hey|[Hh]e|[Ss]he)(?:'s|\s(?:is|was|were))\s(?:\w+\s)?(?:by\s|in\s)(?:the\s)?"
    r"(?P<name>[A-ZÀ-Þ]\w+)"
)
"""`It was painted by Raphael.`"""
_BEGINS_WITH_NAME = re.compile(r"\W*(?P<name>[A-ZÀ-Þ]\w+)\s(?:[A-ZÀ-Þ]\w+\s)*[a-z]+(?!\w)")
_NO_RIVAL = word_set("yes no sure ok okay well hmm great right correct hello hi certainly thanks")
_NAME = re.compile(r"(?<![\w'])[A-ZÀ-Þ][^\W\d_]+")
_ASSERTS = re.compile(rf"(?<!\w){any_of('is are was were be it_was')}(?!\w)|'s\s", re.IGNORECASE)
_TURNS = re.compile(
    r"\W*(?:but\s|actually,?\s|in fact,?\s|really\s)+(?:it|that)(?:\s(?:is|was)|'s)\s(?:actually\s|really\s)?"
)
_SHORT = re.compile(
    r"(?:\w+ly,?\s)?"
    r"(?:(?:most|all|almost all|nearly all|many|none)(?:\sof\s(?:them|these|it|those))?"
    r"|it|they|he|she|that|this|there)\s(?:is|are|was|were|do|does|did|can|could|has|have|will|would)(?:n't|\snot)?"
    r"(?:\s(?:because|since|as)\s.*)?"
    r"|(?:it|that)'s\snot|(?:they|it|that|he|she)\s(?:can't|cannot|won't)(?:\s(?:because|since|as)\s.*)?"
)
_DESCRIBES = re.compile(
    r"\s*(?:and\s)?(?:it|he|she|they|this|that)(?:'s|\s(?:is|was|are|were|has|had))\s(?:also\s)?(?:an?|the|one|\w+ed)\s"
)
_RELATIVE = re.compile(r"\s*(?:which|who|where|whose|that)\s")
_LONG_WORD = 6
_IS_DENIED = re.compile(r"\s*(?:and\s)?not\s(?:by|in|from|on|at|of)?\s*")
_INFERS = re.compile(r"\s*(?:so|therefore|thus|hence)\s")
_THAN = re.compile(r"\sthan\s")
_AUXILIARY = word_set("is are was were do does did has have had can could will would should may must am")


def asked_stems(question: str) -> frozenset[str]:
    """Return what the words of the asking sentence have in common with other forms of them, without small words."""
    asking = [sentence for sentence in sentences(question) if sentence.strip()]
    sentence = next((one for one in reversed(asking) if one.endswith("?")), asking[-1] if asking else "")
    stems = {stem(word) for word in _content(sentence) if not word[0].isdigit() and len(word) > 1}
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
        part for part in _joined(_clauses(stated, _NUMBER_CLAUSE_END)) if has_value.search(part) is not None
    ]
    main = [part for part in parts if _SUBORDINATE.match(part) is None]
    if len(parts) > len(main) == 1:
        return main[0]
    if len(parts) < 2 or _CONCLUDES.search(lowered(statement), len(parts[0])) is not None:
        return None
    if _AMOUNT_BEHIND.search(statement) is not None:
        return None
    names = {stem(folded(name)) for name in _NAME_INSIDE.findall(question)}
    shared = [2 * _shared(part, stems - names) + min(1, _shared(part, stems & names)) for part in parts]
    best = max(shared)
    return parts[shared.index(best)] if best and shared.count(best) == 1 else None


def rival_is_asserted(statement: str, answer: str, accepted: Sequence[str], question: str) -> bool:
    """Return whether a clause without any accepted answer says of another name what the question asks.

    `Canberra is where parliament meets, but the capital is Sydney`: the clause of the answer shares fewer words with
    the question than the other one, or as many where that comes first.

    Args:
        statement: As written.
        answer: The accepted answer that it holds, folded.
        accepted: All of them, folded.
        question: As asked.
    """
    stems, known = asked_stems(question), folded(question)
    if not any(next(whole_places(folded(part), answer), None) for part in _clauses(statement)):
        return False  # it takes several clauses to say the answer
    with_answer, with_rival, first, before = -1, -1, True, 0
    for part in _clauses(statement):
        text = folded(part)
        own = _shared(part, stems)
        goes_on = text in (answer, *accepted) or _RELATIVE.match(part) is not None
        shared = max(own, before) if goes_on else own
        before = own
        if any(next(whole_places(text, one), None) is not None for one in (answer, *accepted)):
            with_answer = max(with_answer, shared)
        elif with_answer >= 0 and _TURNS.match(lowered(part)) is not None and _names(part, known):
            return True
        elif _names(part, known) and (
            _asserts(part) or (own and with_answer < 0 and _is_about_name(part, known))
        ):
            first = first and with_answer < 0
            with_rival = max(with_rival, shared)
    return with_rival > max(with_answer, 0) or (first and with_rival == with_answer >= _LEAST_SHARED)


def _is_about_name(part: str, known: str) -> bool:
    """Return whether a clause begins with a name that the question does not have, and goes on."""
    found = _BEGINS_WITH_NAME.match(part)
    return found is not None and found["name"].lower() in _names(part, known)


def _asserts(part: str) -> bool:
    """Return whether a clause says that something is so; one that only tells when or why does not."""
    low = lowered(part)
    is_about_another = _SUBORDINATE.match(part) is None and _DESCRIBES.match(low) is None
    return _ASSERTS.search(part) is not None and is_about_another and denials(low) % 2 == 0


def comes_second(statement: str, answer: str, question: str) -> bool:
    """Return whether a value is only named behind another one: `Saturn, followed by Jupiter`."""
    text, known = folded(statement), folded(question)
    for start, _ in islice(whole_places(text, answer), _MOST_CLAUSES):
        behind = _RANKED_BEHIND.search(text, max(0, start - 40), start)
        if behind is not None and _ASKS_FOR_NEXT.search(known) is None and text[: behind.start()].strip():
            continue
        if _is_exceeded(text, start, known):
            continue
        found = _BEFORE_ANSWER.search(text, max(0, start - 40), start)
        if found is None:
            found = _verb_before(text, start, question)
        if found is None:
            related = _RELATED_TO if asks_for_person(question) else _RELATED_BY_PLACE
            found = related.search(text, max(0, start - 40), start)
        if found is None:
            return False
        lead = text[: found.start()]
        if not any(name in lead for name in _names(statement, known)):
            return False
    return True


def _is_exceeded(text: str, start: int, known: str) -> bool:
    """Return whether something else is said to be more than a value, where what is most is asked for."""
    found = _EXCEEDS.search(text, max(0, start - 40), start)
    is_most = _ASKS_FOR_MOST.search(known) is not None and " than " not in known
    return (
        found is not None
        and is_most
        and denials(text[: found.start()]) == 0
        and bool(text[: found.start()].strip())
    )


def _verb_before(text: str, start: int, question: str) -> re.Match[str] | None:
    """Return the verb before a value of which another one is the subject, unless the question asks with it."""
    found = _OBJECT_OF.search(text, max(0, start - 40), start)
    if found is None or _ASKS_FOR_LOSER.search(lowered(question)) is not None:
        return None
    return None if stem(found["verb"].split()[0]) in asked_stems(question) else found


def opens_with_rival(statement: str, answer: str, question: str) -> bool:
    """Return whether a reply names another one in a sentence of its own, then only tells of the answer.

    `Yangon. The government planned to move to Naypyidaw.`
    """
    parts = [*islice(sentences(statement), _MOST_CLAUSES)]
    rest = " ".join(parts[1:])
    if not rest or _RECONSIDERS.search(lowered(rest)) is not None:
        return False
    named = _IT_IS.match(parts[0])
    if named is not None and named["name"].lower() not in words(folded(question)):
        return not (next(whole_places(folded(parts[0]), answer), None) or _says_of_it(rest, answer, question))
    head = _HEAD_END.split(parts[0], maxsplit=1)[0]
    first, behind = words(head), folded(rest)
    if not 0 < len(first) <= _LONGEST_NAME or not all(
        word[0].isupper() or word in PARTICLES for word in first
    ):
        return False
    if head != parts[0] and (
        first[0].isdigit() or _says_of_it(rest, answer, question) or parts[0].endswith("?")
    ):
        return False
    if _NO_RIVAL.intersection(map(str.lower, first)) or any(whole_places(folded(parts[0]), answer)):
        return False
    is_told = next(whole_places(behind, answer), None) is not None
    return (
        is_told and len(words(behind)) > len(words(answer)) + 1 and bool(_names(parts[0], folded(question)))
    )


def _says_of_it(rest: str, answer: str, question: str) -> bool:
    """Return whether a sentence says of an answer what the question asks."""
    stems = asked_stems(question)
    return any(
        _ASSERTS.search(part) is not None and _shared(part, stems) >= _LEAST_SHARED
        for part in islice(sentences(rest), _MOST_CLAUSES)
        if next(whole_places(folded(part), answer), None) is not None
    )


def _is_yes_or_no(question: str) -> bool:
    """Return whether a question asks for yes or no."""
    asking = [*sentences(question)]
    first = words(lowered(asking[-1]))[:1] if asking else []
    return bool(first) and first[0] in _AUXILIARY and " or " not in question


def polarity(statement: str, question: str) -> bool | None:
    """Return what a statement without yes or no says to a yes-or-no question; None where it says neither.

    The clause that repeats the question's words counts: denied it is a no. `It is not.` says no, too.
    """
    if not _is_yes_or_no(question) or denials(lowered(question)):
        return None
    stems = asked_stems(question)
    asked = _content(question)
    best: tuple[int, str] = (0, "")
    concluded: str | None = None
    for part in _clauses(statement):
        if _SHORT.fullmatch(lowered(part).strip()) is not None:
            return denials(lowered(part)) == 0
        # What the question is about (`221`) says nothing yet: a word of the predicate has to come back.
        said = words(lowered(part))
        if _IS_DENIED.match(lowered(part)) and {*_content(_IS_DENIED.sub("", lowered(part)))} <= {*asked}:
            return False
        if any(_is_like(word, one) for word in asked[1:] for one in said):
            best = max(best, (max(1, _shared(part, stems)), part))
            concluded = part if _INFERS.match(lowered(part)) is not None else concluded
    if best[0] < 1:
        against = next((part for part in _clauses(statement) if says_opposite(part, asked)), None)
        return None if against is None else denials(lowered(against)) % 2 == 1
    if concluded is not None:
        return denials(lowered(concluded)) % 2 == 0
    if says_another(statement, question):
        return False
    return (denials(lowered(best[1])) % 2 == 0) is not (
        _is_turned(best[1], question) or says_opposite(best[1], asked)
    )


def _is_like(one: str, other: str) -> bool:
    """Return whether two words are of one stem, or begin alike: `conductor`, `conduct`."""
    return stem(one) == stem(other) or (len(other) >= _LONG_WORD and one[:_LONG_WORD] == other[:_LONG_WORD])


def _is_turned(statement: str, question: str) -> bool:
    """Return whether what a question compares is compared the other way round: `faster in glass than in water`."""
    sides = [_THAN.split(folded(text), maxsplit=1) for text in (statement, question)]
    if any(len(side) != 2 for side in sides):
        return False
    (before, after), (asked_before, asked_after) = ([{*_content(part)} for part in side] for side in sides)
    return bool(after & asked_before - asked_after) and bool(before & asked_after - asked_before)


def _clauses(statement: str, ends: re.Pattern[str] = _CLAUSE_END) -> Iterator[str]:
    start = 0
    for found in islice(ends.finditer(statement), _MOST_CLAUSES):
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


def _content(text: str) -> list[str]:
    return [
        word
        for word in words(lowered(text))
        if word not in _ASKS_SOMETHING and (word not in FUNCTION_WORDS or word == "won")
    ]


def _shared(part: str, stems: frozenset[str]) -> int:
    return len(stems & {stem(word) for word in words(lowered(part))})


def _names(part: str, known: str) -> list[str]:
    """Return the names in a part, folded, that the question does not have; a small word at its start is none."""
    found = (folded(name) for name in _NAME.findall(part))
    return [
        name
        for name in found
        if name not in FUNCTION_WORDS and name not in _ASKS_SOMETHING and name not in known
    ]
