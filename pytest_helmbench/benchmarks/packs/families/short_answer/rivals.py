"""Other values than an accepted one, of which a short_answer statement says what the question asks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.short_answer.asked_about import (
    LEAST_SHARED,
    MOST_CLAUSES,
    SUBORDINATE,
    asked_stems,
    clauses,
    names_in,
    shared_words,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.people import PARTICLES, asks_for_person
from pytest_helmbench.benchmarks.packs.families.text.calendar_words import WHEN_BEHIND
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import denials
from pytest_helmbench.benchmarks.packs.families.text.stems import stem
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import folded, sentences, whole_places, words

__all__ = ["comes_second", "dates_another_event", "opens_with_rival", "rival_is_asserted"]

_RANKED_BEHIND = re.compile(r"(?<!\w)(?:followed\sby|second\sto|ahead\sof|beating)\s(?:only\s|the\s|by\s)*$")
_ASKS_FOR_NEXT = re.compile(r"(?<!\w)(?:second|next|follow\w*|after|behind|beat\w*|lost|lose)(?!\w)")
_RANKS_LOWER = re.compile(
    r"\s(?:only\s)?(?:comes|came|is|was|ranks|ranked|finished|placed|takes|took)\s(?:in\s)?(?:a\s|the\s|only\s)?"
    r"(?:close\s|distant\s)?(?:second|third|fourth|next|runners?.up)(?:\splace)?(?!\s\w*est)(?=\W|$)"
)
_RANKS_LOWER_LATER = re.compile(
    r"[^.;!?\n]{1,60}?,\s(?:but|though|although|yet)(?:\s(?:it|they|he|she|this|that))?"
    + _RANKS_LOWER.pattern
)
"""`Vatican City is often mentioned, but it comes second`."""
_AGENT = re.compile(r",\s(?:which|who)\s(?:is|are|was|were)\s(?P<verb>[^.;:]{1,60})\sby\s(?:the\s)?$")
"""`the liver, which is told to do so by`."""
_TELLS_WHEN = re.compile(r"(?<!\w)(?:after|before|since|when|until|while|following)\s[^.;!?]*$")
_AND = re.compile(r"\s(?:and|but)\s")
_DATE = re.compile(r"(?<![\w-])\d{4}-\d\d-\d\d(?![\w-])")
_BEFORE_ANSWER = re.compile(
    r"(?<!\w)(?:followed\sby|second\sto|next\sto|ahead\sof|after|before|since|behind|beating|over|rather\sthan|instead\sof)\s"
    r"(?:only\s|the\s|by\s)*$"
    r"|,\s(?:then|(?:together\s|along\s)?with(?:\s[\w'-]+){0,3}?(?:\s(?:in|of|by|to|for))?)\s(?:the\s)?$"
)
_OBJECT_OF = re.compile(
    rf"(?<!\w)(?P<verb>{any_of('beat beats defeated defeating edged replaced replacing succeeded succeeding preceded')}"
    r"|(?:(?:inspired|taught|mentored|influenced|commissioned|succeeded|replaced) by)"
    r"|overtook|overtaking|surpassed|surpassing|toppled|ousted|in front of|alongside|against)\s(?:the\s)?$"
)
_ASKS_FOR_LOSER = re.compile(
    r"(?<!\w)(?:los[et]\w*|beaten|defeated|runners?-up|second|opponents?|rivals?|against|both)(?!\w)"
)
_EXCEEDS = re.compile(
    r"(?:(?:is|are|was|were)\s|,\s(?:which is\s)?)(?:\w+\s)?(?:\w+er|more\s\w+|less\s\w+)\sthan\s(?:the\s)?$"
)
_ASKS_FOR_MOST = re.compile(r"(?<!\w)(?:\w{2,}est|most|least|best|worst)(?!\w)")
_RELATED_TO = re.compile(r",\s(?:(?:an?|the)\s)?(?:[\w'-]+\s){1,3}(?:of|to)\s(?:the\s)?$")
"""`Irène Joliot-Curie, daughter of`: where a person is asked for, the one named first is meant."""
_KIN = any_of(
    "sister twin successor predecessor rival neighbour neighbor ancestor descendant cousin precursor"
)
_RELATED_BY_PLACE = re.compile(
    r",\s(?:[\w'.-]+\s){1,4}(?:to|from)\s(?:the\s)?$"
    r"|,\s(?:[\w'.-]+\s){0,3}(?:north|south|east|west)\w*\sof\s(?:the\s)?$"
    rf"|(?:,|\s-)\s(?:[\w'.-]+\s){{0,3}}{_KIN}s?(?:\s(?:ship|city|company))?\sof\s(?:the\s)?$"
)
"""`Barcelona, 620 km from`, `the sequel to`."""
_LONGEST_NAME = 5
_RECONSIDERS = re.compile(
    rf"(?<!\w){any_of('actually no not wait rather correct correction answer sorry however known called')}(?!\w)"
    r"|(?<!\w)but\s(?!(?:he|she|they|his|her|their)\s)"
)
_HEAD_END = re.compile(
    r",\s|;\s|\s-\s|\s\(|\s(?:in|for|by|at|with|of)\s|\s(?:was|is|did|does)(?=\W*$)|\s\w+\s(?:it|this|that)(?!\w)"
)
_IT_IS = re.compile(
    r"\W*(?:[Ii]t|[Tt]hat|[Tt]his|[Tt]hey|[Hh]e|[Ss]he)(?:'s|\s(?:is|was|were))\s(?:\w+\s)?(?:by\s|in\s)(?:the\s)?"
    r"(?P<name>[A-ZÀ-Þ]\w+)"
)
"""`It was painted by Raphael.`"""
_IS_MEANT = re.compile(
    r"\W*[Tt]he\s(?:[\w'-]+\s){1,4}(?:you\s(?:mean|want)|you(?:'re|\sare)\s(?:after|thinking\sof|looking\sfor)|in\squestion)"
    r"\s(?:is|was|are|were)\s(?:the\s)?(?P<name>[A-ZÀ-Þ]\w+)"
)
"""`The ruling you mean is Plessy v. Ferguson.`"""
_BEGINS_WITH_NAME = re.compile(r"\W*(?P<name>[A-ZÀ-Þ]\w+)\s(?:[A-ZÀ-Þ]\w+\s)*[a-z]+(?!\w)")
_NO_RIVAL = word_set("yes no sure ok okay well hmm great right correct hello hi certainly thanks")
_ASSERTS = re.compile(rf"(?<!\w){any_of('is are was were be it_was')}(?!\w)|'s\s")
_TURNS = re.compile(
    r"\W*(?:but\s|actually,?\s|in fact,?\s|really\s)+(?:it|that)(?:\s(?:is|was)|'s)\s(?:actually\s|really\s)?"
)
_DESCRIBES = re.compile(
    r"\s*(?:and\s)?(?:it|he|she|they|this|that)(?:'s|\s(?:is|was|are|were|has|had))\s(?:also\s)?(?:an?|the|one|\w+ed)\s"
)
_ORDER = re.compile(r"(?<!\w)o\([^()]{1,40}\)")
"""`O(n)` where another order of growth is accepted."""
_IS_DIRECT = re.compile(r"\W*(?:[Tt]hat|[Ii]t)(?:'s|\s(?:is|was))\s(?:the\s)?[A-ZÀ-Þ]")
"""`That was King Tut`: it says of him all that is asked."""
_WHEN = re.compile(WHEN_BEHIND + "$")
_RELATIVE = re.compile(r"\s*(?:which|who|where|whose|that)\s")


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
    if not any(next(whole_places(folded(part), answer), None) for part in clauses(statement)):
        return False  # it takes several clauses to say the answer
    with_answer, with_rival, first, before = -1, -1, True, 0
    direct = _RECONSIDERS.search(lowered(statement)) is None
    for part in clauses(statement):
        text = folded(part)
        own = shared_words(part, stems)
        goes_on = _WHEN.sub("", text) in (answer, *accepted) or _RELATIVE.match(part) is not None
        shared = max(own, before) if goes_on else own
        before = own
        is_direct = direct and with_answer < 0 > with_rival and _IS_DIRECT.match(part) is not None
        if any(next(whole_places(text, one), None) is not None for one in (answer, *accepted)):
            with_answer = max(with_answer, shared, LEAST_SHARED if is_direct else 0)
        elif with_answer >= 0 and _TURNS.match(lowered(part)) is not None and names_in(part, known):
            return True
        elif (answer.startswith("o(") and _ORDER.search(text) is not None) or (
            names_in(part, known)
            and (_asserts(part) or (own and with_answer < 0 and _is_about_name(part, known)))
        ):
            first = first and with_answer < 0
            with_rival = max(with_rival, shared, LEAST_SHARED if is_direct else 0)
    return with_rival > max(with_answer, 0) or (first and with_rival == with_answer >= LEAST_SHARED)


def _is_about_name(part: str, known: str) -> bool:
    """Return whether a clause begins with a name that the question does not have, and goes on."""
    found = _BEGINS_WITH_NAME.match(part)
    return found is not None and found["name"].lower() in names_in(part, known)


def _asserts(part: str) -> bool:
    """Return whether a clause says that something is so; one that only tells when or why does not."""
    low = lowered(part)
    is_about_another = SUBORDINATE.match(part) is None and _DESCRIBES.match(low) is None
    return _ASSERTS.search(part) is not None and is_about_another and denials(low) % 2 == 0


def comes_second(statement: str, answer: str, question: str) -> bool:
    """Return whether a value is only named behind another one: `Saturn, followed by Jupiter`."""
    text, known = folded(statement), folded(question)
    for start, end in islice(whole_places(text, answer), MOST_CLAUSES):
        if _ranks_lower(text, start, end, known):
            continue
        behind = _RANKED_BEHIND.search(text, max(0, start - 40), start)
        if behind is not None and _ASKS_FOR_NEXT.search(known) is None and text[: behind.start()].strip():
            continue
        if _is_exceeded(text, start, known) or _is_agent(text, start, question):
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
        if not any(name in lead for name in names_in(statement, known)):
            return False
    return True


def _ranks_lower(text: str, start: int, end: int, known: str) -> bool:
    """Return whether a value is said to come second, behind something else that was named before."""
    return (
        bool(text[:start].strip(" .,;:"))
        and _ASKS_FOR_NEXT.search(known) is None
        and (_RANKS_LOWER.match(text, end) or _RANKS_LOWER_LATER.match(text, end)) is not None
    )


def _is_agent(text: str, start: int, question: str) -> bool:
    """Return whether a value only does something to another one, of which the question's words are said."""
    found = _AGENT.search(text, max(0, start - 90), start)
    stems = asked_stems(question)
    if found is None or shared_words(found["verb"], stems):
        return False
    lead = [*islice(sentences(text[: found.start()]), MOST_CLAUSES)]
    return bool(lead) and shared_words(lead[-1], stems) > 0


def dates_another_event(statement: str, answer: str, question: str) -> bool:
    """Return whether an accepted date only tells when something else was, beside another date: `after he flew in on X`.

    Args:
        statement: As written, dates in one form.
        answer: The accepted answer that it holds, folded.
        question: As asked.
    """
    if _DATE.fullmatch(answer) is None:
        return False
    text, stems = folded(statement), asked_stems(question)
    for place, _ in islice(whole_places(text, answer), MOST_CLAUSES):
        others = [found for found in _DATE.finditer(text, max(0, place - 300), place) if found[0] != answer]
        end = others[-1].end() if others else place
        when = _TELLS_WHEN.search(text, end, place)
        if when is None or _AND.search(text, end, when.start()) is not None:
            return False
        if shared_words(when[0], stems) > shared_words(text[:end], stems):
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
    parts = [*islice(sentences(statement), MOST_CLAUSES)]
    rest = " ".join(parts[1:])
    if not rest or parts[0].endswith("?") or _RECONSIDERS.search(lowered(rest)) is not None:
        return False
    named = _IT_IS.match(parts[0]) or _IS_MEANT.match(parts[0])
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
        is_told and len(words(behind)) > len(words(answer)) + 1 and bool(names_in(parts[0], folded(question)))
    )


def _says_of_it(rest: str, answer: str, question: str) -> bool:
    """Return whether a sentence says of an answer what the question asks."""
    stems = asked_stems(question)
    return any(
        _ASSERTS.search(part) is not None and shared_words(part, stems) >= LEAST_SHARED
        for part in islice(sentences(rest), MOST_CLAUSES)
        if next(whole_places(folded(part), answer), None) is not None
    )
