"""Texts of a row that its model was shown, in the forms in which rules compare replies with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeGuard

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.judging.comparisons.plain import folded

_SILENT = re.compile(
    r"(?:i'm sorry,? )?(?:but )?i (?:do not|don't|cannot|can't) (?:know|say|answer|tell)\b[^,;.]*\.?(?: sorry\.?)?"
    r"|unknown|n/a|no answer|no idea|not sure|idk|-*",
    re.IGNORECASE,
)
_FEWEST_WORDS = 5
"""Of a shown text whose repeat is no answer: a value of the context may well be one."""


def leaves(context: object) -> Iterator[str]:
    """Yield the texts and numbers of a context (a text, or an object of any depth), in order."""
    pending: list[object] = [context]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            pending.extend(reversed([*value.values()]))
        elif isinstance(value, list | tuple):
            pending.extend(reversed(value))
        elif isinstance(value, str):
            if value.strip():
                yield value.strip()
        elif is_number(value):
            yield str(value)


def given_texts(context: JsonValue, *texts: str) -> tuple[str, ...]:
    """Return all that was shown in all forms in which it may come back, long texts first."""
    given = [*texts, *leaves(context)]
    if isinstance(context, dict):
        given.append("\n".join(f"{key}: {_inline(value)}" for key, value in context.items()))
    elif isinstance(context, list):
        given.append("\n".join(f"- {_inline(value)}" for value in context))
    if not isinstance(context, str):
        given += [_json(context), _json(context, indent=2)]
    return tuple(sorted((text for text in given if text), key=len, reverse=True))


def _inline(value: JsonValue) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: JsonValue, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)


def stripped(value: JsonValue) -> str:
    """Return a text without white space around it; empty where there is none."""
    return value.strip() if isinstance(value, str) else ""


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_silent(statement: str) -> bool:
    """Return whether a plain statement says that it does not know, and nothing else."""
    return _SILENT.fullmatch(statement.strip(" .")) is not None


def echoes_given(given: Iterable[str], *texts: str) -> bool:
    """Return whether one of some texts only repeats one that the model was shown."""
    said = {low for text in texts if (low := folded(text))}
    return any(low in said for low in map(_folded, given) if len(low.split()) >= _FEWEST_WORDS)


_folded = lru_cache(maxsize=2048)(folded)
