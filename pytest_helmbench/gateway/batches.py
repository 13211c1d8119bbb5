"""Batches of a session: calls that wait are gathered, sent together, and answered when their batch is read.

Each step is on record before the next one is taken, so that a killed session pays for nothing twice: a call whose key
is in a batch on record waits for that batch.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from math import inf
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.batch_wire import WIRES, BatchFault, BatchState, BatchWire, WireError
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import InBatchError, ModelStoppedError, Permit, PermitRequest
from pytest_helmbench.gateway.providers.endpoints import Endpoint

GATHER_S = 5.0
LOOK_S = 60.0
FIRST_POLL_S, LAST_POLL_S = 10.0, 60.0
FAULTY_S, UNREADABLE_S = 300.0, 600.0
_MOST_LINES, _MOST_BYTES = 5_000, 100_000_000
_WINDOW_S = 86_400.0
_KEPT_S = 31 * _WINDOW_S
_MISSING, _GONE = 404, 410
_FORGOTTEN = frozenset((401, 403, _MISSING))
_UNFINISHED = frozenset(("expired", "cancelled"))
_TWICE = 2
_TOO_MANY = "token_limit_exceeded"
_MOST_NAMING = 3
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A call that may go in a batch.

    Args:
        origin: Distinguishes it from all other calls of its run: its key is made of this and of the run's UUID.
        body: As sent.
        request: For the budget.
    """

    origin: tuple[str, ...]
    body: bytes
    request: PermitRequest


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The end of a call in a batch.

    Args:
        permit: To be settled; None for a call that goes singly.
        custom_id: Of its line.
        status: HTTP status of the line.
        body: None where the provider has deleted the batch, which it may have billed.
        expired: Two batches have ended without an answer to it.
    """

    permit: Permit | None = None
    custom_id: str = ""
    status: int = 0
    body: bytes | None = None
    expired: bool = False


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch on record; its state is `planned`, `creating`, `out` or `read`.

    Args:
        keys: Of its calls in order, each with the number of batches that it has been in.
        created_s: Seconds since the epoch.
    """

    token: str
    address: str
    model: str
    state: str
    keys: Mapping[str, int]
    reserved_usd: float
    created_s: float
    input_file: str | None = None
    provider_id: str | None = None


class BatchRecord(Protocol):
    """Where batches are kept. Used on the loop."""

    def open_batches(self) -> Iterable[tuple[BatchRow, frozenset[str]]]:
        """Return the batches that are not read, the newest first, each with the keys that it has answered on record."""

    def put(self, row: BatchRow) -> None:
        """Write a row, in place of the one of its token."""

    def drop(self, token: str) -> None:
        """Delete a row: nothing was asked, or all of it has to be asked anew."""

    async def stored(self) -> None:
        """Return when all of that is on disk; raises `RefusedError`."""


@dataclass(slots=True)
class _Batch:
    """A batch in memory.

    Args:
        lines: Bodies by key, until they are out; none where another session has made it.
        permits: Of the keys without an answer on record.
        waiting: Calls by key; one that has to be asked anew gets None.
        found: Status and body by key, once its results are read.
        left: Why its calls wait for it no longer.
    """

    row: BatchRow
    wire: BatchWire
    lines: dict[str, bytes] = field(default_factory=dict)
    permits: dict[str, Permit] = field(default_factory=dict)
    waiting: dict[str, asyncio.Future[BatchAnswer | None]] = field(default_factory=dict)
    found: Mapping[str, tuple[int, bytes | None]] | None = None
    status: str = ""
    answered: int = 0
    left: HelmbenchError | None = None
    timer: asyncio.TimerHandle | None = None
    size: int = 0

    @property
    def place(self) -> tuple[str, str]:
        """Address and model."""
        return self.row.address, self.row.model

    @property
    def host(self) -> str:
        """Host and port."""
        return urlsplit(self.row.address).netloc

    @property
    def is_out(self) -> bool:
        """Whether its results are still to come."""
        return (
            self.row.state == "out" and self.status != "failed" and self.found is None and self.left is None
        )


class _GoneError(Exception):
    """The provider has deleted a batch."""


class Batches:
    """The batches of a session, in the process that owns limiter and record. Used on its loop.

    Args:
        endpoints: By the model's id, with the word of the wire.
        uuids_of: Returns the UUID of a run, behind it those under which its calls may be in batches on record.
        wait_s: How long answers are waited for; None where batches on record alone are waited for, and none is made.
    """

    def __init__(
        self,
        endpoints: Mapping[str, tuple[str, Endpoint]],
        limiter: Limiter,
        record: BatchRecord,
        uuids_of: Callable[[int], Sequence[str]],
        wait_s: float | None,
    ) -> None:
        self._endpoints = endpoints
        self._limiter = limiter
        self._record = record
        self._uuids_of = uuids_of
        self._gathers = wait_s is not None
        self._leave_at = time.monotonic() + (inf if wait_s is None else wait_s)
        self._gathering: dict[tuple[str, str], _Batch] = {}
        self._held: dict[str, _Batch] = {}
        self._tries: dict[str, int] = {}
        self._most: dict[tuple[str, str], int] = {}
        self._naming: Counter[tuple[str, str]] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._said: set[tuple[str, str]] = set()
        self.sentences: list[str] = []
        """To be said, each once."""
        self.batches: list[_Batch] = []
        self.left_calls = 0

    async def resume(self) -> None:
        """Take up the batches on record.

        Raises:
            HelmbenchError: Calls are in a batch that this session cannot read: sent singly, they would be paid twice.
        """
        for row, answered in self._record.open_batches():
            if row.state == "planned":
                self._record.drop(row.token)  # a file costs nothing
                continue
            pending = {*row.keys} - answered - self._held.keys()
            known = [one for one in self._endpoints.items() if _place(one[1][1]) == (row.address, row.model)]
            if pending and not known:
                raise HelmbenchError(
                    f"{len(pending)} calls are in a batch of {row.model} at {row.address}, and this session asks for no"
                    " batch there; nothing was called\n  hint: give its address and key, and say 'batch: openai' in"
                    " models.yml; collect shards of several addresses before they are merged"
                )
            if not pending:
                self._record.put(replace(row, state="read"))
                continue
            name, (word, endpoint) = known[0]
            batch = _Batch(row, WIRES[word](endpoint))
            for key in pending:
                request = PermitRequest(name, 0, None, urgent=False)
                batch.permits[key] = self._limiter.hold(request, row.reserved_usd / len(row.keys))
                self._held[key] = batch
            self._tries = {**row.keys, **self._tries}
            self._begin(batch)

    async def ask(self, line: BatchLine) -> BatchAnswer:
        """Return what a batch brings for a call.

        Raises:
            HelmbenchError: Its batch cannot be sent or read.
            InBatchError: The session waits no longer.
            RefusedError: The budget cannot pay it, or the model was stopped (and its kinds).
        """
        key = self._key(line)
        while True:
            batch = self._held.get(key)
            if batch is None:
                permit = await self._limiter.reserve(line.request) if self._gathers else None
                if permit is None:
                    return BatchAnswer()
                if key in self._held:
                    self._limiter.give_back(permit)
                    continue
                batch = self._gather(key, line, permit)
            elif batch.left is not None:
                self.left_calls += isinstance(batch.left, InBatchError)
                raise batch.left
            elif key in batch.waiting and not batch.waiting[key].done():
                return BatchAnswer()  # one answer is the answer of one call
            else:
                self._limiter.give_back(batch.permits[key])
                batch.permits[key] = self._limiter.hold(line.request, batch.permits[key].reserved_usd)
            waiting: asyncio.Future[BatchAnswer | None] = asyncio.get_running_loop().create_future()
            batch.waiting[key] = waiting
            if batch.found is not None:
                self._deliver(batch, [key])
            answer = await waiting
            if answer is not None:
                return answer

    def settled(self, custom_id: str) -> None:
        """Take note that the answer of a line is on record."""
        key = custom_id.partition("-")[2]
        batch = self._held.pop(key, None)
        if batch is not None:
            batch.permits.pop(key, None)
            self._end_if_read(batch)

    @property
    def waiting_words(self) -> str:
        """Which calls are in batches that are not read, for people; empty for none."""
        out = [batch for batch in self.batches if batch.row.state in ("creating", "out") and batch.permits]
        if not out:
            return ""
        calls = sum(len(batch.permits) for batch in out)
        hosts = " and ".join(dict.fromkeys(batch.host for batch in out))
        until = _end_of_window(max(one.row.created_s for one in out))
        return f"{calls} call{'s are' if calls > 1 else ' is'} at {hosts} until {until}"

    @property
    def progress(self) -> tuple[int, int, int]:
        """How many batches are out, with how many calls, and how many of them are answered."""
        out = [batch for batch in self.batches if batch.permits]
        return len(out), sum(len(one.row.keys) for one in out), sum(one.answered for one in out)

    def _key(self, line: BatchLine) -> str:
        texts = ("\0".join((uuid, *line.origin)) for uuid in self._uuids_of(line.request.run_id))
        keys = [hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:40] for text in texts]
        return next((key for key in keys if key in self._held), keys[0])

    # From a call to a batch that is out

    def _gather(self, key: str, line: BatchLine, permit: Permit) -> _Batch:
        word, endpoint = self._endpoints[line.request.model]
        place, size = _place(endpoint), len(line.body)
        batch = self._gathering.get(place)
        most = self._most.get(place, _MOST_LINES)
        if batch is not None and (len(batch.lines) >= most or batch.size + size > _MOST_BYTES):
            self._send(batch)
            batch = None
        if batch is None:
            row = BatchRow(secrets.token_hex(4), *place, "planned", {}, 0.0, time.time())
            batch = self._gathering[place] = _Batch(row, WIRES[word](endpoint))
        batch.lines[key] = line.body
        batch.permits[key] = permit
        batch.size += size
        self._held[key] = batch
        if batch.timer is not None:
            batch.timer.cancel()
        batch.timer = asyncio.get_running_loop().call_later(GATHER_S, self._send, batch)
        return batch

    def _send(self, batch: _Batch) -> None:
        del self._gathering[batch.place]
        if batch.timer is not None:
            batch.timer.cancel()
        gone = [key for key, one in batch.waiting.items() if one.done()]  # cancelled meanwhile
        self._free(batch, gone)
        for key in gone:
            del batch.lines[key]
        if not batch.lines:
            return
        keys = {key: self._tries.get(key, 0) + 1 for key in batch.lines}
        self._tries.update(keys)
        reserved = sum(one.reserved_usd for one in batch.permits.values())
        batch.row = replace(batch.row, keys=keys, reserved_usd=reserved)
        self._begin(batch)

    def _begin(self, batch: _Batch) -> None:
        self.batches.append(batch)
        task = asyncio.get_running_loop().create_task(self._follow(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, batch: _Batch) -> None:
        """Create a batch, wait for it and read it; an error of any of that ends the calls that wait for it."""
        try:
            if await self._is_out(batch):
                state = await self._ended(batch)
                if state.status == "failed":
                    await self._failed(batch, state.faults)
                    return
                self._read(batch, await self._asked(batch, partial(self._lines, batch, state)))
        except _GoneError:
            self._read(batch, dict.fromkeys(batch.row.keys, (0, None)))
        except HelmbenchError as error:
            self._leave(batch, error)
        except Exception as error:  # noqa: BLE001 - a call that waits for ever is worse than any error
            self._leave(batch, HelmbenchError(f"a fault of the program in a batch: {error!r}"))

    async def _is_out(self, batch: _Batch) -> bool:
        """Bring a batch to its provider; return whether there is one to wait for."""
        began, pause_s, foreign, said = time.monotonic(), 1.0, not batch.lines, ""
        while batch.row.provider_id is None:
            if batch.row.state == "creating":
                found = await self._looked_for(batch)
                if found is None and foreign:
                    self._forget(batch)
                    return False
                batch.row = replace(batch.row, state="planned" if found is None else "out", provider_id=found)
                continue
            if said and time.monotonic() >= min(began + UNREADABLE_S, self._leave_at):
                self._forget(batch, HelmbenchError(f"its batch could not be sent: {said}"))
                return False
            await self._keep(batch, replace(batch.row, state="planned"))
            try:
                found = await self._created(batch)
                batch.row = replace(batch.row, state="out", provider_id=found)
            except WireError as error:
                said = str(error)
                if error.is_refusal or (error.lasting and batch.row.state == "planned"):
                    await self._failed(batch, [(error.code, said, None)])
                    return False
                self._faulty(batch, error, began)
                if batch.row.state == "planned":
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, LAST_POLL_S)
        await self._keep(batch, batch.row)
        batch.lines.clear()
        return True

    async def _keep(self, batch: _Batch, row: BatchRow) -> None:
        batch.row = row
        self._record.put(row)
        await self._record.stored()

    async def _created(self, batch: _Batch) -> str:
        async def uploaded(input_file: str) -> None:
            row = replace(batch.row, state="creating", input_file=input_file, created_s=time.time())
            await self._keep(batch, row)

        token = batch.row.token
        lines = {f"{token}-{key}": body for key, body in batch.lines.items()}
        return await batch.wire.create(token, lines, uploaded)

    async def _looked_for(self, batch: _Batch) -> str | None:
        """Return the id of a batch that may have been created; two lists without it, a minute apart: it was not."""
        look = partial(batch.wire.find, batch.row.token, batch.row.input_file or "")
        found = await self._asked(batch, look)
        if found is None:
            await self._pause(batch, LOOK_S)
            found = await self._asked(batch, look)
        return found

    # From a batch that is out to its answers

    async def _asked(self, batch: _Batch, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what a provider says of a batch, as soon as it says anything.

        Raises:
            InBatchError: For ten minutes, it did not know the batch or the key; or the client cannot ask.
        """
        began, lost_since, pause_s = time.monotonic(), inf, FIRST_POLL_S
        while True:
            try:
                return await ask()
            except WireError as error:
                old = error.status == _MISSING and time.time() - batch.row.created_s > _KEPT_S
                if batch.row.state == "out" and (old or error.status == _GONE):
                    raise _GoneError from error
                lost_since = min(lost_since, time.monotonic()) if error.status in _FORGOTTEN else inf
                if error.lasting or time.monotonic() - lost_since >= UNREADABLE_S:
                    raise InBatchError(f"its batch cannot be read: {error}") from error
                self._faulty(batch, error, began)
            await self._pause(batch, pause_s)
            pause_s = min(1.2 * pause_s, LAST_POLL_S)

    async def _ended(self, batch: _Batch) -> BatchState:
        pause_s = FIRST_POLL_S
        while True:
            state = await self._asked(batch, partial(batch.wire.poll, batch.row.provider_id or ""))
            batch.answered, batch.status = state.answered, state.status
            if state.ended:
                return state
            await self._pause(batch, pause_s)
            pause_s = min(1.2 * pause_s, LAST_POLL_S)

    async def _lines(self, batch: _Batch, state: BatchState) -> Mapping[str, tuple[int, bytes]]:
        found: dict[str, tuple[int, bytes]] = {}
        for custom_id, answer in await batch.wire.results(state):
            token, _, key = custom_id.partition("-")
            if token == batch.row.token and key in batch.row.keys and key not in found:
                found[key] = answer
            else:
                self._say(batch, "lines of no call, and second ones, in the results of a batch are ignored")
        if state.answered and not found:
            # Asked singly, all would be paid twice.
            raise WireError("its results have none of its lines", _MISSING)
        return found

    def _faulty(self, batch: _Batch, error: WireError, began: float) -> None:
        """Say that a server brings nothing, once that takes minutes."""
        if time.monotonic() - began >= FAULTY_S:
            self._say(batch, "no answer of use about a batch for minutes, still asking", f": {error}")

    def _say(self, batch: _Batch, sentence: str, why: str = "") -> None:
        if (batch.host, sentence) not in self._said:
            self._said.add((batch.host, sentence))
            self.sentences.append(f"{batch.host}: {sentence}{why}")

    async def _pause(self, batch: _Batch, pause_s: float) -> None:
        """Wait before the next look; once the session waits no longer, its calls are left in their batch."""
        if self._limiter.closed is not None:
            raise self._limiter.closed
        left_s = self._leave_at - time.monotonic()
        if left_s < pause_s and batch.left is None:
            await asyncio.sleep(max(left_s, 0.0))
            until = _end_of_window(batch.row.created_s)
            left = InBatchError(f"its call is in a batch until {until}; --helmbench-resume collects it")
            self._leave(batch, left)
            self._limiter.leave(InBatchError("its call waits for money that calls in batches hold"))
        await asyncio.sleep(pause_s)

    def _read(self, batch: _Batch, found: Mapping[str, tuple[int, bytes | None]]) -> None:
        batch.found, batch.left = found, None
        self._deliver(batch, [*batch.waiting])

    def _deliver(self, batch: _Batch, keys: Iterable[str]) -> None:
        """Give calls their answers; those without one are asked in one more batch, or singly."""
        unfinished = batch.status in _UNFINISHED
        for key in keys:
            if batch.found is not None and key in batch.found:
                custom_id = f"{batch.row.token}-{key}"
                self._answer(batch, key, BatchAnswer(batch.permits[key], custom_id, *batch.found[key]))
            else:
                again = unfinished and batch.row.keys[key] < _TWICE
                self._free(batch, [key], None if again else BatchAnswer(expired=unfinished))
        self._end_if_read(batch)

    def _answer(self, batch: _Batch, key: str, answer: BatchAnswer | HelmbenchError | None) -> None:
        one = batch.waiting.pop(key, None)
        if one is None or one.done():
            return
        if isinstance(answer, HelmbenchError):
            self.left_calls += isinstance(answer, InBatchError)
            one.set_exception(answer)
        else:
            one.set_result(answer)

    def _free(
        self, batch: _Batch, keys: Iterable[str], answer: BatchAnswer | HelmbenchError | None = None
    ) -> None:
        """Let calls go of which nothing was asked, or nothing was answered; without an answer they ask anew."""
        for key in tuple(keys):
            self._held.pop(key, None)
            self._limiter.give_back(batch.permits.pop(key))
            self._answer(batch, key, answer)

    async def _failed(self, batch: _Batch, faults: Sequence[BatchFault]) -> None:
        """Nothing was asked: too many tokens at once go in halves, named lines singly; else the model stops."""
        keys = [*batch.row.keys]
        named = {keys[line - 1] for _, _, line in faults if line and 0 < line <= len(keys)}
        self._naming[batch.place] += bool(named)
        others_out = self._has_others_out(batch)
        if any(code == _TOO_MANY for code, _, _ in faults) and (len(keys) > 1 or others_out):
            self._most[batch.place] = max(1, len(keys) // 2)
            while self._has_others_out(batch):
                await self._pause(batch, FIRST_POLL_S)
        elif named and self._naming[batch.place] <= _MOST_NAMING:
            self._free(batch, named & batch.permits.keys(), BatchAnswer())
        else:
            said = "; ".join(": ".join(filter(None, fault[:2])) for fault in faults) or "no reason given"
            self._stop(batch, f"{batch.row.model} takes no batch at {batch.host}: {said}")
            return
        self._forget(batch)

    def _has_others_out(self, batch: _Batch) -> bool:
        return any(one.place == batch.place and one.is_out and one is not batch for one in self.batches)

    def _stop(self, batch: _Batch, sentence: str) -> None:
        models = {batch.permits[key].model for key in batch.waiting}
        self._forget(batch, ModelStoppedError(sentence))
        for model in models:
            self._limiter.stop(model, sentence)

    def _forget(self, batch: _Batch, answer: HelmbenchError | None = None) -> None:
        """Drop a batch of which nothing was asked."""
        self._record.drop(batch.row.token)
        for key in batch.row.keys:
            self._tries[key] = self._tries.get(key, 1) - 1
        self._free(batch, batch.permits, answer)

    def _leave(self, batch: _Batch, error: HelmbenchError) -> None:
        batch.left = error
        for key in tuple(batch.waiting):
            self._answer(batch, key, error)

    def _end_if_read(self, batch: _Batch) -> None:
        if batch.found is not None and not batch.permits and batch.row.state != "read":
            batch.row = replace(batch.row, state="read")
            self._record.put(batch.row)


def _place(endpoint: Endpoint) -> tuple[str, str]:
    return endpoint.base_url, endpoint.wire_model


def _end_of_window(created_s: float) -> str:
    return time.strftime("%a %H:%M", time.localtime(created_s + _WINDOW_S))
