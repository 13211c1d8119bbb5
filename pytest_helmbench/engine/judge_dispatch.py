"""Replies that are judged away from the event loop: in parcels by judges, or one by one in a thread of our own.

A reply is never asked for again, and judged as often as it takes: whoever judges may die over it.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future

from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.engine.host_lines import HostLines
from pytest_helmbench.engine.judge_access import JudgeAccess, JudgeOffer, JudgesGoneError, OpenedJudges
from pytest_helmbench.engine.judging_costs import JudgingCosts
from pytest_helmbench.engine.judging_tasks import Sent, Task
from pytest_helmbench.engine.own_thread import JudgingThread
from pytest_helmbench.engine.parcels import Finding, Packer

__all__ = ["Dispatch"]

_PARCEL_MS = 250.0
_PARCEL_REPLIES = 64
_PARCELS_AHEAD = 2
"""Parcels out for each place, so that a judge finds the next one when it has done with the last."""

_LINGER_S = 0.01
_LOOK_S = 1.0
_TRIES = 3
_HOPELESS = 6
"""Parcels that could not be judged, with none in between that could."""

_HOSTS_GONE = (
    "the judges are gone, and its code runs on their hosts only\n"
    "  hint: --helmbench-resume goes on when they are there again, and asks nothing twice"
)

_AFTER_DEATHS = {1: 4, 2: 1}
"""Replies in a parcel, by how many judges have died over them."""


class Dispatch:
    """Brings replies to whoever judges them. Everything but `close` runs on the event loop.

    Args:
        costs: What judging takes.
        offer: Who may judge beside this process; None for nobody.
        note: Takes a sentence for the summary, from any thread.
    """

    def __init__(self, costs: JudgingCosts, offer: JudgeOffer | None, note: Callable[[str], object]) -> None:
        self._costs = costs
        self._note = note
        self._loop = asyncio.get_running_loop()
        self._access = None if offer is None else JudgeAccess(offer, self._tell, self._go_on, note)
        self._thread = JudgingThread()
        self._thread_busy = False
        self._packer = Packer()
        self._packer_of: OpenedJudges | None = None
        self._pending: deque[Task] = deque()
        self._again: deque[Task] = deque()  # judges have died over them
        self._suspects: deque[Task] = deque()  # so many that each is judged alone
        self._own: deque[Task] = deque()  # nobody else can judge them
        self._bound: deque[Task] = deque()  # only hosts of judges can judge them
        self._unmovable: set[str] = set()
        self._out: dict[Future[bytes], Sent] = {}
        self._last_sign = 0.0
        self._refusals_in_a_row = 0
        self._look_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None
        self._closed = False
        self.lines = HostLines()

    def add(self, task: Task) -> None:
        """Have a reply judged; its future is told."""
        if task.bound:
            self._bound.append(task)
        else:
            (self._own if task.evaluator.group in self._unmovable else self._pending).append(task)
        self._go_on()

    def close(self) -> None:
        """End those who judge, and wait for nothing. From any thread."""
        self._closed = True
        if self._access is not None:
            self._access.close()
        self._thread.end()

    def _tell(self, function: Callable[[], object]) -> None:
        """Run a function on the event loop, from any thread; nothing happens once the loop is closed."""
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    # What goes where.

    def _go_on(self) -> None:
        if self._closed:
            return
        judges = self._judges()
        if judges is not None:
            self._send_parcels(judges)
        self._judge_here()
        waiting = self._pending or self._again or self._suspects or self._bound or self._out
        if self._look_timer is None and waiting:
            self._look_timer = self._loop.call_later(_LOOK_S, self._look)

    def _judges(self) -> OpenedJudges | None:
        access = self._access
        if access is None:
            return None
        if not access.offer.only_if_worth or self._costs.worth_judges or self._again or self._suspects:
            access.look_for()
        if access.are_hopeless:
            for task in (*self._again, *self._suspects):
                _settle(task, "no_judges", "a judge died over its reply, and no other is there")
            self._again.clear()
            self._suspects.clear()
        if access.stood_in_for or access.are_hopeless:
            self._give_up_bound()
        return access.judges

    def _give_up_bound(self) -> None:
        """Settle what runs code: who stands in for hosts of judges is none of them."""
        for queue in (self._bound, self._again, self._suspects):
            for task in [task for task in queue if task.bound]:
                queue.remove(task)
                _settle(task, "no_judges", _HOSTS_GONE)

    def _look(self) -> None:
        """Look once a second for what nobody tells: judges that say nothing any more."""
        self._look_timer = None
        access = self._access
        if access is not None and self._out:
            there = access.judges
            if there is not None and there.places() and any(sent.runs_code for sent in self._out.values()):
                self._last_sign = time.monotonic()  # code may run for long, and somebody is there
            elif not (there is not None and there.is_local) and (
                time.monotonic() - self._last_sign > access.offer.wait_s
            ):
                access.give_up()
                out, self._out = self._out, {}
                for sent in out.values():
                    self._put_back(sent.tasks, alone=sent.alone)
        self._go_on()

    def _put_back(self, tasks: Sequence[Task], *, alone: bool) -> None:
        for task in reversed(tasks):
            queue = self._bound if task.bound else self._pending
            (self._suspects if alone else self._again if task.deaths else queue).appendleft(task)

    def _send_parcels(self, judges: OpenedJudges) -> None:
        places = judges.places()
        most = _PARCELS_AHEAD * max(1, places)
        while len(self._out) < most and not any(sent.alone for sent in self._out.values()):
            tasks, alone = self._from_again() or self._from_bound(), False
            if not tasks and self._has_room(judges):
                tasks = self._from_pending(most)
            if not tasks and self._suspects and not self._out:
                tasks, alone = [self._suspects.popleft()], True
            if not tasks:
                return
            waiting = [task for task in tasks if not task.future.done()]
            if waiting and not self._send(judges, waiting, alone=alone):
                return

    def _from_again(self) -> list[Task]:
        """Return what judges have died over: fewer at a time, so that it is found out by which."""
        if not self._again:
            return []
        most = _AFTER_DEATHS[self._again[0].deaths]
        most = 1 if self._again[0].bound else most
        return [self._again.popleft() for _ in range(min(most, len(self._again)))]

    def _from_bound(self) -> list[Task]:
        """Return one that runs code, unless others have waited for longer."""
        bound, pending = self._bound, self._pending
        if not bound or (pending and pending[0].since < bound[0].since):
            return []
        return [bound.popleft()]

    def _has_room(self, judges: OpenedJudges) -> bool:
        """Return whether a place is held by nothing that may take hours."""
        return judges.places() > sum(sent.asks for sent in self._out.values())

    def _from_pending(self, most_out: int) -> list[Task]:
        """Return a parcel's worth of replies; nothing where more may come within a moment."""
        pending = self._pending
        if not pending:
            return []
        free = most_out - len(self._out)
        most = min(_PARCEL_REPLIES, -(-len(pending) // free))
        ms, count = 0.0, 0
        for task in pending:
            more = self._costs.mean(task.key) or _PARCEL_MS
            if count == most or (count and ms + more > _PARCEL_MS):
                break
            ms += more
            count += 1
        waited = time.monotonic() - pending[0].since
        if count < _PARCEL_REPLIES and ms < _PARCEL_MS / 2 and waited < _LINGER_S:
            if self._linger_timer is None:
                self._linger_timer = self._loop.call_later(_LINGER_S - waited, self._lingered)
            return []
        return [pending.popleft() for _ in range(count)]

    def _lingered(self) -> None:
        self._linger_timer = None
        self._go_on()

    def _send(self, judges: OpenedJudges, tasks: Sequence[Task], *, alone: bool) -> bool:
        """Send a parcel, and return whether the judges have taken it."""
        if self._packer_of is not judges:
            self._packer, self._packer_of = Packer(judges.made_by), judges
        try:
            parcel = self._packer.parcel([(task.evaluator, task.reply) for task in tasks])
        except Exception as error:  # noqa: BLE001 - whatever pickle says of a kind of somebody else
            self._keep_here(tasks, str(error))
            return True
        if judges.listen is not None and any(task.asks for task in tasks):
            judges.listen(self.lines, self._loop)
        try:
            future = judges.submit(parcel)
        except Exception:  # noqa: BLE001 - of somebody else's executor, too; what is out is told by itself
            self._put_back(tasks, alone=alone)
            if self._access is not None:
                self._access.lose()
            return False
        if not self._out:
            self._last_sign = time.monotonic()
        self._out[future] = Sent(tasks, alone, judges)
        future.add_done_callback(lambda done: self._tell(lambda: self._back(done)))
        return True

    def _keep_here(self, tasks: Sequence[Task], why: str) -> None:
        """Judge in this process what cannot travel."""
        for task in tasks:
            if task.bound:
                _settle(task, "no_judges", f"it cannot be sent to a judge: {why}")
        groups = {task.evaluator.group for task in tasks} - self._unmovable
        for group in sorted(groups):
            self._note(f"replies to {group} are judged in the session's own process: {why}")
        self._unmovable |= groups
        self._own.extend(task for task in tasks if not task.bound)

    # What comes back.

    def _back(self, future: Future[bytes]) -> None:
        sent = self._out.pop(future, None)
        if sent is None or self._closed:
            return
        self._last_sign = time.monotonic()
        try:
            findings: Sequence[Finding] = pickle.loads(future.result())
        except BrokenExecutor as error:
            self._heard()  # who dies was there
            self._died(sent, str(error))
        except JudgesGoneError:
            self._put_back(sent.tasks, alone=sent.alone)
            if self._access is not None and self._access.judges is sent.judges:
                self._access.lose()
        except Exception as error:  # noqa: BLE001 - whatever kept somebody else from judging
            self._refused(sent.tasks, str(error) or type(error).__name__)
        else:
            self._refusals_in_a_row = 0
            self._heard()
            for task, finding in zip(sent.tasks, findings, strict=True):
                self._found(task, finding)
        self._go_on()

    def _heard(self) -> None:
        if self._access is not None:
            self._access.heard()

    def _found(self, task: Task, finding: Finding) -> None:
        if task.bound and finding.raised:
            _settle(task, "judge_failed", f"{finding.raised} was raised where it was judged")
            return
        if finding.raised:
            self._own.append(task)  # it is an error where it raises here, too
            return
        if not task.bound:  # its time is that of its code, elsewhere
            self._costs.took(task.key, finding.ms)
        if not task.future.done():
            task.future.set_result(finding.found)

    def _died(self, sent: Sent, how: str) -> None:
        for task in sent.tasks:
            task.count_death()
            if sent.alone:
                message = (
                    f"judging its reply ended {task.deaths} judges, the last with nothing else at hand: {how}\n"
                    "  hint: the reply is on record; --helmbench-resume judges it again"
                )
                _settle(task, "judge_died", message)
            else:
                (self._suspects if task.deaths >= _TRIES else self._again).append(task)

    def _refused(self, tasks: Sequence[Task], why: str) -> None:
        self._note(f"a judge could not judge: {why.partition(chr(10))[0]}")
        self._refusals_in_a_row += 1
        if self._refusals_in_a_row >= _HOPELESS and self._access is not None:
            self._refusals_in_a_row = 0
            self._access.give_up()
        for task in tasks:
            task.count_refusal()
            if task.refusals < _TRIES or task.deaths:
                self._put_back([task], alone=task.deaths >= _TRIES)
            elif task.bound:
                _settle(task, "no_judges", f"{_TRIES} judges could not judge it: {why}")
            else:
                self._own.append(task)

    # In this process.

    def _judge_here(self) -> None:
        """Give the thread of this process a reply that no judge has died over."""
        if self._thread_busy:
            return
        judges = None if self._access is None else self._access.judges
        queues = (self._own,) if judges is not None and self._has_room(judges) else (self._own, self._pending)
        task = next((queue.popleft() for queue in queues if queue), None)
        if task is None:
            return
        self._thread_busy = True

        def told(found: object, ms: float) -> None:
            self._tell(lambda: self._judged_here(task, found, ms))

        self._thread.run(task.evaluator, task.reply, told)

    def _judged_here(self, task: Task, found: object, ms: float) -> None:
        self._thread_busy = False
        self._costs.took(task.key, ms)
        if not task.future.done():
            task.future.set_result(found)
        self._go_on()


def _settle(task: Task, reason: str, message: str) -> None:
    if not task.future.done():
        task.future.set_result(Outcome(Verdict.ERROR, reason, message))
