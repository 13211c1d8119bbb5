"""Lines over Dask: a queue to the session, and one back for each line, kept by the scheduler.

What comes to the session is bytes and JSON, and never unpickled.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from itertools import count

from distributed import Client, Queue, get_client

from pytest_helmbench.engine.host_lines import HostLines, LineAddress, LineClosedError

__all__ = ["DaskLine", "LineListener"]

_NUMBER_BYTES = 8
_END_S = 1.0
_FAREWELL = b""
"""A frame after which none comes."""


class LineListener:
    """The session's end: a thread takes what is asked, the event loop answers.

    Args:
        client: Connected to the scheduler.
        lines: Who answers.
        loop: Where.
    """

    def __init__(self, client: Client, lines: HostLines, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._lines = lines
        self._loop = loop
        self._asked: Queue | None = None
        self._back: dict[str, Queue] = {}
        self._closed = False
        threading.Thread(target=self._listen, name="helmbench-lines", daemon=True).start()

    def close(self) -> None:
        """Tell every host that nobody answers any more. From any thread."""
        self._closed = True
        telling = threading.Thread(target=self._end_all, daemon=True)
        telling.start()
        telling.join(_END_S)

    def _listen(self) -> None:
        try:
            asked = self._asked = Queue(self._lines.name, client=self._client)
            while not self._closed:
                frame = asked.get()
                with suppress(
                    ValueError, KeyError, TypeError, ArithmeticError, RecursionError
                ):  # it is none of ours
                    self._take(frame)
        except Exception:  # noqa: BLE001 - whatever a lost connection raises: those who asked over it begin anew
            return

    def _take(self, frame: bytes) -> None:
        if not isinstance(frame, bytes):
            raise TypeError("frame")
        head, _, message = frame.partition(b"\n")
        told = json.loads(head)
        back, number = str(told["back"]), int(told["number"])
        number.to_bytes(_NUMBER_BYTES)
        if back not in self._back:
            self._back[back] = Queue(back, client=self._client)
        if message:
            asyncio.run_coroutine_threadsafe(
                self._answer(str(told["key"]), message, back, number), self._loop
            )
        else:
            self._end(back)

    async def _answer(self, key: str, message: bytes, back: str, number: int) -> None:
        answer = await self._lines.answer(key, message)
        queue = self._back.get(back)
        if queue is not None and not self._closed:
            with suppress(Exception):  # the connection is lost, and with it who asked
                await asyncio.to_thread(queue.put, number.to_bytes(_NUMBER_BYTES) + answer)

    def _end_all(self) -> None:
        for name in tuple(self._back):
            self._end(name)
        if self._asked is not None:
            with suppress(Exception):  # it may be lost
                self._asked.put(_FAREWELL)
                self._asked.close()

    def _end(self, name: str) -> None:
        queue = self._back.pop(name, None)
        if queue is not None:
            with suppress(Exception):
                queue.put(_FAREWELL)
                queue.close()


class DaskLine:
    """The end on a worker. Made in the thread of a task.

    Args:
        address: Where it leads.

    Raises:
        LineClosedError: The worker has no scheduler any more.
    """

    def __init__(self, address: LineAddress) -> None:
        self._key = address.key
        self._name = f"{address.session}-{secrets.token_urlsafe(8)}"
        self._numbers = count(1)
        self._waiting: dict[int, Future[bytes]] = {}
        self._closed = False
        try:
            client = get_client()
            self._there = Queue(address.session, client=client)
            self._back = Queue(self._name, client=client)
        except Exception as error:
            raise LineClosedError(f"there is no connection to the session: {error}") from error
        threading.Thread(target=self._listen, name="helmbench-line", daemon=True).start()

    async def ask(self, message: bytes) -> bytes:
        """See `Line.ask`."""
        number = next(self._numbers)
        waiting: Future[bytes] = Future()
        self._waiting[number] = waiting
        try:
            if self._closed:
                raise LineClosedError
            await asyncio.to_thread(self._put, number, message)
            answer = await asyncio.wrap_future(waiting)
        finally:
            self._waiting.pop(number, None)
        if not answer:
            raise LineClosedError
        return answer

    def close(self) -> None:
        """See `Line.close`."""
        with suppress(Exception):  # it may be lost
            self._put(0, b"")
            self._back.put(_FAREWELL)  # nobody else says it where the session is dead
        for queue in (self._there, self._back):
            with suppress(Exception):
                queue.close()

    def _put(self, number: int, message: bytes) -> None:
        head = json.dumps({"back": self._name, "number": number, "key": self._key})
        try:
            self._there.put(head.encode() + b"\n" + message)
        except Exception as error:
            raise LineClosedError(f"the connection to the session is lost: {error}") from error

    def _listen(self) -> None:
        with suppress(Exception):  # whatever a lost connection raises
            while (frame := self._back.get()) != _FAREWELL:
                self._settle(int.from_bytes(frame[:_NUMBER_BYTES]), frame[_NUMBER_BYTES:])
        self._closed = True
        for number in tuple(self._waiting):
            self._settle(number, b"")

    def _settle(self, number: int, answer: bytes) -> None:
        waiting = self._waiting.get(number)
        if waiting is not None:
            with suppress(InvalidStateError):  # nobody waits for it any more
                waiting.set_result(answer)
