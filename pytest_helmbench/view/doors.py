"""Entry to a server of ours: for browsers of this machine that have the token, asked by no page but its own."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["PRIVATE", "Answer", "Asked", "Doors"]

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
