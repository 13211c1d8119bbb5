"""How long the event loop stands still while replies are judged that take 200 ms each, 64 of them in flight.

Run it by hand: `python tests/perf/stalls.py` (a minute). On a busy machine a loop that has nothing to do stands still
too; so one is watched beside it, in a process of its own. As root, `--realtime` lets both pass everything else that the
machine does; the judges stay as they are.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.connection
import os
import sys
import time
from multiprocessing.synchronize import Event
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from dispatched import Dispatched
from evaluators import Timed

from pytest_helmbench.core.judge_places import JudgePlaces
from pytest_helmbench.core.users_word import UsersWord
from pytest_helmbench.engine.executors import judge_offer

_IN_FLIGHT = 64
_JUDGING_MS = 200.0
_WHERE = ("0", "2")


def main() -> None:
    """Print a line for each place where replies are judged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--where", nargs="*", default=_WHERE, help="values of --helmbench-judges")
    parser.add_argument("--realtime", action="store_true", help="before all other processes; needs root")
    given = parser.parse_args()
    print(f"{_IN_FLIGHT} replies of {_JUDGING_MS:g} ms at once; load {os.getloadavg()[0]:.0f}\n")
    print(
        "| judged by | turns of the loop | largest stall, ms | 99.9 % below, ms | idle loop beside it: largest, ms |"
    )
    print("|---|---|---|---|---|")
    for where in given.where:
        context = multiprocessing.get_context("spawn")
        ended, (theirs, ours) = context.Event(), context.Pipe(duplex=False)
        idle = context.Process(target=_watch_nothing, args=(ended, ours))
        idle.start()
        theirs.recv()
        if given.realtime:
            # Of ours all threads, where one of them judges; else the loop alone, and never the judges.
            ordinary = 0 if where == "0" else os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(idle.pid or 0, os.SCHED_FIFO, os.sched_param(1))
            os.sched_setscheduler(0, os.SCHED_FIFO | ordinary, os.sched_param(1))
        session = Dispatched(judge_offer(JudgePlaces.parse(UsersWord(where)), 60.0))
        session.judged([(Timed(_JUDGING_MS), str(number)) for number in range(_IN_FLIGHT)])
        ended.set()
        stalls = sorted(session.stalls)
        largest, most = stalls[-1], stalls[int(len(stalls) * 0.999)]
        print(
            f"| {where} | {len(stalls):,} | {_ms(largest)} | {_ms(most)} | {_ms(theirs.recv())} |", flush=True
        )
        idle.join()


def _watch_nothing(ended: Event, ours: multiprocessing.connection.Connection) -> None:
    ours.send(None)
    largest, before = 0.0, time.monotonic()
    while not ended.is_set():
        time.sleep(0.001)
        now = time.monotonic()
        largest, before = max(largest, now - before), now
    ours.send(largest)


def _ms(seconds: float) -> str:
    return f"{(seconds - 0.001) * 1000:.1f}"


if __name__ == "__main__":
    main()
