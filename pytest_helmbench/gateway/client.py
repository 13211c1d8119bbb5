"""Bytes over HTTP: one session, bounded bodies, bounded time. The only user of the HTTP library's client."""

from __future__ import annotations

import asyncio
import base64
import importlib.metadata
import io
import os
import ssl
import time
import urllib.request
from collections.abc import Callable
from dataclasses import field
from types import TracebackType
from typing import Self
from urllib.parse import unquote

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.content_codings import decoded, unread_coding
from pytest_helmbench.gateway.echoes import Echoes
from pytest_helmbench.gateway.faults import Fault, FaultKind, excerpt
from pytest_helmbench.gateway.http_answers import PLAIN, RawAnswer, Sending, TransportError
from pytest_helmbench.gateway.live_stream import EventCutter
from pytest_helmbench.gateway.other_replies import CHAT
from pytest_helmbench.gateway.providers.base_urls import is_loopback
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.read_deadline import ReadDeadline

__all__ = ["MAX_BODY_BYTES", "ChatClient"]

MAX_BODY_BYTES = 32 * 2**20
"""Largest answer that is read."""

_CONNECT_S = 30.0
_WRITTEN_AT_ONCE = 2**20  # bytes; the library warns of more, which the user may have made an error


@dataclass(frozen=True, slots=True)
class _Target:
    """What every request to one endpoint has in common."""

    url: URL
    base_url: str
    headers: CIMultiDict[str] = field(repr=False)
    proxy: URL | None
    proxy_headers: CIMultiDict[str] | None = field(repr=False)
    echoes: Echoes = field(repr=False)


class ChatClient:
    """Sends bodies to endpoints. Made, used and closed inside one running event loop.

    Args:
        clock: Monotonic seconds, for latencies.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._targets: dict[Endpoint, _Target] = {}
        # How many are in flight is the limiter's business, and so is a retry. `trust_env` stays off: it would
        # read .netrc and the proxy variables anew, in a thread, for every request.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
            headers={"User-Agent": f"pytest-helmbench/{_version()}", "Content-Type": "application/json"},
            raise_for_status=False,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()
        # Transports close in the next turn of the loop.
        await asyncio.sleep(0)

    async def post(
        self, endpoint: Endpoint, body: bytes, timeout_s: float, sending: Sending = PLAIN
    ) -> RawAnswer:
        """Send a body and return the whole answer, whatever its status.

        Args:
            endpoint: Where to.
            body: JSON.
            timeout_s: Bound of everything: connecting, waiting, reading.
            sending: Where to, and who takes it as it arrives.

        Raises:
            TransportError: No whole answer came.
        """
        target = self._targets.get(endpoint)
        if target is None:
            target = self._targets[endpoint] = _target(endpoint)
        try:
            async with ReadDeadline(timeout_s) as deadline:
                return await self._exchange(target, body, sending, deadline)
        except TransportError:
            raise
        except aiohttp.ClientError as error:
            fault = _fault_of(error, endpoint)
        except TimeoutError:
            fault = Fault(
                FaultKind.TIMEOUT,
                None,
                "timeout",
                f"the provider gave no whole answer within {timeout_s:g} s",
                hint="raise --helmbench-timeout, or lower --helmbench-concurrency",
            )
        except OSError as error:
            fault = _broken(error, endpoint)
        # Outside of the handlers: the library's errors hold the request's headers, and so the key.
        raise TransportError(fault)

    async def _exchange(
        self, target: _Target, body: bytes, sending: Sending, deadline: ReadDeadline
    ) -> RawAnswer:
        started = self._clock()

        def now_ms() -> float:
            return (self._clock() - started) * 1000

        async with self._session.post(
            target.url if sending.path == CHAT else URL(f"{target.base_url}/{sending.path}"),
            data=body if len(body) <= _WRITTEN_AT_ONCE else io.BytesIO(body),
            headers=target.headers,
            proxy=target.proxy,
            proxy_headers=target.proxy_headers,
            allow_redirects=False,
        ) as response:
            deadline.received()
            cutter: EventCutter | None = None
            if sending.on_event is not None and _is_stream(response):
                cutter = EventCutter(sending.on_event, target.echoes.without, now_ms)
            received = await _read(response, deadline, cutter)
            latency_ms = now_ms()
            headers = {name.lower(): value for name, value in response.headers.items()}
            status = response.status
        if cutter is not None:
            passed_on, times = cutter.close()
            kept = target.echoes.without_pieces(passed_on)
            return RawAnswer(status, headers, kept, latency_ms, times if kept is passed_on else ())
        received = decoded(received, headers.get("content-encoding", ""), MAX_BODY_BYTES)
        received = target.echoes.without_pieces(target.echoes.without(received))
        return RawAnswer(status, headers, received, latency_ms)


def _is_stream(response: aiohttp.ClientResponse) -> bool:
    return 200 <= response.status < 300 and response.content_type == "text/event-stream"


async def _read(
    response: aiohttp.ClientResponse, deadline: ReadDeadline, cutter: EventCutter | None
) -> bytes:
    chunks: list[bytes] = []
    size = response.content_length or 0
    if size <= MAX_BODY_BYTES:
        size = 0
        async for chunk in response.content.iter_any():
            deadline.received()
            if cutter is not None:
                cutter.feed(chunk)
            else:
                chunks.append(chunk)
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                break
    if size > MAX_BODY_BYTES:
        response.close()
        raise TransportError(
            Fault(
                FaultKind.TOO_LARGE,
                response.status,
                "too_large",
                f"the provider's answer is larger than {MAX_BODY_BYTES // 2**20} MiB",
                hint="bound it with --helmbench-max-tokens",
            )
        )
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _version() -> str:
    try:
        return importlib.metadata.version("pytest-helmbench")
    except importlib.metadata.PackageNotFoundError:
        return "0"  # a source tree that was never installed


def _target(endpoint: Endpoint) -> _Target:
    url = URL(endpoint.url)
    headers = CIMultiDict(endpoint.headers)
    proxy, authorization = _proxy_of(url)
    proxy_headers: CIMultiDict[str] | None = None
    if authorization and url.scheme == "http":
        headers["Proxy-Authorization"] = authorization  # no tunnel: the proxy reads the request itself
    elif authorization:
        proxy_headers = CIMultiDict({"Proxy-Authorization": authorization})
    return _Target(url, endpoint.base_url, headers, proxy, proxy_headers, Echoes(endpoint.secrets))


def _proxy_of(url: URL) -> tuple[URL | None, str | None]:
    """Return the environment's proxy for an address and what it wants as `Proxy-Authorization`."""
    host = url.host or ""
    # A key for this machine must not leave it.
    if is_loopback(host) or urllib.request.proxy_bypass(host):
        return None, None
    stated = urllib.request.getproxies().get(url.scheme)
    if not stated:
        return None, None
    proxy = URL(stated if "://" in stated else f"http://{stated}")
    if proxy.scheme not in ("http", "https"):
        raise TransportError(
            Fault(
                FaultKind.DEAD_MODEL,
                None,
                "proxy",
                f"the environment names a {proxy.scheme} proxy for {url.scheme} addresses, which is not supported",
                hint=f"name an http proxy, or add {host} to NO_PROXY",
            )
        )
    if proxy.user is None:
        return proxy, None
    pair = f"{unquote(proxy.raw_user or '')}:{unquote(proxy.raw_password or '')}"
    return proxy.with_user(None), f"Basic {base64.b64encode(pair.encode()).decode()}"


def _fault_of(error: aiohttp.ClientError, endpoint: Endpoint) -> Fault:
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError() | ssl.SSLError():
            return Fault(
                FaultKind.DEAD_MODEL,
                None,
                "tls",
                f"no secure connection to {endpoint.base_url} ({_words(error, endpoint)})",
                hint="check the address and the certificates of this machine (SSL_CERT_FILE)",
            )
        case aiohttp.ClientHttpProxyError():
            return Fault(
                FaultKind.TRANSIENT,
                error.status,
                "proxy",
                f"the proxy answered {error.status} instead of connecting",
            )
        case aiohttp.ConnectionTimeoutError() | aiohttp.ClientConnectorError():
            return _unreachable(error, endpoint)
        case aiohttp.ClientPayloadError():
            return Fault(
                FaultKind.TRANSIENT, None, "truncated_body", "the provider's answer broke off before its end"
            )
        case aiohttp.ClientResponseError() if unread_coding(error.message):
            return Fault(
                FaultKind.REJECTED,
                None,
                "content_encoding",
                f"the provider's answer is coded in a way that cannot be read ({_words(error, endpoint)})",
                hint="only gzip and deflate are asked for: switch others off in the server, or in the proxy before it",
            )
        case aiohttp.ClientResponseError():
            return Fault(
                FaultKind.MALFORMED, None, "not_http", "the provider answered with something that is no HTTP"
            )
        case aiohttp.InvalidURL():
            return Fault(FaultKind.DEAD_MODEL, None, "address", f"{endpoint.base_url} is no usable address")
        case _:
            return _broken(error, endpoint)


def _unreachable(error: aiohttp.ClientError, endpoint: Endpoint) -> Fault:
    hint = "check the base URL and the network"
    if is_loopback(URL(endpoint.base_url).host or ""):
        hint = "start the server, or check the port in the base URL"
    why = f"no connection within {_CONNECT_S:g} s"
    if not isinstance(error, aiohttp.ConnectionTimeoutError):
        why = _words(error, endpoint)
    message = f"the provider at {endpoint.base_url} cannot be reached ({why})"
    return Fault(FaultKind.TRANSIENT, None, "unreachable", message, hint=hint)


def _broken(error: Exception, endpoint: Endpoint) -> Fault:
    why = _words(error, endpoint)
    message = "the connection to the provider broke before an answer came"
    return Fault(FaultKind.TRANSIENT, None, "reset", f"{message} ({why})" if why else message)


def _words(error: Exception, endpoint: Endpoint) -> str:
    """Return the reason that the system or the server gave, without the library's wrapping."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(inner, OSError) and (inner.errno or 0) > 0 and not isinstance(inner, ssl.SSLError):
        return os.strerror(inner.errno or 0).lower()
    said = getattr(inner, "strerror", None) or getattr(inner, "message", None) or str(inner)
    return excerpt(str(said), endpoint).lower()
