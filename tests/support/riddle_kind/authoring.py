"""Riddles as authors read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.authoring import CaseRef, Checked, Listing, Prompt, counted
from pytest_helmbench.benchmarks.kind import SessionValues
from riddle_kind.kind import Riddles, load
from riddle_kind.places import FILE


class ReadRiddles:
    """The riddles of a folder, as authors read them."""

    is_selected_by_code = False

    def __init__(self, riddles: Riddles) -> None:
        self._riddles = riddles
        self.root = riddles.root

    def listing(self) -> Listing:
        rows = [(code,) for code in self.scenario_codes()]
        notes = (counted(len(rows), "riddle"),)
        return Listing(self.root.name, ("id",), ("id",), rows, notes, [{"id": code} for (code,) in rows])

    def prompt(self, code: str, system_prompt: str | None) -> Prompt | None:
        riddle = self._riddles.riddle(code)
        return None if riddle is None else Prompt(riddle.case(system_prompt))

    def near(self, _code: str) -> Iterable[str]:
        return self.scenario_codes()

    def first_cases(self) -> Sequence[CaseRef]:
        return [CaseRef(self.root / FILE, code) for code in self.scenario_codes()][:1]

    def find(self, code: str) -> CaseRef | None:
        return CaseRef(self.root / FILE, code) if code in self._riddles.outline.rows else None

    def scenario_codes(self) -> Sequence[str]:
        return list(self._riddles.outline.rows)


class RiddleAuthoring:
    """Checks and reads riddles for their authors."""

    def check(self, root: Path, _session: SessionValues) -> Checked:
        riddles = load(root, ())
        errors = tuple(problem for _, problems in riddles.broken for problem in problems)
        return Checked(counted(riddles.count(), "riddle"), errors)

    def read(self, root: Path, _session: SessionValues) -> ReadRiddles:
        return ReadRiddles(load(root, ()))


AUTHORING = RiddleAuthoring()
