"""Work of the interpreter that a session can go without: parsing our modules anew, and collecting what stays."""

from __future__ import annotations

import gc
import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_YOUNG_OBJECTS = 10_000  # Python's own 700 look at every object of a case while it is still in flight
_OLDEST = 2


class _AsInstalled:
    """Finds our modules as Python does.

    pytest parses the modules of a plugin anew, to explain the assertions in them, and keeps the result only where it
    may write beside them. Gain there: 60 % of the instructions of a start, a second.
    """

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of ours is; None for any other."""
        return PathFinder.find_spec(name, path, target) if name.startswith("pytest_helmbench.") else None


def import_as_installed() -> None:
    """Find our modules so from now on."""
    if _AsInstalled not in sys.meta_path:
        sys.meta_path.insert(0, _AsInstalled)


def end_without_search() -> None:
    """Keep pytest and the interpreter from searching all objects for garbage before this process ends.

    For sessions without foreign tests: their objects may say something when they are collected. Gain: a tenth of the
    CPU of 3,000 cases on two workers.
    """
    gc.freeze()


class GarbagePace:
    """Takes modules and items, which all live to the end, out of the collector's sight.

    Unasked, it would walk through all of them at every quarter of growth and five more times at the end. Gain: 50 ms
    of a start, and a sixth of the CPU of 3,000 cases.
    """

    def __init__(self) -> None:
        self._thresholds = gc.get_threshold()
        self._was_on = True

    def begin(self) -> None:
        """Set aside what is loaded; what an earlier session in this process set aside is garbage by now."""
        gc.unfreeze()
        gc.set_threshold(_YOUNG_OBJECTS, *self._thresholds[1:])
        gc.freeze()

    def before_items(self) -> None:
        """Collect nothing while items are made: they all stay."""
        self._was_on = gc.isenabled()  # not before: nothing is collected while the session is put together
        gc.disable()

    def after_items(self) -> None:
        """Set the items aside."""
        gc.freeze()
        if self._was_on:
            gc.enable()

    def keep_what_stays(self) -> None:
        """Set aside also what whole passes leave from now on: reports, which stay to the end.

        For sessions without foreign tests: what these leave in cycles would never be freed once set aside.
        """
        gc.callbacks.append(self._passed)

    def _passed(self, phase: str, about: Mapping[str, int]) -> None:
        if phase == "stop" and about["generation"] == _OLDEST:
            gc.freeze()

    def end(self) -> None:
        """Collect once, so that warnings about lost resources still come; pytest's own passes find nothing left."""
        if self._passed in gc.callbacks:
            gc.callbacks.remove(self._passed)
        gc.set_threshold(*self._thresholds)
        gc.collect()
        gc.freeze()
