"""Regular expressions that a benchmark brings, as the package `regex` reads them: searched for in bounded time."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_helmbench.core.bounded_calls import LIMIT_S, RuleTimeoutError, TakesTimeError, time_left_s
from pytest_helmbench.core.problem import HelmbenchError

if TYPE_CHECKING:
    from regex import Pattern

_LONGEST = 20_000


class PatternError(HelmbenchError):
    """A regular expression that cannot be read."""


def found(pattern: str, text: str) -> int | None:
    """Return where an expression is first found in a text, as `regex.search` finds it; None for nowhere.

    Raises:
        PatternError: It cannot be read.
        RuleTimeoutError: It took more than two seconds of CPU time.
        TakesTimeError: Inside of `NoTimeToWait`, there was no time for it.
    """
    left_s = time_left_s()
    if left_s == 0:
        raise TakesTimeError
    compiled = _compiled(pattern)
    try:
        # Other threads run meanwhile, where there is time.
        match = compiled.search(text, timeout=left_s or LIMIT_S, concurrent=left_s is None)
    except TimeoutError:
        if left_s is not None:
            raise TakesTimeError from None
        raise RuleTimeoutError(
            f"searching a text of {len(text):,} characters for the pattern {pattern[:200]!r} took more than"
            f" {LIMIT_S} s\n  hint: repetitions inside of repetitions, such as (a|aa)+, take time without end"
        ) from None
    return None if match is None else match.start()


def check_pattern(pattern: str) -> None:
    """Read an expression.

    Raises:
        PatternError: It cannot be read.
    """
    _compiled(pattern)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Pattern[str]:
    if len(pattern) > _LONGEST:
        raise PatternError(f"a pattern of {len(pattern):,} characters: at most {_LONGEST:,} are read")
    # Only where a benchmark brings an expression.
    import regex

    try:
        with warnings.catch_warnings(action="ignore"):  # of what a later version may read otherwise
            return regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError, ValueError) as error:
        raise PatternError(f"the pattern {pattern[:200]!r} cannot be read: {error}") from None
