"""The HTTP client of model calls, on libcurl: one request, one whole answer."""

from __future__ import annotations

import base64
import io
import re
import ssl
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from importlib.metadata import version
from urllib.parse import quote, unquote, urlsplit

import pycurl

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.http_answers import EventCutter, OnEvent, RawAnswer, TransportError
from pytest_helmbench.gateway.providers.endpoints import Endpoint, is_loopback
from pytest_helmbench.gateway.transfers import (
    CONNECT_S,
    OK,
    BrokenTransferError,
    ReadDeadline,
    Transfers,
    fault_of,
    unreadable,
)

MAX_BODY_BYTES = 32 * 2**20
"""Largest answer that is read."""

_KEPT_S = 15
"""How long an unused connection is kept; servers keep them for 5 s at least."""

_STATUS = re.compile(r"HTTP/\S+ +(\d{3})(?!\d)", re.ASCII)
_STOP = -1  # a callback returns it to end the transfer
_GET_MS = 2_000  # bound of a request beside the calls
_LARGEST_GET = 2**20  # bytes
_ALWAYS: Mapping[int, object] = {
    pycurl.POST: 1,
    pycurl.NOSIGNAL: 1,
    pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
    pycurl.CONNECTTIMEOUT: CONNECT_S,
    pycurl.MAXAGE_CONN: _KEPT_S,
    pycurl.PROXY: "",  # `_proxy_options` reads the environment
    pycurl.NOPROXY: "",
    pycurl.ACCEPT_ENCODING: "gzip, deflate",
}
_SHORTEST_KEY = 12  # shorter ones are placeholders such as `EMPTY`, which replies may well contain
_REPLACEMENT = b"[key]"
_ESCAPES = tuple(b"%s%d" % (mark, high) for mark in (b"\\u00", b"%") for high in range(2, 8))
"""Beginnings of escaped ASCII. An escaped key has one, or a backslash before one of its characters."""


@dataclass(frozen=True, slots=True)
class _Target:
    """Everything that the requests to one endpoint share, and the handles that are not in use."""

    endpoint: Endpoint
    url: str
    headers: list[str] = field(repr=False)
    options: Mapping[int, object] = field(repr=False)
    redactor: KeyRedactor = field(repr=False)
    handles: list[pycurl.Curl]

    def handle(self) -> pycurl.Curl:
        """Return a handle for one request at a time."""
        if self.handles:
            return self.handles.pop()
        handle = pycurl.Curl()
        handle.setopt(pycurl.HTTPHEADER, self.headers)
        for option, value in {**_ALWAYS, **self.options}.items():
            handle.setopt(option, value)
        return handle

    def put_back(self, handle: pycurl.Curl) -> None:
        """Keep a handle for the next request."""
        for function in (pycurl.READFUNCTION, pycurl.HEADERFUNCTION, pycurl.WRITEFUNCTION):
            handle.unsetopt(function)
        self.handles.append(handle)


class _Arriving:
    """An answer as it arrives."""

    def __init__(self, on_event: OnEvent | None, redactor: KeyRedactor, deadline: ReadDeadline) -> None:
        self._lines: list[bytes] = []
        self._chunks: list[bytes] = []
        self._size = 0
        self._on_event = on_event
        self._redactor = redactor
        self._deadline = deadline
        self.status = 0
        self.headers: dict[str, str] = {}
        self.cutter: EventCutter | None = None
        self.too_large = False
        self.bug: Exception | None = None
        """Raised by `on_event`: libcurl does not pass exceptions on."""

    @property
    def body(self) -> bytes:
        """The bytes received so far, decoded."""
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)

    def take_line(self, line: bytes) -> int | None:
        """Take a line of the head."""
        self._deadline.received()
        if line.startswith(b"HTTP/"):
            self._lines.clear()  # earlier heads came from a proxy, or were interim answers
        self._lines.append(line)
        return self._end_head() if line in (b"\r\n", b"\n") else None

    def take(self, chunk: bytes) -> int | None:
        """Take a part of the body, decoded by libcurl."""
        self._deadline.received()
        self._size += len(chunk)
        if self._size > MAX_BODY_BYTES:
            self.too_large = True
            return _STOP
        if self.cutter is None:
            self._chunks.append(chunk)
            return None
        try:
            self.cutter.feed(chunk)
        except Exception as bug:  # noqa: BLE001 - raised again where the answer is awaited
            self.bug = bug
            return _STOP
        return None

    def _end_head(self) -> int | None:
        first, *lines = (line.decode("utf-8", "surrogateescape").rstrip("\r\n") for line in self._lines)
        status = _STATUS.match(first)
        self.status = int(status[1]) if status is not None else 0
        pairs = (line.partition(":") for line in lines)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs if name}
        if self.status in OK and self._on_event is not None:
            kind = self.headers.get("content-type", "").partition(";")[0]
            if kind.strip().lower() == "text/event-stream":
                self.cutter = EventCutter(self._on_event, self._redactor.redact)
        length = self.headers.get("content-length", "")
        self.too_large = length.isdecimal() and int(length[:20]) > MAX_BODY_BYTES
        return _STOP if self.too_large else None


class ChatClient:
    """Sends bodies to endpoints. Created, used and closed inside one running event loop."""

    def __init__(self) -> None:
        self._targets: dict[Endpoint, _Target] = {}
        self._transfers = Transfers()

    async def close(self) -> None:
        """Close every connection."""
        self._transfers.close()

    async def post(
        self, endpoint: Endpoint, body: bytes, timeout_s: float, on_event: OnEvent | None = None
    ) -> RawAnswer:
        """Send a body of JSON and return the whole answer, whatever its status.

        Args:
            timeout_s: Bound of everything: connecting, waiting, reading.
            on_event: Takes each event of a stream as it arrives; None to have the whole answer only.

        Raises:
            TransportError: No whole answer came.
        """
        target = self._targets.get(endpoint)
        if target is None:
            target = self._targets[endpoint] = _target(endpoint)
        try:
            async with ReadDeadline(timeout_s) as deadline:
                return await self._exchange(target, body, on_event, deadline)
        except TimeoutError:
            fault = Fault(
                FaultKind.TIMEOUT,
                None,
                "timeout",
                f"the provider gave no whole answer within {timeout_s:g} s",
                hint="raise --helmbench-timeout, or lower --helmbench-concurrency",
            )
        raise TransportError(fault)

    async def _exchange(
        self, target: _Target, body: bytes, on_event: OnEvent | None, deadline: ReadDeadline
    ) -> RawAnswer:
        started = time.perf_counter()
        arriving = _Arriving(on_event, target.redactor, deadline)
        handle = target.handle()
        handle.setopt(pycurl.URL, target.url)
        handle.setopt(pycurl.POSTFIELDSIZE_LARGE, len(body))
        # A function that cannot rewind: on a kept connection that breaks, libcurl would send a body twice.
        handle.setopt(pycurl.READFUNCTION, io.BytesIO(body).read)
        handle.setopt(pycurl.HEADERFUNCTION, arriving.take_line)
        handle.setopt(pycurl.WRITEFUNCTION, arriving.take)
        fault: Fault | None = None
        try:
            await self._transfers.run(handle)
        except BrokenTransferError as error:
            fault = _fault(error, arriving, target.endpoint)
        latency_ms = (time.perf_counter() - started) * 1000
        target.put_back(handle)
        if arriving.bug is not None:
            raise arriving.bug
        if fault is not None:
            raise TransportError(fault)
        body = target.redactor.redact(arriving.body) if arriving.cutter is None else arriving.cutter.close()
        return RawAnswer(arriving.status, arriving.headers, body, latency_ms)


def get(endpoint: Endpoint, url: str) -> bytes:
    """Return what an endpoint's server answers to a GET, at once and with its key; empty where nothing comes."""
    body = bytearray()

    def take(chunk: bytes) -> int | None:
        body.extend(chunk)
        return _STOP if len(body) > _LARGEST_GET else None

    handle = _target(endpoint).handle()
    handle.setopt(pycurl.URL, _ascii(url))
    handle.setopt(pycurl.HTTPGET, 1)
    handle.setopt(pycurl.TIMEOUT_MS, _GET_MS)
    handle.setopt(pycurl.WRITEFUNCTION, take)
    try:
        try:
            handle.perform()
        except pycurl.error as error:
            if error.args[0] == pycurl.E_OPERATION_TIMEDOUT:
                return b""
            body.clear()
            handle.perform()  # once more: a busy machine breaks a connection now and then
        return bytes(body)
    except pycurl.error:
        return b""
    finally:
        handle.close()


def _fault(error: BrokenTransferError, arriving: _Arriving, endpoint: Endpoint) -> Fault | None:
    """Return why an answer is incomplete; None where its status says enough."""
    if arriving.too_large:
        message = f"the provider's answer is larger than {MAX_BODY_BYTES // 2**20} MiB"
        hint = "bound it with --helmbench-max-tokens"
        return Fault(FaultKind.TOO_LARGE, arriving.status, "too_large", message, hint=hint)
    if error.code in (
        pycurl.E_BAD_CONTENT_ENCODING,
        pycurl.E_WRITE_ERROR,
    ):  # the latter: what follows gzip's end
        # A refusal is known by its status, whatever its body holds.
        return unreadable(arriving.headers, endpoint) if arriving.status in OK else None
    return fault_of(error, endpoint, arriving.headers if arriving.status else None)


def _target(endpoint: Endpoint) -> _Target:
    usual = {
        "User-Agent": f"pytest-helmbench/{version('pytest-helmbench')}",
        "Content-Type": "application/json",
    }
    stated = {name.lower() for name in endpoint.headers}
    headers = {name: value for name, value in usual.items() if name.lower() not in stated}
    lines = [f"{name}: {value}" for name, value in {**headers, **endpoint.headers}.items()]
    url = _ascii(endpoint.url)
    options = dict(_proxy_options(url))
    if url.startswith("https:") or options:
        options |= _certificates()
    # "Expect" stays empty: few servers answer whether to go on with a long body.
    return _Target(endpoint, url, [*lines, "Expect:"], options, KeyRedactor(endpoint.secrets), handles=[])


def _ascii(url: str) -> str:
    """Return an address with its host in the form of the name service."""
    if url.isascii():
        return url
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    host, colon, port = place.partition(":")
    return f"{scheme}://{host.encode('idna').decode()}{colon}{port}{slash}{quote(path, safe='/%:@')}"


def _certificates() -> Mapping[int, object]:
    """Return the places of the certificates that Python's own library trusts."""
    paths = ssl.get_default_verify_paths()
    found: dict[int, object] = {}
    for place, options in (
        (paths.cafile, (pycurl.CAINFO, pycurl.PROXY_CAINFO)),
        (paths.capath, (pycurl.CAPATH, pycurl.PROXY_CAPATH)),
    ):
        found |= dict.fromkeys(options, place) if place else {}
    if sys.platform == "win32" or not found:
        native = (pycurl.SSL_OPTIONS, pycurl.PROXY_SSL_OPTIONS)
        found |= dict.fromkeys(native, pycurl.SSLOPT_NATIVE_CA)
    return found


def _proxy_options(url: str) -> Mapping[int, object]:
    """Return the environment's proxy for an address."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    # A key for this machine must not leave it.
    if is_loopback(host) or urllib.request.proxy_bypass(host):
        return {}
    stated = urllib.request.getproxies().get(parts.scheme)
    if not stated:
        return {}
    proxy = urlsplit(stated if "://" in stated else f"http://{stated}")
    if proxy.scheme not in ("http", "https"):
        raise TransportError(
            Fault(
                FaultKind.DEAD_MODEL,
                None,
                "proxy",
                f"the environment names a {proxy.scheme} proxy for {parts.scheme} addresses, which is not supported",
                hint=f"name an http proxy, or add {host} to NO_PROXY",
            )
        )
    options: dict[int, object] = {
        pycurl.PROXY: f"{proxy.scheme}://{proxy.netloc.rpartition('@')[2]}",
        pycurl.PROXYAUTH: pycurl.HTTPAUTH_BASIC,
    }
    if proxy.username is not None:
        options[pycurl.PROXYUSERNAME] = unquote(proxy.username)
        options[pycurl.PROXYPASSWORD] = unquote(proxy.password or "")
    return options


class KeyRedactor:
    """Removes keys from bytes: plain, escaped as in JSON, percent-encoded, and in base64.

    It cannot find a key that a server writes in another way.

    Args:
        keys: In every form in which requests carry them.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        long = [key for key in keys if len(key) >= _SHORTEST_KEY]
        self._plain = tuple(dict.fromkeys(form for key in long for form in _written(key)))
        own = (b"\\" + one.encode() for one in '/"\\' if any(one in key for key in long))
        self._marks = (*_ESCAPES, *own)
        self._escaped = re.compile(b"|".join(b"".join(map(_escaped, key)) for key in long)) if long else None

    def redact(self, received: bytes) -> bytes:
        """Return an answer without the keys; the bytes around them can be decoded as before."""
        for form in self._plain:
            if form in received:
                received = received.replace(form, _REPLACEMENT)
        if self._escaped is not None and any(map(received.__contains__, self._marks)):
            received = self._escaped.sub(_REPLACEMENT, received)
        return received


def _written(key: str) -> Iterator[bytes]:
    """Yield a key as it is, and the part of its base64 that does not depend on the bytes around it."""
    yield key.encode()
    for before in range(3):
        coded = base64.b64encode(b"\x00" * before + key.encode())
        # Characters that also hold bits of the neighbours stay.
        inner = coded[-(-before * 8 // 6) : (before + len(key)) * 8 // 6]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))
        yield inner.replace(b"/", b"\\/")


def _escaped(character: str) -> bytes:
    """Return a pattern of the ways in which JSON (once or twice) and URLs write a character of a key."""
    plain, code = re.escape(character.encode()), b"%02x" % ord(character)
    slashes = rb"\\{0,3}" if character in '/"\\' else b""
    return rb"(?:%s%s|(?i:\\{1,3}u00%s|%%(?:25)?%s))" % (slashes, plain, code, code)
