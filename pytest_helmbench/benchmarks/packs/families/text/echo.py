"""Echoes in a reply: repeats of the question, the choices or the context that it was given."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["is_dump", "without_listing", "without_next_question", "without_passage"]

_LEAST_PASSAGE = 12
"""Shorter passages are not looked for: they may well be part of an answer."""

_LEAST_QUOTE = 5
"""Words of a sentence that counts as quoted when the context has it word for word."""
_DUMPED_SHARE = 0.6
_FEW_WORDS = 3
_PIECE_END = re.compile(r"(?<=[.!?。])\s+|\n+")
_WIDEST_GAP = 24
_GAP = re.compile(r"[\W_]*(?:(?:option|choice)?[\W_]*\w)?[\W_]*", re.IGNORECASE)
_LEAD = re.compile(r"(?<!\w)[(\[]?\w[)\].:]?[\s*_]*$")
_DELIMITER = re.compile(r"[)\].:]+\s*")
_TICKS = "✓✔✅☑"
_NEXT_QUESTION = re.compile(
    r"\n[ \t]*(?:\*\*|#{1,4}[ \t])?(?:question|q|human|user|instruction)(?:[ \t]?\d{1,3})?[ \t]?:(?:\*\*)?[ \t]*"
    r"(?P<question>\S[^\n]*)",
    re.IGNORECASE,
)


def without_passage(text: str, passage: str, replacement: str = "\n") -> str:
    """Return the text with every verbatim repeat of a passage replaced, whatever the white space between words."""
    if len(passage) < _LEAST_PASSAGE or len(passage) > 2 * len(text) + 64:
        return text
    if passage in text:
        return text.replace(passage, replacement)
    words = passage.split()
    if len(words) < 3 or words[0] not in text or words[-1] not in text:
        return text
    return _without_words(text, words, replacement)


def without_next_question(text: str, question: str) -> str:
    """Return the text up to where it goes on with a question of its own, as models do that only continue a text.

    Only the question that was asked may be repeated before the answer.
    """
    for found in _NEXT_QUESTION.finditer(text):
        is_own = " ".join(found["question"].split()).lower() in " ".join(question.split()).lower()
        if text[: found.start()].strip() and not (is_own and _is_lead(text[: found.start()])):
            return text[: found.start()]
    return text


def _is_lead(text: str) -> bool:
    """Return whether a text only leads to something: it ends in a colon, or greets."""
    return text.rstrip().endswith((":", "!"))


def _without_words(text: str, words: list[str], replacement: str) -> str:
    kept: list[str] = []
    position = start = 0
    while (start := text.find(words[0], start)) >= 0:
        end = _end_of_words(text, start, words)
        if end is None:
            start += len(words[0])
            continue
        kept.append(text[position:start])
        position = start = end
    return replacement.join([*kept, text[position:]]) if kept else text


def _end_of_words(text: str, start: int, words: list[str]) -> int | None:
    for word in words:
        while start < len(text) and text[start].isspace():
            start += 1
        if not text.startswith(word, start):
            return None
        start += len(word)
    return start


def without_listing(text: str, question: str, choices: Sequence[str]) -> str:
    """Return the text without a repeat of the question and of all choices in their order.

    Choices count as listed when hardly more than a letter and punctuation stands between them, and none is
    ticked: an answer that walks through the choices is no repeat.
    """
    if len(text) < sum(map(len, choices)):
        return text
    kept: list[str] = []
    position = 0
    asked = text.find(question) if question else -1
    while (found := _listing(text, choices, position)) is not None:
        if 0 <= asked < position:
            asked = text.find(question, position)
        if asked >= 0 and asked <= found[0]:
            behind = asked + len(question)
            if found[0] < behind:  # choices so short that they occur in the question
                found = _listing(text, choices, behind) or found
            if behind <= found[0]:
                kept.append(text[position:asked])
                position = behind
        kept.append(text[position : found[0]])
        position = found[1]
    return "\n".join([*kept, text[position:]]) if kept else text


def _listing(text: str, choices: Sequence[str], search: int) -> tuple[int, int] | None:
    """Return where the next listing of all choices begins and ends."""
    if len(choices) < 2:
        return None
    while (start := text.find(choices[0], search)) >= 0:
        end = _behind_its_letter(text, start, choices[0]) + len(choices[0])
        for choice in choices[1:]:
            place = text.find(choice, end + 1, end + _WIDEST_GAP + len(choice))
            if place < 0 or _GAP.fullmatch(text, end, place) is None:
                break
            end = _behind_its_letter(text, place, choice) + len(choice)
        else:
            lead = _LEAD.search(text, max(search, start - 8), start)
            begin = start if lead is None else lead.start()
            if not any(tick in text[max(0, begin - 3) : end + 3] for tick in _TICKS):
                return begin, end
        search = start + 1
    return None


def _behind_its_letter(text: str, place: int, choice: str) -> int:
    """Return where a choice really begins that is a letter like the one in front of it: `B) B`."""
    if len(choice) > 1:
        return place
    behind = _DELIMITER.match(text, place + 1)
    return behind.end() if behind is not None and text.startswith(choice, behind.end()) else place


def is_dump(text: str, context: Sequence[str]) -> bool:
    """Return whether a reply pours out the context instead of answering.

    It does when hardly anything is left of it without the values of a context of several, or when most of it is
    sentences of the context, word for word.
    """
    if not context:
        return False
    values = [" ".join(value.split()) for value in context]
    left = " ".join(text.split())
    total = len(left)
    if left == " ".join(values):
        return True
    if len(values) > 1 and all(value in left for value in values):
        for value in sorted(values, key=len, reverse=True):
            left = left.replace(value, " ")
        return len(re.findall(r"\w+", left)) <= 2 * len(values) + _FEW_WORDS
    source = " ".join(values)
    pieces = [piece for piece in _PIECE_END.split(text) if len(piece.split()) >= _LEAST_QUOTE]
    quoted = sum(len(piece) for piece in pieces if " ".join(piece.split()) in source)
    return len(pieces) > 1 and quoted > total * _DUMPED_SHARE
