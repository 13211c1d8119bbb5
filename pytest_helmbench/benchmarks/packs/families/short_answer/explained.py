"""Explanations and asides of the number of a short_answer statement, and the statement without them."""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.packs.families.short_answer.asides import ASIDE
from pytest_helmbench.benchmarks.packs.families.short_answer.numbers_said import numbers_said
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.number_words import HAS_NUMBER
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of

__all__ = ["essence", "without_number_asides"]

_EXPLANATION = re.compile(
    r"\s"
    + any_of(
        "because since when where if after before given due using at_a out_of per compared versus rather_than",
        "instead_of not so_that including as for weil porque parce_que потому",
    )
    + r"\s|\sof\s(?:the|those|these|her|his|their)\s(?=\d)"
    r"|\swhich\s(?!(?:is|equals|means|makes|gives|simplifies|reduces|rounds|comes|converts|becomes"
    r"|corresponds|amounts|works|translates|adds)\s)"
    r"|,\s(?!(?:mak|giv|bring|leav|yield|result|total|equal|reach|be|gett|produc|includ|mean|com)\w*ing\s)"
    r"(?:\w{2,12}ing|unlike)\s"
    r"|\s(?:often|usually|commonly|typically|sometimes|generally)\s(?:\w+ly\s)?"
    r"(?:rounded|approximated|abbreviated|shortened|simplified|quoted)\s"
    r"|(?<=\S)\s*,?\s*因为|\sat\s(?=\d[\d.]*\s?(?:atm|bar|k?pa)(?!\w))"
)
_UNIT_BEFORE = re.compile(r"\d\s?[^\W\d]{1,12}$")
_RESULT = re.compile(r"=\s?[-$€£]?\s?[\d.,]*\d")
_SO = re.compile(
    r"[,;.]\s(?:and\s)?(?:so|therefore|thus|hence|i\.e\.?|namely)(?!\w)|[;.]\s(?=(?:[^;.]|\.\d){0,80}=)"
)
_SENTENCE_START = re.compile(r"(?:[.!?;:]\s|\n)\s*")
_LEADS = re.compile(
    any_of(
        "after before because since when where if given as with using for by once while although though taking",
        "so_that at in from considering knowing assuming instead_of including per",
    )
    + r"\s"
)
_CONCLUDES = re.compile(r"(?<!\w)(?:so|therefore|thus|hence)\s$")
"""`so for 10 people you need 750 g`"""
_LEAD_END = re.compile(r"[,:]\s|[.!?;\n](?=\s|$)")
_WORKS_OUT = re.compile(
    r"[=×*÷≈]|\d\s?[-+/x]\s?\d|(?<!\w)(?:(?:divided|multiplied)\sby|plus|minus|times)(?!\w)"
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)|\n")
_LONGEST_LEAD = 200
_TIMES_AS_MUCH = re.compile(r",\s(?:that is|which is|or|i\.e\.)\s[^,;]{0,40}?(?:times|twice|half)\s[^;]*$")
_SUM_BEHIND = re.compile(r"\s*[$€£]?[-+]?[\d.,]+\s*=\s*[\d\s.,()]*[-+*/×÷·][\d\s.,()+*/×÷·-]*\.?\s*")


def essence(text: str) -> str:
    """Return a statement without asides and explanations of its number."""
    if _SUM_BEHIND.fullmatch(text) is not None:
        text = text.partition("=")[0]
    text = _TIMES_AS_MUCH.sub("", without_number_asides(text))
    first = next(iter(numbers_said(text)), None)
    low = lowered(text)
    explained = None if first is None else _explanation(low, first.end)
    if explained is None or (explained[0].strip() == "for" and _RESULT.search(low, explained.end())):
        return text
    concluded = _SO.search(low, explained.end())
    if concluded is not None and next(iter(numbers_said(text[concluded.end() :])), None) is not None:
        return text[concluded.end() :]
    return text[: explained.start()]


def _explanation(low: str, start: int) -> re.Match[str] | None:
    """Return where what explains a number begins; `per` in `60 miles per hour` does not."""
    for found in _EXPLANATION.finditer(low, start):
        if (
            low[found.start() - 1] == ";"
            or _CONCLUDES.search(low, 0, found.start() + 1)
            or _leads_on(low, found)
        ):
            continue  # it explains what follows
        if found[0].strip() != "per" or _UNIT_BEFORE.search(low, 0, found.start()) is None:
            return found
    return None


def _leads_on(low: str, found: re.Match[str]) -> bool:
    """Return whether an explanation begins a sentence that goes on with a number behind a comma.

    `After losing 13, she has 120 - 13 = 107.` Numbers before it have to work something out.
    """
    begin = max(0, found.start() - _LONGEST_LEAD)
    starts = [one.end() for one in _SENTENCE_START.finditer(low, begin, found.start() + 2)]
    start = starts[-1] if starts else begin
    if _LEADS.match(low, start) is None or "," in low[start : found.start()]:
        return False
    end = _LEAD_END.search(low, found.end(), found.end() + _LONGEST_LEAD)
    if end is None or end[0][0] not in ",:":
        return False
    stop = _SENTENCE_END.search(low, end.end())
    main = low[end.end() : len(low) if stop is None else stop.start()]
    if HAS_NUMBER.search(main) is None:
        return False
    before = low[:start]
    return HAS_NUMBER.search(before) is None or _WORKS_OUT.search(before) is not None


def without_number_asides(text: str) -> str:
    """Return a text without what stands in brackets, unless its numbers are all there."""
    without = ASIDE.sub("", text)
    return text if next(iter(numbers_said(without)), None) is None else without
