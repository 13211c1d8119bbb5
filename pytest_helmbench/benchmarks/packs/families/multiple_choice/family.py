"""multiple_choice: a question with choices; the reply must state the right one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from string import ascii_uppercase
from types import MappingProxyType
from typing import ClassVar

from pytest_helmbench.benchmarks.packs.families.text.text_family import (
    ENDING_JSON,
    AnswerFinding,
    ProofReply,
    TextFamily,
    focused_text,
    no_statement,
    normalised,
    reasoned_answer,
    right_replies,
    shown,
    stripped,
)
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.benchmarks.packs.format.row_fields import Field, Fields, earlier_messages
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackRule, PackTask
from pytest_helmbench.core.json_types import JsonObject, JsonValue, is_number
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import RowFaults, check_text, check_texts, kind_of
from pytest_helmbench.files.strict_json import texts
from pytest_helmbench.judging.comparisons.plain import folded, takes_back, without_label
from pytest_helmbench.judging.comparisons.stated import Stated, end_of, stated_answer
from pytest_helmbench.judging.rubric import Criterion

_RUBRIC = (
    "The prompt lists choices. The reply passes when the one choice that it settles on is a right one, by its letter "
    "or in whatever words. One that settles on none, on another one or on several fails."
)
_NAMES = "a zero-based index, a letter or the text of a choice"
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


def _choices(faults: RowFaults, where: str, value: JsonValue) -> None:
    check_texts(faults, where, value)
    if isinstance(value, list) and len(value) > MOST_CHOICES:
        hint = f"a choice is a letter: at most {MOST_CHOICES}"
        faults.error(where, f"there are {len(value)} choices", hint)


def _answer(faults: RowFaults, where: str, value: JsonValue) -> None:
    answers = value if isinstance(value, list) else [value]
    if not answers:
        faults.error(where, "the list is empty")
    for number, item in enumerate(answers, start=1):
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            which = f"entry {number}" if isinstance(value, list) else "this"
            faults.error(where, f"{which} is {kind_of(item)}, not a letter, a text or an index")


class MultipleChoice(TextFamily):
    """Rows whose answer is a letter of a list of choices."""

    name = "multiple_choice"
    input_fields: ClassVar[Fields] = {
        "question": Field(check_text, required=True),
        "choices": Field(_choices, required=True),
        "messages": Field(earlier_messages),
    }
    eval_fields: ClassVar[Fields] = {"answer": Field(_answer, required=True)}
    answer_field = "answer"
    answer_forms = MappingProxyType(
        {"json": ENDING_JSON.format(what="the letter of the right choice"), "text": ""}
    )
    template = PromptTemplate(
        __package__,
        values={
            "question": field_text("question"),
            "choices": lambda public: listing(texts(public.get("choices"))),
        },
        needed=("question", "choices"),
    )

    def check_across(self, faults: RowFaults, public: JsonObject, hidden: JsonObject) -> None:
        value, choices = hidden["answer"], texts(public.get("choices"))
        for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
            if named_choice(item, choices) is None:
                which = f"entry {number}" if isinstance(value, list) else "this"
                last = f"A to {ascii_uppercase[len(choices) - 1]}, 0 to {len(choices) - 1}"
                faults.error("eval.answer", f"{which} names no choice", f"{_NAMES}: {last}")

    def response_format(self, task: PackTask, form: str) -> JsonObject | None:
        letters = ascii_uppercase[: len(texts(task.public().get("choices")))]
        return reasoned_answer(letters) if form == "json" else None

    def finding(self, given: JsonObject, wanted: JsonObject, reply: str, *, parity: bool) -> AnswerFinding:
        row = choice_row(given, wanted)
        return parity_choice(row, reply) if parity else read_choice(row, reply)

    def reading(self, rule: PackRule) -> Criterion:
        row = choice_row(rule.task.public(), rule.task.evaluation())
        right = [f"- {ascii_uppercase[at]}) {row.choices[at]}" for at in sorted(right_choices(row))]
        rubric = "\n".join([f"{_RUBRIC}\n\nRight choices:", *right])
        return Criterion("", rubric, ("PASS", "FAIL"), ("PASS",))

    def own_proofs(self, given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
        row = choice_row(given, wanted)
        right, letters = right_choices(row), ascii_uppercase[: len(row.choices)]
        for at in sorted(right):
            yield from right_replies("the letter of the answer", letters[at])
            if row.choices[at].upper() not in letters:
                yield from right_replies("the text of the answer", row.choices[at])
        for at, letter in enumerate(letters):
            if at not in right:
                yield ProofReply("the letter of another choice", letter, must_pass=False)
        listed = listing(row.choices)
        yield ProofReply("the question and its choices", f"{row.question}\n\n{listed}", must_pass=False)
        if len(set(row.choices)) > 1:
            yield ProofReply("a list of all choices", listed, must_pass=False)
            yield ProofReply("a list of all letters", ", ".join(letters), must_pass=False)


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
    """Read `input` and `eval` of a multiple_choice row."""
    choices = tuple(text.strip() for text in texts(given.get("choices")))
    answer = wanted.get("answer")
    answers = tuple(answer) if isinstance(answer, list) else (answer,)
    return ChoiceRow(stripped(given.get("question")), choices, answers)


def _names_none(row: ChoiceRow) -> ConfigError:
    return ConfigError(f"eval.answer: names none of the {len(row.choices)} choices\n  hint: {_NAMES}")


def right_choices(row: ChoiceRow) -> frozenset[int]:
    """Return the indices of the choices that pass: those that the answers name, and others of the same text.

    Raises:
        ConfigError: The row's answer names none of the choices.
    """
    named = {at for answer in row.answers if (at := named_choice(answer, row.choices)) is not None}
    if not named:
        raise _names_none(row)
    texts = {row.choices[at] for at in named}
    return frozenset(at for at, text in enumerate(row.choices) if text in texts)


def named_choice(answer: JsonValue, choices: tuple[str, ...]) -> int | None:
    """Return the index of the choice that an answer of a row names; None for none."""
    if is_number(answer):
        return int(answer) if answer in range(len(choices)) else None
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
    said = end_of(reply)
    stated = stated_answer(reply)
    if (verbatim := _verbatim(said, stated.text, row)) is not None:
        return AnswerFinding(verbatim in right, "text", verbatim, statement=shown(stated.text or said))
    listed = listing(row.choices)
    finding = no_statement(reply, stated, (row.question, listed, f"{row.question}\n\n{listed}"))
    if finding is not None:
        return finding
    statement = shown(stated.text)
    if _LETTERS.fullmatch(stated.text.strip(_ENDS)):
        return AnswerFinding(False, "letters", statement=statement, reason="several")
    pick = _picked(stated, row)
    if pick is None:
        return AnswerFinding(False, statement=statement, certain=False)
    return AnswerFinding(pick in right, "choice", pick, statement=statement)


def _verbatim(said: str, stated: str, row: ChoiceRow) -> int | None:
    """Return the choice whose text, sign by sign, a reply is, alone or behind `Answer:`; a letter is none."""
    forms = [form.strip().strip("`") for form in (said, said.rpartition("Answer:")[2], stated)]
    verbatim = (form for form in forms if form in row.choices and _letter(form, len(row.choices)) is None)
    return next(map(row.choices.index, verbatim), None)


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


_PUBLISHED_LABEL = re.compile(
    r"\s*+(?:final\s++answer|answer|choice|option)?+\s*+(?:is)?+\s*+[:\-]?+\s*+[(\[]?+([A-Za-z])[)\].:]?+\s*+"
)
_PUBLISHED_CUE = re.compile(
    r"(?:final\s++answer|answer|choice|option)\s*(?:is)?\s*[:\-]?\s*(.+)$", re.IGNORECASE
)


def parity_choice(row: ChoiceRow, reply: str) -> AnswerFinding:
    """Judge a multiple_choice reply by the published rule.

    Raises:
        ConfigError: The row's answer is not a text and names no choice.
    """
    expected = {form for answer in row.answers for form in _expected_forms(answer, row.choices)}
    if not expected:
        raise _names_none(row)
    focused = focused_text(reply, _PUBLISHED_CUE)
    forms: list[tuple[str, str | None]] = [
        ("whole_text", normalised(reply)),
        ("focused_text", normalised(focused)),
        ("focused_label", _published_label(focused, row.choices)),
        ("whole_label", _published_label(reply, row.choices)),
    ]
    label = forms[2][1] or forms[3][1]
    strategy = next((name for name, form in forms if form and form in expected), None)
    return AnswerFinding(
        passed=strategy is not None,
        strategy=strategy,
        matched=None if label is None else ascii_uppercase.index(label),
        statement=shown(focused),
        reason=None if reply.strip() else "empty",
    )


def _expected_forms(answer: JsonValue, choices: Sequence[str]) -> set[str]:
    if isinstance(answer, str):
        label = _published_label(answer, choices)
        if label is None:
            text = normalised(answer)
            return {text, *(ascii_uppercase[at] for at, one in enumerate(choices) if normalised(one) == text)}
        return {label, normalised(choices[ascii_uppercase.index(label)])}
    if is_number(answer) and answer in range(len(choices)):
        return {ascii_uppercase[int(answer)], normalised(choices[int(answer)])}
    return set()


def _published_label(text: str, choices: Sequence[str]) -> str | None:
    found = _PUBLISHED_LABEL.fullmatch(text)
    label = "" if found is None else found[1].upper()
    return label if label and ascii_uppercase.index(label) < len(choices) else None


FAMILY = MultipleChoice()
