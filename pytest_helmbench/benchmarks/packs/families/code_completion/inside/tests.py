"""The process of the tests: runs a row's test code and reports how it ended, over a channel of its own.

In two boxes no code of the candidate ever runs here: stand-ins pass on calls, and get plain data back. In one box the
candidate is loaded beside the tests, so it could forge the report; such a verdict carries the mark `in_process`.
"""

from __future__ import annotations

import builtins
import os
import sys
from _thread import RLock

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import (
    BrokenWireError,
    Parcel,
    Wire,
    dumps,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.reply import (
    REPLY,
    STARTER,
    builtin_name,
    composed,
    load,
    trace_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any, NoReturn

    from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import ReplyJob, SuiteJob
else:
    ModuleType = type(sys)

_TESTS = "tests.py"
"""Name of the tests, as tracebacks have it."""

_MAIN = "__main__"
_MESSAGE_LIMIT = 1 << 24
_TEXT_LIMIT = 500
_PULLS = 1_000_000
_ENDS_OF_ITERATION = (StopIteration, StopAsyncIteration, GeneratorExit)

__import__("collections.abc")  # tests may use it after `import collections`, as where more is imported


class _Report:
    """Where the tests' end is reported; the first report counts, and ends the process.

    Args:
        token: Word that only we and the reader know: tests may print what they like.
    """

    def __init__(self, target: int, token: str) -> None:
        self._target = target
        self._token = token

    def end(self, verdict: str, message: str, name: tuple[str, str] | None = None) -> NoReturn:
        """Report, and end.

        Args:
            verdict: `passed`, `failed`, `error`, or `unloaded` where the reply's code does not load.
            message: The event, without words of the reply or of the tests; `{}` represents a name.
            name: What the tests or the reply call it, and words that everyone may see instead.
        """
        names = [part[:_TEXT_LIMIT] for part in name or ()]
        report = {"verdict": verdict, "message": message, "name": names}
        os.write(self._target, (self._token + dumps(report) + "\n").encode("ascii"))
        os._exit(0)


class _LocalCandidate:
    """The candidate in this very process."""

    def __init__(self) -> None:
        self._module = ModuleType("solution")
        self.uses = 1
        """Calls of the candidate; here they are not counted."""

    def load(self, job: ReplyJob) -> None:
        """Run the reply's code."""
        cache = __import__("linecache").cache  # for tests that read the source
        for name, text in composed(job):
            cache[name] = (len(text), None, text.splitlines(True), name)
        sys.modules["solution"] = self._module
        load(job, self._module)

    def names(self, wanted: list[str]) -> dict[str, object]:
        """Return what the candidate defines of some names."""
        found = vars(self._module)
        return {name: found[name] for name in wanted if name in found}

    def blamed(self, error: BaseException) -> tuple[str, int] | None:
        """Return name and line of an exception that the candidate raised; None for others."""
        trace = [place for place in trace_of(error) if place[0] in (_TESTS, REPLY, STARTER)]
        where, line = trace[-1] if trace else ("", 0)
        if where not in (REPLY, STARTER):
            return None
        return type(error).__name__, line if where == REPLY else 0


class _Iterator:
    """Represents an iterator of the candidate."""

    def __init__(self, pull: Callable[[], object]) -> None:
        self._pull = pull
        self._left = _PULLS

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> object:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError(f"an iterator of the candidate gave {_PULLS} items")
        return self._pull()


class _Object:
    """Represents an object of the candidate that is not plain data: it has nothing, and equals nothing."""


class _RemoteCandidate:
    """The candidate in the other box."""

    def __init__(self, wire: Wire, report: _Report) -> None:
        self._wire = wire
        self._report = report
        self._lock = RLock()
        self._standing: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._raised: dict[int, tuple[BaseException, str, int]] = {}
        self._types: list[type] = []
        self.uses = 0
        """Calls of the candidate."""

    def load(self, job: ReplyJob) -> None:
        """Have the reply's code run."""
        self._ask("load", (job,))

    def names(self, wanted: list[str]) -> dict[str, object]:
        """Return what represents some names of the candidate; those that it does not define are missing."""
        found = self._ask("names", tuple(wanted))
        if not isinstance(found, dict):
            self._report.end("unloaded", "the candidate's answer makes no sense")
        return {name: found[name] for name in wanted if name in found}

    def blamed(self, error: BaseException) -> tuple[str, int] | None:
        """Return name and line of an exception that the candidate raised; None for others."""
        found = self._raised.get(id(error))
        return None if found is None else found[1:]

    def _ask(self, what: str, args: tuple[object, ...]) -> object:
        """Ask the candidate; one that has ended, or breaks the rules of talk, fails here and now."""
        try:
            with self._lock:
                status, value = self._exchange(what, args)
            if status == "ok":
                return value
            error = self._exception(value, is_pull=what == "next")
        except BrokenWireError as broken:
            self._report.end("failed", f"the candidate's process cannot be used any longer: {broken}")
        except (RecursionError, MemoryError):
            self._report.end("failed", "the candidate's answer is nested too deep, or too large")
        raise error

    def _exchange(self, what: str, args: tuple[object, ...]) -> tuple[object, object]:
        nonce = os.urandom(8).hex()  # nothing that was written before the question can be its answer
        parcel = Parcel(self._encode_object, self._decode_object)
        self._wire.send([nonce, what, parcel.encode(args)])
        message = self._wire.receive()
        if type(message) is not list or len(message) != 5 or message[0] != nonce:
            raise BrokenWireError("it spoke out of turn")
        _, status, changes, data, printed = message
        parcel.apply(changes)
        if printed and sys.stdout is not sys.__stdout__:
            sys.stdout.write(str(printed))
        return status, parcel.decode(data)

    def _exception(self, facts: Any, *, is_pull: bool) -> BaseException:
        """Return an exception by its built-in name, as the candidate says that it raised one."""
        try:
            name, args, text, own, line = facts
            cls = getattr(builtins, name)
            if not (issubclass(cls, BaseException) and type(args) is tuple and type(line) is int):
                raise BrokenWireError("its answer makes no sense")
        except (TypeError, ValueError, AttributeError) as error:
            raise BrokenWireError("its answer makes no sense") from error
        if issubclass(cls, _ENDS_OF_ITERATION) and not is_pull:
            cls, args = RuntimeError, ("the candidate raised " + cls.__name__,)
        try:
            raised: BaseException = cls(*args)
            if str(raised) != text and str(cls(text)) == text:
                raised = cls(text)
        except Exception:  # noqa: BLE001 - the class decides on its arguments
            raised = RuntimeError(str(text))
        self._raised[id(raised)] = (raised, str(own), line)
        return raised

    def _encode_object(self, value: object) -> object:
        number = self._numbers.get(id(value))
        if number is None:
            is_theirs = type(value) in self._types
            message = "the tests hand over a {}, which is not plain data"
            message = message if is_theirs else "not expressible: " + message
            self._report.end("failed" if is_theirs else "error", message, (type(value).__name__, "value"))
        return ["h", number]

    def _decode_object(self, tag: str, parts: list[Any]) -> object:
        """Return what represents something of the candidate that is not plain data."""
        number = parts[0]
        if tag == "n":
            found = getattr(builtins, number)
            if not isinstance(found, type) or issubclass(found, BaseException):
                raise BrokenWireError("it names a function of ours")
            self._types.append(found)
            return found
        if type(number) is not int or tag not in ("F", "y", "o"):
            raise BrokenWireError("its answer makes no sense")
        if number not in self._standing:
            stand_in: Any = _Object()
            if tag == "F":
                stand_in = self._function(number, str(parts[1]))
            elif tag == "y":
                stand_in = _Iterator(lambda: self._ask("next", (number,)))
            self._standing[number] = stand_in
            self._numbers[id(stand_in)] = number
        return self._standing[number]

    def _function(self, number: int, name: str) -> Callable[..., object]:
        def stand_in(*args: object, **kwargs: object) -> object:
            self.uses += 1
            return self._ask("call", (number, args, kwargs))

        stand_in.__name__ = stand_in.__qualname__ = name
        return stand_in


class _TestedModule(ModuleType):
    """The candidate, as a module that tests import."""

    def __init__(self, name: str, names: Callable[[list[str]], dict[str, object]]) -> None:
        super().__init__(name)
        self._names = names

    def __getattr__(self, name: str) -> object:
        found = {} if name.startswith("__") else self._names([name])
        if name not in found:
            raise AttributeError("module '" + self.__name__ + "' has no attribute '" + name + "'")
        return found[name]


class _Run:
    """One run of a row's tests."""

    def __init__(self, job: SuiteJob, candidate: _LocalCandidate | _RemoteCandidate, report: _Report) -> None:
        self._job = job
        self._candidate = candidate
        self._report = report
        module = ModuleType(_MAIN)
        sys.modules[_MAIN] = module  # `unittest.main()` looks there
        self._space: dict[str, Any] = vars(module)
        self._space.update(__builtins__=builtins, __file__=_TESTS)

    def run(self) -> None:
        """Load the candidate, run the tests, report."""
        code = self._compiled_tests()
        absent = self._absent() if self._job["in_process"] else None
        try:
            self._candidate.load(self._job["reply"])
        except BaseException as error:  # noqa: BLE001 - whatever the candidate raises
            self._report_load(error)
        self._bring_names()
        try:
            exec(code, self._space)
            self._call_what_is_defined()
        except BaseException as error:  # noqa: BLE001 - every end of the tests is judged
            self._judge(error, absent)
        if not self._candidate.uses:
            self._report.end("error", "the tests use nothing that the candidate defines")
        self._report.end("passed", "")

    def _absent(self) -> set[str]:
        """Return modules that the tests need and that are not there, before a candidate could hide them."""
        found = set()
        for statement in self._job["needs"]:
            try:
                exec(statement, {})
            except ImportError as error:
                found.add(str(error.name))
            except Exception:  # noqa: BLE001 - the tests meet it too
                continue
        return found

    def _compiled_tests(self) -> CodeType:
        try:
            exec(compile(self._job["given"], STARTER, "exec", dont_inherit=True), self._space)
            return compile(self._job["tests"], _TESTS, "exec", dont_inherit=True)
        except ImportError as error:
            self._lacks_module("the starter needs", error)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            where = "" if line is None else f" at line {line}"
            self._report.end("error", "the tests are not Python: " + type(error).__name__ + where)

    def _report_load(self, error: BaseException) -> NoReturn:
        own, line = self._candidate.blamed(error) or (type(error).__name__, 0)
        # The line is the candidate's word: a number beyond the last line may mean anything.
        lines = len(self._job["reply"]["reply"].splitlines())
        where = f" at line {line} of the reply's code" if 0 < line <= lines else ""
        message = "the reply's code does not load: {}" + where
        self._report.end("unloaded", message, (own, "a kind of " + builtin_name(error)))

    def _bring_names(self) -> None:
        job, space = self._job, self._space
        found = self._candidate.names(job["wanted"])
        space.update((name, value) for name, value in found.items() if name not in space)
        for name in job["modules"]:
            if name in found or name not in space:
                space[name] = __import__(name)
        for name in job["tested"]:
            sys.modules[name] = _TestedModule(name, self._candidate.names)

    def _call_what_is_defined(self) -> None:
        """Call what test code only defines: `check(candidate)`, test functions, test cases."""
        own = {name: self._space.get(name) for name in self._job["uncalled"]}
        check = own.get("check")
        if callable(check) and self._job["entry"]:
            if self._job["entry"] not in self._space:
                self._lacks_name(self._job["entry"], "")
            check(self._space[self._job["entry"]])
        for name, value in own.items():
            if name.startswith("test") and callable(value) and not isinstance(value, type):
                _result_of(value())
        cases = [value for value in own.values() if isinstance(value, type) and hasattr(value, "assertEqual")]
        if cases and not self._job["runs_cases"]:
            self._run_cases(cases)
        for name, value in own.items():
            if name.startswith("Test") and isinstance(value, type) and value not in cases:
                for method in [each for each in vars(value) if each.startswith("test")]:
                    _result_of(getattr(value(), method)())

    def _run_cases(self, cases: list[type]) -> None:
        unittest = __import__("unittest")
        loader = unittest.TestLoader()
        keeping = {"_exc_info_to_string": lambda _, found, __: found[1]}
        outcome = type("Outcome", (unittest.TestResult,), keeping)()  # keeps exceptions, not texts of them
        unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases).run(outcome)
        for case, error in [*outcome.errors, *outcome.failures]:
            name = str(getattr(case, "_testMethodName", case))
            self._report.end("failed", "{} fails" + _line_of(error), (name, "a test"))
        for case, _ in outcome.skipped:
            method = getattr(case, getattr(case, "_testMethodName", ""), case)
            if not (getattr(method, "__unittest_skip__", False) or getattr(case, "__unittest_skip__", False)):
                self._report.end("failed", "a test was skipped while it ran")
        if not outcome.wasSuccessful():
            self._report.end("failed", "a test that must fail passes")

    def _judge(self, error: BaseException, absent: set[str] | None) -> None:
        blamed = self._candidate.blamed(error)
        where = _line_of(error)
        kind = "a kind of " + builtin_name(error)
        if blamed is not None:
            message = "the candidate raised {}" + where
            self._report.end("failed", message, (blamed[0], kind))
        if isinstance(error, SystemExit):
            if error.code in (None, 0, False) and self._is_own_end(error):
                return
            self._report.end("failed", "the tests ended with an exit code" + where)
        name = str(getattr(error, "name", None))
        is_packs = name not in self._job["tested"] if absent is None else name in absent
        if isinstance(error, ImportError) and is_packs:
            self._lacks_module("the tests need", error)
        if isinstance(error, NameError):
            self._lacks_name(getattr(error, "name", None), where)
        self._report.end("failed", "{}" + where, (type(error).__name__, kind))

    def _lacks_name(self, name: str | None, where: str) -> NoReturn:
        message = "neither the reply nor the tests define {}" + where
        self._report.end("failed", message, (repr(name), "a name that the tests use"))

    def _lacks_module(self, user: str, error: ImportError) -> NoReturn:
        name = (": " + str(error.name), "")
        self._report.end("error", user + " a module that is not in the sandbox{}", name)

    def _is_own_end(self, error: SystemExit) -> bool:
        """Return whether the tests end by their own words, and by no exception that the candidate gave them."""
        trace = trace_of(error)
        name = trace[-1][0] if trace else ""
        line = _last_line(error)
        return (name != _TESTS and self._job["runs_cases"]) or line in self._job["exits"]


def _last_line(error: BaseException) -> int:
    return next((line for name, line in reversed(trace_of(error)) if name == _TESTS), 0)


def _line_of(error: BaseException) -> str:
    """Return where in the tests an exception was raised, for a message; empty for nowhere."""
    line = _last_line(error)
    return f" at line {line} of the tests" if line else ""


def _result_of(value: Any) -> object:
    """Return the result of a test that may be a coroutine."""
    return __import__("asyncio").run(value) if type(value).__name__ == "coroutine" else value


def main() -> None:
    """Read the job, take the conversation away from stdin and stdout, then run the tests."""
    source, target, report = os.dup(0), os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    sys.argv[:] = [_TESTS]
    wire = Wire(source, target, _MESSAGE_LIMIT)
    job: SuiteJob = wire.receive()
    verdict = _Report(report, job["token"])
    os.write(report, (job["token"] + "\n").encode("ascii"))  # from here on, nothing is the sandbox's fault
    _Run(job, _LocalCandidate() if job["in_process"] else _RemoteCandidate(wire, verdict), verdict).run()


if __name__ == "__main__":
    main()
