"""Datasette over a results file: behind our doors, read-only, and without the texts that nobody has asked for."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Awaitable, Callable, MutableMapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.view.datasette_words import described, settings
from pytest_helmbench.view.doors import Asked, Doors
from pytest_helmbench.view.local_server import listening_socket

__all__ = ["NoDatasetteError", "explore", "installed_version"]

_TEXTS = frozenset(
    {
        ("calls", "error"),
        ("evaluations", "justification"),
        ("evaluations", "observed_text"),
        ("events", "payload"),
        ("judgements", "justification"),
        ("pack_results", "artifacts"),
        ("pack_results", "note"),
        ("pack_results", "output"),
        ("pack_results", "raw_log"),
        ("pack_results", "summary"),
        ("pack_results", "verifier"),
        ("pack_scores", "extra"),
        ("pack_scores", "summary"),
        ("requests", "body"),
        ("responses", "body"),
        ("responses", "text"),
        ("texts", "body"),
    }
)
"""Columns that hold prompts, replies, or words that may quote them."""
_READS = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_PRAGMA,
    }
)
_WAITING = 128
_SETTINGS = {"default_page_size": 50, "sql_time_limit_ms": 5_000, "facet_time_limit_ms": 1_000}

_Message: TypeAlias = MutableMapping[str, Any]
_App: TypeAlias = Callable[
    [_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]
]


class NoDatasetteError(HelmbenchError):
    """Datasette is not installed."""


@dataclass(frozen=True, slots=True)
class _Plugin:
    """What Datasette asks before it reads.

    Args:
        database: As it calls the file.
        doors: Who is let in.
        with_text: Show prompts, replies and the judge's words.
    """

    database: str
    doors: Doors
    with_text: bool

    def prepare_connection(self, conn: sqlite3.Connection, database: str) -> None:
        """Let a connection to the file read, and read no text that nobody has asked for."""
        if database == self.database:
            conn.set_authorizer(self._may)

    def _may(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        # SQLite asks so when it makes the table that `json_each` is; the file itself is opened read-only.
        makes_json = action == sqlite3.SQLITE_UPDATE and first == "sqlite_master"
        if action not in _READS and not makes_json:
            return sqlite3.SQLITE_DENY
        is_text = action == sqlite3.SQLITE_READ and (first, second) in _TEXTS
        return sqlite3.SQLITE_IGNORE if is_text and not self.with_text else sqlite3.SQLITE_OK

    def asgi_wrapper(self) -> Callable[[_App], _App]:
        """Stand before all that it answers."""

        def wrapped(app: _App) -> _App:
            async def guarded(
                scope: _Message,
                receive: Callable[[], Awaitable[_Message]],
                send: Callable[[_Message], Awaitable[None]],
            ) -> None:
                stopped = self.doors.stops(_asked(scope)) if scope["type"] == "http" else None
                if stopped is None:
                    await app(scope, receive, send)
                    return
                headers = {"Content-Type": "text/plain; charset=utf-8", **stopped.headers}
                told = [(name.encode(), value.encode()) for name, value in headers.items()]
                await send({"type": "http.response.start", "status": stopped.status, "headers": told})
                await send({"type": "http.response.body", "body": stopped.text.encode()})

            return guarded

        return wrapped


def installed_version() -> str:
    """Return the version of Datasette.

    Raises:
        NoDatasetteError: There is none.
    """
    try:
        return version("datasette")
    except PackageNotFoundError as error:
        raise NoDatasetteError(
            "Datasette is not installed\n  hint: pip install 'pytest-helmbench[datasette]'"
        ) from error


def explore(path: Path, page: str, port: int, *, with_text: bool, listening: Callable[[str], None]) -> None:
    """Serve a results file by Datasette until it is interrupted.

    Args:
        path: Results file.
        page: First page below the file's own: a table with its filter, or nothing.
        port: To listen at; 0 for any that is free.
        with_text: Show prompts, replies and the judge's words.
        listening: Told the address to open, token included.

    Raises:
        NoDatasetteError: Datasette is not installed.
        PortTakenError: Nothing can listen at the port.
    """
    is_first = installed_version().startswith("0.")
    import uvicorn
    from datasette.app import Datasette
    from datasette.utils import tilde_encode

    name, token = path.stem, secrets.token_urlsafe(24)
    with listening_socket(port) as listener:
        port = int(listener.getsockname()[1])
        _register(_Plugin(name, Doors(port, token), with_text))
        application = Datasette([str(path)], settings=_SETTINGS, **_words(name, is_first=is_first)).app()
        listener.listen(_WAITING)
        place = f"/{quote(tilde_encode(name), safe='~')}{page}"
        listening(f"http://127.0.0.1:{port}{place}{'&' if '?' in page else '?'}token={token}")
        server = uvicorn.Server(uvicorn.Config(application, log_level="warning", access_log=False))
        server.run(sockets=[listener])


def _words(name: str, *, is_first: bool) -> dict[str, JsonValue]:
    """Return labels, facets and queries as Datasette takes them: before 1.0 they were a part of the metadata."""
    metadata, config = described(name), settings(name)
    return {"metadata": _merged(metadata, config)} if is_first else {"metadata": metadata, "config": config}


def _merged(first: JsonValue, second: JsonValue) -> JsonValue:
    """Return two values as one: objects key by key."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second
    both = {name: _merged(first[name], second[name]) for name in first.keys() & second.keys()}
    return {**first, **second, **both}


def _asked(scope: _Message) -> Asked:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return Asked(scope["method"], scope["path"], scope["query_string"].decode("latin-1"), headers)


def _register(plugin: _Plugin) -> None:
    """Have Datasette ask a plugin of ours, in this process alone."""
    from datasette import hookimpl
    from datasette.plugins import pm

    class Hooks:
        __name__ = __package__  # a plugin is looked up for files that it brings

        @hookimpl  # type: ignore[untyped-decorator]
        def prepare_connection(self, conn: sqlite3.Connection, database: str) -> None:
            plugin.prepare_connection(conn, database)

        @hookimpl(trylast=True)  # type: ignore[untyped-decorator]  # the last to wrap stands outermost
        def asgi_wrapper(self) -> Callable[[_App], _App]:
            return plugin.asgi_wrapper()

    pm.register(Hooks(), name="helmbench")
