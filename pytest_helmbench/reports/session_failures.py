"""Failed cases at the end of a session: one in three lines, alike errors once, the others by a command."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.core.case import JUDGED_RULE
from pytest_helmbench.core.case_texts import REASON_TEXTS, expected_text
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome
from pytest_helmbench.core.scrub import (
    HIDDEN_TEXT,
    REDACTED,
    excerpt,
    full_observed,
    quoted,
    without_surrogates,
)

_FIGURES = re.compile(r"\d+\.\d+|\d{4,}|\d+(?= ?(?:ms|s|bytes|tokens)\b)")  # no status codes
_NOT_SHOWN = "text of the reply, not shown in CI (--helmbench-with-text=failures)"
_NOT_ITS_REASON = ("reply", "output")
"""Excerpts of an outcome that do not say why it is wrong."""
_SHORT = 160
_HEADING = re.compile(r"^#.*$", re.MULTILINE)
_WORD = re.compile(r"\w+(?:[.,]\d+)*|[^\w\s]")


def same_errors(texts: Iterable[str]) -> Sequence[tuple[int, int]]:
    """Return the different errors, the most frequent first: place of the first one of each, and how many there are.

    Args:
        texts: What each says; times, sizes and ports in them do not matter.
    """
    counts: Counter[str] = Counter()
    first: dict[str, int] = {}
    for place, text in enumerate(texts):
        alike = _FIGURES.sub("#", text)
        counts[alike] += 1
        first.setdefault(alike, place)
    return [(first[alike], count) for alike, count in counts.most_common()]


def brief_parts(outcome: Outcome, asked: str, *, with_text: bool) -> dict[str, str]:
    """Return what a terminal may show of a case that was judged wrong, as it is: only a few are ever worded.

    Args:
        asked: The message; empty where there is none.
        with_text: The message and running text of the reply are shown.
    """
    wrong = [evaluation for evaluation in outcome.evaluations if not evaluation.passed]
    first = wrong[0]
    observed, unlike = full_observed(first) if with_text else first.observed, ""
    form = REASON_TEXTS.get(first.reason or "")
    if observed == HIDDEN_TEXT:
        observed = form or _NOT_SHOWN
    elif form is None:
        unlike = first.expected
    elif not observed.startswith("("):
        observed = f"{form}: {observed}"
    said = first.justification if first.rule == JUDGED_RULE else None
    if outcome.excerpt_of not in _NOT_ITS_REASON or (form is not None and observed.startswith("(")):
        said = outcome.excerpt
    found = {
        "asked": asked[: 8 * _SHORT] if with_text else "",
        "expected": f"{first.criterion}: {expected_text(first)}" if first.criterion else expected_text(first),
        "observed": observed,
        "unlike": unlike,
        "said": said if with_text and said and said != REDACTED else "",
        "more": f" (and {len(wrong) - 1} more criteria)" if len(wrong) > 1 else "",
    }
    return {name: without_surrogates(text) for name, text in found.items()}  # xdist sends no others


def brief_text(parts: Mapping[str, str]) -> str:
    """Return what a terminal shows of a case that was judged wrong, in three lines: message, expected, observed.

    Args:
        parts: See `brief_parts`.
    """
    observed = _marked(parts["observed"], parts["unlike"]) if parts["unlike"] else parts["observed"]
    said = f": {_in_short(parts['said'])}" if parts["said"] else ""
    lines = [("expected", parts["expected"]), ("observed", observed + said + parts["more"])]
    if parts["asked"]:
        lines.insert(0, ("asked", _in_short(_HEADING.sub("", parts["asked"]))))
    return quoted("\n".join(f"  {name + ':':<9} {' '.join(text.split())}" for name, text in lines))


def _in_short(text: str) -> str:
    return excerpt(" ".join(text[: 8 * _SHORT].split()), _SHORT)


def _marked(observed: str, expected: str) -> str:
    """Return what was observed with `»…«` around the words that are wrong; as it is where all or none are."""
    if observed.isalnum():
        return observed
    unwanted = expected.startswith("not: ")
    known = {found.casefold() for found in _WORD.findall(expected)}

    def is_wrong(word: str) -> bool:
        return any(map(str.isalnum, word)) and (word.casefold() in known) == unwanted

    words = [word for word in _WORD.findall(observed) if any(map(str.isalnum, word))]
    if all(map(is_wrong, words)):
        return observed
    return _WORD.sub(lambda found: f"»{found[0]}«" if is_wrong(found[0]) else found[0], observed)


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Runs, and their results file.

    Args:
        runs: `evaluation_runs.id`; where there are several, a reader chooses.
        db_option: What names the file on a command line; empty where that is the usual one.
    """

    runs: tuple[int, ...] = ()
    db_option: str = ""

    @classmethod
    def of(cls, runs: tuple[int, ...], db: Path, usual: Path) -> RunPlace:
        """Return the place of runs in a file, where commands read another one unless they are told."""
        return cls(runs, "" if db == usual else f" --db={shlex.quote(str(db))}")

    def listing(self, option: str) -> str:
        """Return the command that lists cases of the run: `helmbench show 3 --failed`."""
        run = self.runs[0] if len(self.runs) == 1 else "RUN"
        return f"`helmbench show {run} {option}{self.db_option}`"
