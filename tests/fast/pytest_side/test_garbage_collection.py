"""The cycle collector runs while cases do, however the session was put together."""

from __future__ import annotations

import gc

from pytest_helmbench.speed.interpreter import GarbagePace


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


def test_what_a_whole_pass_has_left_is_walked_through_once() -> None:
    before = list(gc.callbacks)
    pace = GarbagePace()
    pace.begin()
    try:
        pace.keep_what_stays()
        gc.disable()  # no pass but those that follow
        frozen = gc.get_freeze_count()
        kept = [[number] for number in range(1_000)]
        gc.collect(1)
        assert gc.get_freeze_count() == frozen
        gc.collect()
        assert gc.get_freeze_count() >= frozen + len(kept)
    finally:
        pace.end()
        gc.enable()
        gc.unfreeze()
    assert gc.callbacks == before
