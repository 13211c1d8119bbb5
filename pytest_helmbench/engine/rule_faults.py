"""Rules that break down: an error of their case, told by type and place, while the other cases go on."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pytest_helmbench.core.outcome import Outcome, Reply, Verdict
from pytest_helmbench.core.pattern_process import RuleTimeoutError
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.judging.evaluator import Evaluator

__all__ = ["held", "rule_faults"]

T = TypeVar("T")


def held(evaluator: Evaluator[T], reply: Reply) -> T | Outcome:
    """Return what an evaluator finds in a reply, judged in this thread; an error where it raises."""
    try:
        with rule_faults():
            return evaluator.evaluate(reply)
    except UnjudgedError as stop:
        return stop.outcome
    except RuleTimeoutError as error:
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
    except HelmbenchError:
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
        "  hint: this is a fault of pytest-helmbench, please report it; the reply is on record"
    )
