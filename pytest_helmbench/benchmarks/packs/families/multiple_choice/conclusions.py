"""Weaker statements of a multiple_choice reply: conclusions (`so C.`), verdicts (`C is correct`) and guesses."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache

from pytest_helmbench.benchmarks.packs.families.multiple_choice.labels import Choices, read_picks
from pytest_helmbench.benchmarks.packs.families.multiple_choice.outer_lines import LINE, TICKS, whole_line
from pytest_helmbench.benchmarks.packs.families.multiple_choice.statements import (
    GUESS,
    HEDGE,
    LONGEST_CONTENT,
    Statement,
    reach,
    rest_of_line,
)
from pytest_helmbench.benchmarks.packs.families.text.cues import MOST_CUES, lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import is_denied_answer

__all__ = ["weak_statements"]

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


def weak_statements(text: str, low: str, choices: Choices) -> list[Statement]:
    """Return conclusions, verdicts and guesses of a plain text, else the letters on lines of their own, in order."""
    statements = [*_conclusions(text, low, choices), *_verdicts(text, low, choices)]
    if not statements:
        statements = [
            Statement(found.start(), found.end(), picks, "line")
            for found in deque(LINE.finditer(text), MOST_CUES)
            if (picks := whole_line(found[0].strip(" \t*"), choices)) is not None
        ]
    return sorted(statements)


def _conclusions(text: str, low: str, choices: Choices) -> Iterator[Statement]:
    pattern = _conclusion_pattern(choices.letters)
    for found in deque(pattern.finditer(text), MOST_CUES):
        if is_denied_answer(low, found.start(), found.start(), wrong_wanted=choices.wrong_wanted):
            continue
        content = rest_of_line(text, found.start("label"), LONGEST_CONTENT + choices.longest)
        picks = read_picks(" ".join(content.split()), choices)
        if picks is not None:
            hedged = HEDGE.search(low, max(0, found.start() - 10), found.start("label")) is not None
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
        if found[0] in TICKS:
            picks = read_picks(" ".join(rest_of_line(text, found.end(), reach(choices)).split()), choices)
        indices = _called_right(text, found.start(), choices) if picks is None else picks.indices
        if indices is not None:
            yield Statement(found.start(), found.end(), indices, "verdict")


def _called_right(text: str, place: int, choices: Choices) -> frozenset[int] | None:
    before = text[max(0, place - reach(choices)) : place]
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
