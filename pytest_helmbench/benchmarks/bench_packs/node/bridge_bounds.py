"""Timeouts of a Bench Pack's processes, and limits on the output that is kept."""

from __future__ import annotations

from pytest_helmbench.benchmarks.bench_packs.node.lines import HAS_INHERITANCE
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["BridgeBounds"]


@dataclass(frozen=True, slots=True)
class BridgeBounds:
    """How long a pack is waited for, and how much is kept of it.

    Args:
        start_s: From the start of Node to the loaded pack.
        answer_s: For the list of scenarios and for the score.
        freeze_s: Without a sign of life; then the process is killed and its items run again, each alone.
        alone_freeze_s: Likewise for an item that runs alone: its work may block, and hurts nobody else.
        grace_s: Between the abort signal and giving up on an item.
        close_s: For disposing of what is prepared.
        heartbeat_s: Between two signs of life.
        alone_at_once: Processes for items that run alone.
        output_bytes: Kept of what is printed.
        loopback: Reach processes by a loopback server even where they can inherit sockets.
    """

    start_s: float = 60.0
    answer_s: float = 60.0
    freeze_s: float = 10.0
    alone_freeze_s: float = 30.0
    grace_s: float = 1.0
    close_s: float = 1.0
    heartbeat_s: float = 0.25
    alone_at_once: int = 4
    output_bytes: int = 16 * 1024
    loopback: bool = not HAS_INHERITANCE
