"""Finding Bench Packs: a folder with the manifest of the desktop app."""

from __future__ import annotations

import stat
from pathlib import Path

from pytest_helmbench.benchmarks.kind import KindPlaces

MANIFEST = "benchlocal.pack.json"


def is_bench_pack(path: Path) -> bool:
    """Return whether a folder is a Bench Pack; what its manifest says, loading tells."""
    try:
        return stat.S_ISREG((path / MANIFEST).stat().st_mode)
    except (OSError, ValueError):
        return False


def _manifest(path: Path) -> tuple[Path, ...]:
    """Return the manifest: all scenarios stand in it, since only the pack's own code knows them."""
    return (path / MANIFEST,)


PLACES = KindPlaces(
    name="bench_pack",
    module="pytest_helmbench.benchmarks.bench_packs.loading",
    authoring="pytest_helmbench.benchmarks.bench_packs.authoring",
    signs=(MANIFEST,),
    detect=is_bench_pack,
    files=_manifest,
    manifests=_manifest,
    is_outermost=True,
    record="pytest_helmbench.benchmarks.bench_packs.record",
    schemas=("bench_pack",),
    not_rescored="a Bench Pack alone can judge its replies\n"
    "  hint: --helmbench-cache=only replays them through the pack of now, without a call",
)
