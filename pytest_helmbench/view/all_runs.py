"""The list of runs as it was read last, with how far each is."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_helmbench.reports.page.run_list import ListedRun, run_list_page, run_list_rows
from pytest_helmbench.store.run_queries import Pulse, RunSummary, pulses, runs
from pytest_helmbench.view.history import History

__all__ = ["RunList"]

_MOST = 200


class RunList:
    """Every method runs in the same thread.

    Args:
        path: Results file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[str, str] = {}
        self._history = History[str]()
        self._listed: tuple[ListedRun, ...] = ()
        self._left_out = 0
        self._version = 0

    def read(self, version: int) -> None:
        """Read the runs.

        Args:
            version: Larger than all before.

        Raises:
            StoreError: The file cannot be read.
        """
        found = pulses(self._path)
        known = [run for run in reversed(runs(self._path)) if run.id in found]
        self._listed = tuple(_listed(run, found[run.id]) for run in known[:_MOST])
        self._left_out = len(known) - len(self._listed)
        self._lines = run_list_rows(self._listed)
        self._history.note(self._lines, version)
        self._version = version

    def page(self) -> str:
        """Return the page."""
        return run_list_page(self._path.name, self._listed, self._left_out, self._version)

    def news(self, since: int) -> str:
        """Return as JSON the lines that have changed since a version."""
        changed = self._history.since(since)
        if changed is None:
            return '{"reload":true}'
        lines = {name: self._lines[name] for name in changed}
        return json.dumps({"version": self._version, "lines": lines}, ensure_ascii=False)


def _listed(run: RunSummary, pulse: Pulse) -> ListedRun:
    return ListedRun(
        run.id,
        run.started_at[:19].replace("T", " "),
        f"{run.benchmark} {run.version}",
        run.model,
        pulse.status,
        pulse.done,
        pulse.planned,
        pulse.passed,
        pulse.failed,
        pulse.error,
        run.score,
    )
