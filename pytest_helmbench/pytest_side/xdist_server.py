"""The controller's end of the channel of an xdist worker: it grants, records and looks up what the worker asks for."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.gateway.backend import LocalBackend, Question, Wanted
from pytest_helmbench.gateway.permits import NotStoredError, Permit, PermitRequest, RefusedError
from pytest_helmbench.pytest_side.xdist_worker import REFUSALS, Channel, send


@dataclass(frozen=True, slots=True)
class Told:
    """Who is told what a worker says beside its calls; on xdist's receiver thread.

    Args:
        plan: Told what the worker has collected.
        note: Told a sentence for the summary.
        changed: Told the name of a case whose verdict on record is not that of now.
        interrupted: Told by what the worker is ended: Ctrl-C, or a signal.
    """

    plan: Callable[[object], None]
    note: Callable[[str], None]
    changed: Callable[[str], None]
    interrupted: Callable[[str], None]


class ChannelServer:
    """The controller's end of one worker's channel.

    Args:
        loop: Where the limiter lives.
        channel: To the worker.
        told: Who is told what.
    """

    def __init__(self, loop: LoopThread, channel: Channel, told: Told) -> None:
        self._loop = loop
        self._channel = channel
        self._told = told
        self._backend: LocalBackend | None = None
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._held: dict[int, Permit] = {}
        self._wanted: dict[Question, Wanted] = {}
        self.ended = False
        channel.setcallback(self._receive, endmarker=None)

    def serve(self, backend: LocalBackend) -> None:
        """Begin to answer: before this, a worker sends nothing but its plan."""
        self._backend = backend

    @property
    def serving(self) -> bool:
        """Whether the worker has been told to begin."""
        return self._backend is not None

    def send(self, *message: object) -> None:
        """Send a message; a worker that is gone is told nothing."""
        if not send(self._channel, *message):
            self.ended = True

    def _receive(self, data: bytes | None) -> None:
        if data is None:
            self.ended = True
            self._loop.soon(self._lost)
            return
        message = pickle.loads(data)
        match message:
            case ("plan", plan):
                self._told.plan(plan)
            case ("note", text):
                self._told.note(text)
            case ("changed", name):
                self._told.changed(name)
            case ("interrupted", by):
                self._told.interrupted(by)
            case ("bye",):
                self.ended = True
            case _:
                self._loop.soon(self._handle, message)

    def _handle(self, message: tuple[Any, ...]) -> None:
        backend = self._backend
        if backend is None:
            return
        match message:
            case ("admit", number, wanted):
                self._keep(
                    number, asyncio.get_running_loop().create_task(self._acquire(backend, number, wanted))
                )
            case ("abandon", number):
                # A permit that is on its way comes back as released.
                if number in self._asking:
                    self._asking[number].cancel()
            case ("release", permit):
                self._held.pop(permit.number, None)
                backend.release(permit)
            case ("settle", permit, used, record):
                self._held.pop(permit.number, None)
                backend.settle(permit, used, record)
                if record.reply_key is not None:
                    self._wanted.pop(record.question, None)
            case ("failed", model, case):
                backend.failed(model, case)
            case ("recall", number, wanted):
                self._keep(
                    number, asyncio.get_running_loop().create_task(self._look_up(backend, number, wanted))
                )
            case ("give-up", wanted):
                self._forget(backend, wanted)
            case ("replay", record):
                backend.record_replay(record)
            case ("result", record):
                backend.record_result(record)
            case ("store", number):
                self._keep(number, asyncio.get_running_loop().create_task(self._stored(backend, number)))

    def _keep(self, number: int, task: asyncio.Task[None]) -> None:
        self._asking[number] = task
        task.add_done_callback(lambda _: self._asking.pop(number, None))

    async def _stored(self, backend: LocalBackend, number: int) -> None:
        try:
            await backend.stored()
        except NotStoredError as error:
            self.send("stored", number, str(error))
        else:
            self.send("stored", number, None)

    async def _look_up(self, backend: LocalBackend, number: int, wanted: Wanted) -> None:
        try:
            recorded = await backend.look_up(wanted)
        except HelmbenchError as error:
            self.send("unreadable", number, str(error))
            return
        if recorded is None:
            self._wanted[wanted.question] = wanted
        self.send("recalled", number, recorded)

    def _forget(self, backend: LocalBackend, wanted: Wanted) -> None:
        if self._wanted.pop(wanted.question, None) is not None:
            backend.give_up(wanted)

    async def _acquire(self, backend: LocalBackend, number: int, wanted: PermitRequest) -> None:
        try:
            permit = await backend.acquire(wanted)
        except RefusedError as error:
            kind = next(name for name, refusal in REFUSALS.items() if type(error) is refusal)
            self.send("refuse", number, kind, str(error))
        else:
            self._held[permit.number] = permit
            self.send("grant", number, permit)
            if self.ended and permit.number in self._held:  # nobody was left to send
                backend.release(self._held.pop(permit.number))

    def _lost(self) -> None:
        """Take back everything a worker held that is gone."""
        for task in self._asking.values():
            task.cancel()
        held, self._held = self._held, {}
        if self._backend is not None:
            for permit in held.values():
                self._backend.lose(permit)
            for wanted in tuple(self._wanted.values()):
                self._forget(self._backend, wanted)
