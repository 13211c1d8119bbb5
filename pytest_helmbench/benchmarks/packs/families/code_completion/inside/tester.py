"""The process of the tests: runs a row's test code with stand-ins for what the candidate defines, and judges.

No code of the candidate ever runs here. What arrives from it is data, rebuilt from a closed table of types.
"""

from __future__ import annotations

import builtins
import os
import sys
from _thread import RLock
from _weakref import ref
from typing import Any

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import (
    BrokenWireError,
    Wire,
    dumps,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.operators import LENT_OPERATORS
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.standins import (
    Asker,
    ClassFacts,
    Held,
    Remote,
    RemoteClass,
    new_class,
    number_of,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.suite import Suite
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.syntax import declared_names
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.values import Codec, Shared, name_of

__all__ = ["Tester", "main"]

_TESTS = "tests.py"
_MAIN = "__main__"
_FRAME_LIMIT = 1 << 24
_PULLS = 1_000_000
_TEXT_LIMIT = 500
_SURE_TYPES = (  # modules whose exceptions mean nothing to whoever runs tests
    *(
        "json",
        "decimal",
        "queue",
        "asyncio",
        "concurrent",
        "re",
        "sre_constants",
        "struct",
        "zlib",
        "binascii",
        "csv",
    ),
    *(
        "configparser",
        "subprocess",
        "statistics",
        "zoneinfo",
        "dataclasses",
        "socket",
        "urllib",
        "http",
        "ipaddress",
    ),
    *(
        "copy",
        "pickle",
        "shutil",
        "tarfile",
        "zipfile",
        "xml",
        "sqlite3",
        "threading",
        "graphlib",
        "email",
        "locale",
    ),
)
_ENDS_OF_ITERATION = (StopIteration, StopAsyncIteration, GeneratorExit)
_ITERATING = ("send", "__next__", "__anext__", "throw", "close", "asend", "athrow", "aclose")


class Verdict:
    """Where the tests' end is reported; whatever comes first counts, and ends the process.

    Args:
        target: Descriptor that the report goes to.
        token: Word that only we and the reader know: tests may print what they like.
    """

    def __init__(self, target: int, token: str) -> None:
        self._target = target
        self._token = token

    def end(self, verdict: str, phase: str, message: str, detail: str = "") -> Any:
        """Report, and end.

        Args:
            verdict: `passed`, `failed` or `error`.
            phase: `load` or `tests`.
            message: What happened, without words of the reply.
            detail: Words of the reply or of the tests.
        """
        report = {"verdict": verdict, "phase": phase, "message": message, "detail": detail[:_TEXT_LIMIT]}
        os.write(self._target, (self._token + dumps(report) + "\n").encode("ascii"))
        os._exit(0)


class _Codec(Codec):
    """Values as the tests send and get them: what is no data is spoken of by number, and never looked into."""

    def __init__(self, tester: Tester) -> None:
        super().__init__(Shared(0))
        self._tester = tester
        self.classes: dict[int, Any] = {}
        self._objects: dict[int, Any] = {}
        self._wrapped: dict[int, tuple[Any, Held]] = {}
        self._lent: dict[int, Any] = {}
        self._lent_numbers: dict[int, int] = {}

    def lent(self, number: Any) -> Any:
        """Return what the candidate was given under a number."""
        try:
            return self._lent[number]
        except (KeyError, TypeError) as error:
            raise BrokenWireError("it calls what it was never given") from error

    def encode_foreign(self, value: Any) -> Any:
        """Return data about an object of the tests, or the number of one of the candidate's."""
        number = number_of(value)
        if number is not None:
            return ["H", number]
        held = self._wrapped.get(id(value))
        if held is not None:
            return ["H", held[1].number]
        if isinstance(value, BaseException):
            return self._encode_exception(value)
        named = _standard_name(value)
        if named is not None:
            return ["N", *named]
        cls = type(value)
        if cls is object or (cls.__module__ == _MAIN and not isinstance(value, type)):
            own = [base for base in cls.__mro__ if base is not object]
            operators = [name for name in LENT_OPERATORS if any(name in vars(base) for base in own)]
            return ["o", self._lend(value), cls.__name__, operators]
        if hasattr(cls, "__next__") and cls.__module__ != "_io":
            return ["y", self._lend(value)]
        if callable(value):
            flags = getattr(getattr(value, "__code__", None), "co_flags", 0)
            name = getattr(value, "__name__", None)
            document = getattr(value, "__doc__", None)
            return [
                *("F", self._lend(value), name if type(name) is str else cls.__name__),
                *(document if type(document) is str else None, bool(flags & 0x80)),
            ]
        return self._tester.refuse(
            "the tests hand over a " + (name_of(cls) or cls.__name__) + ", which cannot cross"
        )

    def _lend(self, value: Any) -> int:
        number = self._lent_numbers.get(id(value))
        if number is None:
            number = len(self._lent)
            self._lent[number] = value
            self._lent_numbers[id(value)] = number
        return number

    def _encode_exception(self, error: BaseException) -> Any:
        builtin = next(cls for cls in type(error).__mro__ if getattr(builtins, cls.__name__, None) is cls)
        arguments = tuple(error.args) if type(error) is builtin else (str(error),)
        return ["x", builtin.__name__, self.encode(arguments), self._lend(error)]

    def decode_foreign(self, tag: str, parts: list[Any]) -> Any:
        """Return what stands for an object of the candidate."""
        if tag == "h":
            return self._stand_in(parts[0], self.decode(parts[1]))
        if tag == "p":
            return self._mirrored(parts[0], self.decode(parts[1]), self.decode(parts[2]))
        if tag == "H":
            return self.lent(parts[0])
        if tag == "k":
            return self.classes[parts[0]]
        if tag == "K":
            return self._class(*parts)
        if tag == "n":
            found = getattr(builtins, parts[0])
            if not isinstance(found, type):
                raise BrokenWireError("it names a function of ours")
            return found
        if tag == "x":
            return self._exception(*parts)
        if tag in ("g", "c", "a"):
            return self._wrapper(tag, parts[0])
        raise BrokenWireError("its answer makes no sense")

    def _known(self, number: Any) -> Any:
        found = self._objects.get(number)
        return found() if type(found) is ref else found

    def _stand_in(self, number: int, cls: Any) -> Any:
        found = self._known(number)
        if found is not None:
            return found
        if not (type(cls) is RemoteClass and issubclass(cls, Remote)):
            raise BrokenWireError("its answer makes no sense")
        value: Any = object.__new__(cls)  # type: ignore[arg-type]
        object.__setattr__(value, "_helmbench_number", _whole(number))
        object.__setattr__(value, "_helmbench_trust", 0)
        self._objects[number] = ref(value)
        self._tester.remember(number)
        return value

    def _mirrored(self, number: int, cls: Any, plain: Any) -> Any:
        found = self._known(number)
        if found is not None:
            return found
        base = next((base for base in cls.__mro__ if type(base) is not RemoteClass), object)
        if type(cls) is not RemoteClass or type(plain) is not base:
            raise BrokenWireError("its answer makes no sense")
        value = getattr(base, "__new__")(cls, plain)  # noqa: B009 - of the plain type
        vars(value)["_helmbench_number"] = _whole(number)
        self._objects[number] = value
        return value

    def _class(self, number: int, *parts: Any) -> Any:
        name, module, bases, operators, methods, plain, mirrored = parts
        if number in self.classes:
            raise BrokenWireError("it names two things alike")
        found = self._sure_exception(module, name)
        if found is None:
            facts = ClassFacts(self._tester, _whole(number), operators, methods, plain)
            inherited = tuple(base for base in map(self.decode, bases) if base is not object)
            found = new_class(facts, name, inherited, mirrored=bool(mirrored))
        self.classes[number] = found
        return found

    def _sure_exception(self, module: str, name: str) -> Any:
        """Return an exception of the standard library, one of those that no test runner has a meaning for."""
        if module.partition(".")[0] not in _SURE_TYPES:
            return None
        found = getattr(__import__(module, fromlist=(name,)), name, None)
        return found if isinstance(found, type) and issubclass(found, Exception) else None

    def _exception(self, cls: Any, arguments: Any, text: str, number: int, *more: Any) -> BaseException:
        origin, line, extra = more
        found = self._known(number) if origin is None else self.lent(origin)
        if found is None:
            if not (isinstance(cls := self.decode(cls), type) and issubclass(cls, BaseException)):
                raise BrokenWireError("its answer makes no sense")
            found = _raised(cls, self.decode(arguments), str(text))
            vars(found).update(self.decode(extra))
            cause = vars(found).pop("_helmbench_cause", None)
            found.__cause__ = cause if isinstance(cause, BaseException) else None
            vars(found).update(_helmbench_text=str(text), _helmbench_number=_whole(number))
            self._objects[number] = found
        if not isinstance(found, BaseException):
            raise BrokenWireError("its answer makes no sense")
        if origin is None:
            self._tester.blame(found, _whole(line), str(text))
        return found

    def _wrapper(self, kind: str, number: int) -> Any:
        found = self._known(number)
        if found is not None:
            return found
        held = Held(self._tester, _whole(number))
        self._tester.remember(number)
        wrapped = {"g": _generator, "c": _coroutine, "a": _stream}[kind](self._tester, held)
        key = id(wrapped)
        self._wrapped[key] = (ref(wrapped, lambda _: self._wrapped.pop(key, None)), held)
        self._objects[number] = self._wrapped[key][0]
        return wrapped


class Tester(Asker):
    """Asks the candidate on behalf of the tests.

    Args:
        wire: To the candidate.
        verdict: Where the end is reported.
    """

    def __init__(self, wire: Wire, verdict: Verdict) -> None:
        self._wire = wire
        self._verdict = verdict
        self.codec = _Codec(self)
        self.suite: Suite | None = None
        """The tests, once they are read."""
        self.uses = 0
        """How often the tests have asked for anything."""
        self.blamed: dict[int, tuple[BaseException, int, str]] = {}
        """Exceptions that the candidate raised, by identity, with line and text."""
        self._freed: set[int] = set()
        self._pulls: dict[int, int] = {}
        self._lock = RLock()
        self._printing = sys.stdout

    def refuse(self, reason: str) -> Any:
        """End the tests with an error: this pack's tests cannot be run between two processes."""
        return self._verdict.end("error", "tests", "not expressible: " + reason)

    def may_swallow(self, error: BaseException) -> bool:
        """Return whether no check of the tests is passed over when an exception ends at a context manager."""
        if isinstance(error, AssertionError) or self.suite is None:
            return False
        trace = error.__traceback__  # its first frame is that of the `with`
        if trace is None or trace.tb_frame.f_code.co_filename != _TESTS:
            return False
        return self.suite.ends_block(trace.tb_lineno)

    def forget(self, number: int) -> None:
        """Tell with the next question that an object is not spoken of any more."""
        self._freed.add(number)

    def remember(self, number: int) -> None:
        """Take it back: the object has come again."""
        self._freed.discard(number)

    def blame(self, error: BaseException, line: int, text: str) -> None:
        """Note that an exception is the candidate's."""
        self.blamed[id(error)] = (error, line, text)

    def ask(self, what: str, *args: Any) -> Any:
        """Ask the candidate; a candidate that has ended, or breaks the rules of talk, fails here and now."""
        self.uses += 1
        if what in ("send", "operator") and (what == "send" or args[1] == "__next__"):
            self._count_pull(number_of(args[0]))
        try:
            with self._lock:
                status, value = self._exchange(what, args)
        except BrokenWireError as error:
            return self._verdict.end(
                "failed", "tests", "the candidate's process is of no more use: " + str(error)
            )
        except (RecursionError, MemoryError):
            return self._verdict.end(
                "failed", "tests", "the candidate's answer is nested too deep, or too large"
            )
        if status == "ok":
            return value
        if isinstance(value, _ENDS_OF_ITERATION) and not self._may_end_iteration(what, args):
            value = RuntimeError("the candidate raised " + type(value).__name__)
            self.blame(value, 0, "")
        raise value

    def _may_end_iteration(self, what: str, args: tuple[Any, ...]) -> bool:
        return what in ("send", "await") or (what in ("operator", "method") and args[1] in _ITERATING)

    def _count_pull(self, number: int | None) -> None:
        count = self._pulls.get(number or 0, 0) + 1
        self._pulls[number or 0] = count
        if count > _PULLS:
            self._verdict.end("failed", "tests", "an iterator of the candidate gave %d items" % _PULLS)  # noqa: UP031

    def _exchange(self, what: str, args: tuple[Any, ...]) -> tuple[str, Any]:
        nonce = os.urandom(8).hex()
        self.is_talking = True
        try:
            return self._converse(nonce, what, args)
        finally:
            self.is_talking = False

    def _converse(self, nonce: str, what: str, args: tuple[Any, ...]) -> tuple[str, Any]:
        self._tell([nonce, what], args)
        while True:
            message = self._wire.receive()
            if type(message) is not list or len(message) != 6 or message[0] != nonce:
                raise BrokenWireError("it spoke out of turn")
            status, value = message[1], self._hear(message)
            if status != "call":
                if status == "raised" and not isinstance(value, BaseException):
                    raise BrokenWireError("its answer makes no sense")
                return status, value
            self.is_talking = False
            answer = self._served(value)
            self.is_talking = True
            self._tell(["", answer[0]], answer[1])

    def _tell(self, head: list[Any], value: Any) -> None:
        shared = self.codec.shared
        gone = shared.unheld()
        shared.drop(gone)
        freed, self._freed = self._freed, set()
        changes = self.codec.changes()
        self._wire.send([*head, self.codec.encode(value), changes, gone, sorted(freed)])

    def _hear(self, message: list[Any]) -> Any:
        _, _, data, changes, gone, printed = message
        self.codec.apply(changes)
        value = self.codec.decode(data)
        self.codec.shared.drop(gone)
        self.codec.settle()
        if printed and sys.stdout is not self._printing:
            sys.stdout.write(str(printed))
        return value

    def _served(self, call: Any) -> tuple[str, Any]:
        """Let the candidate call what the tests have lent it, and nothing else; return how that went."""
        try:
            kind, number, (args, kwargs) = call
            lent = self.codec.lent(number)
        except (TypeError, ValueError) as error:
            raise BrokenWireError("its answer makes no sense") from error
        try:
            if kind == "next":
                return "back", next(lent)
            if kind in ("get", "set", "operator"):
                return "back", _looked(kind, lent, *args)
            return "back", _finished(lent(*args, **kwargs))
        except StopIteration as stop:
            return ("stop", None) if kind == "next" else ("threw", RuntimeError(str(stop)))
        except AssertionError as error:
            if id(error) in self.blamed:
                return "threw", error
            # The candidate could keep it to itself: what the tests find wrong is wrong, whoever called them.
            found = "AssertionError" + _line_of_tests(error)
            return "threw", self._verdict.end("failed", "tests", found, _text_of(error))
        except BaseException as error:  # noqa: BLE001 - it goes on its way through the candidate
            return "threw", error


def _looked(kind: str, lent: Any, name: Any, *args: Any) -> Any:
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
    return getattr(lent, name) if kind == "get" else setattr(lent, name, *args)


def _whole(number: Any) -> int:
    if type(number) is not int:
        raise BrokenWireError("its answer makes no sense")
    return number


def _raised(cls: Any, arguments: tuple[Any, ...], text: str) -> BaseException:
    """Return an exception of a class; those that need other arguments are made without their own beginning."""
    if type(cls) is RemoteClass:
        raised: BaseException = getattr(cls, "__new__")(cls, *arguments)  # noqa: B009
        raised.args = arguments
        return raised
    try:
        made: BaseException = cls(*arguments)
    except Exception:  # noqa: BLE001 - what the class makes of hostile arguments is its own
        return RuntimeError(text)
    return made


def _finished(value: Any) -> Any:
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


def _generator(asker: Asker, held: Held) -> Any:
    try:
        value = asker.ask("send", held, None)
        while True:
            try:
                given = yield value
            except GeneratorExit:
                if not asker.is_talking:  # otherwise it is dropped in the midst of another question
                    asker.ask("method", held, "close", (), {})
                raise
            except BaseException as error:  # noqa: BLE001 - thrown in by the tests
                value = asker.ask("method", held, "throw", (error,), {})
            else:
                value = asker.ask("send", held, given)
    except StopIteration as stop:
        return stop.value


async def _coroutine(asker: Asker, held: Held) -> Any:
    return asker.ask("await", held)


async def _stream(asker: Asker, held: Held) -> Any:
    while True:
        try:
            value = asker.ask("await", asker.ask("operator", held, "__anext__", ()))
        except StopAsyncIteration:
            return
        yield value


def _standard_name(value: Any) -> tuple[str, str] | None:
    """Return where the standard library keeps a function or class; None for anything else."""
    name = getattr(value, "__qualname__", None)
    module = getattr(value, "__module__", None)
    if type(name) is not str or type(module) is not str or module == _MAIN:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (module, name) if found is value else None


class _TestedModule(type(sys)):  # type: ignore[misc]
    """The candidate, as a module that tests import.

    Args:
        name: Of the module.
        tester: Who asks the candidate.
        found: What the tests were given already.
    """

    def __init__(self, name: str, tester: Tester, found: dict[str, Any]) -> None:
        super().__init__(name)
        space: dict[str, Any] = self.__dict__
        space.update(found, _helmbench_tester=tester)

    def __getattr__(self, name: str) -> Any:
        found = vars(self)["_helmbench_tester"].ask("names", name)
        if name.startswith("__") or name not in found:
            raise AttributeError("module '" + self.__name__ + "' has no attribute '" + name + "'")
        return found[name]


class Run:
    """One run of a row's tests.

    Args:
        job: What the host sends: `tests`, `starter`, `blocks`, `reply`.
        tester: Who asks the candidate.
        verdict: Where the end is reported.
    """

    def __init__(self, job: dict[str, Any], tester: Tester, verdict: Verdict) -> None:
        self._job = job
        self._tester = tester
        self._verdict = verdict
        self._suite = tester.suite = Suite(job["tests"], job["starter"])
        module: Any = type(sys)(_MAIN)
        sys.modules[_MAIN] = module  # `unittest.main()` looks there
        self._space: dict[str, Any] = vars(module)
        self._space.update(__builtins__=builtins, __file__=_TESTS)

    def run(self) -> None:
        """Load the candidate, run the tests, report."""
        code = self._compiled_tests()
        obstacle = self._suite.obstacle()
        if obstacle is not None:
            self._tester.refuse(obstacle)
        self._load()
        self._bring_names()
        uses = self._tester.uses
        try:
            exec(code, self._space)
            self._call_what_is_defined()
        except BaseException as error:  # noqa: BLE001 - every end of the tests is judged
            self._judge(error)
        if self._tester.uses == uses:
            self._verdict.end("error", "tests", "the tests use nothing that the candidate defines")
        self._verdict.end("passed", "tests", "")

    def _compiled_tests(self) -> Any:
        try:
            if self._suite.given:
                exec(compile(self._suite.given, "starter.py", "exec", dont_inherit=True), self._space)
            return compile(self._job["tests"], _TESTS, "exec", dont_inherit=True)
        except ImportError as error:
            return self._verdict.end("error", "tests", _missing_module("the starter", error))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            where = "" if line is None else " at line %d" % line  # noqa: UP031
            return self._verdict.end(
                "error", "tests", "the tests are no Python: " + type(error).__name__ + where
            )

    def _load(self) -> None:
        job = self._job
        try:
            self._tester.ask("load", job["blocks"], job["reply"], job["starter"], self._suite.known_classes())
        except BaseException as error:  # noqa: BLE001 - whatever the candidate raises
            _, line, text = self._tester.blamed.get(id(error), (error, 0, ""))
            where = " at line %d of the reply's code" % line if line else ""  # noqa: UP031
            message = "the reply's code does not load: " + type(error).__name__ + where
            self._verdict.end("failed", "load", message, text)

    def _bring_names(self) -> None:
        suite, space = self._suite, self._space
        found = self._tester.ask("names", *suite.wanted())
        if not found:
            found = self._tester.ask("names", *suite.shadowed())
        if not isinstance(found, dict):
            self._verdict.end("failed", "load", "the candidate's answer makes no sense")
        asked = {*suite.wanted(), *suite.shadowed()}
        ours = set(suite.modules()) if suite.declared else set(suite.modules()) - set(found)
        space.update((name, value) for name, value in found.items() if name in asked and name not in space)
        for name in ours - {name for name in self._space if name not in found}:
            space[name] = __import__(name)
        for name in suite.tested:
            sys.modules[name] = _TestedModule(name, self._tester, found)
        for name in suite.known_classes():
            value = space.get(name)
            if type(value) is RemoteClass:
                vars(value)["_helmbench_facts"].is_known = True

    def _call_what_is_defined(self) -> None:
        """Call what test code only defines: `check(candidate)`, test functions, test cases."""
        own = {
            name: self._space.get(name)
            for name in declared_in(self._suite)
            if name not in self._suite.reached
        }
        entry = self._suite.entry()
        check = own.get("check")
        if callable(check) and entry in self._space:
            check(self._space[entry])
        for name, value in own.items():
            if name.startswith("test") and callable(value) and not isinstance(value, type):
                _finished(value())
        cases = [value for value in own.values() if isinstance(value, type) and hasattr(value, "assertEqual")]
        if cases and not self._suite.runs_cases():
            self._run_cases(cases)
        for name, value in own.items():
            if name.startswith("Test") and isinstance(value, type) and value not in cases:
                for method in [each for each in vars(value) if each.startswith("test")]:
                    _finished(getattr(value(), method)())

    def _run_cases(self, cases: list[Any]) -> None:
        unittest = __import__("unittest")
        loader = unittest.TestLoader()
        outcome = unittest.TestResult()
        unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases).run(outcome)
        for case, trace in [*outcome.errors, *outcome.failures]:
            lines = [
                line.split(",")[1].split()[1] for line in trace.splitlines() if '"tests.py", line' in line
            ]
            where = " at line %s of the tests" % lines[-1] if lines else ""  # noqa: UP031
            name = str(getattr(case, "_testMethodName", case))
            self._verdict.end("failed", "tests", name + " fails" + where, trace.strip().rpartition("\n")[2])
        if not outcome.wasSuccessful():
            self._verdict.end("failed", "tests", "a test that must fail passes")

    def _judge(self, error: BaseException) -> None:
        blamed = self._tester.blamed.get(id(error))
        name = type(error).__name__
        where = _line_of_tests(error)
        if blamed is not None:
            self._verdict.end("failed", "tests", "the candidate raised " + name + where, blamed[2])
        if isinstance(error, SystemExit):
            if error.code in (None, 0, False):
                return
            self._verdict.end("failed", "tests", "the tests ended with an exit code" + where)
        if isinstance(error, ImportError):
            self._verdict.end("error", "tests", _missing_module("the tests", error))
        if isinstance(error, NameError):
            name = "neither the reply nor the tests define " + repr(getattr(error, "name", None))
        self._verdict.end("failed", "tests", name + where, _text_of(error))


def declared_in(suite: Suite) -> list[str]:
    """Return what the tests define, in order."""
    return list(declared_names(suite.tree)) if suite.tree is not None else []


def _missing_module(who: str, error: ImportError) -> str:
    return "%s need a module that is not in the sandbox: %s" % (who, getattr(error, "name", None))  # noqa: UP031


def _line_of_tests(error: BaseException) -> str:
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _TESTS:
            line = trace.tb_lineno
        trace = trace.tb_next
    return " at line %d of the tests" % line if line else ""  # noqa: UP031


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception of the tests may be made of stand-ins
        return ""


def main() -> None:
    """Read the job, take the conversation away from stdin and stdout, then run the tests."""
    source, target, report = os.dup(0), os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    wire = Wire(source, target, _FRAME_LIMIT)
    job = wire.receive()
    verdict = Verdict(report, job["token"])
    Run(job, Tester(wire, verdict), verdict).run()


if __name__ == "__main__":
    main()
