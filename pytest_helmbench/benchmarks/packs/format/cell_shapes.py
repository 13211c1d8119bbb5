"""Shapes of cells: what a text, an object or a list in a cell says, as public data sets write it.

A shape that is not known raises `CellError`; its JSON never becomes a question or an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

from pytest_helmbench.benchmarks.authoring import counted
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.files.field_values import named
from pytest_helmbench.files.strict_json import NotJSONError, StrictJSON, a_mapping, a_text

_TRIVIA_NAMES = ("value", "aliases", "normalizedvalue", "normalizedaliases", "humananswers", "type")
_OFFSETS = ("answer", "start", "end", "limit")
_LABEL_NAMES = frozenset({"label", "labels", "key", "letter", "id"})
_TEXT_NAMES = frozenset({"text", "texts", "value", "content"})
_LABEL = re.compile(r"[A-Za-z]|\d{1,2}")
_ROLES = {"system": "system", "user": "user", "assistant": "assistant"}
_ROLES |= {"developer": "system", "human": "user", "gpt": "assistant"}
_MESSAGE_KEYS = ({"role", "content"}, {"from", "value"})
_CALLS = frozenset({"tool_calls", "function_call", "tool_call_id"})
_MOST_KEYS = 5
_SOLUTION = re.compile(r"(?<!\S)####[ \t]*+(?P<answer>[^\s#][^\n#]*+)$")
"""The end of a worked solution, as GSM8K has it."""
_PRINTED = re.compile(
    r"\[?\{'(?:text|label|value|aliases|answer_start|normalized_\w+|type|role|content|from)': ?\S"
)
"""A known shape as Python prints it, which pandas writes into CSV."""
_ASSERTION = re.compile(
    r"(?:not-)?(?:i?contains(?:-any|-all|-json)?|equals|starts-with|regex|is-json|is-xml|is-sql|similar|levenshtein"
    r"|javascript|python|fn|eval|ruby|webhook|file|grade|factuality|llm-rubric|g-eval|model-graded-[\w-]+|answer-relevance"
    r"|context-[\w-]+|classifier|moderation|rouge-n|bleu|gleu|meteor|latency|cost|perplexity(?:-score)?)"
    r"(?:\([\d.]+\))?:.*|(?:not-)?(?:is|contains)-(?:json|xml|sql|html|refusal)",
    re.DOTALL,
)
_JSON = StrictJSON()
_TEXT = "write a text"
_CONTEXT = "write a text, a list of texts or an object"
_QUESTION = 'write a text, or a list of messages with "role" and "content"'
_ANSWERS = 'write a text or a list of texts; {"value", "aliases"} and {"text", "answer_start"} are read, too'
_CHOICES = 'write a list of texts, {"text": […], "label": […]}, or a list of {"label", "text"}'
Texts = TypeVar("Texts", str, list[str])


class CellError(Exception):
    """A cell of a shape that is not known; says its shape, and as a hint which ones are."""

    def __init__(self, shape: str, hint: str = _TEXT) -> None:
        super().__init__(shape)
        self.hint = hint


class ChoiceTexts(NamedTuple):
    """The choices of a cell, and a label of its own for each; none where the cell has no labels."""

    texts: list[str]
    labels: list[str]


def plain_name(name: str) -> str:
    """Return a name as names are compared: without case, spaces and underscores."""
    return "".join(name.replace("_", "").split()).casefold()


def text_of(value: JsonValue, hint: str = _TEXT) -> str:
    """Return a cell as a CSV file has it, without space around it; empty for none.

    Raises:
        CellError: It is an object or a list.
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, dict | list):
        raise CellError(_shape(value), hint)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def context_of(value: JsonValue) -> JsonValue:
    """Return a passage: a text, an object as it stands, or the texts of a list with blank lines between."""
    if isinstance(value, dict):
        return value
    return "\n\n".join(text_of(one, _CONTEXT) for one in (value if isinstance(value, list) else [value]))


def question_of(value: JsonValue) -> tuple[str, list[JsonValue]]:
    """Return a question and the messages before it: of a text, or of a list of messages that ends with the question."""
    read = _structure(value)
    listed = read if isinstance(read, list) else [read]
    is_text = isinstance(read, str)
    if is_text or not any(keys <= a_mapping(one).keys() for one in listed for keys in _MESSAGE_KEYS):
        return _needed(text_of(value, _QUESTION)), []
    *before, (role, text) = map(_message, listed)
    if role != "user":
        raise CellError(f"a conversation that ends with a message of {role!r}", "end it with one of 'user'")
    return text, [{"role": role, "content": said} for role, said in before]


def answers_of(value: JsonValue, *, split: bool) -> list[str]:
    """Return the answers of a cell: one of a text, all of a list or of an object of TriviaQA or SQuAD.

    A text that may be `split` holds several as a JSON list or with `|` between.
    """
    read = _structure(value)
    if isinstance(value, str) and isinstance(read, dict):
        read = read if _answers_of_object(read) is not None else value
    elif isinstance(value, str):
        parts: list[JsonValue] = [*value.split("|")]
        read = (read if isinstance(read, list) else parts) if split else value
    found: list[str] = []
    texts: list[str] | None
    for entry in read if isinstance(read, list) else [read]:
        if not isinstance(entry, dict):
            texts = [text_of(entry, _ANSWERS)]
        elif (texts := _answers_of_object(entry)) is None:  # keys of a hidden value are hidden, too
            raise CellError(f"an object with {counted(len(entry), 'key')}", _ANSWERS)
        found += [marked["answer"] if (marked := _SOLUTION.search(text)) else text for text in texts]
    return _needed([text for text in found if text])


def _answers_of_object(value: Mapping[str, JsonValue]) -> list[str] | None:
    """Return the answers of an object of TriviaQA or SQuAD; None for any other."""
    by_name = {plain_name(key): entry for key, entry in value.items()}
    offsets = by_name.keys() - {"text", "texts"}
    if "value" in by_name and by_name.keys() & {"aliases", "normalizedaliases"}:
        known = all(name in _TRIVIA_NAMES or name.endswith("wikientityname") for name in by_name)
        listed = [by_name["value"], by_name.get("aliases") or by_name.get("normalizedaliases")]
    else:
        known = len(offsets) < len(by_name) and all(name.startswith(_OFFSETS) for name in offsets)
        listed = [by_name.get("text"), by_name.get("texts")]
    texts = (
        text_of(one, _ANSWERS) for entry in listed for one in (entry if isinstance(entry, list) else [entry])
    )
    return [*dict.fromkeys(texts)] if known else None


def choices_of(value: JsonValue) -> ChoiceTexts:
    """Return the choices of a cell: a list, JSON that is one, texts with `|` between, or choices with labels."""
    read = _structure(value)
    read = [*read.split("|")] if isinstance(read, str) else read
    pairs: list[tuple[JsonValue, JsonValue]] | None = None
    if isinstance(read, dict):
        label, text = _label_and_text(read) or (None, None)
        if isinstance(label, list) and isinstance(text, list) and len(label) == len(text):
            pairs = [*zip(label, text, strict=True)]
        elif all(map(_LABEL.fullmatch, read)):
            pairs = [*read.items()]
    elif isinstance(read, list) and any(isinstance(one, dict) for one in read):
        found = [_label_and_text(one) if isinstance(one, dict) else None for one in read]
        pairs = [pair for pair in found if pair is not None] if None not in found else None
    else:
        listed = read if isinstance(read, list) else [read]
        return ChoiceTexts(_several([text_of(one, _CHOICES) for one in listed]), [])
    labels = [text_of(label, _CHOICES) for label, _ in pairs or ()]
    if pairs is None or len({*labels}) < len(labels):
        raise CellError(_shape(read) if pairs is None else "a list with one label for two of them", _CHOICES)
    return ChoiceTexts(_several([text_of(text, _CHOICES) for _, text in pairs]), labels)


def kinds_of_answer(value: JsonValue) -> Iterator[str]:
    """Yield what else the text of an answer cell may be: several texts, another tool's assertion, a class's number."""
    text = "" if isinstance(value, dict | list) else text_of(value)
    if text:
        yield "text"
    if "|" in text or (text[:1], text[-1:]) == ("[", "]"):
        yield "list"
    if _ASSERTION.fullmatch(text):
        yield "assertion"
    if text.removeprefix("-").isdecimal():
        yield "number"


def _structure(value: JsonValue) -> JsonValue:
    """Return the object or list that a text is as JSON; any other value as it stands."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    if _PRINTED.match(value.lstrip()):
        raise CellError(
            "an object as Python prints it", "write JSON, or save the table as JSON lines or Parquet"
        )
    try:
        read, flaws = _JSON.decode(value.strip())
    except NotJSONError:
        return value
    return value if flaws or not isinstance(read, list | dict) else read


def _shape(value: JsonValue) -> str:
    """Name the shape of an object or a list, with the first keys that it has."""
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return "a list"
    kind = "an object" if first is value else "a list of objects"
    return " with ".join(filter(None, (kind, ", ".join(map(named, [*first][:_MOST_KEYS])))))


def _message(value: JsonValue) -> tuple[str, str]:
    """Return role and text of a message; content may be a list of parts of text."""
    stated = {key: entry for key, entry in a_mapping(value).items() if entry is not None}
    role = _ROLES.get(str(stated.get("role", stated.get("from"))))
    content = stated.get("content", stated.get("value"))
    parts = content if isinstance(content, list) else [content]
    texts = [a_text(part.get("text") if isinstance(part, dict) else part) for part in parts]
    text = "\n\n".join(filter(None, texts)).strip()
    if role is None or stated.keys() & _CALLS or None in texts or not text:
        what = "a conversation with a message that is not a text of system, user or assistant"
        raise CellError(what, _QUESTION)
    return role, text


def _label_and_text(value: Mapping[str, JsonValue]) -> tuple[JsonValue, JsonValue] | None:
    """Return what an object has as label and as text; None for one with other keys."""
    by_name = {plain_name(key): entry for key, entry in value.items()}
    labels, texts = by_name.keys() & _LABEL_NAMES, by_name.keys() & _TEXT_NAMES
    is_pair = len(by_name) == 2 and len(labels) == len(texts) == 1
    return (by_name[labels.pop()], by_name[texts.pop()]) if is_pair else None


def _several(texts: list[str]) -> list[str]:
    """Return the texts of choices without the empty ones at their end; one alone is not a choice."""
    while texts and not texts[-1]:
        texts.pop()
    if len(texts) == 1:
        raise CellError("one text alone", "write a JSON list, or texts with | between")
    return _needed(texts)


def _needed(found: Texts) -> Texts:
    """Return what a cell says, where it says something."""
    if not found:
        raise CellError("empty", "fill the cell, or delete the row")
    return found
