"""short_answer, published rule, letter for letter.

Where it is unfair it stays so: it exists to compare with published numbers. Patterns are possessive where that changes
no verdict, so that a hostile reply costs no more than its length.

Source:
    Benchmark packs, parity rules.
"""

from __future__ import annotations

import math
import re

from pytest_helmbench.benchmarks.packs.families.short_answer.row import ShortRow
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, shown
from pytest_helmbench.benchmarks.packs.families.text.published import focused_text, holds, normalised

_CUE = re.compile(r"(?:final\s++answer|answer)\s*(?:is)?\s*[:\-]?\s*(.+)$", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)")


def parity_short(row: ShortRow, reply: str) -> AnswerFinding:
    """Judge a short_answer reply by the published rule."""
    whole, focused = reply.strip(), focused_text(reply, _CUE)
    for form in (whole, focused) if focused != whole else (whole,):
        found = _first_accepted(form, row) if form else None
        if found is not None:
            return AnswerFinding(passed=True, strategy=found[1], matched=found[0], statement=shown(form))
    return AnswerFinding(passed=False, statement=shown(focused), reason=None if whole else "empty")


def _first_accepted(form: str, row: ShortRow) -> tuple[int, str] | None:
    number, text = _number(form), normalised(form)
    for index, answer in enumerate(row.accepted):
        wanted = _number(answer)
        if _is_near(number, wanted, row.tolerance):
            return index, "numeric_tolerance"
        wanted_text = normalised(str(answer))
        if text == wanted_text:
            return index, "normalized_exact"
        if wanted_text and holds(text, wanted_text):
            return index, "answer_span"
    return None


def _is_near(number: float | None, wanted: float | None, tolerance: float | None) -> bool:
    if number is None or wanted is None or tolerance is None:
        return False
    return math.isclose(number, wanted, abs_tol=tolerance)


def _number(value: str | int | float) -> float | None:
    if not isinstance(value, str):
        try:
            return float(value)
        except OverflowError:  # an integer of hundreds of digits
            return math.inf if value > 0 else -math.inf
    found = _NUMBER.search(value.replace(",", ""))
    return None if found is None else float(found[0])
