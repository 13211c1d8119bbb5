"""Failed cases at the end of a session: counted by part, alike errors once."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.reports.tables import share, table

_PARTS_SHOWN = 10
_FIGURES = re.compile(r"\d+\.\d+|\d{4,}|\d+(?= ?(?:ms|s|bytes|tokens)\b)")  # no status codes


@dataclass(slots=True)
class PartCounts:
    """Judged cases of a behaviour, or of a family where there are no behaviours."""

    failed: int = 0
    judged: int = 0

    def add(self, *, is_wrong: bool) -> None:
        """Count one."""
        self.judged += 1
        self.failed += is_wrong


def failure_table(parts: Mapping[str, PartCounts], *, most: int = _PARTS_SHOWN) -> list[str]:
    """Return the behaviours with failed cases, those with the most first.

    Args:
        parts: By code of behaviour or name of family.
        most: Lines at most; the others are one line.
    """
    found = sorted(
        ((name, counts) for name, counts in parts.items() if counts.failed),
        key=lambda one: (-one[1].failed, natural_key(one[0])),
    )
    rows = [
        (name, str(counts.failed), str(counts.judged), share(counts.failed / counts.judged))
        for name, counts in found[:most]
    ]
    rest = found[most:]
    if rest:
        failed, judged = (sum(getattr(one, name) for _, one in rest) for name in ("failed", "judged"))
        rows.append((f"{len(rest)} others", str(failed), str(judged), share(failed / judged)))
    return table(("failed by behaviour", "failed", "judged", ""), rows, left=("failed by behaviour",))


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
