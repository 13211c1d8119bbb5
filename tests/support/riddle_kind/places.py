"""Where riddles stand: a folder with `riddles.txt`."""

from __future__ import annotations

from pytest_helmbench.benchmarks.kind import KindPlaces

FILE = "riddles.txt"

PLACES = KindPlaces(
    name="riddles",
    module="riddle_kind.kind",
    authoring="riddle_kind.authoring",
    signs=(FILE,),
    detect=lambda root: (root / FILE).is_file(),
    files=lambda root: (root / FILE,),
)
