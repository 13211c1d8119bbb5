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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.view.poller import Seen, Watch
from pytest_helmbench.view.shelf import Address, NoSuchRunError, Shelf

PRIVATE = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers that tell a browser to keep an answer to itself."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request.

    Args:
        method: `GET` or another.
        path: Decoded.
        query: As sent, without the question mark.
        headers: All values of each, by lower-case name.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, Sequence[str]]

    def header(self, name: str) -> str:
        """Return the first value of a header; empty without one."""
        return next(iter(self.headers.get(name, ())), "")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said to who is not simply let in."""

    status: int
    text: str
    headers: Mapping[str, str]


class Doors:
    """Checks every request before anything is read.

    Args:
        port: That the server listens at.
        token: Of the first address; a cookie afterwards.
    """

    def __init__(self, port: int, token: str) -> None:
        self._token = token
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self._cookie = f"helmbench-{port}"

    def stops(self, asked: Asked) -> Answer | None:
        """Return what to answer in place of the page; None for who is let in."""
        hosts = asked.headers.get("host", ())
        # A name that somebody else's server leads here (DNS rebinding) is not ours.
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _refused("this server answers to 127.0.0.1 alone")
        if asked.method != "GET":
            return Answer(405, "only GET is answered\n", {"Allow": "GET"})
        if "origin" in asked.headers and asked.header("origin").removeprefix("http://") not in self._hosts:
            return _refused("asked for by another page")
        is_link = asked.header("sec-fetch-mode") == "navigate"
        is_link &= asked.header("sec-fetch-dest") in ("", "document")
        if asked.header("sec-fetch-site") in ("cross-site", "same-site") and not is_link:
            return _refused("asked for by another page")
        values = parse_qsl(asked.query, keep_blank_values=True)
        given = [value for name, value in values if name == "token"]
        if given:
            rest = [(name, value) for name, value in values if name != "token"]
            return self._welcome(given, asked.path, rest)
        if not self._is_ours(self._cookie_of(asked)):
            return _refused("open the address that was printed when this server was started, with its token")
        return None

    def _is_ours(self, token: str) -> bool:
        return secrets.compare_digest(token.encode("utf-8", "replace"), self._token.encode())

    def _cookie_of(self, asked: Asked) -> str:
        try:
            found = SimpleCookie("; ".join(asked.headers.get("cookie", ()))).get(self._cookie)
        except CookieError:
            return ""
        return "" if found is None else found.value

    def _welcome(self, given: Sequence[str], path: str, rest: Sequence[tuple[str, str]]) -> Answer:
        """Turn the token of an address into a cookie, so that no link that is copied holds it."""
        if len(given) != 1 or not self._is_ours(given[0]):
            return _refused("that is not the token of this server")
        # One slash: two, or one with a backslash, would be the address of somebody else.
        place = quote("/" + path.lstrip("/\\"), safe="/,.~")
        headers = {
            "Location": f"{place}?{urlencode(rest)}" if rest else place,
            "Set-Cookie": f"{self._cookie}={self._token}; HttpOnly; Path=/; SameSite=Lax",
        }
        return Answer(303, "", headers)


def _refused(why: str) -> Answer:
    return Answer(403, f"{why}\n", {})


_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_MOST_RUNS = 20
_MOST_VIEWERS = 64
# A browser asks again by itself, and shows the sentence meanwhile.
_FULL = (
    "retry: 10000\nevent: full\n"
    f'data: "{_MOST_VIEWERS} other pages are kept up to date; this one will be when one of them is closed"\n\n'
)
_BREATH_S = 15.0
_PATIENCE_S = 20.0
_LONGEST_WORD = 500
_NUMBER = re.compile("[0-9]{1,18}")


class _Site:
    def __init__(self, shelf: Shelf, watch: Watch) -> None:
        self._shelf = shelf
        self._watch = watch
        self._listening = 0

    def routes(self) -> list[web.RouteDef]:
        runs, two = r"/r/{runs:\d{1,18}(?:,\d{1,18})*}", r"/c/{first:\d{1,18}}..{second:\d{1,18}}"
        return [
            web.get("/", self._list, allow_head=False),
            web.get("/news", self._list_news, allow_head=False),
            web.get("/c", self._two_ticked, allow_head=False),
            *(web.get(path, self._page, allow_head=False) for path in (runs, two)),
            *(web.get(f"{path}/news", self._news, allow_head=False) for path in (runs, two)),
            web.get("/case", self._case, allow_head=False),
            web.get("/search", self._search, allow_head=False),
            web.get("/events", self._events, allow_head=False),
        ]

    async def _list(self, _request: web.Request) -> web.Response:
        return _html(await self._shelf.run_list())

    async def _list_news(self, request: web.Request) -> web.Response:
        return _json(await self._shelf.run_list(_number(request, "since")))

    async def _two_ticked(self, request: web.Request) -> web.Response:
        runs = sorted({number for text in request.query.getall("run", []) if (number := _digits(text))})
        if len(runs) != 2:
            raise _BadRequestError("tick two runs to compare them")
        raise web.HTTPSeeOther(Address((runs[0], runs[1]), compared=True).path)

    async def _page(self, request: web.Request) -> web.Response:
        return _html(await self._shelf.page(_address(request)))

    async def _news(self, request: web.Request) -> web.Response:
        return _json(
            await self._shelf.news(
                _address(request), _number(request, "since"), patient="follows" in request.query
            )
        )

    async def _case(self, request: web.Request) -> web.Response:
        code = request.query.get("code", "")
        found = await self._shelf.case(_number(request, "run"), code, _number(request, "rep"))
        return _json(json.dumps(found, ensure_ascii=False))

    async def _search(self, request: web.Request) -> web.Response:
        word = request.query.get("text", "")[:_LONGEST_WORD]
        found = await self._shelf.search(_number(request, "run"), word)
        return _json(json.dumps({"hits": found}, ensure_ascii=False))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send how far runs are whenever that changes; who is slow to read gets the newest, not all of them."""
        wanted = {number for text in request.query.get("runs", "").split(",") if (number := _digits(text))}
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        if self._listening >= _MOST_VIEWERS:
            await answer.write(_FULL.encode())
            return answer
        file, sent = self._watch.seen.file, ""
        self._listening += 1
        try:
            with self._watch.viewer():
                while True:
                    change = asyncio.ensure_future(self._watch.change())
                    told = _told(self._watch.seen, wanted, file)
                    await asyncio.wait_for(
                        answer.write((told if told != sent else ":\n\n").encode()), _PATIENCE_S
                    )
                    sent = told
                    await asyncio.wait([change], timeout=_BREATH_S)
                    change.cancel()
        except (TimeoutError, ConnectionError):
            return answer  # it is gone, or does not read
        finally:
            self._listening -= 1


class _BadRequestError(HelmbenchError):
    """An address that is none of ours."""


def site(shelf: Shelf, watch: Watch, doors: Doors) -> web.Application:
    """Return the server's application."""
    app = web.Application(middlewares=[_guard(doors), _plain_faults])
    app.on_response_prepare.append(_protect)
    app.add_routes(_Site(shelf, watch).routes())

    async def polling(_app: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(watch.poll())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    app.cleanup_ctx.append(polling)
    return app


def _guard(doors: Doors) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        headers = {name.lower(): request.headers.getall(name) for name in request.headers}
        stopped = doors.stops(Asked(request.method, request.path, request.query_string, headers))
        if stopped is None:
            return await handler(request)
        return web.Response(status=stopped.status, text=stopped.text, headers=stopped.headers)

    return guard


async def _protect(_request: web.Request, response: web.StreamResponse) -> None:
    """Add what tells a browser to keep an answer to itself."""
    for name, value in PRIVATE.items():
        response.headers[name] = value
    response.headers["Server"] = "helmbench"
    is_page = response.content_type == "text/html"
    rules = "frame-ancestors 'none'; base-uri 'none'"
    response.headers["Content-Security-Policy"] = rules if is_page else f"default-src 'none'; {rules}"


@web.middleware
async def _plain_faults(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Say a fault in a sentence, as text: what it quotes cannot act."""
    try:
        return await handler(request)
    except StoreError as error:
        return web.Response(status=503, text=f"{error.path.name}: {error.problem}\n")
    except NoSuchRunError as error:
        return web.Response(status=404, text=f"{error}\n")
    except _BadRequestError as error:
        return web.Response(status=400, text=f"{error}\n")
    except HelmbenchError as error:
        return web.Response(status=422, text=f"{error}\n")


def _told(seen: Seen, wanted: set[int], file: int) -> str:
    if seen.file != file:
        return "event: other\ndata: 1\n\n"
    if seen.fault:
        return f"event: fault\ndata: {json.dumps(seen.fault)}\n\n"
    runs = {
        pulse.run_id: {
            "status": pulse.status,
            "planned": pulse.planned,
            "done": pulse.done,
            "passed": pulse.passed,
            "failed": pulse.failed,
            "error": pulse.error,
            "skipped": pulse.skipped,
            "stamp": pulse.stamp,
        }
        for pulse in seen.pulses.values()
        if pulse.run_id in wanted
    }
    # The list of runs needs to know only that something has changed.
    found = {"runs": runs} if wanted else {"all": hash(tuple(seen.pulses.values()))}
    return f"data: {json.dumps(found)}\n\n"


def _address(request: web.Request) -> Address:
    found = request.match_info
    if "first" in found:
        first, second = int(found["first"]), int(found["second"])
        if first == second:
            raise _BadRequestError("a run is not compared with itself")
        return Address((first, second), compared=True)
    runs = tuple(dict.fromkeys(int(text) for text in found["runs"].split(",")))
    if len(runs) > _MOST_RUNS:
        raise _BadRequestError(f"no more than {_MOST_RUNS} runs stand on one page")
    return Address(runs)


def _number(request: web.Request, name: str) -> int:
    found = _digits(request.query.get(name, ""))
    if found is None:
        raise _BadRequestError(f"{name} is not a number")
    return found


def _digits(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _html(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/html")


def _json(text: str) -> web.Response:
    return web.Response(text=text, content_type="application/json")


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
