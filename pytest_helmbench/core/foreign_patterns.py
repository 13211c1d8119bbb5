"""Regular expressions that a benchmark brings: searched for in linear time, or in a process with a limit of time."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.linear_patterns import Translation, translated
from pytest_helmbench.core.pattern_process import SEARCHER
from pytest_helmbench.core.problem import HelmbenchError

__all__ = ["PatternError", "check_pattern", "found", "may_be_slow"]

_LONGEST = 20_000
_ASCII_SPACES = frozenset("\v\x1c\x1d\x1e\x1f")
"""What `\\s` means to Python and not to RE2."""


class PatternError(HelmbenchError):
    """A regular expression that cannot be read."""


class _Searching(Protocol):
    """A compiled expression of RE2."""

    def search(self, text: str) -> object:
        """Return a match, or None."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """An expression as it is searched for.

    Args:
        linear: In linear time; None where RE2 cannot say it.
        translation: When the two say the same.
    """

    linear: _Searching | None
    translation: Translation | None

    def is_linear_in(self, text: str) -> bool:
        """Return whether RE2 finds in a text what Python finds."""
        how = self.translation
        if self.linear is None or how is None:
            return False
        if how.ends_at_a_break and text.endswith("\n"):
            return False
        return not how.ascii_only or (text.isascii() and _ASCII_SPACES.isdisjoint(text))


def found(pattern: str, text: str) -> bool:
    """Return whether an expression is found anywhere in a text, as `re.search` finds it.

    It takes time in proportion to the text; an expression with look-around, a back-reference or whatever else
    RE2 does not know takes a second of a process of its own at the most.

    Raises:
        PatternError: It cannot be read.
        RuleTimeoutError: The second was over.
    """
    compiled = _compiled(pattern)
    if compiled.linear is not None and compiled.is_linear_in(text):
        return compiled.linear.search(text.encode("utf-8", "replace").decode()) is not None
    return SEARCHER.found(pattern, text)


def check_pattern(pattern: str) -> None:
    """Read an expression.

    Raises:
        PatternError: It cannot be read.
    """
    _compiled(pattern)


def may_be_slow(pattern: str) -> bool:
    """Return whether searching for an expression may take a process of its own, and its second."""
    try:
        return _compiled(pattern).linear is None
    except PatternError:
        return False


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> _Pattern:
    if len(pattern) > _LONGEST:
        raise PatternError(f"a pattern of {len(pattern):,} characters: at most {_LONGEST:,} are read")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"the pattern {pattern[:200]!r} cannot be read: {error}") from None
    except FutureWarning:  # where warnings are errors
        return _Pattern(None, None)
    translation = translated(pattern)
    if translation is None:
        return _Pattern(None, None)
    # Only where a benchmark brings an expression.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return _Pattern(re2.compile(translation.text, options), translation)
    except re2.error:
        return _Pattern(None, None)
