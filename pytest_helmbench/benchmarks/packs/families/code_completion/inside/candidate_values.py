"""Values as the candidate sends and gets them: what is no data stays here and is spoken of by number."""

from __future__ import annotations

import builtins

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.compose import REPLY
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.operators import OPERATORS, SHOWN_BY
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.values import Codec, Shared, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import Parts

    CallBack = Callable[[str, int, tuple[object, ...], dict[str, object]], object]
    """Has the tests call something of theirs: in which way, its number, arguments."""

__all__ = ["MODULE", "CandidateCodec", "plain_part", "state_of"]

MODULE = "solution"
"""Of the reply's code."""

_PLAIN_BASES = (int, float, str, bytes, tuple, frozenset, complex)
_HOLDING_BASES = (list, dict, set, bytearray)


class _Iterator:
    """Stands for an iterator of the tests."""

    def __init__(self, pull: Callable[[], object]) -> None:
        self._pull = pull

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> object:
        return self._pull()


class _Lent:
    """Stands for an object of the tests."""


class CandidateCodec(Codec):
    """Values as the candidate sends and gets them.

    Args:
        call_back: Has the tests do something.
        is_known: Whether the tests or the starter name a class.
    """

    def __init__(self, call_back: CallBack, is_known: Callable[[type], bool]) -> None:
        super().__init__(Shared(1))
        self._call_back = call_back
        self._is_known = is_known
        self._objects: dict[int, object] = {}
        self._numbers: dict[int, int] = {}
        self._next = 0
        self._told: set[int] = set()
        self._visitors: dict[int, object] = {}
        self._visitor_numbers: dict[int, int] = {}

    def free(self, numbers: list[int]) -> None:
        """Forget objects that nobody speaks of any more."""
        for number in numbers:
            value = self._objects.pop(number, None)
            self._numbers.pop(id(value), None)

    def encode_foreign(self, value: object) -> object:
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
            return ["p", self._keep(value), self._encode_class(cls), self.encode(_plain_value(value, base))]
        base = _base_of(cls, _HOLDING_BASES)
        if base is not None and not self._is_known(cls):
            return self.encode(_plain_value(value, base))
        return ["h", self._keep(value), self._described(cls)]

    def decode_foreign(self, tag: str, parts: Parts) -> object:
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

    def _keep(self, value: object) -> int:
        number = self._numbers.get(id(value))
        if number is None:
            number = self._next
            self._next += 1
            self._objects[number] = value
            self._numbers[id(value)] = number
        return number

    def _encode_class(self, cls: type) -> object:
        if name_of(cls).startswith("builtins."):
            return ["n", cls.__name__]
        return self._described(cls)

    def _described(self, cls: type) -> object:
        """Return a class by what its objects can do; one of Python's own too, where an object of it stays here."""
        number = self._keep(cls)
        if number in self._told:
            return ["k", number]
        self._told.add(number)
        raised = issubclass(cls, BaseException)
        bases = [
            self._encode_class(base)
            for base in cls.__bases__
            if (issubclass(base, BaseException) if raised else base.__module__ == MODULE)
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

    def _encode_exception(self, error: BaseException) -> object:
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

    def _decode_exception(self, name: str, arguments: object, origin: int) -> BaseException:
        given = self.decode(arguments)
        error = getattr(builtins, name)(*(given if isinstance(given, tuple) else ()))
        assert isinstance(error, BaseException)
        vars(error).update(__helmbench_origin__=origin)
        return error

    def _lent(self, number: int, name: str, operators: list[str]) -> object:
        call_back = self._call_back

        def operator(each: str) -> object:
            return lambda _, *args: call_back("operator", number, (each, *args), {})

        body: dict[str, object] = {each: operator(each) for each in operators}
        body["__getattr__"] = lambda _, each: call_back("get", number, (each,), {})
        body["__setattr__"] = lambda _, each, value: call_back("set", number, (each, value), {})
        if "__eq__" in body and "__hash__" not in body:
            body["__hash__"] = None
        return type(name, (_Lent,), {**body, "__module__": "tests"})()

    def _visitor(self, tag: str, number: int, *details: Any) -> object:
        if tag == "y":
            return _Iterator(lambda: self._call_back("next", number, (), {}))
        if tag == "o":
            return self._lent(number, *details)
        return self._function(number, *details)

    def _function(self, number: int, name: str, documentation: str | None, is_async: object) -> object:
        def call(*args: object, **kwargs: object) -> object:
            return self._call_back("call", number, args, kwargs)

        async def wait(*args: object, **kwargs: object) -> object:
            return call(*args, **kwargs)

        function: Callable[..., object] = wait if is_async else call
        function.__name__ = function.__qualname__ = name
        function.__doc__ = documentation
        return function


def _plain_value(value: Any, base: Any) -> object:
    """Return what a value of a class that builds on a plain one is without that class."""
    if base is dict:
        return dict(zip(dict.keys(value), dict.values(value)))
    if base is int:
        return int.__index__(value)
    if base in (float, complex):
        return base.__pos__(value)
    if base is str:
        return str.__str__(value)
    if base is frozenset or base is set:
        return base(base.__iter__(value))
    return base.__getitem__(value, slice(None)) if base is not tuple else tuple(tuple.__iter__(value))


def plain_part(value: object) -> object:
    """Return what a value is as the plain one that its class builds on; None for none."""
    base = _base_of(type(value), _PLAIN_BASES + _HOLDING_BASES)
    return None if base is None else _plain_value(value, base)


def state_of(value: object) -> dict[str, object]:
    """Return the fields of an object by name."""
    found = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def special_of(cls: type, name: str) -> object:
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
        if owner.__module__ == MODULE
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


def _looked_up(module: str, name: str) -> object:
    """Return something of the standard library."""
    value: object = __import__(module, fromlist=("",))
    for part in name.split("."):
        value = getattr(value, part)
    return value
