"""Batches of a session: calls that wait are gathered, sent together, and answered when their batch is read.

Each step is on record before the next one is taken, so that a killed session pays for nothing twice: a call whose key
is in a batch on record waits for that batch.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from math import inf
from typing import Protocol
from urllib.parse import urlsplit

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.batch_wire import WIRES, BatchState, BatchWire, WireError
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import InBatchError, ModelStoppedError, Permit, PermitRequest
from pytest_helmbench.gateway.prices import BATCH_PRICE
from pytest_helmbench.gateway.providers.endpoints import Endpoint

GATHER_S = 5.0
LOOK_S = 60.0
FIRST_POLL_S, LAST_POLL_S = 10.0, 60.0
UNREADABLE_S = 600.0
_MOST_LINES, _MOST_BYTES = 5_000, 100_000_000
_WINDOW_S = 86_400.0
_KEPT_S = 31 * _WINDOW_S
_GONE = 410
_FORGOTTEN = frozenset((401, 403, 404))
_UNFINISHED = frozenset(("expired", "cancelled"))
_TWICE = 2


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A call that may go in a batch.

    Args:
        origin: What tells it from every other call of its run: its key is made of this and of the run's UUID.
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
        permit: To be settled; None where nothing was answered.
        custom_id: Of its line.
        status: HTTP status of the line; 0 for none: the call goes singly.
        expired: Two batches have ended without an answer to it.
    """

    permit: Permit | None = None
    custom_id: str = ""
    status: int = 0
    body: bytes = b""
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

    @property
    def share_usd(self) -> float:
        """The USD that it holds for one of its calls."""
        return self.reserved_usd / max(1, len(self.keys))


class BatchRecord(Protocol):
    """Where batches are kept. Used on the loop."""

    def open_batches(self) -> Iterable[tuple[BatchRow, frozenset[str]]]:
        """Return the batches that are not read, the newest first, each with the keys that it has answered on record."""

    async def keep(self, row: BatchRow) -> None:
        """Return when a row is on disk in place of the one of its token; raises `RefusedError`."""

    def drop(self, token: str) -> None:
        """Delete a row: nothing was asked, or all of it has to be asked anew."""


@dataclass(slots=True)
class _Waiting:
    line: BatchLine
    permit: Permit
    answer: asyncio.Future[BatchAnswer]


@dataclass(slots=True)
class _Batch:
    """A batch in memory.

    Args:
        lines: Bodies by key, where this session has made it.
        pending: Keys without an answer on record.
    """

    row: BatchRow
    wire: BatchWire
    lines: dict[str, bytes] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)
    waiting: dict[str, _Waiting] = field(default_factory=dict)
    found: Mapping[str, tuple[int, bytes]] | None = None
    status: str = ""
    answered: int = 0
    left: InBatchError | None = None
    timer: asyncio.TimerHandle | None = None
    size: int = 0


class Batches:
    """The batches of a session, in the process that owns limiter and record. Used on its loop.

    Args:
        endpoints: By the model's id, with the word of the wire.
        uuid_of: Returns the UUID of a run.
        wait_s: How long answers are waited for; None where batches on record alone are waited for, and none is made.
    """

    def __init__(
        self,
        endpoints: Mapping[str, tuple[str, Endpoint]],
        limiter: Limiter,
        record: BatchRecord,
        uuid_of: Callable[[int], str],
        wait_s: float | None,
    ) -> None:
        self._endpoints = endpoints
        self._limiter = limiter
        self._record = record
        self._uuid_of = uuid_of
        self._gathers = wait_s is not None
        self._leave_at = time.monotonic() + (inf if wait_s is None else wait_s)
        self._gathering: dict[tuple[str, str], _Batch] = {}
        self._held: dict[str, _Batch] = {}
        self._tries: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.batches: list[_Batch] = []
        self.left_calls = 0

    async def resume(self) -> None:
        """Take up the batches on record."""
        for row, answered in self._record.open_batches():
            found = [pair for pair in self._endpoints.values() if _place(pair[1]) == (row.address, row.model)]
            if row.state == "planned":
                self._record.drop(row.token)  # a file costs nothing
                continue
            pending = {*row.keys} - answered - self._held.keys()
            for _ in pending:
                self._limiter.budget.reserve(row.share_usd)
            if not found:
                continue
            word, endpoint = found[0]
            batch = _Batch(row, WIRES[word](endpoint), pending=pending)
            self._tries = {**row.keys, **self._tries}
            self._held.update(dict.fromkeys(pending, batch))
            if pending:
                self._begin(batch)
            else:
                batch.found = {}
                self._end_if_read(batch)

    async def ask(self, line: BatchLine) -> BatchAnswer:
        """Return what a batch brings for a call.

        Raises:
            InBatchError: The session waits no longer.
            RefusedError: The budget cannot pay it, or the model was stopped (and its kinds).
        """
        key = self._key(line)
        held = self._held.get(key)
        if held is not None and held.left is not None:
            self.left_calls += 1
            raise held.left
        if held is None and not self._gathers:
            return BatchAnswer()
        permit = await self._limiter.reserve(
            line.request, BATCH_PRICE, None if held is None else held.row.share_usd
        )
        if permit is None:
            return BatchAnswer()
        waiting = _Waiting(line, permit, asyncio.get_running_loop().create_future())
        if held is None:
            self._gather(key, waiting)
        else:
            held.waiting[key] = waiting
            if held.found is not None:
                self._deliver(held, [key])
        return await waiting.answer

    def settled(self, custom_id: str) -> None:
        """Take note that the answer of a line is on record."""
        key = custom_id.partition("-")[2]
        batch = self._held.pop(key, None)
        if batch is not None:
            batch.pending.discard(key)
            self._end_if_read(batch)

    @property
    def waiting_words(self) -> str:
        """Which calls are in batches that are not read, for people; empty for none."""
        out = [batch for batch in self.batches if batch.row.state == "out" and batch.pending]
        if not out:
            return ""
        calls = sum(len(batch.pending) for batch in out)
        hosts = " and ".join(dict.fromkeys(urlsplit(batch.row.address).netloc for batch in out))
        until = time.strftime("%a %H:%M", time.localtime(max(one.row.created_s for one in out) + _WINDOW_S))
        return f"{calls} call{'s are' if calls > 1 else ' is'} at {hosts} until {until}"

    @property
    def progress(self) -> tuple[int, int, int]:
        """How many batches are out, with how many calls, and how many of them are answered."""
        out = [batch for batch in self.batches if batch.pending]
        return len(out), sum(len(one.row.keys) for one in out), sum(one.answered for one in out)

    def _key(self, line: BatchLine) -> str:
        parts = "\0".join((self._uuid_of(line.request.run_id), *line.origin))
        return hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()[:40]

    # From a call to a batch that is out

    def _gather(self, key: str, waiting: _Waiting) -> None:
        word, endpoint = self._endpoints[waiting.line.request.model]
        place, size = _place(endpoint), len(waiting.line.body)
        batch = self._gathering.get(place)
        if batch is not None and (len(batch.lines) == _MOST_LINES or batch.size + size > _MOST_BYTES):
            self._send(place)
            batch = None
        if batch is None:
            row = BatchRow(secrets.token_hex(4), *place, "planned", {}, 0.0, time.time())
            batch = self._gathering[place] = _Batch(row, WIRES[word](endpoint))
        batch.lines[key] = waiting.line.body
        batch.waiting[key] = waiting
        batch.size += size
        if batch.timer is not None:
            batch.timer.cancel()
        batch.timer = asyncio.get_running_loop().call_later(GATHER_S, self._send, place)

    def _send(self, place: tuple[str, str]) -> None:
        batch = self._gathering.pop(place)
        if batch.timer is not None:
            batch.timer.cancel()
        gone = [key for key, one in batch.waiting.items() if one.answer.done()]  # cancelled meanwhile
        for key in gone:
            del batch.lines[key], batch.waiting[key]
        if not batch.lines:
            return
        reserved = sum(one.permit.reserved_usd for one in batch.waiting.values())
        keys = {key: self._tries.get(key, 0) + 1 for key in batch.lines}
        self._tries.update(keys)
        batch.row = replace(batch.row, keys=keys, reserved_usd=reserved)
        batch.pending = set(keys)
        self._held.update(dict.fromkeys(keys, batch))
        self._begin(batch)

    def _begin(self, batch: _Batch) -> None:
        self.batches.append(batch)
        task = asyncio.get_running_loop().create_task(self._follow(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, batch: _Batch) -> None:
        """Create a batch, wait for it and read it; an error of any of that ends the calls that wait for it."""
        try:
            if not await self._is_out(batch):
                return
            state = await self._ended(batch)
            if state is not None:
                await self._read(batch, state)
        except Exception as error:  # noqa: BLE001 - a call that waits for ever is worse than any error
            for one in self._taken(batch, batch.waiting):
                one.answer.set_exception(error)

    async def _is_out(self, batch: _Batch) -> bool:
        """Bring a batch to its provider; return whether there is one to wait for."""
        pause_s, resumed = 1.0, not batch.lines
        while batch.row.provider_id is None:
            if batch.row.state == "creating":
                found = await self._looked_for(batch)
                if found is None and resumed:
                    self._forget(batch)
                    self._again(batch, batch.waiting)
                    return False
                batch.row = replace(batch.row, state="planned") if found is None else _out(batch.row, found)
                continue
            batch.row = replace(batch.row, created_s=time.time())
            await self._record.keep(batch.row)
            try:
                provider_id = await self._created(batch)
                batch.row = _out(batch.row, provider_id)
            except WireError as error:
                if error.is_refusal:
                    self._refused(batch, str(error))
                    return False
                if batch.row.state == "planned":
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, LAST_POLL_S)
        await self._record.keep(batch.row)
        batch.lines.clear()
        return True

    async def _created(self, batch: _Batch) -> str:
        async def uploaded(input_file: str) -> None:
            batch.row = replace(batch.row, state="creating", input_file=input_file, created_s=time.time())
            await self._record.keep(batch.row)

        token = batch.row.token
        lines = {f"{token}-{key}": body for key, body in batch.lines.items()}
        return await batch.wire.create(token, lines, uploaded)

    async def _looked_for(self, batch: _Batch) -> str | None:
        """Return the id of a batch that may have been created; two whole lists without it mean that it was not."""
        row, lists = batch.row, 0
        while True:
            try:
                found = await batch.wire.find(row.token, row.input_file or "")
            except WireError:
                await self._pause(batch, FIRST_POLL_S)
                continue
            lists += 1
            late_s = time.time() - row.created_s
            if found is not None or (lists > 1 and late_s >= LOOK_S):
                return found
            await asyncio.sleep(max(1.0 if LOOK_S > 1 else LOOK_S, LOOK_S - late_s))

    # From a batch that is out to its answers

    async def _ended(self, batch: _Batch) -> BatchState | None:
        """Wait for the end of a batch; None where all of it has to be asked anew."""
        pause_s, unreadable_since = FIRST_POLL_S, time.monotonic()
        if not batch.waiting:
            await asyncio.sleep(0)
        while True:
            try:
                state = await batch.wire.poll(batch.row.provider_id or "")
            except WireError as error:
                if error.status == _GONE or time.time() - batch.row.created_s > _KEPT_S:
                    self._limiter.budget.spend(batch.row.reserved_usd)
                    self._forget(batch)
                    self._again(batch, batch.waiting)
                    return None
                lost_s = time.monotonic() - unreadable_since
                if error.status in _FORGOTTEN and lost_s >= UNREADABLE_S:
                    self._leave(batch, f"its batch cannot be read: {error}")
                    return None
            else:
                unreadable_since = time.monotonic()
                batch.answered, batch.status = state.answered, state.status
                if state.ended:
                    return state
            await self._pause(batch, pause_s)
            pause_s = min(1.2 * pause_s, LAST_POLL_S)

    async def _pause(self, batch: _Batch, pause_s: float) -> None:
        """Wait before the next look; once the session waits no longer, its calls are left in their batch."""
        left_s = min(pause_s, self._leave_at - time.monotonic())
        if left_s < pause_s and batch.left is None:
            await asyncio.sleep(max(left_s, 0.0))
            until = time.strftime("%a %H:%M", time.localtime(batch.row.created_s + _WINDOW_S))
            self._leave(batch, f"its call is in a batch until {until}; --helmbench-resume collects it")
            self._limiter.leave(InBatchError("its call waits for money that calls in batches hold"))
        await asyncio.sleep(pause_s)

    async def _read(self, batch: _Batch, state: BatchState) -> None:
        if state.status == "failed":
            self._failed(batch, state)
            return
        pause_s = FIRST_POLL_S
        while batch.found is None:
            try:
                rows = await batch.wire.results(state)
                token = f"{batch.row.token}-"
                batch.found = {
                    name.removeprefix(token): row for name, row in rows.items() if name.startswith(token)
                }
            except WireError:
                await self._pause(batch, pause_s)
        batch.left = None
        self._deliver(batch, [*batch.waiting])

    def _deliver(self, batch: _Batch, keys: Iterable[str]) -> None:
        """Give calls their answers; those without one are asked in one more batch, or singly."""
        found, anew = batch.found or {}, []
        for key in keys:
            waiting = batch.waiting[key]
            if key in found:
                status, body = found[key]
                self._answer(
                    batch, key, BatchAnswer(waiting.permit, f"{batch.row.token}-{key}", status, body)
                )
            elif batch.status in _UNFINISHED and batch.row.keys[key] < _TWICE:
                anew.append(key)
            else:
                self._limiter.give_back(waiting.permit)
                self._answer(batch, key, BatchAnswer(expired=batch.status in _UNFINISHED))
                self._held.pop(key, None)
                batch.pending.discard(key)
        self._again(batch, anew)
        self._end_if_read(batch)

    def _answer(self, batch: _Batch, key: str, answer: BatchAnswer) -> None:
        for one in self._taken(batch, [key]):
            one.answer.set_result(answer)

    def _taken(self, batch: _Batch, keys: Iterable[str]) -> list[_Waiting]:
        """Return the calls that wait for a batch, which has nothing more to do with them."""
        taken = [batch.waiting.pop(key) for key in tuple(keys)]
        return [one for one in taken if not one.answer.done()]

    def _again(self, batch: _Batch, keys: Iterable[str]) -> None:
        """Gather calls anew."""
        for key in tuple(keys):
            self._held.pop(key, None)
            batch.pending.discard(key)
            for one in self._taken(batch, [key]):
                self._gather(key, one)

    def _failed(self, batch: _Batch, state: BatchState) -> None:
        """Nothing was asked: too many tokens at once go in halves, named lines singly; else the model stops."""
        self._forget(batch)
        keys = [*batch.row.keys]
        named = {keys[line - 1] for _, _, line in state.faults if line and 0 < line <= len(keys)}
        if any(code == "token_limit_exceeded" for code, _, _ in state.faults) and len(keys) > 1:
            self._halve(batch)
        elif named and len(named) < len(keys):
            for key in named & batch.waiting.keys():
                self._limiter.give_back(batch.waiting[key].permit)
                self._answer(batch, key, BatchAnswer())
            self._again(batch, batch.waiting)
        else:
            said = "; ".join(f"{code}: {message}" for code, message, _ in state.faults) or "no reason given"
            self._stop(batch, f"a batch of {batch.row.model} failed: {said}")

    def _halve(self, batch: _Batch) -> None:
        keys, place = [*batch.waiting], (batch.row.address, batch.row.model)
        for half in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
            self._again(batch, half)
            if place in self._gathering:
                self._send(place)

    def _refused(self, batch: _Batch, said: str) -> None:
        self._forget(batch)
        self._stop(batch, f"{batch.row.model} takes no batch at {batch.row.address}: {said}")

    def _stop(self, batch: _Batch, sentence: str) -> None:
        models = {one.line.request.model for one in batch.waiting.values()}
        for one in self._taken(batch, batch.waiting):
            self._limiter.give_back(one.permit)
            one.answer.set_exception(ModelStoppedError(sentence))
        for model in models:
            self._limiter.stop(model, sentence)

    def _forget(self, batch: _Batch) -> None:
        """Drop a batch of which nothing was asked, or nothing will come."""
        self._record.drop(batch.row.token)
        for key in batch.row.keys:
            self._held.pop(key, None)
            self._tries[key] = self._tries.get(key, 1) - 1
        batch.pending.clear()

    def _leave(self, batch: _Batch, sentence: str) -> None:
        batch.left = InBatchError(sentence)
        for one in self._taken(batch, batch.waiting):
            self.left_calls += 1
            one.answer.set_exception(batch.left)

    def _end_if_read(self, batch: _Batch) -> None:
        if batch.found is not None and not batch.pending and batch.row.state != "read":
            batch.row = replace(batch.row, state="read")
            task = asyncio.get_running_loop().create_task(self._record.keep(batch.row))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


def _out(row: BatchRow, provider_id: str) -> BatchRow:
    return replace(row, state="out", provider_id=provider_id)


def _place(endpoint: Endpoint) -> tuple[str, str]:
    return endpoint.base_url, endpoint.wire_model
