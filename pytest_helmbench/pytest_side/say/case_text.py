"""The text of one failed case: whole for reports, in a few lines for a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from pytest_helmbench.core.case import JUDGED_RULE
from pytest_helmbench.core.case_texts import (
    REASON_TEXTS,
    expected_text,
    has_lines,
    ruled_out,
    short_text,
    under,
)
from pytest_helmbench.core.outcome import Outcome
from pytest_helmbench.core.scrub import HIDDEN_TEXT, REDACTED, excerpt, full_observed, quoted, scrub
from pytest_helmbench.pytest_side.say.printing import printed

_NOT_SHOWN = "text of the reply, not shown in CI (--helmbench-with-text=failures)"
_NOT_ITS_REASON = ("reply", "output")
"""Excerpts of an outcome that do not say why it is wrong."""
_SHORT = 160
_HEADING = re.compile(r"^#.*$", re.MULTILINE)
_WORD = re.compile(r"\w+(?:[.,]\d+)*|[^\w\s]")


class CaseText(str):
    """The text of a failed report, with its first line as the message of summaries and JUnit.

    It is a string, since plugins expect one, or a traceback of pytest.

    Args:
        location: Of the report: file, line from 0 or None, and name.
        brief: The parts that a terminal shows (`brief_parts`); None for the whole text.
    """

    class _Crash(NamedTuple):
        """As pytest's own `ReprFileLocation`, which other plugins read."""

        path: str
        lineno: int
        message: str

        def __str__(self) -> str:
            """Return what `--tb=line` prints."""
            return f"{self.path}:{self.lineno}: {self.message}"

    reprcrash: _Crash
    brief: Mapping[str, str] | None

    def __new__(
        cls, text: str, location: tuple[str, int | None, str], brief: Mapping[str, str] | None = None
    ) -> CaseText:
        """Return the text with its place."""
        made = super().__new__(cls, text)
        made.brief = brief
        file, line, _ = location
        made.reprcrash = cls._Crash(file, (line or 0) + 1, text.partition("\n")[0])
        return made

    def toterminal(self, writer: Any) -> None:
        """Write what a terminal shows."""
        for line in printed(writer, (self if self.brief is None else brief_text(self.brief)).splitlines()):
            writer.line(line)


def brief_parts(outcome: Outcome, asked: str, *, with_text: bool) -> dict[str, str]:
    """Return the parts that a terminal may show of a wrong case, unformatted: pytest prints only a few of them.

    With texts they have the prompt, where there is one, and running text of the reply.
    """
    wrong = [evaluation for evaluation in outcome.evaluations if not evaluation.passed]
    if with_text:
        wrong = [replace(one, observed=full_observed(one)) for one in wrong]
    first = wrong[0]
    observed, unlike = first.observed, ""
    form = REASON_TEXTS.get(first.reason or "")
    if observed == HIDDEN_TEXT:
        observed = form or _NOT_SHOWN
    elif has_lines(observed):
        pass
    elif form is None:
        unlike = "" if first.rule.endswith("(tests)") else first.expected
    elif not observed.startswith("("):
        observed = f"{form}: {observed}"
    reason = first.justification if first.rule == JUDGED_RULE else None
    if outcome.excerpt_of not in _NOT_ITS_REASON or (form is not None and observed.startswith("(")):
        reason = outcome.excerpt
    parts = {
        "asked": asked[: 8 * _SHORT] if with_text else "",
        "expected": f"{first.criterion}: {expected_text(first)}" if first.criterion else expected_text(first),
        "observed": observed,
        "unlike": unlike,
        "reason": reason if with_text and reason and reason != REDACTED else "",
        "also": "; ".join(map(short_text, wrong[1:])),
    }
    return {name: scrub(text) for name, text in parts.items()}  # xdist sends no lone surrogates


def brief_text(parts: Mapping[str, str]) -> str:
    """Return the lines that a terminal shows of a wrong case: prompt, expected, observed, further wrong rules."""
    observed = _marked(parts["observed"], parts["unlike"]) if parts["unlike"] else parts["observed"]
    reason = f": {_in_short(parts['reason'])}" if parts["reason"] else ""
    lines = [("expected", parts["expected"]), ("observed", observed + reason)]
    if parts["asked"]:
        lines.insert(0, ("asked", _in_short(_HEADING.sub("", parts["asked"]))))
    if parts["also"]:
        lines.append(("also", _in_short(parts["also"])))
    return quoted("\n".join(f"  {name + ':':<9} {_laid(text)}" for name, text in lines))


def _laid(text: str) -> str:
    return under(text, 12) if has_lines(text) else " ".join(text.split())


def _in_short(text: str) -> str:
    return excerpt(" ".join(text[: 8 * _SHORT].split()), _SHORT)


def _marked(observed: str, expected: str) -> str:
    """Return what was observed with `»…«` around its wrong words; unchanged where all or none are wrong."""
    listed, unwanted = ruled_out(expected)
    known = {found.casefold() for found in _WORD.findall(listed)}

    def is_wrong(word: str) -> bool:
        return any(map(str.isalnum, word)) and (word.casefold() in known) == unwanted

    words = [word for word in _WORD.findall(observed) if any(map(str.isalnum, word))]
    if all(map(is_wrong, words)):
        return observed
    return _WORD.sub(lambda found: f"»{found[0]}«" if is_wrong(found[0]) else found[0], observed)
