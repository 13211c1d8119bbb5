"""Python's cycle collector in a session: what lives to the end is not searched over and over."""

from __future__ import annotations

import gc

__all__ = ["GarbagePace"]

_YOUNG_OBJECTS = 10_000  # Python's own 700 look at every object of a case while it is still in flight


class GarbagePace:
    """Takes modules and items, which all live to the end, out of the collector's sight.

    Unasked, it would walk through all of them at every quarter of growth and five more times at the end:
    a seventh of the CPU of a run.
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

    def end(self) -> None:
        """Collect once, so that warnings about lost resources still come; pytest's own passes find nothing left."""
        gc.set_threshold(*self._thresholds)
        gc.collect()
        gc.freeze()
