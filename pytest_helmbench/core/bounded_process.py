"""The process in which calls are made that may take long: `bounded_calls` starts it and kills it. It has no keys."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.problem import HelmbenchError


def main(paths: Sequence[str]) -> None:
    """Make one call after the other, until the other end of the pipe is closed.

    Args:
        paths: Where modules are looked for, behind our own.
    """
    sys.path.extend(path for path in paths if path not in sys.path)
    answers = os.fdopen(os.dup(1), "wb")
    questions = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)  # a call cannot read questions
    os.dup2(0, 1)  # and cannot print answers
    for line in questions:
        name, limit_s, *arguments = json.loads(line)
        answers.write(json.dumps(_answer(_function(name), limit_s, arguments)).encode() + b"\n")
        answers.flush()


def _function(name: str) -> Callable[..., JsonValue]:
    module, _, attribute = name.partition(":")
    function: Callable[..., JsonValue] = getattr(importlib.import_module(module), attribute)
    return function


def _answer(
    function: Callable[..., JsonValue], limit_s: float, arguments: Sequence[JsonValue]
) -> dict[str, JsonValue]:
    _limit(limit_s)
    try:
        return {"result": function(*arguments)}
    except HelmbenchError as error:
        return {"raised": str(error), "code": getattr(error, "code", "")}
    except Exception as error:  # noqa: BLE001 - of a benchmark's code, or a fault of ours: the case reports it
        return {"raised": f"it raised {type(error).__name__}: {error}"}
    finally:
        _limit(0)


def _limit(seconds: float) -> None:
    """End this process after so much CPU time: it holds on a busy machine, and when the session has been killed."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)
