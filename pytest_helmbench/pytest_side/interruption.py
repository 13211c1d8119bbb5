"""Ctrl-C: the line that says how many calls are still awaited, and a second one, wherever the session is then."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest

from pytest_helmbench.pytest_side.role import INTERRUPT_GRACE_S

__all__ = ["hear_the_next", "say_what_is_awaited"]


def say_what_is_awaited(config: pytest.Config, in_flight: int) -> None:
    """Print how many calls are on the wire, and for how long their replies are awaited; nothing when there are none."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not in_flight or reporter is None:
        return
    calls = "1 call" if in_flight == 1 else f"{in_flight} calls"
    reporter.ensure_newline()
    reporter.write_line(
        f"helmbench: {calls} on the wire may be paid: waiting up to {INTERRUPT_GRACE_S:g} s for the replies"
        " (Ctrl-C again ends at once)",
        flush=True,
    )


def hear_the_next(hurry: Callable[[], None]) -> Callable[[], None]:
    """Have the next Ctrl-C end the grace, in the midst of whatever; the one after it is handled as before.

    Returns:
        Takes that back.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = signal.getsignal(signal.SIGINT)

    def restore() -> None:
        if before is not None:
            signal.signal(signal.SIGINT, before)

    def heard(_number: int, _frame: object) -> None:
        restore()
        hurry()

    signal.signal(signal.SIGINT, heard)
    return restore
