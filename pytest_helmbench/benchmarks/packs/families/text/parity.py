"""The published rules of the text families, letter for letter: what `--helmbench-pack-rules=parity` applies.

Where they are unfair they stay so: they exist to compare with published numbers. Patterns are possessive where
that changes no verdict, so that a hostile reply costs no more than its length.

Source:
    Benchmark packs, parity rules.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, shown
from pytest_helmbench.benchmarks.packs.families.text.rows import ChoiceRow, FreeRow, ShortRow
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.benchmarks.packs.task import ConfigError

__all__ = ["parity_choice", "parity_free", "parity_short"]

_EDGE = " \t\r\n\"'`.,;:"
_LABEL = re.compile(
    r"\s*+(?:final\s++answer|answer|choice|option)?+\s*+(?:is)?+\s*+[:\-]?+\s*+[(\[]?+([A-Za-z])[)\].:]?+\s*+"
)
_CHOICE_CUE = re.compile(
    r"(?:final\s++answer|answer|choice|option)\s*(?:is)?\s*[:\-]?\s*(.+)$", re.IGNORECASE
)
_ANSWER_CUE = re.compile(r"(?:final\s++answer|answer)\s*(?:is)?\s*[:\-]?\s*(.+)$", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)")
_TOKEN = re.compile(r"[a-z0-9]+")
_STOP_WORDS = word_set(
    "a an and are as at be because been before being by did do does due for from how if in into is it its no not of on",
    "or over that the their this through to was were what when where which who whom whose why with you your",
)


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
    focused = _focused(reply, _CHOICE_CUE)
    forms: list[tuple[str, str | None]] = [
        ("whole_text", _normalised(reply)),
        ("focused_text", _normalised(focused)),
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


def parity_short(row: ShortRow, reply: str) -> AnswerFinding:
    """Judge a short_answer reply by the published rule."""
    whole, focused = reply.strip(), _focused(reply, _ANSWER_CUE)
    for form in (whole, focused) if focused != whole else (whole,):
        found = _first_accepted(form, row) if form else None
        if found is not None:
            return AnswerFinding(passed=True, strategy=found[1], matched=found[0], statement=shown(form))
    return AnswerFinding(passed=False, statement=shown(focused), reason=None if whole else "empty")


def parity_free(row: FreeRow, reply: str) -> AnswerFinding:
    """Judge a free_response reply by the published rule."""
    folded = _normalised(reply, united_states=True)
    accepted, rejected = _first_contained(folded, row.accepted), _first_contained(folded, row.rejected)
    accepted_f1, best_accepted = _best_f1(reply, row.accepted)
    rejected_f1, best_rejected = _best_f1(reply, row.rejected)
    strategy = None if accepted is None else "contained"
    if accepted is None and best_accepted is not None and accepted_f1 >= row.min_token_f1:
        accepted, strategy = best_accepted, "token_f1"
    if rejected is None and rejected_f1 >= row.min_token_f1 and rejected_f1 >= accepted_f1:
        rejected = best_rejected
    return AnswerFinding(
        passed=accepted is not None and rejected is None,
        strategy=strategy,
        matched=accepted,
        rejected=rejected,
        accepted_f1=accepted_f1,
        rejected_f1=rejected_f1,
        statement=shown(reply),
        reason=None if reply.strip() else "empty",
    )


def _expected_forms(answer: Any, choices: Sequence[str]) -> set[str]:
    if isinstance(answer, bool):
        return set()
    if isinstance(answer, int) or (isinstance(answer, float) and answer.is_integer()):
        index = int(answer)
        known = 0 <= index < len(choices)
        return {ascii_uppercase[index], _normalised(choices[index])} if known else set()
    if not isinstance(answer, str):
        return set()
    label = _label(answer, choices)
    if label is not None:
        return {label, _normalised(choices[ascii_uppercase.index(label)])}
    text = _normalised(answer)
    equal = {ascii_uppercase[index] for index, choice in enumerate(choices) if _normalised(choice) == text}
    return {text} | equal


def _first_accepted(form: str, row: ShortRow) -> tuple[int, str] | None:
    number, text = _number(form), _normalised(form)
    for index, answer in enumerate(row.accepted):
        wanted = _number(answer)
        if _is_near(number, wanted, row.tolerance):
            return index, "numeric_tolerance"
        wanted_text = _normalised(str(answer))
        if text == wanted_text:
            return index, "normalized_exact"
        if wanted_text and _holds(text, wanted_text):
            return index, "answer_span"
    return None


def _is_near(number: float | None, wanted: float | None, tolerance: float | None) -> bool:
    if number is None or wanted is None or tolerance is None:
        return False
    return math.isclose(number, wanted, abs_tol=tolerance)


def _normalised(text: str, *, united_states: bool = False) -> str:
    text = text.strip().lower()
    if united_states:
        text = text.replace("u.s.", "united states")
    return " ".join(text.split()).strip(_EDGE)


def _focused(reply: str, cue: re.Pattern[str]) -> str:
    """Return the last line that is not blank, or what follows its first cue."""
    lines = reply.strip().splitlines()
    last = lines[-1].strip() if lines else ""
    found = cue.search(last)
    return last if found is None else found[1].strip()


def _label(text: str, choices: Sequence[str]) -> str | None:
    found = _LABEL.fullmatch(text)
    if found is None:
        return None
    label = found[1].upper()
    return label if ascii_uppercase.index(label) < len(choices) else None


def _number(value: str | int | float) -> float | None:
    if not isinstance(value, str):
        try:
            return float(value)
        except OverflowError:  # an integer of hundreds of digits
            return math.inf if value > 0 else -math.inf
    found = _NUMBER.search(value.replace(",", ""))
    return None if found is None else float(found[0])


def _holds(text: str, part: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None


def _first_contained(text: str, entries: Sequence[str]) -> int | None:
    for index, entry in enumerate(entries):
        wanted = _normalised(entry, united_states=True)
        if wanted and _holds(text, wanted):
            return index
    return None


def _best_f1(reply: str, entries: Sequence[str]) -> tuple[float, int | None]:
    tokens = Counter(_tokens(reply)) if entries else Counter[str]()
    best: tuple[float, int | None] = (0.0, None)
    for index, entry in enumerate(entries):
        score = _token_f1(tokens, Counter(_tokens(entry)))
        if score > best[0]:
            best = score, index
    return best


def _token_f1(tokens: Counter[str], wanted: Counter[str]) -> float:
    common = (tokens & wanted).total()
    if not common:
        return 0.0
    precision, recall = common / tokens.total(), common / wanted.total()
    return 2 * precision * recall / (precision + recall)


def _tokens(text: str) -> list[str]:
    text = text.lower().replace("u.s.", "united states")
    return [token for token in _TOKEN.findall(text) if token not in _STOP_WORDS]
