"""The rule of this folder: a test that starts a process or opens a connection fails."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from event_loops import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]

_PROCESSES = ("subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn")
_CONNECTIONS = (
    "socket.connect",
    "socket.bind",
    "socket.sendto",
    "socket.getaddrinfo",
    "socket.gethostbyname",
)
_FORBIDDEN = frozenset({*_PROCESSES, *_CONNECTIONS})


class _Guard:
    """Notes what a test does that belongs into another folder; a hook of the interpreter can never be taken out."""

    def __init__(self) -> None:
        self._seen: list[str] = []
        self._watches = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._watches or event not in _FORBIDDEN:
            return
        if sys.platform == "win32" and event in _CONNECTIONS and _is_loopback_pair(arguments):
            return
        self._seen.append(f"{event} {arguments[1:2]!r}"[:200])

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Fail the test at the end when it did something forbidden meanwhile."""
        self._seen.clear()
        self._watches = True
        try:
            yield
        finally:
            self._watches = False
        if self._seen:
            pytest.fail(
                f"tests/fast starts no process and opens no connection, but: {'; '.join(self._seen)[:500]}\n"
                "  hint: tests/sessions and tests/system are for such tests",
                pytrace=False,
            )


def _is_loopback_pair(arguments: tuple[object, ...]) -> bool:
    """Return whether an event loop connects to itself, as those of Windows do."""
    return isinstance(arguments[0], socket.socket) and arguments[0].family == socket.AF_INET


_guard = _Guard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Watch the fixtures."""
    with _guard.watching():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Watch the test."""
    with _guard.watching():
        return (yield)
