"""Replies checked against rules: at once where that is cheap, else in a thread; rules that fail are reported."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pytest_helmbench.core.bounded_calls import (
    NoTimeToWait,
    RuleFailedError,
    TakesTimeError,
    cancel_on_error,
)
from pytest_helmbench.core.outcome import Outcome, Reply, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.judging.judge import with_reply

T = TypeVar("T")

_LONG = 100_000
"""Characters of a reply from which on no rule is quick."""


async def apply_rule(rule: Callable[[Reply], T | Outcome], reply: Reply) -> T:
    """Return what a rule finds in a reply; other cases go on where it takes its time.

    Args:
        rule: It reads the reply, calls no model and writes nothing, since it may be begun twice. It returns an outcome
            where no verdict can be reached.

    Raises:
        UnjudgedError: No verdict can be reached, or the rule broke down or took too long.
    """
    found: T | Outcome
    try:
        if sum(len(one.text) for one in reply.turns or (reply,)) > _LONG:
            raise TakesTimeError
        with NoTimeToWait():
            found = _finding(rule, reply)
    except TakesTimeError:
        with cancel_on_error():
            found = await asyncio.to_thread(_finding, rule, reply)
    if isinstance(found, Outcome):
        raise UnjudgedError(with_reply(found, reply))
    return found


def _finding(rule: Callable[[Reply], T | Outcome], reply: Reply) -> T | Outcome:
    try:
        with rule_faults():
            return rule(reply)
    except UnjudgedError as stop:
        return stop.outcome
    except RuleFailedError as error:
        return Outcome(Verdict.ERROR, error.code, str(error))
    except HelmbenchError as error:
        return Outcome(Verdict.ERROR, "not_judged", str(error))


@contextmanager
def rule_faults() -> Iterator[None]:
    """Hold a rule: what it raises that is none of our own errors is a fault of ours.

    Raises:
        UnjudgedError: With the type of what was raised and its place, and nothing of what it holds.
    """
    try:
        yield
    except (HelmbenchError, TakesTimeError):
        raise
    except Exception as error:  # noqa: BLE001 - a fault of ours in one case costs no other its verdict
        fault = Outcome(Verdict.ERROR, "rule_failed", _sentence(error))
    else:
        return
    raise UnjudgedError(fault)


def _sentence(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return (
        f"the rule failed: {type(error).__name__}{place}\n"
        "  hint: this is a fault of pytest-helmbench, please report it; the reply is stored"
    )
