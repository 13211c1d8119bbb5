"""The process of the candidate: runs a reply's code and serves calls to it, one at a time, as data.

Nothing it says is believed. Whoever takes this process over can answer what it likes to questions it has been asked,
as its functions could; it never learns what answer is wanted.
"""

from __future__ import annotations

import builtins
import os
import sys
from _thread import RLock
from collections.abc import Callable
from typing import Any

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.compose import REPLY, compose
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import BrokenWireError, Wire
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.operators import OPERATORS, SHOWN_BY
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.values import Codec, Shared, name_of

__all__ = ["Candidate", "main"]

_MODULE = "solution"
_FRAME_LIMIT = 1 << 28
_PRINTED_LIMIT = 1 << 20
_PLAIN_BASES = (int, float, str, bytes, tuple, frozenset, complex)
_HOLDING_BASES = (list, dict, set, bytearray)


class _Printed:
    """What stands for stdout and stderr: kept for tests that redirect theirs, dropped otherwise."""

    encoding = "utf-8"
    errors = "strict"
    closed = False

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = _PRINTED_LIMIT

    def write(self, text: str) -> int:
        """Keep the text as long as there is room."""
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Keep the texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: there is nothing behind."""

    def isatty(self) -> bool:
        """Return that nobody looks."""
        return False

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def taken(self) -> str:
        """Return what was written since the last time."""
        text = "".join(self._parts)
        self._parts.clear()
        self._room = _PRINTED_LIMIT
        return text


class _Iterator:
    """Stands for an iterator of the tests."""

    def __init__(self, pull: Callable[[], Any]) -> None:
        self._pull = pull

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> Any:
        return self._pull()


class _Lent:
    """Stands for an object of the tests."""


class _Codec(Codec):
    """Values as the candidate sends and gets them: what is no data stays here and is spoken of by number."""

    def __init__(self, candidate: Candidate) -> None:
        super().__init__(Shared(1))
        self._candidate = candidate
        self._objects: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._next = 0
        self._told: set[int] = set()
        self._visitors: dict[int, Any] = {}
        self._visitor_numbers: dict[int, int] = {}

    def free(self, numbers: list[int]) -> None:
        """Forget objects that nobody speaks of any more."""
        for number in numbers:
            value = self._objects.pop(number, None)
            self._numbers.pop(id(value), None)

    def encode_foreign(self, value: Any) -> Any:
        """Return data about an object that stays here."""
        visitor = self._visitor_numbers.get(id(value))
        if visitor is not None:
            return ["H", visitor]
        if isinstance(value, type):
            return self._encode_class(value)
        if isinstance(value, BaseException):
            return self._encode_exception(value)
        cls = type(value)
        kind = {"generator": "g", "coroutine": "c", "async_generator": "a"}.get(cls.__name__)
        if kind is not None and cls.__module__ == "builtins":
            return [kind, self._keep(value)]
        base = _base_of(cls, _PLAIN_BASES)
        if base is not None and not _computes(cls, base):
            return ["p", self._keep(value), self._encode_class(cls), self.encode(base_value(value, base))]
        base = _base_of(cls, _HOLDING_BASES)
        if base is not None and not self._candidate.is_known(cls):
            return self.encode(base_value(value, base))
        return ["h", self._keep(value), self._encode_class(cls)]

    def decode_foreign(self, tag: str, parts: list[Any]) -> Any:
        """Return an object of this side, or what stands for one of the tests."""
        if tag == "H":
            return self._objects[parts[0]]
        if tag == "N":
            return _looked_up(*parts)
        if tag == "x":
            return self._decode_exception(*parts)
        if parts[0] not in self._visitors:
            visitor = self._visitor(tag, *parts)
            self._visitors[parts[0]] = visitor
            self._visitor_numbers[id(visitor)] = parts[0]
        return self._visitors[parts[0]]

    def _keep(self, value: Any) -> int:
        number = self._numbers.get(id(value))
        if number is None:
            number = self._next
            self._next += 1
            self._objects[number] = value
            self._numbers[id(value)] = number
        return number

    def _encode_class(self, cls: type) -> Any:
        if name_of(cls).startswith("builtins."):
            return ["n", cls.__name__]
        number = self._keep(cls)
        if number in self._told:
            return ["k", number]
        self._told.add(number)
        raised = issubclass(cls, BaseException)
        bases = [
            self._encode_class(base)
            for base in cls.__bases__
            if (issubclass(base, BaseException) if raised else base.__module__ == _MODULE)
        ]
        plain = _base_of(cls, _PLAIN_BASES + _HOLDING_BASES)
        inherited = plain or object
        operators = [
            name
            for name in OPERATORS
            if special_of(cls, name) is not None
            and special_of(cls, name) is not special_of(object, name)
            and not (name in ("__eq__", "__hash__") and special_of(cls, name) is special_of(inherited, name))
        ]
        return [
            *("K", number, str(cls.__name__), str(cls.__module__), bases, operators, _method_names(cls)),
            *(
                plain.__name__ if plain is not None else "",
                plain in _PLAIN_BASES and not _computes(cls, plain),
            ),
        ]

    def _encode_exception(self, error: BaseException) -> Any:
        try:
            text = str(error)
        except Exception:  # noqa: BLE001 - the candidate's own method may do anything
            text = ""
        extra = {name: value for name, value in vars(error).items() if type(name) is str and name[:2] != "__"}
        if error.__cause__ is not None:
            extra["_helmbench_cause"] = error.__cause__
        return [
            *("x", self._encode_class(type(error)), self.encode(tuple(error.args)), text, self._keep(error)),
            *(getattr(error, "__helmbench_origin__", None), _line_of(error), self.encode(extra)),
        ]

    def _decode_exception(self, name: str, arguments: Any, origin: int) -> BaseException:
        error = getattr(builtins, name)(*self.decode(arguments))
        assert isinstance(error, BaseException)
        error.__helmbench_origin__ = origin  # type: ignore[attr-defined]
        return error

    def _lent(self, number: int, name: str, operators: list[str]) -> Any:
        call_back = self._candidate.call_back

        def operator(each: str) -> Any:
            return lambda _, *args: call_back("operator", number, (each, *args), {})

        body: dict[str, Any] = {each: operator(each) for each in operators}
        body["__getattr__"] = lambda _, each: call_back("get", number, (each,), {})
        body["__setattr__"] = lambda _, each, value: call_back("set", number, (each, value), {})
        if "__eq__" in body and "__hash__" not in body:
            body["__hash__"] = None
        return type(name, (_Lent,), {**body, "__module__": "tests"})()

    def _visitor(self, tag: str, number: int, *details: Any) -> Any:
        if tag == "y":
            return _Iterator(lambda: self._candidate.call_back("next", number, (), {}))
        if tag == "o":
            return self._lent(number, *details)
        name, documentation, is_async = details
        visitor: Any

        if is_async:

            async def visitor(*args: Any, **kwargs: Any) -> Any:
                return self._candidate.call_back("call", number, args, kwargs)

        else:

            def visitor(*args: Any, **kwargs: Any) -> Any:
                return self._candidate.call_back("call", number, args, kwargs)

        visitor.__name__ = visitor.__qualname__ = name
        visitor.__doc__ = documentation
        return visitor


class Candidate:
    """Serves what the tests ask of a reply's code.

    Args:
        wire: To the tests.
        printed: What stands for stdout and stderr.
    """

    def __init__(self, wire: Wire, printed: _Printed) -> None:
        self._wire = wire
        self._printed = printed
        self._codec = _Codec(self)
        self._module = type(sys)(_MODULE)
        self._known: frozenset[str] = frozenset()
        self._asked = ""
        self._lock = RLock()
        self._loop: Any = None

    def serve(self) -> None:
        """Answer until the other side ends."""
        while True:
            self._answer(self._wire.receive())

    def is_known(self, cls: type) -> bool:
        """Return whether the tests or the starter name a class."""
        return any(getattr(self._module, name, None) is cls for name in self._known)

    def call_back(self, kind: str, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Have the tests call something of theirs.

        Raises:
            RuntimeError: The tests wait for nothing now.
        """
        with self._lock:
            if not self._asked:
                raise RuntimeError("what the tests have passed can be used during a call only")
            self._say("call", [kind, number, (args, kwargs)])
            while True:
                message = self._wire.receive()
                if message[1] not in ("back", "threw", "stop"):
                    self._answer(message)
                    continue
                value = self._heard(message)
                if message[1] == "threw":
                    raise value
                if message[1] == "stop":
                    raise StopIteration
                return value

    def _answer(self, message: list[Any]) -> None:
        outer, self._asked = self._asked, message[0]
        status = "ok"
        try:
            arguments = self._heard(message)
            value = getattr(self, "_do_" + message[1])(*arguments)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the tests see it raised
            status, value = "raised", error
        arguments = None
        try:
            self._say(status, value)
        except RecursionError as error:
            self._say("raised", error.with_traceback(None))
        finally:
            self._asked = outer

    def _heard(self, message: list[Any]) -> Any:
        _, _, data, changes, gone, freed = message
        self._codec.apply(changes)
        self._codec.shared.drop(gone)
        self._codec.free(freed)
        value = self._codec.decode(data)
        self._codec.settle()
        return value

    def _say(self, status: str, value: Any) -> None:
        shared = self._codec.shared
        before = set(shared.objects)
        try:
            changes = self._codec.changes()
            data = self._codec.encode(value)
        except RecursionError:
            shared.drop(set(shared.objects) - before)
            raise
        if isinstance(value, BaseException):
            value.__traceback__ = None  # its frames would hold every argument
        value = None
        gone = shared.unheld() if status != "call" else []
        shared.drop(gone)
        self._codec.settle()
        self._wire.send([self._asked, status, data, changes, gone, self._printed.taken()])

    def _do_load(self, blocks: list[str], reply: str, starter: str, known: list[str]) -> None:
        self._known = frozenset(known)
        sys.modules[_MODULE] = self._module
        flags = 0
        for name, text in compose(blocks, reply, starter):
            code = compile(text, name, "exec", flags, dont_inherit=True)
            if name != REPLY and "__future__" in text:
                flags = code.co_flags & __import__("__future__").annotations.compiler_flag
            exec(code, vars(self._module))

    def _do_names(self, *names: str) -> dict[str, Any]:
        found = vars(self._module)
        return {
            name: found[name] for name in names if name in found and not isinstance(found[name], type(sys))
        }

    def _do_call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(*args, **kwargs)

    def _do_method(self, value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return getattr(value, name)(*args, **kwargs)

    def _do_get(self, value: Any, name: str) -> Any:
        return getattr(value, name)

    def _do_set(self, value: Any, name: str, given: Any) -> None:
        setattr(value, name, given)

    def _do_delete(self, value: Any, name: str) -> None:
        delattr(value, name)

    def _do_operator(self, value: Any, name: str, args: tuple[Any, ...]) -> Any:
        if name in ("__copy__", "__deepcopy__"):
            return getattr(__import__("copy"), name.strip("_"))(value)
        return getattr(type(value), name)(value, *args)

    def _do_send(self, generator: Any, given: Any) -> Any:
        return generator.send(given)

    def _do_await(self, awaitable: Any) -> Any:
        if self._loop is None:
            self._loop = __import__("asyncio").new_event_loop()

        async def wait() -> Any:
            return await awaitable

        return self._loop.run_until_complete(wait())

    def _do_value(self, value: Any) -> Any:
        base = _base_of(type(value), _PLAIN_BASES + _HOLDING_BASES)
        return None if base is None else base_value(value, base)

    def _do_state(self, value: Any) -> Any:
        return state_of(value)


def base_value(value: Any, base: Any) -> Any:
    """Return what a value of a class that builds on a plain one is without that class."""
    if base is dict:
        return dict(zip(dict.keys(value), dict.values(value)))  # noqa: B905
    if base is int:
        return int.__index__(value)
    if base in (float, complex):
        return base.__pos__(value)
    if base is str:
        return str.__str__(value)
    if base is frozenset or base is set:
        return base(base.__iter__(value))
    return base.__getitem__(value, slice(None)) if base is not tuple else tuple(tuple.__iter__(value))


def state_of(value: Any) -> dict[str, Any]:
    """Return the fields of an object by name."""
    found = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def special_of(cls: type, name: str) -> Any:
    """Return a special method of a class, without those that it has as an object itself; None for none."""
    return next((vars(owner)[name] for owner in cls.__mro__ if name in vars(owner)), None)


def _base_of(cls: type, bases: tuple[type, ...]) -> type | None:
    return next((base for base in bases if issubclass(cls, base)), None)


def _computes(cls: type, base: type) -> bool:
    """Return whether a class computes in another way than the plain one it builds on."""
    own = OPERATORS - SHOWN_BY - {"__dir__"}
    return any(special_of(cls, name) is not special_of(base, name) for name in own)


def _method_names(cls: type) -> list[str]:
    """Return the names that are methods of every object of a class the candidate has made."""
    methods = (type(_method_names), staticmethod, classmethod)
    return [
        name
        for owner in cls.__mro__
        if owner.__module__ == _MODULE
        for name, value in vars(owner).items()
        if isinstance(value, methods) and not name.startswith("__")
    ]


def _line_of(error: BaseException) -> int:
    """Return the last line of the reply's code that an exception passed; 0 for none."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == REPLY:
            line = trace.tb_lineno
        trace = trace.tb_next
    if line == 0 and isinstance(error, SyntaxError) and error.filename == REPLY:
        line = error.lineno or 0
    return line


def _looked_up(module: str, name: str) -> Any:
    """Return something of the standard library."""
    value: Any = __import__(module, fromlist=("",))
    for part in name.split("."):
        value = getattr(value, part)
    return value


def main() -> None:
    """Take the conversation away from stdin and stdout, then serve."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    printed = _Printed()
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        setattr(sys, name, printed)
    sys.argv[:] = [REPLY]
    try:
        Candidate(Wire(source, target, _FRAME_LIMIT), printed).serve()
    except BrokenWireError:
        os._exit(0)


if __name__ == "__main__":
    main()
