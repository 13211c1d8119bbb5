"""Places where a multiple_choice reply settles on a choice, and how surely it does."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pytest_helmbench.benchmarks.packs.families.multiple_choice.labels import (
    Choices,
    Picks,
    folded_choice,
    label_class,
    read_picks,
)
from pytest_helmbench.benchmarks.packs.families.text.cues import MOST_CUES, Cue, CueKind, find_cues, lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import is_denied_answer
from pytest_helmbench.benchmarks.packs.families.text.plain import MARK
from pytest_helmbench.benchmarks.packs.families.text.wording import sentences, unmarked, whole_places

__all__ = ["GUESS", "Statement", "explicit_statements", "mentions", "weak_statements"]

GUESS: Final = "guess"

_SHORT = 400
"""A reply or last line up to this length may answer by mere mention."""
_HEADING_CONTENT = 60
"""What follows `Answer:` and names no choice is still an answer, and a wrong one, when it is not longer."""
_REACH = 120
"""Characters before a word in which it may call a choice right."""
_LONGEST_CONTENT = 400
_MOST_LINES = 64
"""So many lines are enough to see that they list choices."""

_EDGE = " \t\r\n\"'.,;:!*"
_TICKS = "✓✔✅☑"
_LINE = re.compile(r"[^\n]+")
_HEDGE = re.compile(r"(?<!\w)(?:could|might|may|can|perhaps|possibly|maybe)(?!\w)")
_QUESTION_END = re.compile(r"[^.!\n]{0,60}\?")
_NO = re.compile(r"(?:no|nope)(?!\w)", re.IGNORECASE)
_ASIDE = re.compile(r"\s\([^()]{0,80}\)")
_CLAUSE_END = re.compile(r"\s*(?:$|[.,;:!\n)\]\x02\x03(-])")
# Nouns that a letter may follow without a link: `answer (C)`.
_PLAIN_NOUNS = ("answer", "antwort", "respuesta", "réponse", "reponse", "resposta", "risposta", "ответ")
_LEFT_OF_NOUN = re.compile(
    r"(?P<left>.*?)[\s,\"')]+(?:is|are|would be|must be|should be|has to be|seems to be|appears to be|seems|represents)"
    r"(?P<gap>(?:\s(?:therefore|thus|clearly|indeed|definitely|probably|not|the|my|our|best|correct|right|final|only|"
    r"single|one|most|true|actual|\w+ly|accurate|appropriate|suitable))*)\s*",
    re.DOTALL,
)
_VERDICT = re.compile(
    r"(?<!in)(?<!not )(?<!n't )(?<!\w)(?:correct|right|best|better(?! than)|richtig|✓|✔|✅|☑)(?![\w-])"
    r"(?!\s(?:if|only|when|answer|option|choice)\b)"
)
_VERDICT_WRONG = re.compile(
    r"(?<!\w)(?:false|incorrect|untrue|wrong|falsch|(?:not|n't) (?:true|correct|right))(?![\w-])"
    r"(?!\s(?:if|only|when|answer|option|choice)\b)"
)
_LAST_PART = re.compile(r",\s(?:but |so |and |thus |therefore )?|\s(?:but|so|that|think|believe|and)\s")
_LEADS_TO_VERDICT = re.compile(
    r"(?:.*\s)?(?:is|are|seems|looks|must be|should be|would be|yes|ist|→|=)"
    r"(?:\s(?:the|clearly|indeed|therefore|thus|definitely|most likely|probably|a))*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, order=True)
class Statement:
    """One place where the reply settles on something. Statements are ordered by where they stand.

    Args:
        start: Where its words begin in the plain text.
        end: Where they end.
        picks: Indices of the choices; empty for an answer that is none of them.
        strategy: How it was recognised.
        final: It calls itself the final answer.
    """

    start: int
    end: int
    picks: frozenset[int] = field(compare=False)
    strategy: str = field(compare=False)
    final: bool = field(compare=False, default=False)


def explicit_statements(text: str, low: str, choices: Choices) -> list[Statement]:
    """Return what a plain text announces, and what its first and last lines are, in order.

    Args:
        text: Plain.
        low: The same in lower case.
        choices: Of the row.
    """
    return sorted([*_announced(text, low, choices), *_outer_lines(text, choices)])


def _announced(text: str, low: str, choices: Choices) -> Iterator[Statement]:
    for cue in find_cues(low):
        bare = cue.kind is CueKind.BARE
        statement = _linked(text, cue, choices) if bare else _said(text, low, cue, choices)
        if statement is not None:
            yield statement


def _said(text: str, low: str, cue: Cue, choices: Choices) -> Statement | None:
    """Return the statement behind a cue that announces one."""
    content, start = _content(text, cue, choices)
    picks = read_picks(content, choices)
    marked = cue.kind is CueKind.MARK
    if picks is None:
        if not (marked or (cue.heading and content)) or len(content) > _HEADING_CONTENT:
            return None
        picks = _only_mention(content, choices) or Picks(frozenset(), len(content))
    elif not (marked or cue.heading) and _QUESTION_END.match(content, picks.end) is not None:
        return None
    hedged = cue.kind is CueKind.NOUN and _HEDGE.search(low, cue.start, cue.end) is not None
    strategy = GUESS if hedged else cue.kind.value
    return Statement(cue.start, start + picks.end, picks.indices, strategy, cue.final)


def _content(text: str, cue: Cue, choices: Choices) -> tuple[str, int]:
    """Return what a cue announces, on one line with spaces collapsed, and where it begins.

    When the cue ends its line, that is the next line with something on it.
    """
    start = cue.end
    limit = min(len(text) if cue.stop is None else cue.stop, start + _LONGEST_CONTENT + choices.longest)
    while start < limit and text[start] in " \t\n\"'.:,)":
        start += 1
    if cue.kind is CueKind.MARK:
        end = limit
    else:
        line_end = text.find("\n", start, limit)
        end = limit if line_end < 0 else line_end
    return " ".join(unmarked(text[start:end]).split()), start


def _linked(text: str, cue: Cue, choices: Choices) -> Statement | None:
    """Return the statement of `C is the correct answer` or `answer (C)`."""
    if cue.word.endswith(_PLAIN_NOUNS):
        content = _rest_of_line(text, cue.end, 200).strip()
        picks = (
            read_picks(content, choices) if content[:1] in ("(", "[", '"') or content[:1].isupper() else None
        )
        if picks is not None and not picks.by_text and _CLAUSE_END.match(content, picks.end) is not None:
            return Statement(cue.start, cue.end + picks.end, picks.indices, "cue", cue.final)
    before = text[max(0, cue.start - _reach(choices)) : cue.start]
    sentence = max(before.rfind(end) for end in (". ", "\n", "! ", "? ", MARK)) + 1
    linked = _LEFT_OF_NOUN.fullmatch(before, sentence)
    if linked is None or "not" in linked["gap"].split():
        return None
    indices = _ends_with(linked["left"], choices)
    return None if indices is None else Statement(cue.start, cue.end, indices, "cue", cue.final)


def _reach(choices: Choices) -> int:
    return _REACH + min(choices.longest, 1000)


def _rest_of_line(text: str, start: int, most: int) -> str:
    end = text.find("\n", start, start + most)
    return text[start : end if end >= 0 else start + most]


def _ends_with(left: str, choices: Choices) -> frozenset[int] | None:
    """Return the choice that a piece of a sentence ends with: a letter, or the longest text."""
    left = left.strip(_EDGE)
    if is_denied_answer(lowered(left), len(left), len(left), wrong_wanted=choices.wrong_wanted):
        return None
    folded = folded_choice(left)
    by_text = [index for index, choice in enumerate(choices.texts) if choice and _ends_whole(folded, choice)]
    lettered = _letter_pattern(label_class(len(choices.texts))).match(left)
    if lettered is not None and (by_text or not lettered["rest"]):
        picks = read_picks(" ".join(left[lettered.start("letter") :].split()), choices)
        if picks is not None:
            return picks.indices
    if not by_text:
        return None
    return choices.same(max(by_text, key=lambda index: len(choices.texts[index])))


@lru_cache(maxsize=26)
def _letter_pattern(letters: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?:.*[\s,:(])??[(\[]?(?P<letter>[{letters}])[)\].:]?(?:$|[\s).:,-]+(?P<rest>.*))", re.DOTALL
    )


def _ends_whole(folded: str, choice: str) -> bool:
    before = folded[-len(choice) - 1 : -len(choice)]
    return (
        folded.endswith(choice)
        and not (before.isalnum() and choice[0].isalnum())
        and before not in (".", ",", "/")
    )


def _outer_lines(text: str, choices: Choices) -> list[Statement]:
    """Return the statements of the first and the last line that is not blank."""
    lines = [
        (found.start(), line) for found in _LINE.finditer(text) if (line := unmarked(found[0]).strip(" \t*"))
    ]
    if not lines:
        return []
    statements: list[Statement] = []
    first = _block(lines, choices)
    if first is not None:
        statements.append(first[0])
        if first[1] == len(lines):
            return statements
    elif (opening := _opening(lines, choices)) is not None:
        statements.append(Statement(lines[0][0], lines[0][0] + 1, opening, "first_line"))
    last = _block(lines[: -_MOST_LINES - 1 : -1], choices) if len(lines) > 1 else None
    return statements if last is None else [*statements, last[0]]


def _block(lines: Sequence[tuple[int, str]], choices: Choices) -> tuple[Statement, int] | None:
    """Return the statement of the lines at the start that are choices and nothing else, and their number.

    Several such lines name several choices, unless some of them are ticked: then these.
    """
    named: frozenset[int] = frozenset()
    ticked: frozenset[int] = frozenset()
    count = 0
    for _, line in lines[:_MOST_LINES]:
        picks = _whole_line(line, choices)
        if picks is None:
            break
        named |= picks
        if any(tick in line for tick in _TICKS):
            ticked |= picks
        count += 1
    if not count:
        return None
    begin, end = sorted((lines[0], lines[count - 1]))
    return Statement(begin[0], end[0] + len(end[1]), ticked or named, "line"), count


def _whole_line(line: str, choices: Choices) -> frozenset[int] | None:
    """Return the picks of a line that is nothing but a letter, a choice or a list of them."""
    if len(line) > choices.longest + 60:
        return None
    if "|" in line:
        cells = [cell.strip() for cell in line.split("|")]
        named = [picks for cell in cells if cell and (picks := _whole_line(cell, choices)) is not None]
        return named[0] if len(named) == 1 and _whole_line(cells[-1] or " ", choices) is not None else None
    collapsed = " ".join(line.split())
    read = read_picks(collapsed, choices)
    if read is None or collapsed[read.end :].strip(" .,;:!)]\"'" + _TICKS):
        return None
    return read.indices


def _opening(lines: Sequence[tuple[int, str]], choices: Choices) -> frozenset[int] | None:
    """Return the picks of a first line that begins with a letter, or is a choice's text in its first sentence.

    Not when another line begins with another letter: that is a walk through the choices.
    """
    pattern = _opening_pattern(label_class(len(choices.texts)))
    found = pattern.match(lines[0][1])
    if found is None:
        first = next(iter(sentences(lines[0][1][: 2 * choices.longest + _SHORT])), "")
        more = len(first) < len(lines[0][1]) and first.endswith((".", "!"))
        return _whole_line(_ASIDE.sub("", first), choices) if more else None
    letter = found["label"].strip("()[]")
    for _, line in lines[1:]:
        other = pattern.match(line)
        if other is not None and other["label"].strip("()[]") != letter:
            return None
    picks = read_picks(found["label"], choices)
    return None if picks is None else picks.indices


@lru_cache(maxsize=26)
def _opening_pattern(letters: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<label>[(\[][{letters}][)\]]|[{letters}](?=\)|[.:,]\s+(?![a-zа-я]\w* [a-zа-я])|[.:,]?\s+[-=]|"
        r"[,.]?\s+(?i:because|since|as|is (?:the )?(?:correct|right|answer|best)|weil|porque|parce|потому|option|"
        r"would be|for the|makes sense|seems|i think)\b))"
    )


def weak_statements(text: str, low: str, choices: Choices) -> list[Statement]:
    """Return conclusions, verdicts and guesses of a plain text, else the letters on lines of their own, in order."""
    statements = [*_conclusions(text, low, choices), *_verdicts(text, low, choices)]
    if not statements:
        statements = [
            Statement(found.start(), found.end(), picks, "line")
            for found in deque(_LINE.finditer(text), MOST_CUES)
            if (picks := _whole_line(found[0].strip(" \t*"), choices)) is not None
        ]
    return sorted(statements)


def _conclusions(text: str, low: str, choices: Choices) -> Iterator[Statement]:
    pattern = _conclusion_pattern(label_class(len(choices.texts)))
    for found in deque(pattern.finditer(text), MOST_CUES):
        if is_denied_answer(low, found.start(), found.start(), wrong_wanted=choices.wrong_wanted):
            continue
        content = _rest_of_line(text, found.start("label"), _LONGEST_CONTENT + choices.longest)
        picks = read_picks(" ".join(content.split()), choices)
        if picks is not None:
            hedged = _HEDGE.search(low, max(0, found.start() - 10), found.start("label")) is not None
            strategy = GUESS if hedged else "conclusion"
            yield Statement(found.start(), found.end(), picks.indices, strategy)


@lru_cache(maxsize=26)
def _conclusion_pattern(letters: str) -> re.Pattern[str]:
    return re.compile(
        r"(?:(?<!\w)(?i:therefore|thus|hence|so|is|be|it's|that's|leaves|leaving|left with|think|believe|guess|means|"
        r"implies|definitely|probably|certainly|obviously|correct:|also|donc|daher|also ist|ist|est|es|значит|это|"
        r"поэтому)|→|=>|∴|是|为)[\s,:]{0,3}(?<=[\s,:→>∴是为])"
        rf"(?:(?i:option|choice|answer|letter)\s)?(?P<label>[(\"'\[]?[{letters}][)\"'\]]?)"
        r"(?=\s*(?:[.!;,\n\x02\x03(]|or\b|and\b|/|$))"
    )


def _verdicts(text: str, low: str, choices: Choices) -> Iterator[Statement]:
    """Yield the choices that are called right: `C is correct`, `C) 4 – correct`, `✓ C`."""
    pattern = _VERDICT_WRONG if choices.wrong_wanted else _VERDICT
    for found in deque(pattern.finditer(low), MOST_CUES):
        picks = None
        if found[0] in _TICKS:
            picks = read_picks(" ".join(_rest_of_line(text, found.end(), _reach(choices)).split()), choices)
        indices = _called_right(text, found.start(), choices) if picks is None else picks.indices
        if indices is not None:
            yield Statement(found.start(), found.end(), indices, "verdict")


def _called_right(text: str, place: int, choices: Choices) -> frozenset[int] | None:
    before = text[max(0, place - _reach(choices)) : place]
    sentence = before.rfind(". ")
    while sentence == 1 or (sentence > 1 and not before[sentence - 2].isalnum()):
        sentence = before.rfind(". ", 0, sentence)  # the dot behind a letter: `B. Correct`
    clause = " ".join(
        before[max(before.rfind("\n"), before.rfind("; "), sentence) + 1 :].lstrip(". ").split()
    )
    if is_denied_answer(lowered(clause), len(clause), len(clause), wrong_wanted=choices.wrong_wanted):
        return None
    for part in (_LAST_PART.split(clause)[-1], clause):
        picks = read_picks(part, choices)
        rest = "" if picks is None else part[picks.end :].strip(" .,:;)-|\"'")
        if picks is not None and (not rest or _LEADS_TO_VERDICT.fullmatch(rest) is not None):
            return picks.indices
    return None


def mentions(text: str, choices: Choices, start: int = 0) -> list[Statement]:
    """Return the only choice that a short plain text, or the last line of a long one, mentions; else nothing.

    Args:
        text: Plain.
        choices: Of the row.
        start: What stands before it does not count.
    """
    own = unmarked(text[start:]).strip()
    candidates = [*sentences(own.rpartition("\n")[2][-_SHORT:])][-1:]
    if len(own) <= _SHORT:
        candidates.append(" ".join(filter(_states, sentences(own))))
    for candidate in candidates:
        picks = _only_mention(candidate, choices)
        if picks is not None:
            return [Statement(max(start, text.rfind(candidate[:20])), len(text), picks.indices, "mention")]
    return []


def _states(sentence: str) -> bool:
    """Return whether a sentence states something: it asks nothing, and does not say no to what was asked."""
    return not sentence.endswith("?") and _NO.match(sentence) is None


def _only_mention(text: str, choices: Choices) -> Picks | None:
    """Return the one choice that a text mentions without denying it; None for none or several."""
    text = " ".join(text.split())
    if text.endswith("?"):
        return None
    low = lowered(text)
    named: dict[int, tuple[int, int]] = {}
    for found in _mention_pattern(label_class(len(choices.texts))).finditer(text):
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
