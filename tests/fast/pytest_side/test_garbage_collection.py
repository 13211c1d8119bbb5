"""The cycle collector runs while cases do, however the session was put together."""

from __future__ import annotations

import gc

from pytest_helmbench.pytest_side.garbage_collection import GarbagePace


def test_garbage_is_collected_again_once_the_items_are_there() -> None:
    gc.disable()  # as while the session is put together
    try:
        pace = GarbagePace()
        gc.enable()
        pace.before_items()
        assert not gc.isenabled()
        pace.after_items()
        assert gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()
