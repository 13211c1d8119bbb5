"""The server itself: it listens at 127.0.0.1 alone, and ends as soon as it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.view.doors import Doors
from pytest_helmbench.view.poller import Watch
from pytest_helmbench.view.shelf import Shelf
from pytest_helmbench.view.site import site

__all__ = ["PortTakenError", "View", "listening_socket", "serve"]

_HOST = "127.0.0.1"
_IDLE_S = 30.0
_FAREWELL_S = 0.2
_WAITING = 128


class PortTakenError(HelmbenchError):
    """Nothing can listen at the port."""


@dataclass(frozen=True, slots=True)
class View:
    """What is served.

    Args:
        path: Results file.
        texts: Whose texts are shown.
        refresh_s: Between two looks at the file.
        port: To listen at; 0 for any that is free.
        first: Path of the first page.
    """

    path: Path
    texts: ShownTexts
    refresh_s: float
    port: int = 0
    first: str = "/"


async def serve(view: View, listening: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        view: What is served.
        listening: Told the address to open, token included.

    Raises:
        PortTakenError: Nothing can listen there.
    """
    with contextlib.closing(listening_socket(view.port)) as listener:
        port = int(listener.getsockname()[1])
        token = secrets.token_urlsafe(24)
        shelf = Shelf(view.path, view.texts)
        watch = Watch(view.path, view.refresh_s, shelf.forget)
        runner = web.AppRunner(
            site(shelf, watch, Doors(port, token)),
            access_log=None,
            logger=_logger(),
            keepalive_timeout=_IDLE_S,
            shutdown_timeout=_FAREWELL_S,
            handler_cancellation=True,
        )
        await runner.setup()
        try:
            await web.SockSite(runner, listener, backlog=_WAITING).start()
            with _told_to_end() as ending:
                listening(f"http://{_HOST}:{port}{view.first}?token={token}")
                await ending.wait()
        finally:
            await runner.cleanup()


def listening_socket(port: int) -> socket.socket:
    """Return a socket bound to this machine's own address, which no other machine reaches.

    Args:
        port: 0 for any that is free.

    Raises:
        PortTakenError: Nothing can listen there.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let two programs listen at once
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((_HOST, port))
    except OSError as error:
        found.close()
        raise PortTakenError(
            f"nothing can listen at {_HOST}:{port} ({error.strerror})\n  hint: without --port a free one is taken"
        ) from error
    return found


@contextlib.contextmanager
def _told_to_end() -> Iterator[asyncio.Event]:
    """Yield what is set by SIGINT and SIGTERM, also where a shell has its background ignore them."""
    loop, ending = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    try:
        for number in signals:
            loop.add_signal_handler(number, ending.set)
    except NotImplementedError:  # Windows: KeyboardInterrupt ends the loop there
        yield ending
        return
    try:
        yield ending
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def _logger() -> logging.Logger:
    """Return a logger for faults of our own; what a stranger sends is no line on anybody's terminal."""
    found = logging.getLogger("pytest_helmbench.view")
    found.setLevel(logging.ERROR)
    found.addFilter(lambda line: not (line.exc_info and isinstance(line.exc_info[1], HttpProcessingError)))
    return found
