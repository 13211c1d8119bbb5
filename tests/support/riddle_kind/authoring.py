"""Riddles as authors read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.authoring import CaseRef, Checked, Listing, Prompt, counted
from pytest_helmbench.benchmarks.kind import SessionValues
from riddle_kind.kind import Riddles, load
from riddle_kind.places import FILE


class ReadRiddles:
    """See `Reading`."""

    is_selected_by_code = False

    def __init__(self, riddles: Riddles) -> None:
        self._riddles = riddles
        self.root = riddles.root

    def listing(self) -> Listing:
        """See `Reading.listing`."""
        rows = [(code,) for code in self.scenario_codes()]
        notes = (counted(len(rows), "riddle"),)
        return Listing(self.root.name, ("id",), ("id",), rows, notes, [{"id": code} for (code,) in rows])

    def prompt(self, code: str, system_prompt: str | None) -> Prompt | None:
        """See `Reading.prompt`."""
        riddle = self._riddles.riddle(code)
        return None if riddle is None else Prompt(riddle.case(system_prompt))

    def near(self, _code: str) -> Iterable[str]:
        """See `Reading.near`."""
        return self.scenario_codes()

    def first_cases(self) -> Sequence[CaseRef]:
        """See `Reading.first_cases`."""
        return [CaseRef(self.root / FILE, code) for code in self.scenario_codes()][:1]

    def find(self, code: str) -> CaseRef | None:
        """See `Reading.find`."""
        return CaseRef(self.root / FILE, code) if code in self._riddles.outline.rows else None

    def scenario_codes(self) -> Sequence[str]:
        """See `Reading.scenario_codes`."""
        return list(self._riddles.outline.rows)


class RiddleAuthoring:
    """See `Authoring`."""

    def check(self, root: Path, _session: SessionValues) -> Checked:
        """See `Authoring.check`."""
        riddles = load(root, ())
        errors = tuple(problem for _, problems in riddles.broken for problem in problems)
        return Checked(counted(riddles.count(), "riddle"), errors)

    def read(self, root: Path, _session: SessionValues) -> ReadRiddles:
        """See `Authoring.read`."""
        return ReadRiddles(load(root, ()))


AUTHORING = RiddleAuthoring()
