"""multiple_choice: what a row asks for, and which choice a reply states: by label, by text, or as the only one named.

Messages of a row name fields, never the values of `eval`: those are hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from string import ascii_uppercase

from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, no_answer, shown
from pytest_helmbench.benchmarks.packs.families.text.given import echoes_given, is_silent, stripped
from pytest_helmbench.benchmarks.packs.task import ConfigError
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.judging.comparisons.plain import folded, takes_back, without_label
from pytest_helmbench.judging.comparisons.stated import Stated, stated_answer, without_thoughts

MOST_CHOICES = 26
"""One letter each."""
_LABEL = re.compile(r"(?:(?:option|choice|answer|letter)\s)?[(\[]?((?-i:[A-Za-z]))[)\]]?[.:]?", re.IGNORECASE)
_LABELLED = re.compile(
    r"(?:(?:option|choice)\s)?[(\[]?((?-i:[A-Za-z]))(?:[)\].:,]+|\s[-=])\s*(?P<text>.+)",
    re.IGNORECASE | re.DOTALL,
)
_LETTERS = re.compile(r"[(\[]?[A-Z][)\].:]?(?:(?:\s*[,;/&]\s*|\s+)(?:(?:and|or)\s+)?[(\[]?[A-Z][)\].:]?)+")
_MENTIONED = re.compile(r"(?<![\w'./^+=-])[A-Z](?![\w'/^+=-]|\.\w)")
_WORD = re.compile(r"(?<![\w(*])(?:A|I)\s[a-z]")
_OWN = re.compile(r"(?<!\w)I\s(?:would|will|am|think|believe|pick|choose|go|have|say|give)(?!\w)")
_ITEM = re.compile(r"\W{0,4}[A-Z]\s?[).:]")
_ENDS = " .*\"'!"
_LONGEST_STATEMENT = 200


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A row of multiple_choice.

    Args:
        question: As the model sees it; empty where a test leaves it out.
        choices: Texts, stripped, none empty.
        answers: As written: indices, letters, texts, or what names no choice.
    """

    question: str
    choices: tuple[str, ...]
    answers: tuple[JsonValue, ...]


def choice_row(given: JsonObject, wanted: JsonObject) -> ChoiceRow:
    """Read `input` and `eval` of a multiple_choice row.

    Raises:
        ConfigError: There are no choices, too many, or empty ones.
    """
    choices = given.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ConfigError("input.choices: not a list of choices\n  hint: list at least one text")
    texts = tuple(choice.strip() for choice in choices if isinstance(choice, str) and choice.strip())
    if len(texts) != len(choices):
        raise ConfigError(
            "input.choices: holds something that is no text, or blank\n  hint: write every choice as a string"
        )
    if len(choices) > MOST_CHOICES:
        raise ConfigError(
            f"input.choices: {len(choices)} choices\n  hint: at most {MOST_CHOICES}, one letter each"
        )
    answer = wanted.get("answer")
    answers = tuple(answer) if isinstance(answer, list) else (answer,)
    return ChoiceRow(stripped(given.get("question")), texts, answers)


def right_choices(row: ChoiceRow) -> frozenset[int]:
    """Return the indices of the choices that pass: those that the answers name, and others of the same text.

    Raises:
        ConfigError: The row's answer names none of the choices.
    """
    named = {at for answer in row.answers if (at := named_choice(answer, row.choices)) is not None}
    if not named:
        raise ConfigError(
            f"eval.answer: names none of the {len(row.choices)} choices\n"
            "  hint: a zero-based index, a letter or the text of a choice"
        )
    texts = {row.choices[at] for at in named}
    return frozenset(at for at, text in enumerate(row.choices) if text in texts)


def named_choice(answer: JsonValue, choices: tuple[str, ...]) -> int | None:
    """Return the index of the choice that an answer of a row names; None for none."""
    if isinstance(answer, bool):
        return None
    if isinstance(answer, int) or (isinstance(answer, float) and answer.is_integer()):
        return int(answer) if 0 <= answer < len(choices) else None
    if not isinstance(answer, str):
        return None
    alone = _LABEL.fullmatch(answer.strip())
    if alone is not None and (at := ascii_uppercase.index(alone[1].upper())) < len(choices):
        return at
    if answer.strip() in choices:
        return choices.index(answer.strip())
    low = folded(answer)
    return next((at for at, text in enumerate(choices) if low and folded(text) == low), None)


def read_choice(row: ChoiceRow, reply: str) -> AnswerFinding:
    """Judge a multiple_choice reply by its words.

    Raises:
        ConfigError: The row's answer names none of the choices.
    """
    right = right_choices(row)
    said = without_thoughts(reply)
    stated = stated_answer(reply)
    if (verbatim := _verbatim(said, stated.text, row)) is not None:
        return AnswerFinding(verbatim in right, "text", verbatim, statement=shown(stated.text or said))
    statement = shown(stated.text or said)
    listed = listing(row.choices)
    if echoes_given((row.question, listed, f"{row.question}\n\n{listed}"), said, stated.text):
        return AnswerFinding(False, statement=statement, reason="echo")
    if not stated.text:
        return no_answer(reply)
    if is_silent(stated.text):
        return AnswerFinding(False, "silent", statement=statement)
    if _LETTERS.fullmatch(stated.text.strip(_ENDS)):
        return AnswerFinding(False, "letters", statement=statement, reason="several")
    pick = _picked(stated, row)
    if pick is None:
        return AnswerFinding(False, statement=statement, certain=False)
    return AnswerFinding(pick in right, "choice", pick, statement=statement)


def _verbatim(said: str, stated: str, row: ChoiceRow) -> int | None:
    """Return the choice whose text, sign by sign, a reply is, alone or behind `Answer:`; a letter is none."""
    forms = [form.strip().strip("`") for form in (said, said.rpartition("Answer:")[2], stated)]
    return next(
        (
            row.choices.index(form)
            for form in forms
            if form in row.choices and _letter(form, len(row.choices)) is None
        ),
        None,
    )


def listing(choices: Iterable[str]) -> str:
    """Return choices with their letters, as a prompt shows them."""
    return "\n".join(f"{letter}) {text}" for letter, text in zip(ascii_uppercase, choices, strict=False))


def _picked(stated: Stated, row: ChoiceRow) -> int | None:
    """Return the one choice that a reply states: with all that stands there, or with its first words alone."""
    pick = _pick(stated.text, row)
    listed = sum(_ITEM.match(part) is not None for part in stated.parts) > 1
    if pick is not None or len(stated.parts) == 1 or listed:
        return pick
    first, last = _pick(stated.parts[0], row), _pick(stated.parts[-1], row)
    rest = stated.parts[1:]
    others = {at for part in rest for at in _mentions(part, row)} - {first}
    return first if first == last or not (others or takes_back(folded(" ".join(rest)))) else None


def _letter(text: str, choices: int) -> int | None:
    """Return the index of the choice whose label a text is; None for any other."""
    found = _LABEL.fullmatch(text.strip(_ENDS))
    at = choices if found is None else ascii_uppercase.index(found[1].upper())
    return at if at < choices else None


def _pick(said: str, row: ChoiceRow) -> int | None:
    """Return the one choice that a statement is or mentions; None for none or several."""
    texts = _folded_choices(row.choices)
    bare = without_label(said) if len(said) > len("A)") + 1 else said
    if (letter := _letter(bare, len(texts))) is not None:
        return letter
    found = {at for at, text in enumerate(texts) if text and text in (folded(said), folded(bare))}
    if len(found) == 1 or (found and len({row.choices[at] for at in found}) == 1):
        return min(found)
    labelled = _LABELLED.fullmatch(said.strip(_ENDS))
    if labelled is not None and (at := ascii_uppercase.index(labelled[1].upper())) < len(texts):
        text = folded(labelled["text"])
        if texts[at] in (text, folded(without_label(labelled["text"]))):
            return at
        if text in texts:
            return None
    if len(said) > _LONGEST_STATEMENT or takes_back(folded(said)):
        return None
    mentioned = _mentions(said, row)
    words = mentioned == {0} or mentioned == {ascii_uppercase.index("I")}  # `A` and `I` are words, too
    return mentioned.pop() if len(mentioned) == 1 and not (words and _WORD.search(said)) else None


def _mentions(text: str, row: ChoiceRow) -> set[int]:
    """Return the choices that a text mentions by label or text; no texts that the question has, too."""
    low, asked = folded(text), folded(row.question)
    named = set[int]()
    for at, known in enumerate(_folded_choices(row.choices)):
        place = re.compile(rf"(?<!\w){re.escape(known)}(?!\w)")
        if known and place.search(low) and not place.search(asked):
            named.add(at)
    labels = (ascii_uppercase.index(label) for label in _MENTIONED.findall(_OWN.sub("", text)))
    return named | {at for at in labels if at < len(row.choices)}


@lru_cache(maxsize=2048)
def _folded_choices(choices: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(folded, choices))
