"""Requests to verifiers: their HTTP sessions, health checks, and the reasons for a missing answer."""

from __future__ import annotations

import asyncio
import os
import time

import aiohttp
from yarl import URL

_CONNECT_S = 10.0
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5
_ONE_CHECK_S = 5.0
_NO_ANSWER = "it did not answer"
_REASONS = (
    (aiohttp.ServerDisconnectedError, "it closed the connection"),
    (aiohttp.ClientPayloadError, "its end is missing or damaged"),
    (aiohttp.ClientResponseError, "its answer is not HTTP"),
)


def verifier_session() -> aiohttp.ClientSession:
    """Return a session that passes requests on as they are."""
    return aiohttp.ClientSession(
        # One request per connection: a kept one that its server closes meanwhile would look like a fault.
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
    )


async def failed_health(url: str, within_s: float, *, any_answer: bool = False) -> str | None:
    """Wait until a health check answers 2xx, or anything at all where there is no health check to ask.

    Returns:
        None once it does, else the last result, such as `it answered 503`.
    """
    deadline, pause_s, result = time.monotonic() + within_s, _FIRST_PAUSE_S, None
    async with verifier_session() as session:
        while True:
            check_s = max(_FIRST_PAUSE_S, min(deadline - time.monotonic(), _ONE_CHECK_S))
            try:
                async with asyncio.timeout(check_s), session.get(URL(url), allow_redirects=False) as answer:
                    well = any_answer or 200 <= answer.status < 300
                    latest = None if well else f"it answered {answer.status}"
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:  # ValueError: no URL
                latest = missing_answer(error)
            # The last check may be short: an earlier answer says more than its silence.
            result = result if result is not None and latest == _NO_ANSWER else latest
            if latest is None or time.monotonic() + pause_s > deadline:
                return result
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def missing_answer(error: Exception) -> str:
    """Return why there was no answer, without an address."""
    error = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(error, TimeoutError):
        return _NO_ANSWER
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return next((words for kind, words in _REASONS if isinstance(error, kind)), type(error).__name__)
