"""Dates and times of day in one form each, however they are written: `Sunday, 7 February 2016` is `2016-02-07`."""

from __future__ import annotations

import re

__all__ = [
    "MONTHS",
    "is_date",
    "is_day",
    "is_time",
    "with_plain_dates",
    "with_plain_days",
    "with_plain_times",
]

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)(?!\w)\.?"
)
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?!\w)"
_YEAR = r"(?P<year>[12]\d{3})(?!\d|[.,]\d)"
_WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+(?:the\s+)?)?"
_DATES = tuple(
    re.compile(rf"(?<![\w-]){_WEEKDAY}(?:the\s+)?{pattern}", re.IGNORECASE)
    for pattern in (
        rf"{_MONTH}\s+{_DAY},?\s+(?:of\s+)?{_YEAR}",
        rf"{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}",
        r"(?P<month>0?[1-9]|1[0-2])/(?P<day>0?[1-9]|[12]\d|3[01])/(?P<year>[12]\d{3})(?![\d/])",
        r"(?P<day>1[3-9]|2\d|3[01])[/.](?P<month>0?[1-9]|1[0-2])[/.](?P<year>[12]\d{3})(?![\d/])",
        r"(?P<year>[12]\d{3})[-/](?P<month>0?[1-9]|1[0-2])[-/](?P<day>0?[1-9]|[12]\d|3[01])(?![\d-])",
    )
)
_DAYS = tuple(
    re.compile(rf"(?<![\w-]){_WEEKDAY}(?:the\s+)?{pattern}(?:,?\s+[12]\d{{3}}(?!\d))?", re.IGNORECASE)
    for pattern in (rf"{_MONTH}\s+{_DAY}", rf"{_DAY}\s+(?:of\s+)?{_MONTH}")
)
_TIME = re.compile(
    r"(?<![\d:.])(?P<hour>[01]?\d|2[0-3])(?:[:.](?P<minute>[0-5]\d))?(?![\d:])"
    r"(?:\s?(?P<half>[ap])\.?\s?m\b\.?|\s?(?:o'clock\s)?in the (?P<part>morning|afternoon|evening))?",
    re.IGNORECASE,
)

_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_OCLOCK = re.compile(
    rf"(?<!\w)(?P<hour>{'|'.join(_HOURS)})(?=\s(?:o'clock|[ap]\.?m\b|in the (?:morning|afternoon|evening)))",
    re.IGNORECASE,
)


def is_date(text: str) -> bool:
    """Return whether a text is a day of a year and nothing else."""
    return any(pattern.fullmatch(text.strip(" .")) is not None for pattern in _DATES)


def is_day(text: str) -> bool:
    """Return whether a text is a day of any year and nothing else."""
    text = text.strip(" .")
    return not text[-4:].isdigit() and any(pattern.fullmatch(text) is not None for pattern in _DAYS)


def is_time(text: str) -> bool:
    """Return whether a text is a time of day and nothing else."""
    found = _TIME.fullmatch(text.strip(" "))
    return found is not None and (found["minute"] is not None or found["half"] is not None)


def with_plain_dates(text: str) -> str:
    """Return a text with every date as year, month, day."""
    for pattern in _DATES:
        text = pattern.sub(
            lambda found: f"{found['year']}-{_month(found['month']):02}-{int(found['day']):02}", text
        )
    return text


def with_plain_days(text: str) -> str:
    """Return a text with every date without its year, as month and day."""
    for pattern in _DAYS:
        text = pattern.sub(lambda found: f"{MONTHS[_month(found['month']) - 1]}-{int(found['day']):02}", text)
    return text


def with_plain_times(text: str) -> str:
    """Return a text with every time of day as hour, minute and half of the day."""
    return _TIME.sub(_time, _OCLOCK.sub(lambda found: str(_HOURS.index(found["hour"].lower()) + 1), text))


def _month(written: str) -> int:
    return int(written) if written.isdigit() else MONTHS.index(written[:3].lower()) + 1


def _time(found: re.Match[str]) -> str:
    half = found["half"] or {"m": "a", "a": "p", "e": "p"}.get((found["part"] or " ")[0].lower(), "")
    if not half and ":" not in found[0]:
        return found[0]
    return f"{int(found['hour'])}:{found['minute'] or '00'}{f' {half.lower()}m' if half else ''}"
