"""Trivial items of a class of our own: what pytest itself costs. Loaded by `-p floor`; `*.floor` files hold a count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

_PER_CONDITION = 10


class FloorItem(pytest.Item):
    """Passes without doing anything."""

    def runtest(self) -> None:
        """Pass."""

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where it stands."""
        return self.path, 0, self.name


class FloorFile(pytest.File):
    """As many items as the file says, named like cases."""

    def collect(self) -> Iterator[FloorItem]:
        """Yield the items."""
        for number in range(int(self.path.read_text(encoding="utf-8"))):
            condition, perturbation = number % _PER_CONDITION, number // _PER_CONDITION
            yield FloorItem.from_parent(self, name=f"P1-B1-S1-C{condition + 1}-PT{perturbation + 1}[mock-1]")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect `*.floor`."""
    return FloorFile.from_parent(parent, path=file_path) if file_path.suffix == ".floor" else None
