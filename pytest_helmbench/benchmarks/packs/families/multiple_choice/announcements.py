"""Statements that a multiple_choice reply announces: `The answer is C`, `C is the correct answer`, `answer (C)`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pytest_helmbench.benchmarks.packs.families.multiple_choice.labels import (
    Choices,
    Picks,
    folded_choice,
    read_picks,
)
from pytest_helmbench.benchmarks.packs.families.multiple_choice.mentions import only_mention
from pytest_helmbench.benchmarks.packs.families.multiple_choice.statements import (
    GUESS,
    HEDGE,
    LONGEST_CONTENT,
    Statement,
    reach,
    rest_of_line,
)
from pytest_helmbench.benchmarks.packs.families.text.cues import Cue, CueKind, find_cues, lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import is_denied_answer
from pytest_helmbench.benchmarks.packs.families.text.plain import MARK
from pytest_helmbench.benchmarks.packs.families.text.wording import unmarked

__all__ = ["announced"]

_HEADING_CONTENT = 60
"""What follows `Answer:` and names no choice is still an answer, and a wrong one, when it is not longer."""

_EDGE = " \t\r\n\"'.,;:!*"
_QUESTION_END = re.compile(r"[^.!\n]{0,60}\?")
_CLAUSE_END = re.compile(r"\s*(?:$|[.,;:!\n)\]\x02\x03(-])")
# Nouns that a letter may follow without a link: `answer (C)`.
_PLAIN_NOUNS = ("answer", "antwort", "respuesta", "réponse", "reponse", "resposta", "risposta", "ответ")
_LEFT_OF_NOUN = re.compile(
    r"(?P<left>.*?)[\s,\"')]+(?:is|are|would be|must be|should be|has to be|seems to be|appears to be|seems|represents)"
    r"(?P<gap>(?:\s(?:therefore|thus|clearly|indeed|definitely|probably|not|the|my|our|best|correct|right|final|only|"
    r"single|one|most|true|actual|\w+ly|accurate|appropriate|suitable))*)\s*",
    re.DOTALL,
)


def announced(text: str, low: str, choices: Choices) -> Iterator[Statement]:
    """Yield what a plain text announces.

    Args:
        text: Plain.
        low: The same in lower case.
        choices: Of the row.
    """
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
        picks = only_mention(content, choices) or Picks(frozenset(), len(content))
    elif not (marked or cue.heading) and _QUESTION_END.match(content, picks.end) is not None:
        return None
    hedged = cue.kind is CueKind.NOUN and HEDGE.search(low, cue.start, cue.end) is not None
    strategy = GUESS if hedged else cue.kind.value
    return Statement(cue.start, start + picks.end, picks.indices, strategy, cue.final)


def _content(text: str, cue: Cue, choices: Choices) -> tuple[str, int]:
    """Return what a cue announces, on one line with spaces collapsed, and where it begins.

    When the cue ends its line, that is the next line with something on it.
    """
    start = cue.end
    limit = min(len(text) if cue.stop is None else cue.stop, start + LONGEST_CONTENT + choices.longest)
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
        content = rest_of_line(text, cue.end, 200).strip()
        picks = (
            read_picks(content, choices) if content[:1] in ("(", "[", '"') or content[:1].isupper() else None
        )
        if picks is not None and not picks.by_text and _CLAUSE_END.match(content, picks.end) is not None:
            return Statement(cue.start, cue.end + picks.end, picks.indices, "cue", cue.final)
    before = text[max(0, cue.start - reach(choices)) : cue.start]
    sentence = max(before.rfind(end) for end in (". ", "\n", "! ", "? ", MARK)) + 1
    linked = _LEFT_OF_NOUN.fullmatch(before, sentence)
    if linked is None or "not" in linked["gap"].split():
        return None
    indices = _ends_with(linked["left"], choices)
    return None if indices is None else Statement(cue.start, cue.end, indices, "cue", cue.final)


def _ends_with(left: str, choices: Choices) -> frozenset[int] | None:
    """Return the choice that a piece of a sentence ends with: a letter, or the longest text."""
    left = left.strip(_EDGE)
    if is_denied_answer(lowered(left), len(left), len(left), wrong_wanted=choices.wrong_wanted):
        return None
    folded = folded_choice(left)
    by_text = [index for index, choice in enumerate(choices.texts) if choice and _ends_whole(folded, choice)]
    lettered = _letter_pattern(choices.letters).match(left)
    if lettered is not None and (by_text or not lettered["rest"]):
        picks = read_picks(" ".join(left[lettered.start("letter") :].split()), choices)
        if picks is not None:
            return picks.indices
    if not by_text:
        return None
    return choices.same_text(max(by_text, key=lambda index: len(choices.texts[index])))


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
