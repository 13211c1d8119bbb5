"""Bench Packs as a kind of benchmark."""

from __future__ import annotations

from pytest_helmbench.benchmarks.bench_packs.loading import BenchPackLoader
from pytest_helmbench.benchmarks.bench_packs.places import PLACES
from pytest_helmbench.benchmarks.kind import SessionValues

__all__ = ["KIND", "BenchPacks"]


class BenchPacks:
    """See `BenchmarkKind`."""

    name = PLACES.name

    def open(self, session: SessionValues) -> BenchPackLoader:
        """See `BenchmarkKind.open`."""
        return BenchPackLoader(session.settings, session.environ, session.loop(), session.note)


KIND = BenchPacks()
