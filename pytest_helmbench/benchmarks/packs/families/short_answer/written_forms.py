"""One form for what accepted answers of a row may be written as: dates, times of day, π, `the Second`, `King, Jr.`"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction

from pytest_helmbench.benchmarks.packs.families.short_answer.scores import steps_of_scores
from pytest_helmbench.benchmarks.packs.families.short_answer.spelt_names import steps_of_spellings
from pytest_helmbench.benchmarks.packs.families.short_answer.written_names import steps_of_names
from pytest_helmbench.benchmarks.packs.families.short_answer.written_times import steps_of_times
from pytest_helmbench.benchmarks.packs.families.text.compound_amounts import (
    has_parts,
    with_clock_as_minutes,
    with_one_unit,
)
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.numbers import from_value
from pytest_helmbench.benchmarks.packs.families.text.plain import plain
from pytest_helmbench.benchmarks.packs.families.text.units import is_other_money
from pytest_helmbench.benchmarks.packs.families.text.wording import whole_places

__all__ = [
    "continues_formula",
    "is_expression",
    "is_other_half",
    "is_turned_name",
    "last_pi",
    "only_pi",
    "written_alike",
]

_SUFFIX = re.compile(r",\s+(?=(?:Jr|Sr|II|III|IV|Ph\.?D|M\.?D|Esq)(?!\w))")
_SUBSCRIPT = re.compile(r"(?:(?<=[A-Z])|(?<=[A-Z][a-z])|(?<=[A-Za-z]\}))_\{?(?=\d)")
_DOLLARS = re.compile(r"(?<!\w)(?:US|USD|U\.S\.)\s?\\?\$(?=\s?\d)")
_EXPRESSION = re.compile(
    r"(?=.*[a-z])(?=.*[\d+*/^=(-])(?:[\d\s.+*/^()=-]|(?<![a-z])[a-z](?![a-z])|sqrt|sin|cos|tan|ln|log)+"
)
_TIMES = re.compile(r"(?<=\d)\s?(?:\*|·|×|\\cdot|\\times)\s?(?=[a-z](?![a-z]))")
_POWERS = (
    (re.compile(r"\*\*(?=\s?\d)"), "^"),
    (re.compile(r"\^\{(\w{1,3})\}"), r"^\1"),
    (re.compile(r"(?<=[a-z])\ssquared(?!\w)"), "^2"),
    (re.compile(r"(?<=[a-z])\scubed(?!\w)"), "^3"),
    (re.compile(r"(?<=\d)\stimes\s(?=[a-z](?![a-z]))"), ""),
)
_SUBTITLE = re.compile(r"[;,]\sor,?\s(?:The|A|An)\s[^.;:\n]{1,80}")
"""`Moby-Dick; or, The Whale`: the other half of an old title."""
_SIGN = re.compile(r"(?:(?<=[\d)²³])|(?<=[\W\d][a-z]))\s?([-+−–])\s?(?=[\d(]|[a-z](?![a-z]))")
_RANGE = re.compile(r"[\d.,]+(?:\s?[a-z])?\s?-\s?[\d.,]+\s[a-z]")
_GOES_ON = re.compile(r"(?<=\d)\s?[b-hj-z](?![a-z])")
_MULTIPLIED = re.compile(r"\w\($")
"""`5t` begins with `5`, `2(x + 1)` holds `x + 1`."""
_EQUALS = re.compile(r"(?<=[\w)])\s?=\s?(?=[\w(-])")
_ONE_TERM = r"(?:\d{1,9}(?:\.\d{1,9})?(?:[a-z]{1,2}(?:\^\d{1,3})?)?|[a-z](?:\^\d{1,3})?)"
_TERM = re.compile(rf"[-+]?{_ONE_TERM}")
_SUM = re.compile(rf"(?<![\w^*/().+-])-?{_ONE_TERM}(?:[-+]{_ONE_TERM}){{1,8}}(?![\w^*/(]|[.+-]\w|-)")
_FACTOR = re.compile(r"\([^()]{1,40}\)")
_FACTORS = re.compile(r"\([^()]{1,40}\)(?:\s?[*·×]?\s?\([^()]{1,40}\))+")
_ODDS = re.compile(r"(?<![\d.,])(\d{1,9})\s(?:in|out of|over)\s(\d{1,9})(?![\d.,]\d)")
_ROOT = re.compile(
    r"\\sqrt\s*(?:\{\s*(\w+)\s*\}|(\w))|(?<![a-z])sqrt\s?\(?\s*(\w+)\)?|√\s?\(\s*(\w+)\s*\)"
    r"|(?:the\s)?square\sroot\sof\s(\w+)",
    re.IGNORECASE,
)
_TIMES_ROOT = re.compile(r"(?<=\d)\s?(?:\*|·|×|⋅|\\cdot|\\times|times)?\s?(?=√)")
_PI = re.compile(
    r"(?<![\w.])(?:(?P<times>-?\d{1,15}(?:\.\d{1,15})?(?:/\d{1,9})?)\s?[*·×]?\s?)?(?<![a-z])pi(?!\w)"
    r"(?:\^(?P<power>\d{1,3}))?(?:\s?/\s?(?P<below>\d{1,9}))?"
)

_PI_SIGN, _PI_TIMES_LETTER = re.compile("[π𝜋]"), re.compile("[π𝜋](?=[a-z])")
_PI_TIMES = re.compile(r"(?<![\w^])(?<![*/+-]\s)pi\s?[*·×]\s?(\d{1,15}(?:/\d{1,9})?)(?![\w.^*])")
_LEGAL_FORM = re.compile(
    r"(?<=\w),?\s(?:Inc|Ltd|LLC|L\.L\.C|GmbH|plc|PLC|Corp|Co)\b(?:\.(?!\s*[A-Z\n]|\s*$)|\.(?=\s*$))?"
)
_BIG_O = re.compile(
    r"(?:\\(?:mathcal|mathrm|mathit|text)\{O\}|(?<![\w\\])O)\s?(?:\\left)?\((?P<inside>[^()]{1,40}(?:\([^()]{1,9}\))?"
    r"[^()]{0,9}?)(?:\\right)?\)"
)
_LOG = re.compile(
    r"(?<![a-z])(?:\\?log|\\?lg)\s?(?:_\s?\{?\w{1,2}\}?|[₀-₉]{1,2})?\s?(?:\((?P<of>\w)\)|(?=\s?\w))"
)
_DOLLAR_SIGN = re.compile(r"\\?\$\s?(\d[\d,.]*\d|\d)(?!\d)(?![^$\n]*\$)")


def written_alike(accepted: Iterable[str]) -> Callable[[str], str]:
    """Return what brings accepted answers, and replies to their row, into one form.

    Dates are only brought into one where an answer is a date; times, days and `the Second` likewise.
    """
    answers = [*accepted]
    steps = [
        *steps_of_times(answers),
        *steps_of_scores(answers),
        *steps_of_names(answers),
        *steps_of_spellings(answers),
        *_steps_of_formulas(answers),
    ]

    def alike(text: str) -> str:
        text = with_one_unit(text)
        text = _SUBTITLE.sub("", text) if "or" in text else text
        text = _LEGAL_FORM.sub("", text) if "," in text or "." in text or "Inc" in text else text
        text = _DOLLARS.sub("$", _SUBSCRIPT.sub("", _SUFFIX.sub(" ", text)))
        for step in steps:
            text = step(text)
        return _PI_SIGN.sub("pi", _PI_TIMES_LETTER.sub("pi ", text)) if "π" in text or "𝜋" in text else text

    return alike


def _steps_of_formulas(answers: Sequence[str]) -> Iterator[Callable[[str], str]]:
    """Yield what brings money, formulas and shares into one form."""
    if any(is_other_money(answer) for answer in answers):
        yield lambda text: _DOLLAR_SIGN.sub(r"\1 dollars", text)
    if any(map(is_expression, answers)):
        yield _with_plain_powers
        yield _with_sorted_factors
        yield _with_sorted_terms
    if any(_BIG_O.search(answer) is not None for answer in answers):
        yield lambda text: _BIG_O.sub(_big_o, text)
    if any("√" in answer or "sqrt" in answer for answer in answers):
        yield _with_plain_roots
    if any(map(has_parts, answers)):
        yield with_clock_as_minutes
    if any(_is_share(answer) for answer in answers):
        yield lambda text: _ODDS.sub(r"\1/\2", text)


def is_expression(answer: str) -> bool:
    """Return whether an accepted answer is a formula of numbers and single letters: `2x`, `x + 1`."""
    low = lowered(plain(answer))
    return _EXPRESSION.fullmatch(low) is not None and _RANGE.fullmatch(low) is None


def continues_formula(text: str, start: int, end: int) -> bool:
    """Return whether what stands between two places is only a part of a formula."""
    before, after = text[:start].rstrip()[-1:], text[end:].lstrip()[:1]
    if (
        _GOES_ON.match(text, end) is not None
        or _MULTIPLIED.search(text, max(0, start - 2), start) is not None
    ):
        return True
    return (before != "" and before in "+-*/^") or (after != "" and after in "+-*/^")


def _big_o(found: re.Match[str]) -> str:
    """Return an order of growth in one form, its logarithms without a base: `O(log n)` of `O(log_2(n))`."""
    inside = _LOG.sub(lambda log: f" log {log['of'] or ''}", found["inside"].replace("\\cdot", " "))
    return f"O({' '.join(inside.replace('·', ' ').replace('*', ' ').split())})"


def _with_plain_powers(text: str) -> str:
    """Return a text with powers as `x^2`, factors right before their letters, and no space around a sign."""
    for pattern, written in _POWERS:
        text = pattern.sub(written, text)
    text = _SIGN.sub(lambda found: "+" if found[1] == "+" else "-", text)
    return _EQUALS.sub(" = ", _TIMES.sub("", text))


def _with_sorted_factors(text: str) -> str:
    """Return a text with brackets that are multiplied with each other in one order: `(x-2)(x-3)`."""
    return _FACTORS.sub(
        lambda found: "".join(sorted(re.sub(r"[\s*·×]", "", factor) for factor in _FACTOR.findall(found[0]))),
        text,
    )


def _with_sorted_terms(text: str) -> str:
    """Return a text with the terms of sums in one order, the highest power first: `3x^2-4` of `-4 + 3x^2`."""
    return _SUM.sub(_sorted_terms, text)


def _sorted_terms(found: re.Match[str]) -> str:
    if not any(map(str.isalpha, found[0])):
        return found[0]
    terms = sorted(_TERM.findall(found[0]), key=lambda term: (-_power(term), term.lstrip("+-")))
    return "".join(term if term[0] in "+-" else f"+{term}" for term in terms).removeprefix("+")


def _power(term: str) -> int:
    """Return the power of a term's letters: 0 for a number, 1 for `4x`."""
    if not any(map(str.isalpha, term)):
        return 0
    power = term.partition("^")[2]
    return int(power) if power.isdigit() else 1


def _with_plain_roots(text: str) -> str:
    """Return a text with every square root as `√2`, and what it is multiplied with right before it."""
    return _TIMES_ROOT.sub("", _ROOT.sub(lambda found: "√" + next(filter(None, found.groups())), text))


def _is_share(answer: str) -> bool:
    number = from_value(answer)
    return number is not None and 0 < number.values[-1] < 1


def is_other_half(text: str, end: int, times: Iterable[str]) -> bool:
    """Return whether what follows a time in a folded text is the half of the day that no accepted time is in."""
    half = text[end : end + 3]
    halves = {time[-2:] for time in times if time[-2:] in ("am", "pm")}
    return half in (" am", " pm") and bool(halves) and half.strip() not in halves


def only_pi(answer: str) -> tuple[Fraction, int] | None:
    """Return factor and power of an answer that is a multiple of π; None for any other."""
    found = _PI.fullmatch(lowered(plain(answer)).strip(" ."))
    return None if found is None else _pi(found)


def last_pi(statement: str) -> tuple[Fraction, int] | None:
    """Return factor and power of the last multiple of π in a statement; None for none."""
    found = deque(_PI.finditer(_PI_TIMES.sub(r"\1 pi", lowered(statement))), 1)
    return _pi(found[0]) if found else None


def is_turned_name(statement: str, answer: str) -> bool:
    """Return whether a folded statement is a name with its family name first: `austen, jane`."""
    family, given_name = answer.rpartition(" ")[2], answer.rpartition(" ")[0]
    if " and " in answer or "," in answer:
        return False
    if given_name and next(whole_places(statement, f"{family}, {given_name}"), None) is not None:
        return True
    parts = statement.split(", ")
    if not 2 <= len(parts) <= 3 or " " not in answer:
        return False
    given, _, suffix = parts[1].rpartition(" ")
    turned = [" ".join([parts[1], parts[0], *parts[2:]])]
    if suffix in ("jr", "sr", "ii", "iii", "iv"):
        turned.append(f"{given} {parts[0]} {suffix}")
    return answer in turned


def _pi(found: re.Match[str]) -> tuple[Fraction, int]:
    times, below = Fraction(1), int(found["below"] or 1)
    if found["times"]:
        above, _, under = found["times"].partition("/")
        times = Fraction(above) / (int(under or 1) or 1)
    return times / (below or 1), int(found["power"] or 1)
