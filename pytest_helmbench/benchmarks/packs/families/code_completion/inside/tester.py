"""The questions that the tests put to the candidate, one at a time, and what it may call meanwhile."""

from __future__ import annotations

import os
import sys
from _thread import RLock

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.asker import Asker
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import BrokenWireError, Wire
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.operators import LENT_OPERATORS
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.standins import number_of
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.suite import Suite
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.tester_values import TesterCodec
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.verdict import (
    TESTS,
    Verdict,
    line_of_tests,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import Parts

__all__ = ["Tester", "finished"]

_MAIN = "__main__"
_PULLS = 1_000_000
_ENDS_OF_ITERATION = (StopIteration, StopAsyncIteration, GeneratorExit)
_ITERATING = ("send", "__next__", "__anext__", "throw", "close", "asend", "athrow", "aclose")


class Tester(Asker):
    """Asks the candidate on behalf of the tests.

    Args:
        wire: To the candidate.
        suite: The tests.
        verdict: Where the end is reported.
    """

    def __init__(self, wire: Wire, suite: Suite, verdict: Verdict) -> None:
        super().__init__()
        self._wire = wire
        self._suite = suite
        self._verdict = verdict
        self.codec = TesterCodec(self)
        self.uses = 0
        """How often the tests have asked for anything."""
        self.blamed: dict[int, tuple[BaseException, int, str]] = {}
        """Exceptions that the candidate raised, by identity, with line and text."""
        self._freed: set[int] = set()
        self._pulls: dict[int, int] = {}
        self._lock = RLock()
        self._printing = sys.stdout

    def refuse(self, reason: str, name: tuple[str, str] | None = None) -> NoReturn:
        """End the tests with an error: this pack's tests cannot be run between two processes."""
        self._verdict.end("error", "tests", "not expressible: " + reason, name=name)

    def may_swallow(self, error: BaseException) -> bool:
        """Return whether no check of the tests is passed over when an exception ends at a context manager."""
        if isinstance(error, AssertionError):
            return False
        trace = error.__traceback__  # its first frame is that of the `with`
        if trace is None or trace.tb_frame.f_code.co_filename != TESTS:
            return False
        return self._suite.ends_block(trace.tb_lineno)

    def forget(self, number: int) -> None:
        """Tell with the next question that an object is not spoken of any more."""
        self._freed.add(number)

    def remember(self, number: int) -> None:
        """Take it back: the object has come again."""
        self._freed.discard(number)

    def blame(self, error: BaseException, line: int, text: str) -> None:
        """Note that an exception is the candidate's."""
        self.blamed[id(error)] = (error, line, text)

    def ask(self, what: str, *args: Any) -> object:
        """Ask the candidate; a candidate that has ended, or breaks the rules of talk, fails here and now."""
        self.uses += 1
        if what in ("send", "operator") and (what == "send" or args[1] == "__next__"):
            self._count_pull(number_of(args[0]))
        try:
            with self._lock:
                status, value = self._exchange(what, args)
            if status == "ok":
                return value
            if not isinstance(value, BaseException):
                raise BrokenWireError("its answer makes no sense")
        except BrokenWireError as error:
            self._verdict.end("failed", "tests", "the candidate's process is of no more use: " + str(error))
        except (RecursionError, MemoryError):
            self._verdict.end("failed", "tests", "the candidate's answer is nested too deep, or too large")
        if isinstance(value, _ENDS_OF_ITERATION) and not self._may_end_iteration(what, args):
            value = RuntimeError("the candidate raised " + type(value).__name__)
            self.blame(value, 0, "")
        raise value

    def _may_end_iteration(self, what: str, args: tuple[object, ...]) -> bool:
        return what in ("send", "await") or (what in ("operator", "method") and args[1] in _ITERATING)

    def _count_pull(self, number: int | None) -> None:
        count = self._pulls.get(number or 0, 0) + 1
        self._pulls[number or 0] = count
        if count > _PULLS:
            self._verdict.end("failed", "tests", f"an iterator of the candidate gave {_PULLS} items")

    def _exchange(self, what: str, args: tuple[object, ...]) -> tuple[str, object]:
        nonce = os.urandom(8).hex()
        self.is_talking = True
        try:
            return self._converse(nonce, what, args)
        finally:
            self.is_talking = False

    def _converse(self, nonce: str, what: str, args: tuple[object, ...]) -> tuple[str, object]:
        self._tell([nonce, what], args)
        while True:
            message = self._wire.receive()
            if type(message) is not list or len(message) != 6 or message[0] != nonce:
                raise BrokenWireError("it spoke out of turn")
            status, value = message[1], self._hear(message)
            if status != "call":
                return status, value
            self.is_talking = False
            answer = self._served(value)
            self.is_talking = True
            self._tell(["", answer[0]], answer[1])

    def _tell(self, head: list[str], value: object) -> None:
        shared = self.codec.shared
        gone = shared.unheld()
        shared.drop(gone)
        freed, self._freed = self._freed, set()
        changes = self.codec.changes()
        self._wire.send([*head, self.codec.encode(value), changes, gone, sorted(freed)])

    def _hear(self, message: Parts) -> object:
        _, _, data, changes, gone, printed = message
        self.codec.apply(changes)
        value = self.codec.decode(data)
        self.codec.shared.drop(gone)
        self.codec.settle()
        if printed and sys.stdout is not self._printing:
            sys.stdout.write(str(printed))
        return value

    def _served(self, call: Any) -> tuple[str, object]:
        """Let the candidate call what the tests have lent it, and nothing else; return how that went."""
        try:
            kind, number, (args, kwargs) = call
            lent: Any = self.codec.lent(number)
        except (TypeError, ValueError) as error:
            raise BrokenWireError("its answer makes no sense") from error
        try:
            if kind == "next":
                return "back", next(lent)
            if kind in ("get", "set", "operator"):
                return "back", _looked(kind, lent, *args)
            return "back", finished(lent(*args, **kwargs))
        except StopIteration as stop:
            return ("stop", None) if kind == "next" else ("threw", RuntimeError(str(stop)))
        except AssertionError as error:
            if id(error) in self.blamed:
                return "threw", error
            # The candidate could keep it to itself: what the tests find wrong is wrong, whoever called them.
            found = "AssertionError" + line_of_tests(error)
            self._verdict.end("failed", "tests", found, text_of(error))
        except BaseException as error:  # noqa: BLE001 - it goes on its way through the candidate
            return "threw", error


def _looked(kind: str, lent: object, name: str, *args: Any) -> object:
    """Let the candidate use an object of a class of the tests: what is public in it, and nothing of its machinery."""
    cls = type(lent)
    if cls.__module__ != _MAIN or type(name) is not str or isinstance(lent, type):
        raise AttributeError(name)
    if kind == "operator" and name in LENT_OPERATORS:
        return getattr(cls, name)(lent, *args)
    if name.startswith("_"):
        raise AttributeError(
            "'" + cls.__name__ + "' object has no attribute '" + name + "' for the candidate"
        )
    if kind == "get":
        return getattr(lent, name)
    if hasattr(cls, name) or callable(getattr(lent, name, None)):
        raise AttributeError(
            "'" + cls.__name__ + "' object attribute '" + name + "' is read-only for the candidate"
        )
    setattr(lent, name, *args)
    return None


def finished(value: Any) -> object:
    """Return the result of a coroutine of the tests, run to its end within the call that waits for it."""
    if type(value).__name__ != "coroutine":
        return value
    asyncio = __import__("asyncio")
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(value)
    finally:
        loop.close()
        asyncio._set_running_loop(outer)
