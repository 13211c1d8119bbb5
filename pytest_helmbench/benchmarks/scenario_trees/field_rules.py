"""The rules that read one field of a JSON reply. Pure; what they need stands in the rule."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from decimal import Decimal
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from pytest_helmbench.core.rule import Criterion, FieldRule, JudgeRule
from pytest_helmbench.core.scrub import excerpt, scrub

__all__ = [
    "FIELD_RULES",
    "MISSING",
    "OBSERVED_LIMIT",
    "expected_text",
    "field_value",
    "matches",
    "observed_text",
    "rule_hash",
]

OBSERVED_LIMIT = 200
"""Most characters of a reply that an evaluation row shows."""

_NUMBER = re.compile(r"\s*[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?\s*\Z", re.ASCII)


class _Missing:
    """A field that the reply does not have: not the same as one that is null."""


MISSING: Final = _Missing()


def field_value(value: Any, path: str) -> Any:
    """Return what stands at a dotted path, or `MISSING`.

    A key that holds the dots itself comes first; a number also counts into a list.
    """
    if isinstance(value, Mapping):
        if path in value:
            return value[path]
        head, _, rest = path.partition(".")
        return field_value(value[head], rest) if rest and head in value else MISSING
    if isinstance(value, list):
        head, _, rest = path.partition(".")
        if head.isascii() and head.isdigit() and len(head) < 10 and int(head) < len(value):
            return field_value(value[int(head)], rest) if rest else value[int(head)]
    return MISSING


def matches(expected: str, observed: Any) -> bool:
    """Return whether a JSON value is the one that the file writes as `expected`.

    The reply fits its schema, so the value has the schema's type, and that type decides: strings exactly,
    numbers by value (`2` is 2, and 2.0 where numbers are asked for), `true`, `false` and `null` as words.
    """
    if isinstance(observed, str):
        return expected == observed
    if isinstance(observed, bool):
        return expected.strip().lower() == ("true" if observed else "false")
    if isinstance(observed, int | float):
        return _NUMBER.match(expected) is not None and Decimal(expected.strip()) == Decimal(str(observed))
    return observed is None and expected.strip().lower() == "null"


def _category_match(rule: FieldRule, observed: Any) -> bool:
    return matches(rule.expected[0], observed)


def _list_includes(rule: FieldRule, observed: Any) -> bool:
    return isinstance(observed, list) and all(
        any(matches(wanted, item) for item in observed) for wanted in rule.expected
    )


def _tag_threshold(rule: FieldRule, observed: Any) -> bool:
    if not isinstance(observed, list):
        return False
    expected = set(rule.expected)
    correct: set[str] = set()
    incorrect: set[str] = set()
    for tag in observed:
        hits = {wanted for wanted in expected if matches(wanted, tag)}
        correct |= hits
        if not hits:
            incorrect.add(json.dumps(tag, sort_keys=True))
    least = len(expected) if rule.min_correct is None else rule.min_correct
    return len(correct) >= least and len(incorrect) <= rule.max_incorrect


FIELD_RULES: Mapping[str, Callable[[FieldRule, Any], bool]] = MappingProxyType(
    {
        "category_match": _category_match,
        "list_includes": _list_includes,
        "tag_threshold": _tag_threshold,
    }
)
"""Rule name to a function of the rule and the value of its field (or `MISSING`).

Source:
    Scenario trees, section 5.
"""


def expected_text(rule: FieldRule, *, inverted: bool) -> str:
    """Return what passes, in the fewest words: `HANDOFF`, `includes A, B`."""
    values = ", ".join(rule.expected)
    if rule.type == "category_match":
        text = values
    elif rule.type == "list_includes":
        text = f"includes {values}"
    else:
        least = len(set(rule.expected)) if rule.min_correct is None else rule.min_correct
        text = f"at least {least} of {values}; at most {rule.max_incorrect} others"
    return scrub(f"not: {text}" if inverted else text)


def observed_text(rule: FieldRule, observed: Any) -> str:
    """Return the value that was judged, as people read it, cut."""
    if observed is MISSING:
        return f"(no field {rule.field!r})"
    text = observed if isinstance(observed, str) else json.dumps(observed, ensure_ascii=False)
    return excerpt(text, OBSERVED_LIMIT)


def rule_hash(rule: FieldRule | JudgeRule | Criterion, *parts: str) -> str:
    """Return 16 hex digits that change whenever the verdict of the same reply could.

    Args:
        parts: What else decides: for a judge the template's hash and the model's id.

    Source:
        SHA-256 over the canonical JSON of the rule's fields and the parts.
    """
    plain = json.dumps(
        [_plain(rule), *parts], sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain
    )
    return sha256(plain.encode("ascii")).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}
