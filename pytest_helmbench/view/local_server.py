"""The server of `helmbench view`: at 127.0.0.1 alone, who is let in, and what each address answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, urlencode

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.view.live_pages import Address, LivePages, NoSuchRunError

PRIVATE = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Server": "helmbench",
}
"""Headers that tell a browser to keep an answer to itself."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_MOST_RUNS = 20
_RUNS = re.compile(r"\d{1,18}(?:,\d{1,18})*")
_HOST = "127.0.0.1"
_IDLE_S = 30.0
_FAREWELL_S = 0.2
_WAITING = 128


def _guard(port: int, token: str) -> Middleware:
    """Return the check of host, origin and token that every request passes before anything is read."""
    own = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
    cookie = f"helmbench-{port}"

    def is_ours(value: str) -> bool:
        return secrets.compare_digest(value.encode("utf-8", "replace"), token.encode())

    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        headers = request.headers
        hosts = headers.getall("Host", [])
        # A foreign name that resolves to this address (DNS rebinding) is not ours.
        if len(hosts) != 1 or hosts[0].lower() not in own:
            return _refused("this server answers to 127.0.0.1 alone")
        if request.method != "GET":
            return web.Response(status=405, text="only GET is answered\n", headers={"Allow": "GET"})
        is_link = headers.get("Sec-Fetch-Mode") == "navigate"
        is_link &= headers.get("Sec-Fetch-Dest", "") in ("", "document")
        is_foreign = headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") and not is_link
        if is_foreign or ("Origin" in headers and headers["Origin"].removeprefix("http://") not in own):
            return _refused("asked for by another page")
        given = request.query.getall("token", [])
        if given:
            if len(given) != 1 or not is_ours(given[0]):
                return _refused("that is not the token of this server")
            # The token becomes a cookie, so that no link that is copied holds it. One slash: two, or one with a
            # backslash, would be the address of another host.
            place = quote("/" + request.path.lstrip("/\\"), safe="/,.~")
            rest = [(name, value) for name, value in request.query.items() if name != "token"]
            found = web.Response(status=303)
            found.headers["Location"] = f"{place}?{urlencode(rest)}" if rest else place
            found.headers["Set-Cookie"] = f"{cookie}={token}; HttpOnly; Path=/; SameSite=Lax"
            return found
        try:
            kept = SimpleCookie("; ".join(headers.getall("Cookie", []))).get(cookie)
        except CookieError:
            kept = None
        if kept is None or not is_ours(kept.value):
            return _refused("open the address that was printed when this server was started, with its token")
        return await handler(request)

    return guard


def _refused(why: str) -> web.Response:
    return web.Response(status=403, text=f"{why}\n")


@web.middleware
async def _plain_faults(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Say a fault in a sentence, as text: what it quotes cannot act."""
    try:
        return await handler(request)
    except StoreError as error:
        return web.Response(status=503, text=f"{error.path.name}: {error.problem}\n")
    except HelmbenchError as error:
        return web.Response(status=404 if isinstance(error, NoSuchRunError) else 422, text=f"{error}\n")


async def _protect(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(PRIVATE)
    rules = "frame-ancestors 'none'; base-uri 'none'"
    is_page = response.content_type == "text/html"  # it names its own script and style
    response.headers["Content-Security-Policy"] = rules if is_page else f"default-src 'none'; {rules}"


def _site(pages: LivePages, port: int, token: str) -> web.Application:
    async def listed(_request: web.Request) -> web.Response:
        return web.Response(text=await pages.run_list(), content_type="text/html")

    async def page(request: web.Request) -> web.Response:
        return web.Response(text=await pages.page(_address(request.match_info)), content_type="text/html")

    async def state(request: web.Request) -> web.Response:
        wanted = request.query.get("runs", "")
        if wanted and _RUNS.fullmatch(wanted) is None:
            raise web.HTTPBadRequest(text="runs are numbers\n")
        seen = await pages.state()
        found = seen.record(tuple(map(int, wanted.split(",") if wanted else ())))
        return web.Response(text=json.dumps(found), content_type="application/json")

    app = web.Application(middlewares=[_guard(port, token), _plain_faults])
    app.on_response_prepare.append(_protect)
    places = {
        "/": listed,
        f"/r/{{runs:{_RUNS.pattern}}}": page,
        r"/c/{first:\d{1,18}}..{second:\d{1,18}}": page,
        "/state": state,
    }
    app.add_routes(web.get(path, handler, allow_head=False) for path, handler in places.items())
    return app


def _address(found: Mapping[str, str]) -> Address:
    if "first" in found:
        first, second = int(found["first"]), int(found["second"])
        if first == second:
            raise web.HTTPBadRequest(text="a run is not compared with itself\n")
        return Address((first, second), compared=True)
    runs = tuple(dict.fromkeys(map(int, found["runs"].split(","))))
    if len(runs) > _MOST_RUNS:
        raise web.HTTPBadRequest(text=f"no more than {_MOST_RUNS} runs stand on one page\n")
    return Address(runs)


class PortTakenError(HelmbenchError):
    """Nothing can listen at the port."""


async def serve(pages: LivePages, port: int, first: str, listening: Callable[[str], None]) -> None:
    """Serve pages until SIGINT or SIGTERM.

    Args:
        port: To listen at; 0 for any that is free.
        listening: Receives the address to open, token included.

    Raises:
        PortTakenError: Nothing can listen there.
    """
    with contextlib.closing(_listening_socket(port)) as listener:
        port = int(listener.getsockname()[1])
        token = secrets.token_urlsafe(24)
        runner = web.AppRunner(
            _site(pages, port, token),
            access_log=None,
            logger=_logger(),
            keepalive_timeout=_IDLE_S,
            shutdown_timeout=_FAREWELL_S,
            handler_cancellation=True,
        )
        await runner.setup()
        try:
            await web.SockSite(runner, listener, backlog=_WAITING).start()
            with _ended_by_signal() as ending:
                listening(f"http://{_HOST}:{port}{first}?token={token}")
                await ending.wait()
        finally:
            await runner.cleanup()


def _listening_socket(port: int) -> socket.socket:
    """Return a socket bound to this machine's own address, which no other machine reaches."""
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
def _ended_by_signal() -> Iterator[asyncio.Event]:
    """Yield an event that SIGINT and SIGTERM set, also where a shell has its background ignore them."""
    loop, ending = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    with contextlib.ExitStack() as undo:
        with contextlib.suppress(NotImplementedError):  # Windows: KeyboardInterrupt ends the loop there
            for number in signals:
                loop.add_signal_handler(number, ending.set)
                undo.callback(loop.remove_signal_handler, number)
        yield ending


def _logger() -> logging.Logger:
    """Return a logger for faults of our own; faulty requests of strangers print nothing on the user's terminal."""
    found = logging.getLogger("pytest_helmbench.view")
    found.setLevel(logging.ERROR)
    found.addFilter(lambda line: not (line.exc_info and isinstance(line.exc_info[1], HttpProcessingError)))
    return found
