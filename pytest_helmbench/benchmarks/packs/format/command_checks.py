"""Commands and files of the pack that judge a row: the three generations of the format brought into one shape."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.format.row_fields import text_in, texts_in
from pytest_helmbench.benchmarks.packs.task import CommandCheck
from pytest_helmbench.core.json_types import JsonObject

__all__ = ["command_check", "timeout_of"]


def command_check(data: JsonObject) -> CommandCheck:
    """Return a command; one that is written as a text is run by `sh -lc`.

    Args:
        data: What holds `command`, without faults.
    """
    command = text_in(data, "command")
    return CommandCheck(
        texts_in(data, "command") if command is None else ("sh", "-lc", command),
        text_in(data, "workdir"),
        timeout_of(data),
    )


def timeout_of(data: JsonObject) -> float | None:
    """Return `timeout_seconds`; None where there is none."""
    timeout = data.get("timeout_seconds")
    return float(timeout) if isinstance(timeout, int | float) else None
