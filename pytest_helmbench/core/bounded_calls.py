"""Calls of what a benchmark brings, ended when they take too long: by one process that can be killed."""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.problem import HelmbenchError

LIMIT_S = 2
"""CPU seconds that a call may take."""

_LATEST = 5  # times the limit: where the system does not count CPU time, or the process does not come to run
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from pytest_helmbench.core.bounded_calls import main;"
    " main(sys.argv[2:])"
)
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT")
"""Those of our variables that the process has: none that a key could stand in."""

_KILLED = (1,) if sys.platform == "win32" else (-signal.SIGPROF, -signal.SIGKILL)
"""Exit codes of a process that took too long."""

_HASTY_S = 0.02
_in_haste: ContextVar[float | None] = ContextVar("in_haste", default=None)
"""When, by the CPU time of the thread, there is no more time."""


class RuleFailedError(HelmbenchError):
    """A rule of a benchmark broke down: an error of the case, and no verdict."""

    code = "rule_failed"


class RuleTimeoutError(RuleFailedError):
    """A rule of a benchmark took too long."""

    code = "rule_timeout"


class TakesTimeError(Exception):
    """It would take time where there is none; it is to be done again in a thread."""


class NoTimeToWait:
    """Has `TakesTimeError` raised inside by what takes more than 20 ms in all: others wait for this thread."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _in_haste.set(_in_haste.get() or time.thread_time() + _HASTY_S)

    def __exit__(self, *_error: object) -> None:
        _in_haste.reset(self._token)


def time_left_s() -> float | None:
    """Return the CPU seconds that are left inside of `NoTimeToWait`, 0 or more; None outside."""
    latest_s = _in_haste.get()
    return None if latest_s is None else max(0.0, latest_s - time.thread_time())


_given_up: ContextVar[threading.Event | None] = ContextVar("given_up", default=None)


@contextmanager
def cancel_on_error() -> Iterator[None]:
    """Give up the calls inside, also those of threads that are waited for there, when an exception ends the waiting."""
    given_up = threading.Event()
    token = _given_up.set(given_up)
    try:
        yield
    except BaseException:
        given_up.set()
        BOUNDED_CALLS.close()
        raise
    finally:
        _given_up.reset(token)


class BoundedCalls:
    """Calls functions in a process of its own, which starts with the first call and is killed by one that takes long.

    The process has none of our variables but those that Python needs. From any thread, one call at a time.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def call(self, function: str, *arguments: JsonValue, what: str, limit_s: float = LIMIT_S) -> JsonValue:
        """Return what a function returns.

        Args:
            function: `module:name`, of JSON types.
            what: What it does, for the error: `holding a reply to its schema`.
            limit_s: CPU seconds that it may take.

        Raises:
            TakesTimeError: Inside of `NoTimeToWait`.
            RuleTimeoutError: It took longer.
            HelmbenchError: It raised one, or its process broke down.
        """
        if _in_haste.get() is not None:
            raise TakesTimeError
        given_up = _given_up.get()
        with self._lock:
            if given_up is not None and given_up.is_set():
                raise HelmbenchError(f"{what} was given up")
            line = self._answer(json.dumps([function, limit_s, *arguments]).encode() + b"\n", what, limit_s)
        answer = json.loads(line)
        if "raised" in answer:
            timed_out = answer.get("code") == RuleTimeoutError.code  # a pattern has a limit of its own
            raise (RuleTimeoutError if timed_out else HelmbenchError)(answer["raised"])
        result: JsonValue = answer["result"]
        return result

    def close(self) -> None:
        """End the process, whatever it is at. From any thread."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def _answer(self, question: bytes, what: str, limit_s: float) -> bytes:
        process = self._process = self._process or _started()
        timer = threading.Timer(_LATEST * limit_s, process.kill)
        timer.daemon = True
        timer.start()
        answer = b""
        try:
            if process.stdin is not None and process.stdout is not None:
                process.stdin.write(question)
                process.stdin.flush()
                answer = process.stdout.readline()
        except (OSError, ValueError):
            pass  # it has ended
        finally:
            timer.cancel()
            if not answer:
                self.close()
        if not answer and (code := process.wait()) not in _KILLED:
            raise HelmbenchError(f"ended its process (exit code {code})")
        if not answer:
            raise RuleTimeoutError(f"{what} took more than {limit_s:g} s")
        return answer


def _started() -> subprocess.Popen[bytes]:
    options = ["-I", *(["-B"] if sys.dont_write_bytecode else [])]
    paths = [path for path in sys.path if Path(path).is_absolute()]
    return subprocess.Popen(
        [sys.executable, *options, "-c", _PROGRAM, str(Path(__file__).parents[2]), *paths],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
        cwd=Path(sys.executable).anchor,
        start_new_session=True,  # Ctrl-C does not reach it
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def main(paths: Sequence[str]) -> None:
    """Make one call after the other in a process that has no keys, until the other end of the pipe is closed.

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
        answers.write(json.dumps(_called(_function(name), limit_s, arguments)).encode() + b"\n")
        answers.flush()


def _function(name: str) -> Callable[..., JsonValue]:
    module, _, attribute = name.partition(":")
    function: Callable[..., JsonValue] = getattr(importlib.import_module(module), attribute)
    return function


def _called(
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


BOUNDED_CALLS = BoundedCalls()
atexit.register(BOUNDED_CALLS.close)
