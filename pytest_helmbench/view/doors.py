"""Entry to the server: for browsers of this machine that have the token, asked by no page but ours."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web

__all__ = ["Doors", "protect"]

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_PAGE = re.compile(r"/(?:r/[\d,]+|c(?:/\d+\.\.\d+)?)?\Z", re.ASCII)
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "helmbench",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_NO_FRAMES = "frame-ancestors 'none'; base-uri 'none'"


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

    @web.middleware
    async def guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Answer a request, or say why not."""
        if (refusal := self._refusal(request)) is not None:
            return refusal
        if "token" in request.query:
            return self._welcome(request)
        if not secrets.compare_digest(request.cookies.get(self._cookie, "").encode(), self._token.encode()):
            return _refused("open the address that `helmbench view` has printed, with its token")
        return await handler(request)

    def _refusal(self, request: web.Request) -> web.Response | None:
        hosts = request.headers.getall("Host", [])
        # A name that somebody else's server leads here (DNS rebinding) is not ours.
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _refused("this server answers to 127.0.0.1 alone")
        if request.method != "GET":
            return web.Response(status=405, text="only GET is answered\n", headers={"Allow": "GET"})
        origin = request.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return _refused("asked for by another page")
        site, mode = (request.headers.get(f"Sec-Fetch-{name}", "") for name in ("Site", "Mode"))
        is_link = mode == "navigate" and request.headers.get("Sec-Fetch-Dest", "document") == "document"
        if site in ("cross-site", "same-site") and not is_link:
            return _refused("asked for by another page")
        return None

    def _welcome(self, request: web.Request) -> web.Response:
        """Turn the token of an address into a cookie, so that no link that is copied holds it."""
        given = request.query.getall("token")
        if len(given) != 1 or not secrets.compare_digest(given[0].encode(), self._token.encode()):
            return _refused("that is not the token of this server")
        path = request.path if _PAGE.match(request.path) else "/"
        answer = web.Response(status=303, headers={"Location": path})
        answer.set_cookie(self._cookie, self._token, path="/", httponly=True, samesite="Lax")
        return answer


async def protect(_request: web.Request, response: web.StreamResponse) -> None:
    """Add what tells a browser to keep an answer to itself."""
    for name, value in _HEADERS.items():
        response.headers[name] = value
    is_page = response.content_type == "text/html"
    response.headers["Content-Security-Policy"] = (
        _NO_FRAMES if is_page else f"default-src 'none'; {_NO_FRAMES}"
    )


def _refused(why: str) -> web.Response:
    return web.Response(status=403, text=f"{why}\n")
