"""multiple_choice, published rule, letter for letter.

Where it is unfair it stays so: it exists to compare with published numbers. Patterns are possessive where that changes
no verdict, so that a hostile reply costs no more than its length.

Source:
    Benchmark packs, parity rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from pytest_helmbench.benchmarks.packs.families.multiple_choice.row import ChoiceRow
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, shown
from pytest_helmbench.benchmarks.packs.families.text.published import focused_text, normalised
from pytest_helmbench.benchmarks.packs.task import ConfigError

_LABEL = re.compile(
    r"\s*+(?:final\s++answer|answer|choice|option)?+\s*+(?:is)?+\s*+[:\-]?+\s*+[(\[]?+([A-Za-z])[)\].:]?+\s*+"
)
_CUE = re.compile(r"(?:final\s++answer|answer|choice|option)\s*(?:is)?\s*[:\-]?\s*(.+)$", re.IGNORECASE)


def parity_choice(row: ChoiceRow, reply: str) -> AnswerFinding:
    """Judge a multiple_choice reply by the published rule.

    Raises:
        ConfigError: The row's answer names no choice and is no text.
    """
    expected: set[str] = set()
    for answer in row.answers:
        expected |= _expected_forms(answer, row.choices)
    if not expected:
        raise ConfigError(
            f"eval.answer: names none of the {len(row.choices)} choices\n"
            "  hint: a zero-based index, a letter or the text of a choice"
        )
    focused = focused_text(reply, _CUE)
    forms: list[tuple[str, str | None]] = [
        ("whole_text", normalised(reply)),
        ("focused_text", normalised(focused)),
        ("focused_label", _label(focused, row.choices)),
        ("whole_label", _label(reply, row.choices)),
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


def _expected_forms(answer: object, choices: Sequence[str]) -> set[str]:
    if isinstance(answer, bool):
        return set()
    if isinstance(answer, int) or (isinstance(answer, float) and answer.is_integer()):
        index = int(answer)
        known = 0 <= index < len(choices)
        return {ascii_uppercase[index], normalised(choices[index])} if known else set()
    if not isinstance(answer, str):
        return set()
    label = _label(answer, choices)
    if label is not None:
        return {label, normalised(choices[ascii_uppercase.index(label)])}
    text = normalised(answer)
    equal = {ascii_uppercase[index] for index, choice in enumerate(choices) if normalised(choice) == text}
    return {text} | equal


def _label(text: str, choices: Sequence[str]) -> str | None:
    found = _LABEL.fullmatch(text)
    if found is None:
        return None
    label = found[1].upper()
    return label if ascii_uppercase.index(label) < len(choices) else None
