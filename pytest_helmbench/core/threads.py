"""Threads of our own, which a system with narrow limits may not let start."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pytest_helmbench.core.problem import HelmbenchError

T = TypeVar("T")


def start_thread(function: Callable[[], object], name: str) -> threading.Thread:
    """Start a daemon thread.

    Raises:
        HelmbenchError: The system lets none start.
    """
    thread = threading.Thread(target=function, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise HelmbenchError(
            f"{name}: {error}\n  hint: the limits on memory (ulimit -v) or processes (ulimit -u) are too narrow"
        ) from error
    return thread


async def in_thread(call: Callable[[], T], name: str) -> T:
    """Return what a call in a thread of its own returns: a daemon, so that no end waits for it.

    Raises:
        HelmbenchError: The system lets none start.
        Exception: Whatever the call raises; `RuntimeError` for what would end the loop.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            settle = partial(done.set_result, call())
        except BaseException as error:  # noqa: BLE001 - SystemExit of the user's code is a fault like others
            if not isinstance(error, Exception) or isinstance(error, StopIteration):  # no future takes that
                error = RuntimeError(repr(error)).with_traceback(error.__traceback__)
            settle = partial(done.set_exception, error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if done.done() else settle())

    start_thread(run, name)
    return await done
