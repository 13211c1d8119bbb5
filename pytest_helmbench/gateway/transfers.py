"""Transfers of libcurl on an event loop: many at a time, each with its end, and the faults of those that have none."""

from __future__ import annotations

import asyncio
import errno
import os
import select
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

import pycurl

from pytest_helmbench.core.case_texts import unreachable_hint
from pytest_helmbench.gateway.faults import Fault, FaultKind, excerpt
from pytest_helmbench.gateway.open_files import are_used_up
from pytest_helmbench.gateway.providers.endpoints import Endpoint

_IDLE_TURNS = 10  # of the loop: a read, the task that waited for it, and some to spare
_TURN_S = 0.001  # so that a sender whose buffer was full can go on
_LONGEST_S = 1.0  # a server that never stops sending has no longer
_KEPT_CONNECTIONS = 1024
_LOOK_S = 0.005
_PRUNED_AFTER_S = 1.1
"""libcurl looks which of its kept connections have ended when it needs one, but only once a second."""
_READS, _WRITES = 1, 2
_WATCHED = {pycurl.POLL_IN: _READS, pycurl.POLL_OUT: _WRITES, pycurl.POLL_INOUT: _READS | _WRITES}
CONNECT_S = 30
"""Bound of making a connection, in seconds."""
OK = range(200, 300)
"""Status of an answer that is a reply."""
_TOO_LARGE_HEAD, _PROXY_HANDSHAKE = 100, 97  # newer than the names that `pycurl` knows
_UNREACHABLE = {
    pycurl.E_COULDNT_RESOLVE_PROXY,
    pycurl.E_COULDNT_RESOLVE_HOST,
    pycurl.E_COULDNT_CONNECT,
    pycurl.E_OPERATION_TIMEDOUT,
}
_TLS = {
    *(pycurl.E_SSL_CONNECT_ERROR, pycurl.E_SSL_ENGINE_NOTFOUND, pycurl.E_SSL_ENGINE_SETFAILED),
    *(pycurl.E_SSL_CERTPROBLEM, pycurl.E_SSL_CIPHER, pycurl.E_PEER_FAILED_VERIFICATION),
    *(pycurl.E_USE_SSL_FAILED, pycurl.E_SSL_ENGINE_INITFAILED, pycurl.E_SSL_CACERT_BADFILE),
    *(pycurl.E_SSL_CRL_BADFILE, pycurl.E_SSL_ISSUER_ERROR, pycurl.E_SSL_PINNEDPUBKEYNOTMATCH),
    *(pycurl.E_SSL_INVALIDCERTSTATUS,),
}
_NO_HTTP = {pycurl.E_UNSUPPORTED_PROTOCOL, pycurl.E_FTP_WEIRD_SERVER_REPLY, _TOO_LARGE_HEAD}
_LOST = {errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT, errno.ECONNABORTED}


class ReadDeadline:
    """Raises `TimeoutError` in the task that entered it, once time is over and turns of the loop bring nothing.

    The loop runs what is due in the turn in which it reads, so after a standstill (a container that was paused)
    a plain timeout throws away what has just been read.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.Handle | None = None
        self._over_at: float | None = None
        self._idle_turns = 0

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._is_over)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def received(self) -> None:
        """Say that something has arrived."""
        self._idle_turns = 0

    def _is_over(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._over_at is None:
            self._over_at = now
        if self._idle_turns >= _IDLE_TURNS or now - self._over_at >= _LONGEST_S:
            self._timeout.reschedule(now)
            return
        self._idle_turns += 1
        self._timer = loop.call_later(_TURN_S, self._is_over)


class BrokenTransferError(Exception):
    """A transfer that has not come to its end.

    Args:
        code: `CURLE_…`, see https://curl.se/libcurl/c/libcurl-errors.html.
        said: In the library's words.
        errno: Of the system; 0 where it had none.
        connect_status: HTTP status of a proxy that was asked for a tunnel; 0 for none.
    """

    def __init__(self, code: int, said: str, errno: int, connect_status: int) -> None:
        self.code = code
        self.said = said
        self.errno = errno
        self.connect_status = connect_status
        super().__init__(said)


class _Kept:
    """Sockets of connections that are kept and not in use."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._poll = select.poll()
        self._ended_at: dict[int, float | None] = {}

    def add(self, socket: int) -> None:
        """Watch a socket from now on."""
        self._ended_at[socket] = None
        self._poll.register(socket, select.POLLIN)

    def discard(self, socket: int) -> None:
        """Watch one no longer: it is in use, or it was closed long ago."""
        if socket in self._ended_at:
            del self._ended_at[socket]
            self._poll.unregister(socket)

    def one_has_ended(self) -> bool:
        """Return whether the other side has ended a connection that libcurl would still use."""
        if not self._ended_at:
            return False
        now = self._loop.time()
        found = False
        for socket, _ in self._poll.poll(0):
            ended_at = self._ended_at[socket] = self._ended_at[socket] or now
            if now - ended_at < _PRUNED_AFTER_S:
                found = True
            else:
                self.discard(socket)
        return found


class Transfers:
    """Runs transfers; made, used and closed inside one running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[pycurl.Curl, asyncio.Future[None]] = {}
        self._watched: dict[int, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._kept: _Kept | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, _KEPT_CONNECTIONS)
        # The loop of Windows watches no sockets of others: there all are looked at, a little later.
        self._looks = type(self._loop).add_reader is asyncio.AbstractEventLoop.add_reader
        if not self._looks:
            self._kept = _Kept(self._loop)
            self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
            self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)

    async def run(self, handle: pycurl.Curl) -> None:
        """Run a transfer to its end; cancelled, its connection is closed.

        Raises:
            BrokenTransferError: It came to none.
        """
        handle.setopt(pycurl.FRESH_CONNECT, self._kept is not None and self._kept.one_has_ended())
        self._in_libcurl(self._multi.add_handle, handle)
        future = self._waiting[handle] = self._loop.create_future()
        if self._looks and self._timer is None:
            self._look()
        try:
            await future
        finally:
            if self._waiting.pop(handle, None) is not None:
                self._multi.remove_handle(handle)

    def close(self) -> None:
        """Close every connection."""
        for handle in list(self._waiting):
            self._end(handle, asyncio.CancelledError())
        if self._timer is not None:
            self._timer.cancel()
        for socket in list(self._watched):
            self._watch(pycurl.POLL_REMOVE, socket, self._multi, None)
        self._multi.close()

    def _watch(self, what: int, socket: int, _multi: pycurl.CurlMulti, _data: object) -> None:
        before, now = self._watched.pop(socket, 0), _WATCHED.get(what, 0)
        if before & ~now & _READS:
            self._loop.remove_reader(socket)
        if before & ~now & _WRITES:
            self._loop.remove_writer(socket)
        if now & ~before & _READS:
            self._loop.add_reader(socket, self._act, socket, pycurl.CSELECT_IN)
        if now & ~before & _WRITES:
            self._loop.add_writer(socket, self._act, socket, pycurl.CSELECT_OUT)
        if now:
            self._watched[socket] = now
            if self._kept is not None:
                self._kept.discard(socket)

    def _set_timer(self, in_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if in_ms >= 0:
            self._timer = self._loop.call_later(in_ms / 1000, self._act, pycurl.SOCKET_TIMEOUT, 0)

    def _act(self, socket: int, events: int) -> None:
        self._in_libcurl(self._multi.socket_action, socket, events)
        self._take_ended()

    def _in_libcurl(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function of libcurl; where `_watch` or `_set_timer` fails in it, all transfers are lost.

        Raises:
            MemoryError: They have; the loop's handler of errors has it, too.
        """
        try:
            function(*arguments)
        except pycurl.error as error:
            lost = MemoryError(str(error))
            self._loop.call_exception_handler({"message": "transfers are lost", "exception": lost})
            raise lost from error

    def _look(self) -> None:
        self._multi.perform()
        self._take_ended()
        self._timer = self._loop.call_later(_LOOK_S, self._look) if self._waiting else None

    def _take_ended(self) -> None:
        more = True
        while more:
            left, ended, broken = self._multi.info_read()
            for handle in ended:
                self._end(handle, None)
            for handle, code, said in broken:
                errno, tunnel = handle.getinfo(pycurl.OS_ERRNO), handle.getinfo(pycurl.HTTP_CONNECTCODE)
                self._end(handle, BrokenTransferError(code, said, errno, tunnel))
            more = left > 0

    def _end(self, handle: pycurl.Curl, error: BaseException | None) -> None:
        future = self._waiting.pop(handle)
        socket = handle.getinfo(pycurl.ACTIVESOCKET)
        if self._kept is not None and socket >= 0:
            self._kept.add(socket)
        self._multi.remove_handle(handle)
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


def fault_of(error: BrokenTransferError, endpoint: Endpoint, head: Mapping[str, str] | None) -> Fault:
    """Return the fault of a transfer; its head has names in lower case, and is None where no answer had come."""
    if error.code in _UNREACHABLE and not error.errno and are_used_up():  # libcurl does not say so
        return Fault(
            FaultKind.TRANSIENT,
            None,
            "out_of_files",
            "this machine has too many open files to make a connection",
            hint="allow more open files (`ulimit -n 4096`), or ask fewer at once (--helmbench-concurrency)",
        )
    if error.code in _TLS and error.errno not in _LOST:
        return Fault(
            FaultKind.DEAD_MODEL,
            None,
            "tls",
            f"no secure connection to {endpoint.base_url} ({_words(error, endpoint)})",
            hint="check the address and the certificates of this machine (SSL_CERT_FILE)",
        )
    if error.code == _PROXY_HANDSHAKE or (error.connect_status and error.connect_status not in OK):
        status = error.connect_status or None
        answered = f"answered {status}" if status else "broke off"
        return Fault(FaultKind.TRANSIENT, status, "proxy", f"the proxy {answered} instead of connecting")
    if error.code in _UNREACHABLE:
        return _unreachable(error, endpoint)
    if error.code == pycurl.E_URL_MALFORMAT:
        return Fault(FaultKind.DEAD_MODEL, None, "address", f"{endpoint.base_url} is not a usable address")
    if head is not None:
        return Fault(
            FaultKind.TRANSIENT, None, "truncated_body", "the provider's answer broke off before its end"
        )
    if error.code in _NO_HTTP:
        return Fault(
            FaultKind.MALFORMED, None, "not_http", "the provider answered with something that is not HTTP"
        )
    why = _words(error, endpoint)
    message = f"the connection to the provider broke before an answer came ({why})"
    return Fault(FaultKind.TRANSIENT, None, "reset", message)


def unreadable(head: Mapping[str, str], endpoint: Endpoint) -> Fault:
    """Return the fault of an answer whose coding is not known, or that is damaged."""
    return Fault(
        FaultKind.REJECTED,
        None,
        "content_encoding",
        "the provider's answer is coded in a way that cannot be read"
        f" (content-encoding: {excerpt(head.get('content-encoding', ''), endpoint)})",
        hint="only gzip and deflate are asked for: switch others off in the server, or in the proxy before it",
    )


def _unreachable(error: BrokenTransferError, endpoint: Endpoint) -> Fault:
    why = f"no connection within {CONNECT_S} s"
    if error.code != pycurl.E_OPERATION_TIMEDOUT:
        why = _words(error, endpoint)
    message = f"the provider at {endpoint.base_url} cannot be reached ({why})"
    return Fault(FaultKind.TRANSIENT, None, "unreachable", message, hint=unreachable_hint(endpoint.base_url))


def _words(error: BrokenTransferError, endpoint: Endpoint) -> str:
    """Return the reason that the system gave, else the library's."""
    if error.errno > 0 and error.code not in _TLS:
        return os.strerror(error.errno).lower()
    if error.code == pycurl.E_SEND_FAIL_REWIND:
        return "server disconnected"  # a connection that had been kept: what was sent on it is not sent again
    return excerpt(error.said, endpoint).lower()
