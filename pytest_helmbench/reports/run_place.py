"""The place of a run on record as commands name it, so that a hint can be typed as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["RunPlace"]


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
