"""Dates and times of day as replies write them."""

from __future__ import annotations

import re
from datetime import datetime

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DAY = r"\d{1,4}(?:st|nd|rd|th)?|of|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DATE = rf"\d{{4}}-\d\d-\d\d|(?:(?:{_MONTH}|{_DAY})[\s,]*){{2,5}}"
_TIME = r"\d{1,2}[:.]\d\d\s*(?:[ap]\.?m\.?|h|hours)?|\d{1,2}\s*[ap]\.?m\.?"
_MOMENT = re.compile(rf"(?P<date>{_DATE})|(?P<time>{_TIME})", re.IGNORECASE)
_MOST_CHARACTERS = 60

Moment = tuple[int | None, ...]
"""Year, month, day of a date, or hour and minute of a time; None in the place of what it leaves out."""


def moment(text: str) -> Moment | None:
    """Return the date or time that a text is, and nothing but that; None for any other text."""
    found = _MOMENT.fullmatch(text.strip(" .")) if len(text) <= _MOST_CHARACTERS else None
    if found is None or (found["date"] and not re.search(rf"-\d\d-|{_MONTH}", text, re.IGNORECASE)):
        return None
    from dateutil import parser  # 60 ms, only where an accepted answer and a reply are dates

    said = text
    if found["time"]:
        said = re.sub(
            r"\s*(?:h|hours)$|(?<=[ap])\.|\.$",
            "",
            re.sub(r"(?<=\d)\.(?=\d\d)", ":", text.strip()),
            flags=re.IGNORECASE,
        )
    try:
        one, other = (parser.parse(said, default=at) for at in (datetime(1904, 2, 3), datetime(1908, 5, 6)))  # noqa: DTZ001
    except (ValueError, OverflowError):
        return None
    if found["time"]:
        return one.hour, one.minute
    pairs = zip(one.timetuple()[:3], other.timetuple()[:3], strict=True)
    return tuple(a if a == b else None for a, b in pairs)
