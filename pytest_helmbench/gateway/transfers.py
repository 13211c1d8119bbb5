"""Transfers of libcurl on an event loop: many at a time over connections that are kept."""

from __future__ import annotations

import asyncio
import select

import pycurl

__all__ = ["BrokenTransferError", "Transfers"]

_KEPT_CONNECTIONS = 1024
_LOOK_S = 0.005
_PRUNED_AFTER_S = 1.1
"""libcurl looks which of its kept connections have ended when it needs one, but only once a second."""
_READS, _WRITES = 1, 2
_WATCHED = {pycurl.POLL_IN: _READS, pycurl.POLL_OUT: _WRITES, pycurl.POLL_INOUT: _READS | _WRITES}


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
    """Sockets of connections that are kept and not in use.

    Args:
        loop: For its time.
    """

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
        future = self._waiting[handle] = self._loop.create_future()
        handle.setopt(pycurl.FRESH_CONNECT, self._kept is not None and self._kept.one_has_ended())
        self._multi.add_handle(handle)
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
        self._multi.socket_action(socket, events)
        self._take_ended()

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
