"""The addresses of the server and what each answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.view.doors import PRIVATE, Asked, Doors
from pytest_helmbench.view.poller import Seen, Watch
from pytest_helmbench.view.shelf import Shelf
from pytest_helmbench.view.shown import Address, NoSuchRunError

__all__ = ["site"]

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
