"""Batches of a session: calls that wait are gathered, sent together, and answered when their batch is read.

Each step is on record before the next one is taken, so that a killed session pays for nothing twice: a call whose key
is in a batch on record waits for that batch. A task takes each batch from state to state; its end answers the calls:

gathering ─▶ planned ─▶ creating ─▶ out ─▶ read
                 ◀─ not found ─┘
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from math import inf
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.batch_wire import WIRES, BatchFault, BatchState, BatchWire, WireError, asked
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
        custom_id: Of its line; empty where it has none.
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
    """A batch on record; its state is `planned`, `creating`, `out` or `read`, and `gathering` before it is there.

    Args:
        keys: Of its calls in order, each with the number of batches that it has been in, with this one.
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

    def open_batches(self) -> Iterable[tuple[BatchRow, Collection[str]]]:
        """Return the batches that are not read, the newest first, each with its keys without an answer on record."""

    def put(self, row: BatchRow) -> None:
        """Write a row, in place of the one of its token."""

    def drop(self, token: str) -> None:
        """Delete a row: nothing was asked, or all of it has to be asked anew."""

    async def stored(self) -> None:
        """Return when all of that is on disk; raises `RefusedError`."""


_End: TypeAlias = Mapping[str, BatchAnswer] | HelmbenchError
"""Answers by key, where a call without one asks anew; or why the calls wait no longer."""


@dataclass(slots=True)
class _Call:
    """A call in a batch, without an answer on record.

    Args:
        tries: Batches that it has been in, with this one.
        body: Until its batch is out; empty where another session has made it.
        waits: Whether it is waited for.
    """

    permit: Permit
    tries: int
    body: bytes = b""
    waits: bool = False


@dataclass(slots=True)
class _Batch:
    """A batch in memory.

    Args:
        calls: By key.
        size: Bytes of their bodies.
        grew_at: When the last one was added; monotonic seconds.
        seen: Its last state at the provider.
        end: The task that follows it.
    """

    row: BatchRow
    wire: BatchWire
    calls: dict[str, _Call] = field(default_factory=dict)
    size: int = 0
    grew_at: float = 0.0
    seen: BatchState = BatchState("", 0, (), ())
    end: asyncio.Task[_End] = field(init=False)

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
        return self.row.state == "out" and self.seen.status != "failed" and not self.end.done()


class _GoneError(Exception):
    """The provider has deleted a batch."""


class _NothingAskedError(Exception):
    """Nothing of a batch was asked, so that it can be dropped; `end` is for its calls all the same."""

    def __init__(self, end: _End) -> None:
        self.end = end
        super().__init__()


class Batches:
    """The batches of a session, in the process that owns limiter and record. Used on its loop.

    Args:
        endpoints: By the model's id, with the word of the wire.
        uuids: Of each run by its id, behind the first those under which its calls may be in batches on record.
        wait_s: How long answers are waited for; None where batches on record alone are waited for, and none is made.
    """

    def __init__(
        self,
        endpoints: Mapping[str, tuple[str, Endpoint]],
        limiter: Limiter,
        record: BatchRecord,
        uuids: Mapping[int, Sequence[str]],
        wait_s: float | None,
    ) -> None:
        self._endpoints = endpoints
        self._limiter = limiter
        self._record = record
        self._uuids = uuids
        self._gathers = wait_s is not None
        self._leave_at = time.monotonic() + (inf if wait_s is None else wait_s)
        self._gathering: dict[tuple[str, str], _Batch] = {}
        self._held: dict[str, _Batch] = {}
        self._most: dict[tuple[str, str], int] = {}
        self._naming: Counter[tuple[str, str]] = Counter()
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
        models = {_place(endpoint): model for model, (_, endpoint) in self._endpoints.items()}
        for row, without in self._record.open_batches():
            pending = {*without} - self._held.keys()
            model = models.get((row.address, row.model))
            if row.state == "planned":
                self._record.drop(row.token)  # a file costs nothing
            elif not pending:
                self._record.put(replace(row, state="read"))
            elif model is None:
                raise HelmbenchError(
                    f"{len(pending)} calls are in a batch of {row.model} at {row.address}, and this session asks for no"
                    " batch there; nothing was called\n  hint: give its address and key, and say 'batch: openai' in"
                    " models.yml; collect shards of several addresses before they are merged"
                )
            else:
                batch = self._begin(row, model)
                request = PermitRequest(model, 0, None, urgent=False)
                for key in pending:
                    permit = self._limiter.hold(request, row.reserved_usd / len(row.keys))
                    batch.calls[key] = _Call(permit, row.keys[key])
                    self._held[key] = batch

    async def ask(self, line: BatchLine) -> BatchAnswer:
        """Return what a batch brings for a call.

        Raises:
            HelmbenchError: Its batch cannot be sent or read.
            InBatchError: The session waits no longer.
            RefusedError: The budget cannot pay it, or the model was stopped (and its kinds).
        """
        key, tries = self._key(line), 0
        while True:
            batch = self._held.get(key)
            if batch is None:
                permit = await self._limiter.reserve(line.request) if self._gathers else None
                if permit is None:
                    return BatchAnswer()
                if key in self._held:
                    self._limiter.give_back(permit)
                    continue
                batch = self._gather(key, line, _Call(permit, tries + 1, line.body))
            elif batch.calls[key].waits:
                return BatchAnswer()  # one answer is the answer of one call
            else:  # of another session, or of a worker that is gone
                held = batch.calls[key].permit
                self._limiter.give_back(held)
                batch.calls[key].permit = self._limiter.hold(line.request, held.reserved_usd)
            call = batch.calls[key]
            answer = (await self._end_of(batch, key)).get(key)
            if answer is not None and answer.custom_id:
                return replace(answer, permit=call.permit)
            if self._held.get(key) is batch:
                self._let_go(key)
            if answer is not None:
                return answer
            tries = call.tries

    async def _end_of(self, batch: _Batch, key: str) -> Mapping[str, BatchAnswer]:
        """Wait until a batch has ended, and return the answers to its calls.

        Raises:
            HelmbenchError: They wait no longer.
        """
        call = batch.calls[key]
        call.waits = True
        try:
            end = await asyncio.shield(batch.end)
        except asyncio.CancelledError:
            if batch.row.state == "gathering":
                self._let_go(key)
            raise
        finally:
            call.waits = False
        if isinstance(end, HelmbenchError):
            self.left_calls += isinstance(end, InBatchError)
            raise end.with_traceback(None)
        return end

    def settled(self, custom_id: str) -> None:
        """Take note that the answer of a line is on record, and its permit settled."""
        self._let_go(custom_id.partition("-")[2])

    @property
    def waiting_words(self) -> str:
        """Which calls are in batches that are not read, for people; empty for none."""
        out = [batch for batch in self.batches if batch.row.state in ("creating", "out") and batch.calls]
        if not out:
            return ""
        calls = sum(len(batch.calls) for batch in out)
        hosts = " and ".join(dict.fromkeys(batch.host for batch in out))
        until = _end_of_window(max(one.row.created_s for one in out))
        return f"{calls} call{'s are' if calls > 1 else ' is'} at {hosts} until {until}"

    @property
    def progress(self) -> tuple[int, int, int]:
        """How many batches are out, with how many calls, and how many of them are answered."""
        out = [batch for batch in self.batches if batch.row.keys and batch.calls]
        return len(out), sum(len(one.row.keys) for one in out), sum(one.seen.answered for one in out)

    def _key(self, line: BatchLine) -> str:
        texts = ("\0".join((uuid, *line.origin)) for uuid in self._uuids[line.request.run_id])
        keys = [hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:40] for text in texts]
        return next((key for key in keys if key in self._held), keys[0])

    # Calls come to a batch, and leave it

    def _begin(self, row: BatchRow, model: str) -> _Batch:
        word, endpoint = self._endpoints[model]
        batch = _Batch(row, WIRES[word](endpoint))
        batch.end = asyncio.get_running_loop().create_task(self._follow(batch))
        self.batches.append(batch)
        return batch

    def _gather(self, key: str, line: BatchLine, call: _Call) -> _Batch:
        """Add a call to the batch that gathers; to a new one where that has gone, or is full."""
        place = _place(self._endpoints[line.request.model][1])
        batch = self._gathering.get(place)
        if (
            batch is None
            or batch.row.state != "gathering"
            or len(batch.calls) >= self._most.get(place, _MOST_LINES)
            or batch.size + len(line.body) > _MOST_BYTES
        ):
            row = BatchRow(secrets.token_hex(4), *place, "gathering", {}, 0.0, time.time())
            batch = self._gathering[place] = self._begin(row, line.request.model)
        batch.calls[key] = call
        batch.size += len(line.body)
        batch.grew_at = time.monotonic()
        self._held[key] = batch
        return batch

    def _let_go(self, key: str) -> None:
        """Let a call need its batch no longer; one that is out and that no call needs is read."""
        batch = self._held.pop(key, None)
        if batch is None:
            return
        self._limiter.give_back(batch.calls.pop(key).permit)
        if not batch.calls:
            self.batches = [one for one in self.batches if one is not batch]  # with its answers
            if batch.row.state == "out":
                batch.row = replace(batch.row, state="read")
                self._record.put(batch.row)

    # A batch from state to state

    async def _follow(self, batch: _Batch) -> _End:
        """Take a batch from state to state, and return the answers to its calls, or why they wait no longer."""
        try:
            if batch.row.state == "gathering":
                await self._plan(batch)
            await self._send(batch)
            return await self._told(batch, partial(self._read, batch))
        except _GoneError:
            return {key: BatchAnswer(None, f"{batch.row.token}-{key}") for key in batch.row.keys}
        except _NothingAskedError as nothing:
            for key, call in tuple(batch.calls.items()):
                call.tries -= 1
                self._let_go(key)
            self._record.drop(batch.row.token)
            return nothing.end
        except HelmbenchError as error:
            end = error
        except Exception as error:  # noqa: BLE001 - a call that waits for ever is worse than any error
            end = HelmbenchError(f"a fault of the program in a batch: {error!r}")
        self._limiter.leave(InBatchError("its call waits for money that calls in batches hold"))
        return end

    async def _plan(self, batch: _Batch) -> None:
        """Wait until no call was added for a while, and put the batch on record."""
        while (left_s := batch.grew_at + GATHER_S - time.monotonic()) > 0:  # noqa: ASYNC110 - it moves
            await asyncio.sleep(left_s)
        keys = {key: call.tries for key, call in batch.calls.items()}
        reserved = sum(call.permit.reserved_usd for call in batch.calls.values())
        await self._keep(batch, state="planned", keys=keys, reserved_usd=reserved)
        if not keys:
            raise _NothingAskedError({})

    async def _keep(self, batch: _Batch, **changes: Any) -> None:
        """Change a batch, and return when that is on disk."""
        batch.row = replace(batch.row, **changes)
        self._record.put(batch.row)
        await self._record.stored()

    async def _send(self, batch: _Batch) -> None:
        """Bring a batch to its provider; one that may be there already is looked for first."""
        own, began, pause_s, said = batch.row.state == "planned", time.monotonic(), 0.0, ""
        while batch.row.state != "out":
            if batch.row.state == "creating":
                found = await self._look_for(batch)
                await self._keep(batch, state="out" if found else "planned", provider_id=found or None)
            elif not own:  # the session that has made it has its bodies
                raise _NothingAskedError({})
            elif said and time.monotonic() >= min(began + UNREADABLE_S, self._leave_at):
                raise _NothingAskedError(HelmbenchError(f"its batch could not be sent: {said}"))
            else:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s + 1.0, LAST_POLL_S)
                try:
                    await self._create(batch)
                except WireError as error:
                    said = str(error)
                    if error.is_refusal or (error.lasting and batch.row.state == "planned"):
                        await self._refused(batch, [(error.code, said, None)])
                    self._faulty(batch, error, began)
        for call in batch.calls.values():
            call.body = b""

    async def _create(self, batch: _Batch) -> None:
        """Upload the calls, and create the batch once it is on record that it may have been created."""
        loop, token = asyncio.get_running_loop(), batch.row.token

        def uploaded(input_file: str) -> None:  # in the thread of the request
            kept = self._keep(batch, state="creating", input_file=input_file, created_s=time.time())
            asyncio.run_coroutine_threadsafe(kept, loop).result()

        lines = {f"{token}-{key}": call.body for key, call in batch.calls.items()}
        made = await asked(batch.wire, partial(batch.wire.create, token, lines, uploaded))
        await self._keep(batch, state="out", provider_id=made)

    async def _look_for(self, batch: _Batch) -> str:
        """Return the id of a batch that may have been created; two lists without it, a minute apart: it was not."""
        find = partial(batch.wire.find, batch.row.token, batch.row.input_file or "")
        look = partial(asked, batch.wire, find)
        found = await self._told(batch, look)
        if not found:
            await self._pause(batch, LOOK_S)
            found = await self._told(batch, look)
        return found

    async def _read(self, batch: _Batch) -> Mapping[str, BatchAnswer] | None:
        """Return the answers of a batch that has ended; None before it has."""
        seen = batch.seen = await asked(batch.wire, partial(batch.wire.poll, batch.row.provider_id or ""))
        if seen.status == "failed":
            await self._refused(batch, seen.faults)
        if not seen.ended:
            return None
        found: dict[str, BatchAnswer] = {}
        for custom_id, (status, body) in await asked(batch.wire, partial(batch.wire.results, seen)):
            token, _, key = custom_id.partition("-")
            if token == batch.row.token and key in batch.row.keys and key not in found:
                found[key] = BatchAnswer(None, custom_id, status, body)
            else:
                self._say(batch, "lines of no call, and second ones, in the results of a batch are ignored")
        if seen.answered and not found:
            # Asked singly, all would be paid twice.
            raise WireError("its results have none of its lines", _MISSING)
        if seen.status == "completed":
            return {**dict.fromkeys(batch.row.keys, BatchAnswer()), **found}
        twice = [key for key, tries in batch.row.keys.items() if tries >= _TWICE]
        return {**dict.fromkeys(twice, BatchAnswer(expired=True)), **found}

    async def _told(self, batch: _Batch, ask: Callable[[], Awaitable[T | None]]) -> T:
        """Return what a provider says of a batch, asked until it says something.

        Raises:
            InBatchError: For ten minutes, it did not know the batch or the key; or the client cannot ask.
            RefusedError: The session has ended, or waits no longer.
            _GoneError: The batch was deleted.
        """
        silent_since, lost_since, pause_s = time.monotonic(), inf, FIRST_POLL_S
        while True:
            try:
                found = await ask()
                if found is not None:
                    return found
                silent_since, lost_since = time.monotonic(), inf
            except WireError as error:
                old = error.status == _MISSING and time.time() - batch.row.created_s > _KEPT_S
                if batch.row.state == "out" and (old or error.status == _GONE):
                    raise _GoneError from error
                lost_since = min(lost_since, time.monotonic()) if error.status in _FORGOTTEN else inf
                if error.lasting or time.monotonic() - lost_since >= UNREADABLE_S:
                    raise InBatchError(f"its batch cannot be read: {error}") from error
                self._faulty(batch, error, silent_since)
            await self._pause(batch, pause_s)
            pause_s = min(1.2 * pause_s, LAST_POLL_S)

    async def _pause(self, batch: _Batch, pause_s: float) -> None:
        """Wait before the next question.

        Raises:
            RefusedError: The session has ended, or waits no longer: its calls are left in their batch.
        """
        if self._limiter.closed is not None:
            raise self._limiter.closed
        left_s = self._leave_at - time.monotonic()
        await asyncio.sleep(max(0.0, min(pause_s, left_s)))
        if left_s < pause_s:
            until = _end_of_window(batch.row.created_s)
            raise InBatchError(f"its call is in a batch until {until}; --helmbench-resume collects it")

    def _faulty(self, batch: _Batch, error: WireError, began: float) -> None:
        """Say that a server brings nothing, once that takes minutes."""
        if time.monotonic() - began >= FAULTY_S:
            self._say(batch, "no answer of use about a batch for minutes, still asking", f": {error}")

    def _say(self, batch: _Batch, sentence: str, why: str = "") -> None:
        if (batch.host, sentence) not in self._said:
            self._said.add((batch.host, sentence))
            self.sentences.append(f"{batch.host}: {sentence}{why}")

    async def _refused(self, batch: _Batch, faults: Sequence[BatchFault]) -> NoReturn:
        """End a batch that was refused as a whole: too many tokens at once go in halves, named lines singly; else the
        model stops.
        """
        keys = [*batch.row.keys]
        named = {keys[line - 1] for _, _, line in faults if line and 0 < line <= len(keys)}
        self._naming[batch.place] += bool(named)
        others_out = self._has_others_out(batch)
        if any(code == _TOO_MANY for code, _, _ in faults) and (len(keys) > 1 or others_out):
            self._most[batch.place] = max(1, len(keys) // 2)
            while self._has_others_out(batch):
                await self._pause(batch, FIRST_POLL_S)
            raise _NothingAskedError({})
        if named and self._naming[batch.place] <= _MOST_NAMING:
            raise _NothingAskedError(dict.fromkeys(named, BatchAnswer()))
        said = "; ".join(": ".join(filter(None, fault[:2])) for fault in faults) or "no reason given"
        sentence = f"{batch.row.model} takes no batch at {batch.host}: {said}"
        for model in {call.permit.model for call in batch.calls.values() if call.waits}:
            self._limiter.stop(model, sentence)
        raise _NothingAskedError(ModelStoppedError(sentence))

    def _has_others_out(self, batch: _Batch) -> bool:
        return any(one.place == batch.place and one.is_out and one is not batch for one in self.batches)


def _place(endpoint: Endpoint) -> tuple[str, str]:
    return endpoint.base_url, endpoint.wire_model


def _end_of_window(created_s: float) -> str:
    return time.strftime("%a %H:%M", time.localtime(created_s + _WINDOW_S))
