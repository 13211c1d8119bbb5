"""One Node process with one Bench Pack in it: its start, its lines, its signs of life, its end."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from pytest_helmbench.benchmarks.bench_packs.node.command import PackCommand
from pytest_helmbench.benchmarks.bench_packs.node.process import (
    ODD_FORM,
    BridgeBounds,
    ChildLostError,
    Lines,
    PackFailedError,
    ProcessWire,
    stated_loss,
)
from pytest_helmbench.core.json_types import JsonObject, JsonValue, is_deeper
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt, scrub, without_tokens
from pytest_helmbench.sandbox.fence import Enclosed, OpenPort
from pytest_helmbench.sandbox.processes import Collected, end_launched, exited, kill_group, stop_launched

_LATE_S = 1.0  # a check that comes later than this is our own fault, not the process's
_AFTER_END_S = 0.5
_LONGEST_TOKEN = 64
_SIGNALLED = 128
_DEEPEST = 64  # lists and objects, more than our side of the process sends


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that is not answered yet; after `patience_s` of silence the process counts as frozen."""

    answer: asyncio.Future[JsonValue]
    emitted: Callable[[JsonObject], None]
    patience_s: float


class Child:
    """A process with a pack. Made by `start`.

    Args:
        bounds: How long it is waited for.
    """

    def __init__(self, command: PackCommand, bounds: BridgeBounds) -> None:
        self._tainted = False  # something in it never ended
        self.users = 0
        """How many wait for its answers."""
        self.questions = 0
        """How many it was asked."""
        self._ready = False
        self._command, self._bounds = command, bounds
        self._loop = asyncio.get_running_loop()
        self._wire = ProcessWire()
        self._loaded = self._loop.create_future()
        self._lines = Lines(self._received, lambda said: self.lose("malformed", said))
        self._process: Process | None = None
        self._output = Collected(bounds.output_bytes + _LONGEST_TOKEN)
        self._enclosed: Enclosed | None = None
        self._watching: asyncio.Task[None] | None = None
        self._asked: dict[int, _Asked] = {}
        self._gone: ChildLostError | None = None
        self._last_life = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_spent(self) -> bool:
        """Whether it takes no new items, for whatever reason."""
        return self._tainted or self.lost

    @property
    def lost(self) -> bool:
        """Whether it is gone or going."""
        return self._gone is not None

    @contextmanager
    def used(self) -> Iterator[None]:
        """Count the caller among those who wait for its answers."""
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1

    def taint(self) -> None:
        """Take note that something in it never ended."""
        self._tainted = True

    def output(self) -> str:
        """Return the end of what was printed, scrubbed."""
        said = bytes(self._output.data).decode("utf-8", "replace")
        return without_tokens(scrub(said))[-self._bounds.output_bytes :].strip()

    async def start(self) -> None:
        """Start Node and load the pack.

        Raises:
            PackFailedError: `not_loadable`.
        """
        name = self._command.place.entry.name
        if not self._command.place.entry.is_file():
            raise self._unloadable("there is no such file")
        try:
            await self._spawn()
            self._wire.send(
                {
                    "op": "load",
                    "secret": self._lines.secret.decode(),
                    "entry": self._command.entry,
                    "heartbeatMs": round(self._bounds.heartbeat_s * 1000),
                    "watch": not (self._command.reaped or self._enclosed is not None),
                }
            )
            async with asyncio.timeout(self._bounds.start_s):
                await self._loaded
        except TimeoutError:
            raise self._unloadable(
                f"{name} did not finish loading within {self._bounds.start_s:g} s"
            ) from None
        except OSError as error:
            raise self._unloadable(f"Node.js cannot be started: {excerpt(str(error))}") from error
        except ChildLostError as lost:
            raise self._unloadable(lost.loss.message, lost.loss.stack) from None

    def ask(
        self,
        message: JsonObject,
        patience_s: float,
        emitted: Callable[[JsonObject], None] = lambda _: None,
    ) -> tuple[int, asyncio.Future[JsonValue]]:
        """Send a question; return its number and its answer to come.

        Args:
            message: Without its number.
            patience_s: Silence of the whole process that is borne while the answer is open.
            emitted: Called with the events of the item.

        Raises:
            ChildLostError: The process is gone; the answer raises it likewise.
        """
        if self._gone is not None:
            raise ChildLostError(self._gone.loss, alone=False)
        if not self._asked:
            self._last_life = self._loop.time()  # an idle process is silent
        self.questions += 1
        number = self.questions
        answer: asyncio.Future[JsonValue] = self._loop.create_future()
        self._asked[number] = _Asked(answer, emitted, patience_s)
        self._wire.send({**message, "id": number})
        if self._timer is None:
            self._timer = self._loop.call_later(self._patience_s(), self._check_liveness, self._loop.time())
        return number, answer

    async def open(self, ports: Iterable[OpenPort]) -> None:
        """Let the process reach ports of ours.

        Raises:
            ChildLostError: It is gone.
        """
        if self._enclosed is None:
            return
        try:
            await self._enclosed.open(ports)
        except OSError as error:
            raise self.lose("crashed", f"its network is gone ({excerpt(str(error))})") from error

    def abort(self, number: int) -> None:
        """Send the abort signal to an item."""
        if number in self._asked:
            self._wire.send({"op": "abort", "id": number})

    def abandon(self, number: int) -> None:
        """Abort an item that nothing waits for any more; when it ignores that, the process takes no new ones."""
        if self._asked.get(number) is None or self.lost:
            return
        self.abort(number)
        self._loop.call_later(self._bounds.grace_s, self._taint_if_open, number)

    def silent_s(self) -> float:
        """Return how long the process has given no sign of life."""
        return self._loop.time() - self._last_life

    def freeze(self) -> ChildLostError:
        """Give the process up since it gives no sign of life."""
        return self.lose("hung", f"the process gave no sign of life for {self.silent_s():.3g} s")

    def lose(self, reason: str, said: str, stack: str = "") -> ChildLostError:
        """Give the process up: everything it was asked fails with what is returned, and it is killed."""
        if self._gone is not None:
            return self._gone
        loss = PackFailedError(reason, said, self.output(), stack)
        self._gone = error = ChildLostError(loss, alone=self.questions == 1)
        for answer in (self._loaded, *(asked.answer for asked in self._asked.values())):
            if not answer.done():
                answer.set_exception(error)
                answer.exception()  # a waiting call gets it; none need wait
        self._asked.clear()
        if self._timer is not None:
            self._timer.cancel()
        if self._enclosed is not None:
            self._enclosed.let_go()
        elif self._process is not None and self._command.reaped:
            stop_launched(self._process)  # it also finds what has left the group
        elif self._process is not None:
            kill_group(self._process)
        return error

    async def close(self) -> None:
        """Dispose of what is prepared, if that goes quickly, and end the process and its group."""
        try:
            if not self.lost and self._ready:
                with suppress(TimeoutError, ChildLostError, PackFailedError):
                    async with asyncio.timeout(self._bounds.close_s):
                        await self.ask({"op": "dispose"}, self._bounds.close_s)[1]
        finally:
            self.lose("crashed", "the process was ended by us")
        try:
            if self._enclosed is not None and self._process is not None:
                await self._enclosed.end(self._process)
            elif self._enclosed is not None:
                await self._enclosed.close()
            elif self._process is not None:
                await end_launched(self._process)
        finally:
            if self._watching is not None:
                self._watching.cancel()
                await asyncio.gather(self._watching, return_exceptions=True)
            self._wire.close()

    async def _spawn(self) -> None:
        command, wire = self._command, self._wire
        argv, env = command.argv(wire.argument), command.environment()
        descriptors = wire.descriptors
        if command.fence is not None:
            view = command.view()
            enclosed = await asyncio.to_thread(command.fence.enclose, view, argv, descriptors)
            self._enclosed = enclosed
            enclosed.go()
            argv, env, descriptors = enclosed.argv, {}, enclosed.descriptors
        self._process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            env=env,
            cwd=command.folder,
            pass_fds=descriptors,
            start_new_session=True,
        )
        self._watching = asyncio.create_task(self._watch(self._process, await wire.connect()))

    def _unloadable(self, said: str, stack: str = "") -> PackFailedError:
        message = f"the Bench Pack cannot be loaded: {said}"
        return PackFailedError("not_loadable", message, self.output(), stack)

    def _received(self, message: JsonObject) -> None:
        """Take a message. It may be forged: nothing of it is what it should be before that was looked at."""
        if self.lost:
            return
        self._last_life = self._loop.time()
        if "id" in message:
            number = message["id"]
            asked = self._asked.get(number) if type(number) is int else None
            if asked is None or type(number) is not int:
                self._lines.drop()
            elif "event" in message:
                self._emitted(number, asked, message["event"])
            else:
                self._answered(number, asked, message)
        elif "loaded" in message:
            if not self._loaded.done():
                self._ready = True
                self._loaded.set_result(None)
        elif "unloadable" in message or "lost" in message:
            self.lose(*stated_loss(message.get("unloadable", message.get("lost"))))
        elif "beat" not in message:
            self._lines.drop()

    def _emitted(self, number: int, asked: _Asked, event: JsonValue) -> None:
        if is_deeper(event, _DEEPEST):
            self._settle(number, asked, self._malformed())
        elif isinstance(event, dict):
            asked.emitted(event)

    def _answered(self, number: int, asked: _Asked, message: JsonObject) -> None:
        if "failed" in message:
            self._settle(number, asked, self._failure(message["failed"]))
        elif "value" not in message or is_deeper(message["value"], _DEEPEST):
            self._settle(number, asked, self._malformed())
        else:
            del self._asked[number]
            if not asked.answer.done():
                asked.answer.set_result(message["value"])

    def _settle(self, number: int, asked: _Asked, error: PackFailedError) -> None:
        if error.reason in ("unhandled", "exited"):
            self._tainted = True  # its own code may never come to an end
        del self._asked[number]
        if not asked.answer.done():
            asked.answer.set_exception(error)
            asked.answer.exception()

    def _failure(self, failed: object) -> PackFailedError:
        reason, said, stack = stated_loss(failed)
        printed = failed.get("output") if isinstance(failed, dict) else None
        if not isinstance(printed, str):
            return self._malformed()
        output = without_tokens(scrub(printed)).strip()[-self._bounds.output_bytes :]
        return PackFailedError(reason, said, output or self.output(), stack)

    def _malformed(self) -> PackFailedError:
        self._tainted = True  # whatever it does, it goes on
        return PackFailedError("malformed", ODD_FORM, self.output())

    def _patience_s(self) -> float:
        shortest = min(asked.patience_s for asked in self._asked.values())
        return max(shortest, 3 * self._bounds.heartbeat_s)

    def _check_liveness(self, since: float) -> None:
        self._timer = None
        if not self._asked:
            return
        patience = self._patience_s()
        late = self._loop.time() - since - patience > _LATE_S  # our own loop was busy: look again
        if self.silent_s() >= patience and not late:
            self.freeze()
            return
        delay = max(patience - self.silent_s(), self._bounds.heartbeat_s)
        self._timer = self._loop.call_later(delay, self._check_liveness, self._loop.time() + delay - patience)

    def _taint_if_open(self, number: int) -> None:
        self._tainted = self._tainted or number in self._asked

    async def _watch(self, process: Process, lines: asyncio.StreamReader) -> None:
        """Take what the process says and prints, until it ends."""
        output = asyncio.create_task(self._output.read(process.stdout))
        ends = [asyncio.ensure_future(one) for one in (exited(process), self._lines.read(lines))]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((output, *ends), timeout=_AFTER_END_S)  # what it said last is still to be read
        finally:
            for task in (output, *ends):
                task.cancel()
        self.lose("crashed", self._how_it_ended(process.returncode))

    def _how_it_ended(self, code: int | None) -> str:
        if code is None:
            return "the process closed its channel to us"
        if "heap out of memory" in self.output():
            return "the process ran out of memory"
        if self._enclosed is not None and (breach := self._enclosed.breach()):
            return f"the process took {breach}"
        if (self._command.reaped or self._enclosed is not None) and code > _SIGNALLED:
            code = _SIGNALLED - code
        if code >= 0:
            return f"the process ended with exit code {code}"
        with suppress(ValueError):
            return f"the process was ended by {signal.Signals(-code).name}"
        return f"the process was ended by signal {-code}"
