"""The final statement of a short_answer reply, found among its words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pytest_helmbench.benchmarks.packs.families.short_answer.named_values import SENTENCE_WORDS
from pytest_helmbench.benchmarks.packs.families.text.cues import (
    ANSWER_NOUNS,
    Cue,
    CueKind,
    find_cues,
    lowered,
)
from pytest_helmbench.benchmarks.packs.families.text.finding import shown
from pytest_helmbench.benchmarks.packs.families.text.number_words import (
    HAS_NUMBER,
    WRITTEN_NUMBERS,
    only_number_words,
)
from pytest_helmbench.benchmarks.packs.families.text.numbers import numbers, only_number
from pytest_helmbench.benchmarks.packs.families.text.plain import MARK, MARK_END, plain
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, one_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import FUNCTION_WORDS, sentences, unmarked, words
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Candidate", "candidates", "last_word", "listed_items", "own_words"]

_SHORT = 300
"""A reply up to this length is one statement when its last line says nothing."""
_BARE_WORDS = 6
_BARE_LENGTH = 120
_BOLD_WORDS = 8
_NEAR = 40
"""Characters between two announcements that may be one answer in two parts."""
_LONGEST_LEFT = 400

_CLOSING = re.compile(
    r"(?:i )?hopes? (?:this|that|it) helps|if you (?:have|need|want|would|'d)|do you (?:have|want|need)"
    r"|please (?:note|consult|let|verify)|sources?:|note:|"
    + any_of(
        "let_me_know feel_free disclaimer reference confidence best_regards thank good_luck happy_to would_you_like",
        "is_there_anything",
    )
)
_GREETING = re.compile(
    any_of("sure certainly of_course great_question good_question okay ok hello hi yes absolutely thank")
    + r"\b[^\n]{0,60}[!:.,]?$"
)
# Nouns that announce an answer only where no word for an answer does.
_WEAKER_NOUNS = word_set("result solution conclusion guess lösung loesung solución solucion soluzione")
# What `the answer is …` may go on with instead of the answer.
_NO_VALUE = word_set(
    "correct right wrong incorrect clear obtained based found given derived simple simply because consistent supported",
    "provided not unclear unknown depends that in as to if only therefore also shown explained follows",
)
_BETWEEN_ANSWERS = word_set("and or also the final correct")
_LEFT_OF_NOUN = re.compile(
    r"(?P<left>.+?)\s+(?:is|are|was|would be|must be)\s+(?:(?:the|my|our|only|correct|right|final|best)\s*)*",
    re.DOTALL,
)
_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__")


_TAKEN_BACK = re.compile(
    r"(?<!\w)(?:(?:wait|hmm|oops|sorry|actually),?\sno\b|no,?\swait\b|scratch\sthat\b|correction:|i\smeant\b"
    r"|(?:wait|hmm|oops)(?:\s?[:,—-]|\.{2,}|…)(?=[^\n]{0,100}\w\W{1,9}\w{1,30}\W{1,9}\w)"
    r"(?![^.?!\n]{0,80}\?|\s(?:yes|that's|that is)\s))[\s,.:;!—-]*",
    re.IGNORECASE,
)
_CLAUSE = (
    r"(?:before|after|like|unlike|while|whereas|where|who|which(?!\s(?:is|equals|means|makes|gives)\s[^a-z]*\d)|whose"
    r"|since|because|although|though|when|if|as)\s"
)
_HEAD = re.compile(
    rf"(?P<head>[^,;\n]{{1,{_BARE_LENGTH}}})(?:;\s+(?P<sentence>[^\n]+)|,\s+(?:{_CLAUSE}|(?:an?|the)\s(?P<noun>[^\n]+)))"
)
_VERBS = word_set(
    "is are was were be been has have had do does did can could will would should may might must"
)
_SENTENCE_ASIDE = re.compile(
    rf"(?P<head>[^()\n]{{1,{_BARE_LENGTH}}}?)[.!]?\s*\((?P<aside>[^()\n]{{1,200}})\)[.!]?"
)
_FIRST_VALUE = rf"(?:[$€£~≈]?\s?[-+]?\d|(?i:{one_of(WRITTEN_NUMBERS)})(?!\w))"
_VALUE_FIRST = re.compile(
    rf"(?P<head>{_FIRST_VALUE}[^\n;]{{0,40}}?)(?:\.\s+(?=[A-Z(\"])|\s-\s+(?=\S+\s\S+\s))(?P<rest>[^\n]+)"
)
_CONCLUDES = any_of(
    "so thus therefore hence altogether total totals sum final answer result actually actual real"
)
_GOES_ON = re.compile(
    rf"(?<!\w){_CONCLUDES}(?!\w)"
    r"|(?<!\w)(?:giv|mak|leav|get|got|equal|remain|rather|correct|wait|sorry|then|instead|add|subtract|plus|minus)\w*|=|\?"
)
"""Behind a number with which a reply begins: it is no answer yet."""
_DASH = re.compile(r"(?P<head>[^,;.\n-]{1,60}?)\s-\s(?P<rest>[a-z]+\s\S+\s[^\n]+)")
_TURNS = re.compile(
    r"(?<!\w)(?:no|not|but|or|nor|never|wrong|rather|actually|instead|however|mistake|guess|answer|correct\w*)(?!\w)|n't(?!\w)|\?"
)
"""Behind a dash: it may say that the value before is none, or give another."""
_SHORTEST_SENTENCE = 4
_NUMBERED = re.compile(r"\d{1,2}[.)]\s")
_ITEM = re.compile(r"^[ \t]*(?:[-*+•–]|\d{1,2}[.)])[ \t]+(?P<item>\S[^\n]*)", re.MULTILINE)
_ITEM_HEAD_END = re.compile(r":|(?<!=)\s[-(–—]|[.,;](?=\s|$)")
_ALIASES = word_set("called known named aka formerly now also or full official officially i.e english short")
_IS_DESCRIPTION = re.compile(r"\W*(?:[Tt]he|[Aa]n?|[Tt]hat|[Hh]is|[Hh]er|[Ii]ts|\w+'s?)\s(?:\S+\s)*[a-z]\S*$")
_NO_HEAD = word_set(
    "well so actually indeed today now not again however originally historically officially despite contrary unlike",
    "given according regardless besides",
)
_SO = re.compile(
    r"[,;.]\s+(?:so|therefore|thus|hence),?\s+(?:the answer is\s+|it(?:'s| is| must be)\s+)?"
    r"(?P<value>[^,;.:=\d]{1,60})[.!]?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that may be the final statement.

    Args:
        text: Without markup.
        alone: No candidate behind it counts.
    """

    text: str
    alone: bool = False


def candidates(own: str, *, numeric: bool = False) -> list[Candidate]:
    """Return the texts that may be the final statement, those that go first first.

    What the last announcement announces is the only one. Else: the only bold words, a last line or a first line that
    is a bare value, the last line, the whole reply when it is short.

    Args:
        own: The reply without reasoning and without what it repeats, markup and all.
        numeric: A number is asked for: one that a statement begins with is the answer where the rest only tells of it.
    """
    own = _kept(own)
    text = plain(own)
    announced = _announced(text, lowered(text), numeric=numeric)
    head = _number_head if numeric else _head
    if announced:
        return [Candidate(head(announced), alone=True)]
    lines = _lines(text)
    if not lines:
        return []
    if len(lines) > 1 and all(map(_is_bare, lines)):
        return [Candidate(", ".join(lines), alone=True)]
    found = [Candidate(bold) for bold in _only_bold(own)]
    first, last = lines[0], lines[-1]
    is_listed = len(lines) > 1 and all(_NUMBERED.match(line) is not None for line in lines[:2])
    if _is_bare(last):
        found.append(Candidate(head(last), alone=_is_value(last)))
    if len(lines) > 1 and _is_bare(first) and not is_listed:
        found.append(Candidate(head(first), alone=_is_value(first)))
    if not _is_bare(last):
        concluded = _SO.search(last[-200:])
        if concluded is not None and _is_bare(concluded["value"]):
            return [Candidate(concluded["value"], alone=True)]
        before_dash = _before_dash(last)
        if before_dash is not None and not _is_value(before_dash):
            found.append(Candidate(before_dash, alone=True))
        found.append(Candidate(_head(last) if is_listed else head(last)))
    whole = " \n".join(lines)
    if len(lines) > 1 and len(whole) <= _SHORT:
        found.append(Candidate(whole))
    return found


def own_words(statement: str, own: str, alike: Callable[[str], str], *, numeric: bool) -> str:
    """Return the words of a reply that came to be a statement; the statement where that cannot be told.

    Args:
        statement: As a finding carries it.
        own: The reply as the model has it.
        alike: Brings it into the form in which the statement was found.
        numeric: See `candidates`.
    """
    said = (shown(one.text) for one in candidates(own, numeric=numeric))
    return next((one for one in said if shown(alike(one)) == statement), statement)


def listed_items(own: str) -> list[str]:
    """Return what the lines of a list begin with: `1. **Executive** – the President` is `Executive`.

    Args:
        own: The reply without reasoning and without what it repeats, markup and all.
    """
    items = (plain(found["item"]) for found in _ITEM.finditer(own))
    return [head for item in items if (head := _ITEM_HEAD_END.split(item, maxsplit=1)[0].strip())]


def last_word(own: str) -> str:
    """Return what the announcement that ends a reply announces; all of the reply where none does.

    Polite closings may follow it. A marked answer (`\\boxed{}`, `<answer>`) may stand anywhere when it is the only one.

    Args:
        own: The reply without reasoning and without what it repeats, markup and all.
    """
    text = plain(_kept(own))
    announced = _announced(text, lowered(text))
    lines = _lines(text)
    whole = "\n".join(lines)
    if not announced:
        return whole
    if whole.rstrip(" .!*_`)$").endswith(announced.rstrip(" .!*_`)$")):
        return announced
    marked = text.count(MARK) == 1 and unmarked(text.partition(MARK)[2].partition(MARK_END)[0]).strip()
    return announced if marked == announced else whole


def _kept(own: str) -> str:
    """Return a reply without what it takes back, as long as something follows."""
    ends = [found.end() for found in _TAKEN_BACK.finditer(own)]
    return own[ends[-1] :] if ends and any(map(str.isalnum, own[ends[-1] :])) else own


def _head(statement: str) -> str:
    """Return the value that a statement begins with where a sentence or a clause about something else follows it."""
    aside = _SENTENCE_ASIDE.fullmatch(statement)
    exact = aside is not None and "precise" in aside["aside"]
    if aside is not None and not exact and _is_bare(aside["head"]) and _is_sentence(aside["aside"]):
        return aside["head"]
    found = _HEAD.match(statement)
    if found is None or not _is_bare(found["head"]) or _NO_HEAD.intersection(words(lowered(found["head"]))):
        return statement
    noun = found["noun"]
    if noun is not None and _IS_DESCRIPTION.match(found["head"]) is not None and noun[:1].isupper():
        return noun  # `the agency for health, the World Health Organization`
    if noun is not None and any(word in _VERBS for word in words(lowered(noun))):
        return statement
    sentence = found["sentence"]
    if sentence is not None and not any(word in SENTENCE_WORDS for word in words(lowered(sentence))):
        return statement
    return found["head"]


def _number_head(statement: str) -> str:
    """Return the number that a statement begins with where sentences that only tell of it follow.

    `1975. Independence followed the revolution of 1974.`
    """
    found = _VALUE_FIRST.fullmatch(statement)
    is_value = found is not None and (
        _is_value(found["head"]) or only_number_words(found["head"]) is not None
    )
    if found is None or not is_value or _GOES_ON.search(lowered(found["rest"])) is not None:
        return _head(statement)
    return found["head"]


def _before_dash(statement: str) -> str | None:
    """Return the value that a statement begins with where words behind a dash only describe it; None where none do."""
    found = _DASH.fullmatch(statement)
    if found is None or not _is_bare(found["head"]) or _NO_HEAD.intersection(words(lowered(found["head"]))):
        return None
    is_formula = "=" in found["rest"]  # `ad - bc = 5`
    return None if is_formula or _TURNS.search(lowered(found["rest"])) is not None else found["head"]


def _is_sentence(aside: str) -> bool:
    """Return whether what stands in brackets says something of its own, not another name of the value before it."""
    said = words(lowered(aside))
    if len(said) < _SHORTEST_SENTENCE or _ALIASES.intersection(said):
        return False
    return aside.rstrip().endswith(".") or any(word in _VERBS for word in said)


def _lines(text: str) -> list[str]:
    """Return the lines that say something: no greeting at the start, no polite closing at the end."""
    lines = [line.strip() for line in unmarked(text).splitlines() if line.strip()]
    while len(lines) > 1 and _CLOSING.match(lowered(lines[-1]).lstrip("*_( ")) is not None:
        lines.pop()
    first = 0
    while first < len(lines) - 1 and _GREETING.match(lowered(lines[first])) is not None:
        first += 1
    return lines[first:]


def _announced(text: str, low: str, *, numeric: bool = False) -> str:
    """Return what the last announcement announces; two side by side are one. Empty for none.

    Where a number is asked for, `the solution is acidic` announces nothing.
    """
    found: list[tuple[int, int, int]] = []
    weaker: list[tuple[int, int, int]] = []
    for cue in find_cues(low):
        span = _span(text, low, cue)
        if span is None:
            continue
        kind = weaker if cue.word in _WEAKER_NOUNS else found
        if numeric and kind is weaker and HAS_NUMBER.search(low, *span) is None:
            continue
        if not (
            kind and kind[-1][0] == cue.start and cue.kind is not CueKind.BARE
        ):  # a second verb of the same noun
            kind.append((cue.start, *span))
    spans = found or weaker
    if not spans:
        return ""
    begin, start, end = spans[-1]
    said = unmarked(text[start:end]).strip()
    if len(spans) > 1 and 0 <= begin - spans[-2][2] < _NEAR:
        _, earlier_start, earlier_end = spans[-2]
        between = words(low[earlier_end:begin])
        if all(word in _BETWEEN_ANSWERS for word in between):
            joint = "or" if "or" in between else "and"
            return f"{unmarked(text[earlier_start:earlier_end]).strip()} {joint} {said}"
    return said


def _span(text: str, low: str, cue: Cue) -> tuple[int, int] | None:
    """Return where the value begins and ends that a cue announces; None when it announces none."""
    if cue.kind is CueKind.MARK:
        stop = len(text) if cue.stop is None else cue.stop
        return (cue.end, stop) if text[cue.end : stop].strip() else None
    if cue.kind is CueKind.VERB:
        if not low.startswith("i", cue.start):  # of `I would say`, not of `I choose`
            return None
    elif cue.word not in ANSWER_NOUNS and cue.word not in _WEAKER_NOUNS:
        return None
    if cue.kind is CueKind.BARE:
        return _left_span(text, low, cue)
    start = cue.end
    while start < len(text) and text[start] in " \t\n\"'.:,)*|-=" and not _is_sign(text, start):
        start += 1
    line_end = text.find("\n", start)
    line = text[start : line_end if line_end >= 0 else len(text)]
    first = next(iter(sentences(line)), "")
    leading = words(lowered(first[:60]))
    if not first or (not cue.heading and (first.endswith("?") or (leading and leading[0] in _NO_VALUE))):
        return None
    return start, start + line.find(first) + len(first)


def _is_sign(text: str, place: int) -> bool:
    return text[place] in "-." and text[place + 1 : place + 2].isdigit()


def _left_span(text: str, low: str, cue: Cue) -> tuple[int, int] | None:
    """Return the span of X in `X is the answer`."""
    before = text[max(0, cue.start - _LONGEST_LEFT) : cue.start]
    begin = max(before.rfind("\n"), before.rfind(". "), before.rfind(MARK)) + 1
    found = _LEFT_OF_NOUN.fullmatch(before, begin)
    after = low[cue.end : cue.end + 2].strip()
    if found is None or (after and after[0] not in ".,;!)\n\"'"):
        return None
    offset = cue.start - len(before)
    return offset + begin, offset + found.end("left")


def _is_bare(line: str) -> bool:
    """Return whether a line is a value without a sentence around it."""
    if line.endswith((":", "?")) or ": " in line or "=" in line or len(line) > _BARE_LENGTH:
        return False
    found = words(lowered(line))
    return 0 < len(found) <= _BARE_WORDS and not any(word in FUNCTION_WORDS for word in found)


def _is_value(line: str) -> bool:
    """Return whether a line is a number, alone or with its unit."""
    if only_number(line.strip(" .")) is not None:
        return True
    return len(words(line)) <= 3 and next(numbers(line), None) is not None


def _only_bold(own: str) -> Iterator[str]:
    spans = {(found[1] or found[2]).strip() for found in _BOLD.finditer(own)}
    if len(spans) == 1:
        span = spans.pop()
        if not span.endswith((":", "?")) and len(words(span)) <= _BOLD_WORDS:
            yield plain(span)
