"""Bridges to Bench Packs on disk, and items that run through them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from bench_pack_folders import pack_place
from engines import missing

from pytest_helmbench.benchmarks.bench_packs.node.bridge import Bridge
from pytest_helmbench.benchmarks.bench_packs.node.command import Node, find_node
from pytest_helmbench.benchmarks.bench_packs.node.process import BridgeBounds, PackFailedError
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.sandbox.box import Unavailable
from pytest_helmbench.sandbox.fence import OpenPort, find_fence

__all__ = ["BOUNDS", "SHORT_BOUNDS", "Item", "bridge_to", "outcomes", "real_node"]

BOUNDS = BridgeBounds(grace_s=0.4)
"""Patience for packs that freeze nothing, on machines that are busy."""

SHORT_BOUNDS = BridgeBounds(freeze_s=1.0, alone_freeze_s=2.0, grace_s=0.4, heartbeat_s=0.1)
"""Patience for packs that are known to freeze their process."""


class Item:
    """An item that runs through a pack; records its starts and events."""

    def __init__(self, scenario: str) -> None:
        self.scenario = scenario
        self.begun = 0
        self.events: list[Mapping[str, Any]] = []
        self._started = 0.0

    async def begin(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        self.begun += 1
        self._started = time.monotonic()
        model = {"id": "test/m", "provider": "test", "model": "m", "label": "m", "enabled": True, "group": ""}
        context = {"protocolVersion": 1, "providers": [], "models": [model], "secrets": [], "verifiers": []}
        scenario = {"id": self.scenario, "title": self.scenario}
        return context, {
            "runId": "run-1",
            "benchPackId": "small-pack",
            "scenario": scenario,
            "model": model,
            "generation": {},
        }

    def lost(self) -> None:
        pass

    def open_ports(self) -> Sequence[OpenPort]:
        return ()

    def spent_s(self) -> float:
        return time.monotonic() - self._started

    def emitted(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)


def real_node() -> Node:
    """Return the Node.js of this machine."""
    node = find_node(None, os.environ)
    if isinstance(node, str):
        pytest.skip(node)
    return node


@asynccontextmanager
async def bridge_to(
    root: Path, *, fenced: bool = True, bounds: BridgeBounds = BOUNDS
) -> AsyncIterator[Bridge]:
    """Give a bridge to a pack in a folder; everything of it has ended behind it."""
    fence = await find_fence(Granted("auto")) if fenced else None
    if isinstance(fence, Unavailable):
        missing(fence.reason)
    bridge = Bridge(real_node(), pack_place(root, root.parent / "work"), fence=fence, bounds=bounds)
    try:
        yield bridge
    finally:
        await bridge.close()
        if fence is not None:
            await fence.close()


async def outcomes(bridge: Bridge, items: Sequence[Item], limit_s: float = 20.0) -> list[Any]:
    """Run items at once; return what each gave, or its PackFailedError."""
    given = await asyncio.gather(*(bridge.run(item, limit_s) for item in items), return_exceptions=True)
    for one in given:
        if isinstance(one, BaseException) and not isinstance(one, PackFailedError):
            raise one
    return list(given)
