"""Lines over Dask: what is none of ours on the queue of a session stops nobody."""

from __future__ import annotations

import asyncio
import json
import queue
from collections import defaultdict
from collections.abc import Iterator
from threading import Thread

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from pytest_helmbench.engine import dask_lines
from pytest_helmbench.engine.host_lines import HostLines

_ODD: tuple[object, ...] = (
    5,
    "text",
    None,
    [1],
    b"",
    b"\xff",
    b"1\nx",
    b"[1]\nx",
    b"[" * 100_000 + b"\nx",
    b'{"back": "b", "number": 1e999, "key": ""}\nx',
    b'{"back": "b", "number": -1, "key": ""}\nx',
)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_frames_that_are_none_of_ours_are_passed_over(
    monkeypatch: pytest.MonkeyPatch, loop: asyncio.AbstractEventLoop
) -> None:
    queues: defaultdict[str, _Queue] = defaultdict(_Queue)
    monkeypatch.setattr(dask_lines, "Queue", lambda name, client: queues[name])
    lines = HostLines()
    listener = dask_lines.LineListener(None, lines, loop)  # no queue of ours needs a client
    for frame in _ODD:
        queues[lines.name].put(frame)
    head = json.dumps({"back": "back", "number": 7, "key": "nobody's"}).encode()

    queues[lines.name].put(head + b"\nhi")

    assert queues["back"].get(timeout=10)[:8] == (7).to_bytes(8)
    listener.close()


class _Queue(queue.Queue):  # type: ignore[type-arg]
    def close(self) -> None:
        """As Dask's have."""
