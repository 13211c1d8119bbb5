"""Dates and times of day in one form each, however they are written: `Sunday, 7 February 2016` is `2016-02-07`."""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.packs.families.text.number_words import ORDINAL_WORDS

__all__ = [
    "MONTHS",
    "MONTHS_AND_DAYS",
    "WHEN_BEHIND",
    "has_half",
    "is_date",
    "is_day",
    "is_month_of_year",
    "is_time",
    "with_noon_as_time",
    "with_plain_dates",
    "with_plain_days",
    "with_plain_months",
    "with_plain_times",
    "with_whole_day_times",
    "without_dates",
    "without_next_day",
]

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS_AND_DAYS = frozenset({*(name.lower() for name in _MONTH_NAMES), *_WEEKDAYS})
"""Names of months and days of the week, in lower case."""
WHEN_BEHIND = r"\s(?:in|on)\s(?:[^\W\d_]{3,9}\s)?(?:\d{1,2},?\s)?\d{4}"
"""Pattern of the year or day behind a value: ` in 1902`, ` on March 4, 1902`."""
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
        rf"{_MONTH}\s+(?:the\s+)?{_DAY},?\s+(?:of\s+)?{_YEAR}",
        rf"{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}",
        r"(?P<month>0?[1-9]|1[0-2])/(?P<day>0?[1-9]|[12]\d|3[01])/(?P<year>[12]\d{3})(?![\d/])",
        r"(?P<day>1[3-9]|2\d|3[01])[/.](?P<month>0?[1-9]|1[0-2])[/.](?P<year>[12]\d{3})(?![\d/])",
        r"(?P<day>0?[1-9]|1[0-2])\.(?P<month>0?[1-9]|1[0-2])\.(?P<year>[12]\d{3})(?![\d/])",
        r"(?P<year>[12]\d{3})[-/](?P<month>0?[1-9]|1[0-2])[-/](?P<day>0?[1-9]|[12]\d|3[01])(?![\d-])",
    )
)
_DAYS = tuple(
    re.compile(rf"(?<![\w-]){_WEEKDAY}(?:the\s+)?{pattern}(?:,?\s+[12]\d{{3}}(?!\d))?", re.IGNORECASE)
    for pattern in (rf"{_MONTH}\s+(?:the\s+)?{_DAY}", rf"{_DAY}\s+(?:of\s+)?{_MONTH}")
)
_MONTH_OF_YEAR = re.compile(
    rf"(?<![\w-]){_MONTH},?\s+(?:of\s+|in\s+)?(?:the\s+year\s+)?{_YEAR}", re.IGNORECASE
)
_ISO_DATE = re.compile(r"(?<![\w-])(?P<year>[12]\d{3})-(?P<month>\d\d)-\d\d(?![\d-])")
_TIME = re.compile(
    r"(?<![\d:.])(?P<hour>[01]?\d|2[0-3])(?:(?:[:.]|\s?h\s?)(?P<minute>[0-5]\d))?(?![\d:])"
    r"(?:\s?(?P<half>[ap])\.?\s?m\b\.?|\s?(?:o'clock\s)?(?:in the|at) (?P<part>morning|afternoon|evening|night))?",
    re.IGNORECASE,
)
_MIDNIGHT = re.compile(
    r"(?<![\w:.])(?:(?:12(?:[:.]00)?\s(?:o'clock\s)?)?midnight|24[:.]00)(?![\w:])", re.IGNORECASE
)
_NOON = re.compile(r"(?<![\w:.])(?:12(?:[:.]00)?\s(?:o'clock\s)?)?(?:noon|midday)(?!\w)", re.IGNORECASE)
_LAST_AT_NIGHT = 4

_NEXT_DAY = re.compile(
    r"(?<=[\dpam.*])\s?,?\s\(?(?:on\s|of\s)?(?:the\s)?(?:next|following)\s(?:day|morning|afternoon|evening)\)?",
    re.IGNORECASE,
)
_LONGEST_AT = 10
_AT = re.compile(r"(?<!\w)(?:at|by|around|um)\s$", re.IGNORECASE)

_ORDINALS = (*ORDINAL_WORDS, "twentieth")
_ORDINAL_DAY = re.compile(
    rf"(?<![\w-])(?:(?P<tens>twenty|thirty)[- ])?(?P<ordinal>{'|'.join(_ORDINALS)})"
    rf"(?=\s(?:of\s)?{_MONTH.replace('?P<month>', '?:')})",
    re.IGNORECASE,
)
_ORDINAL_BEHIND = re.compile(
    rf"(?<![\w-])(?P<lead>(?=(?-i:[A-Z])){_MONTH}\s+(?:the\s+)?)"
    rf"(?:(?P<tens>twenty|thirty)[- ])?(?P<ordinal>{'|'.join(_ORDINALS)})(?![\w-])",
    re.IGNORECASE,
)
_ASKS_FOR_DATE = re.compile(r"(?<!\w)(?:dates?|days?|year|years|when|century|decade|birthday)(?!\w)")
_ASKS_FOR_DAY = re.compile(r"(?<!\w)(?<!how many )(?:dates?|days?|birthday)(?!\w)")
_WHEN_CLAUSE = re.compile(r"^(how\s[^?]{1,200}?)\swhen\s.*", re.DOTALL)
"""`How old was he when he died` asks for no date."""
_COUNTS_DAYS = "how many days"
_IN_YEAR = re.compile(
    r"(?<!\w)(?:in|of|since|by|until|from|before|after|during) (?:the year )?[12]\d{3}(?![\w.,]*\d|%)"
    r"(?!\s?(?!(?:the|an?|it|he|she|they|there|was|is|are|were|has|had|and|when|after|with|by|at|to|on|for)\b)[^\W\d])"
)

_HOURS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WITH_HALF = re.compile(r"(?<![\w:])(\d{1,2}):(\d\d) ([ap])m(?!\w)")
_MINUTES = {
    "quarter": 15,
    "half": 30,
    "five": 5,
    "ten": 10,
    "twenty": 20,
    "twenty-five": 25,
    "twenty five": 25,
}
_PAST = re.compile(
    rf"(?<![\w-])(?:an?\s)?(?P<minutes>{'|'.join(sorted(_MINUTES, key=len, reverse=True))}|[1-5]?\d)\s(?:minutes\s)?"
    rf"(?P<side>past|after|to|before)\s(?P<hour>{'|'.join(_HOURS)}|1[0-2]|[1-9])(?![\w:.])",
    re.IGNORECASE,
)
_OCLOCK = re.compile(
    rf"(?<!\w)(?P<hour>{'|'.join(_HOURS)})"
    r"(?=\s(?:o'clock|[ap]\.?m\b|(?:in the|at) (?:morning|afternoon|evening|night)))",
    re.IGNORECASE,
)


def is_date(text: str) -> bool:
    """Return whether a text is a day of a year and nothing else."""
    return any(pattern.fullmatch(text.strip(" .")) is not None for pattern in _DATES)


def is_day(text: str) -> bool:
    """Return whether a text is a day of any year and nothing else."""
    text = text.strip(" .")
    return not text[-4:].isdigit() and any(pattern.fullmatch(text) is not None for pattern in _DAYS)


def is_month_of_year(text: str) -> bool:
    """Return whether a text is a month of a year and nothing else."""
    return _MONTH_OF_YEAR.fullmatch(text.strip(" .")) is not None


def is_time(text: str) -> bool:
    """Return whether a text is a time of day and nothing else."""
    found = _TIME.fullmatch(text.strip(" "))
    return found is not None and (found["minute"] is not None or found["half"] is not None)


def without_next_day(text: str) -> str:
    """Return a text without `the next day` behind a time."""
    return _NEXT_DAY.sub("", text)


def with_plain_dates(text: str) -> str:
    """Return a text with every date as year, month, day."""
    text = _with_digit_days(text)
    for pattern in _DATES:
        text = pattern.sub(
            lambda found: f"{found['year']}-{_month(found['month']):02}-{int(found['day']):02}", text
        )
    return text


def _with_digit_days(text: str) -> str:
    """Return a text with the day in digits where it is an ordinal before or behind its month."""
    return _ORDINAL_BEHIND.sub(lambda found: f"{found['lead']}{_day(found)}", _ORDINAL_DAY.sub(_day, text))


def _day(found: re.Match[str]) -> str:
    tens = {"twenty": 20, "thirty": 30}.get((found["tens"] or "").casefold(), 0)
    return str(tens + _ORDINALS.index(found["ordinal"].casefold()) + 1)


def with_plain_months(text: str) -> str:
    """Return a text with every date, and every month of a year, as the month's name and the year."""
    text = with_plain_dates(text)
    for pattern in (_ISO_DATE, _MONTH_OF_YEAR):
        text = pattern.sub(lambda found: f"{_MONTH_NAMES[_month(found['month']) - 1]} {found['year']}", text)
    return text


def with_plain_days(text: str) -> str:
    """Return a text with every date without its year, as month and day."""
    text = _with_digit_days(text)
    for pattern in _DAYS:
        text = pattern.sub(lambda found: f"{MONTHS[_month(found['month']) - 1]}-{int(found['day']):02}", text)
    return text


def has_half(text: str) -> bool:
    """Return whether a time of day says which half of the day it is in."""
    found = _TIME.fullmatch(text.strip(" "))
    return found is not None and (found["half"] is not None or not 0 < int(found["hour"]) < 13)


def with_noon_as_time(text: str) -> str:
    """Return a text with midnight as `12:00 am` and noon as `12:00 pm`."""
    return _NOON.sub("12:00 pm", _MIDNIGHT.sub("12:00 am", text))


def with_whole_day_times(text: str) -> str:
    """Return a text with every time of day that says its half of the day in hours from 0 to 23."""
    return _WITH_HALF.sub(
        lambda found: f"{int(found[1]) % 12 + (12 if found[3] == 'p' else 0)}:{found[2]}",
        with_plain_times(with_noon_as_time(text)),
    )


def with_plain_times(text: str) -> str:
    """Return a text with every time of day as hour, minute and half of the day."""
    text = _PAST.sub(_past, text)
    return _TIME.sub(_time, _OCLOCK.sub(lambda found: str(_HOURS.index(found["hour"].casefold()) + 1), text))


def _past(found: re.Match[str]) -> str:
    """Return a time that is told by what has passed of an hour, or is left of it."""
    minutes, hour = found["minutes"].casefold(), found["hour"].casefold()
    minute = _MINUTES.get(minutes) or int(minutes)
    full = int(hour) if hour.isdigit() else _HOURS.index(hour) + 1
    if found["side"].casefold() in ("to", "before"):
        full, minute = (full - 1) or 12, 60 - minute
    return f"{full}:{minute:02}" if minute < 60 else found[0]


def without_dates(text: str, question: str) -> str:
    """Return a text whose dates are no numbers of it: only their years where the question asks for a time.

    Args:
        text: Plain.
        question: In lower case; one that asks for a date or a day keeps all.
    """
    if _ASKS_FOR_DAY.search(question) is not None:
        return text
    asks = _ASKS_FOR_DATE.search(_WHEN_CLAUSE.sub(r"\1", question)) is not None
    for pattern in _DAYS if _COUNTS_DAYS in question else ():
        text = pattern.sub(lambda found: "#" * len(found[0]), text)
    for pattern in _DATES:
        text = pattern.sub(lambda found: found["year"] if asks else "#" * len(found[0]), text)
    return text if asks else _IN_YEAR.sub(lambda found: re.sub(r"\d", "#", found[0]), text)


def _month(written: str) -> int:
    return int(written) if written.isdigit() else MONTHS.index(written[:3].casefold()) + 1


def _time(found: re.Match[str]) -> str:
    small = int(found["hour"]) % 12 <= _LAST_AT_NIGHT
    parts = {"m": "a", "a": "p", "e": "p", "n": "a" if small else "p"}
    half = found["half"] or parts.get((found["part"] or " ")[0].lower(), "")
    said = (
        ":" in found[0]
        or found[0] == found.string.strip(" .")
        or _AT.search(found.string, max(0, found.start() - _LONGEST_AT), found.start())
    )
    if not half and (found["minute"] is None or not said):
        return found[0]
    return f"{int(found['hour'])}:{found['minute'] or '00'}{f' {half.lower()}m' if half else ''}"
