"""One form for dates, times of day, decades and years that accepted answers of a row may be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from pytest_helmbench.benchmarks.packs.families.text.calendar_words import (
    has_half,
    is_date,
    is_day,
    is_month_of_year,
    is_time,
    with_noon_as_time,
    with_plain_dates,
    with_plain_days,
    with_plain_months,
    with_plain_times,
    with_whole_day_times,
    without_next_day,
)

__all__ = ["steps_of_times"]

_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
_YEARS = re.compile(r"(?:1\d|20)\d\d\s?[-–]\s?(?:(?:1\d|20)\d\d|\d\d)")
_SHORT_LAST_YEAR = re.compile(r"(?<![\w.,])(1\d|20)(\d\d)\s?[-–/]\s?(\d\d)(?![\w-]|[.,]\d)")
"""`1939–45`."""
_SHORT_YEAR = re.compile(r"(?<!\w)(?<!\d\s)['’](\d\d)(?![\w'’])")
_WITH_COLON = re.compile(r"\d\d:\d\d")
_MILITARY = re.compile(r"(?<![\d:.,])([01]\d|2[0-3])([0-5]\d)(?=\s?(?:hours|hrs|h)(?!\w)|\W*\Z)")
"""`1830 hours`."""
_TEN_WORDS = ("twent", "thirt", "fort", "fift", "sixt", "sevent", "eight", "ninet")
_DECADE = re.compile(r"(?:the\s)?(?P<century>1[5-9]|20)\d0'?s")
_TENS = re.compile(
    rf"(?<![\w-])(?P<word>{'|'.join(_TEN_WORDS)})ies(?!\w)|(?<![\w,.])['’]?(?P<ten>[1-9])0['’]?s(?!\w)",
    re.IGNORECASE,
)


def steps_of_times(answers: Sequence[str]) -> Iterator[Callable[[str], str]]:
    """Yield what brings dates, days, times and years into one form."""
    if any(map(is_date, answers)):
        yield with_plain_dates
    elif any(map(is_month_of_year, answers)):
        yield with_plain_months
    elif any(map(is_day, answers)):
        yield with_plain_days
    times = [time for answer in answers if is_time(time := with_noon_as_time(without_next_day(answer)))]
    if times:
        if any(_WITH_COLON.fullmatch(time) is not None for time in times):
            yield lambda text: _MILITARY.sub(r"\1:\2", text)
        yield without_next_day
        yield with_whole_day_times if all(map(has_half, times)) else with_plain_times
    decade = next((found for answer in answers if (found := _DECADE.fullmatch(answer)) is not None), None)
    if decade is not None:
        yield lambda text: _TENS.sub(lambda found: f"{decade['century']}{_ten(found)}0s", text)
    if any(_YEARS.fullmatch(answer) is not None for answer in answers):
        yield lambda text: _SHORT_LAST_YEAR.sub(r"\1\2-\1\3", text)
    year = next((answer for answer in answers if _YEAR.fullmatch(answer) is not None), None)
    if year is not None:
        yield lambda text: _SHORT_YEAR.sub(rf"{year[:2]}\1", text)


def _ten(found: re.Match[str]) -> int:
    """Return which ten years a decade in words or two digits is: 8 for `the eighties`, `the '80s`."""
    return int(found["ten"]) if found["ten"] else _TEN_WORDS.index(found["word"].casefold()) + 2
