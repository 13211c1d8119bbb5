"""Ctrl-C on the terminal: the line that says how many calls are still awaited."""

from __future__ import annotations

import pytest

from pytest_helmbench.pytest_side.role import INTERRUPT_GRACE_S

__all__ = ["say_what_is_awaited"]


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
