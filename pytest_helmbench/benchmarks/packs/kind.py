"""Question packs as a kind of benchmark."""

from __future__ import annotations

from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.benchmarks.packs.loading import PackLoader
from pytest_helmbench.benchmarks.packs.places import PLACES


class Packs:
    """Loads question packs."""

    name = PLACES.name

    def open(self, session: SessionValues) -> PackLoader:
        return PackLoader(session.settings, session.note, in_ci=bool(session.environ.get("CI")))


KIND = Packs()
