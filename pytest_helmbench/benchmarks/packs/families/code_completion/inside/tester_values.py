"""Values as the tests send and get them: what arrives is data, rebuilt from a closed table of types.

What is no data is spoken of by number, and never looked into: objects of the candidate have stand-ins here, and it is
lent those of the tests.
"""

from __future__ import annotations

import builtins
import sys
from _weakref import ref

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.asker import Asker
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import BrokenWireError
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.operators import LENT_OPERATORS
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.standins import (
    ClassFacts,
    Held,
    Remote,
    RemoteClass,
    new_class,
    new_stand_in,
    number_of,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.values import Codec, Shared, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any

    from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import Parts

__all__ = ["TesterCodec"]

_MAIN = "__main__"
_SURE = (
    "json decimal queue asyncio concurrent re sre_constants struct zlib binascii csv configparser subprocess "
    "statistics zoneinfo dataclasses socket urllib http ipaddress copy pickle shutil tarfile zipfile xml "
    "sqlite3 threading graphlib email locale"
)
_SURE_TYPES = frozenset(_SURE.split())
"""Modules whose exceptions mean nothing to whoever runs tests."""


class TesterCodec(Codec):
    """Values as the tests send and get them.

    Args:
        asker: Who asks the candidate.
    """

    def __init__(self, asker: Asker) -> None:
        super().__init__(Shared(0))
        self._asker = asker
        self._classes: dict[int, type] = {}
        self._objects: dict[int, object] = {}
        self._wrapped: dict[int, tuple[ref[object], Held]] = {}
        self._lent: dict[int, object] = {}
        self._lent_numbers: dict[int, int] = {}

    def lent(self, number: int) -> object:
        """Return what the candidate was given under a number."""
        try:
            return self._lent[number]
        except (KeyError, TypeError) as error:
            raise BrokenWireError("it calls what it was never given") from error

    def encode_foreign(self, value: object) -> object:
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
        if hasattr(value, "assertEqual") and hasattr(value, "skipTest"):
            return self._asker.refuse("the tests hand over a test case itself")
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
        kind = name_of(cls) or cls.__name__
        return self._asker.refuse("the tests hand over a " + kind + ", which cannot cross")

    def _lend(self, value: object) -> int:
        number = self._lent_numbers.get(id(value))
        if number is None:
            number = len(self._lent)
            self._lent[number] = value
            self._lent_numbers[id(value)] = number
        return number

    def _encode_exception(self, error: BaseException) -> object:
        builtin = next(cls for cls in type(error).__mro__ if getattr(builtins, cls.__name__, None) is cls)
        arguments = tuple(error.args) if type(error) is builtin else (str(error),)
        return ["x", builtin.__name__, self.encode(arguments), self._lend(error)]

    def decode_foreign(self, tag: str, parts: Parts) -> object:
        """Return what stands for an object of the candidate."""
        if tag == "h":
            return self._stand_in(parts[0], self._decode_class(parts[1]))
        if tag == "p":
            return self._mirrored(parts[0], self._decode_class(parts[1]), self.decode(parts[2]))
        if tag == "H":
            return self.lent(parts[0])
        if tag == "k":
            return self._classes[parts[0]]
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

    def _decode_class(self, data: object) -> type:
        cls = self.decode(data)
        if not isinstance(cls, type):
            raise BrokenWireError("its answer makes no sense")
        return cls

    def _known(self, number: int) -> object:
        found = self._objects.get(number)
        return found() if isinstance(found, ref) else found

    def _stand_in(self, number: int, cls: type) -> object:
        found = self._known(number)
        if found is not None:
            return found
        if not (type(cls) is RemoteClass and issubclass(cls, Remote)):
            raise BrokenWireError("its answer makes no sense")
        value = new_stand_in(cls, _whole(number))
        self._objects[number] = ref(value)
        self._asker.remember(number)
        return value

    def _mirrored(self, number: int, cls: type, plain: object) -> object:
        found = self._known(number)
        if found is not None:
            return found
        base = next((base for base in cls.__mro__ if type(base) is not RemoteClass), object)
        if type(cls) is not RemoteClass or type(plain) is not base:
            raise BrokenWireError("its answer makes no sense")
        new: Callable[..., object] = base.__new__
        value = new(cls, plain)
        vars(value)["_helmbench_number"] = _whole(number)
        self._objects[number] = value
        return value

    def _class(self, number: int, *parts: Any) -> type:
        name, module, bases, operators, methods, plain, mirrored = parts
        if number in self._classes:
            raise BrokenWireError("it names two things alike")
        found = self._sure_exception(module, name)
        if found is None:
            facts = ClassFacts(self._asker, _whole(number), operators, methods, plain)
            inherited = tuple(base for base in map(self._decode_class, bases) if base is not object)
            found = new_class(facts, name, inherited, mirrored=bool(mirrored))
        self._classes[number] = found
        return found

    def _sure_exception(self, module: str, name: str) -> type | None:
        """Return an exception of the standard library, one of those that no test runner has a meaning for."""
        if module.partition(".")[0] not in _SURE_TYPES:
            return None
        found = getattr(__import__(module, fromlist=(name,)), name, None)
        return found if isinstance(found, type) and issubclass(found, Exception) else None

    def _exception(self, cls: object, arguments: object, *more: Any) -> BaseException:
        text, number, origin, line, extra = more
        found = self._known(number) if origin is None else self.lent(origin)
        if found is None:
            made = self._raised(self._decode_class(cls), self.decode(arguments), str(text))
            fields = self.decode(extra)
            if not isinstance(fields, dict):
                raise BrokenWireError("its answer makes no sense")
            vars(made).update(fields)
            cause = vars(made).pop("_helmbench_cause", None)
            made.__cause__ = cause if isinstance(cause, BaseException) else None
            vars(made).update(_helmbench_text=str(text), _helmbench_number=_whole(number))
            found = self._objects[number] = made
        if not isinstance(found, BaseException):
            raise BrokenWireError("its answer makes no sense")
        if origin is None:
            self._asker.blame(found, _whole(line), str(text))
        return found

    def _raised(self, cls: type, arguments: object, text: str) -> BaseException:
        """Return an exception of a class; those that need other arguments are made without their own beginning."""
        if not (issubclass(cls, BaseException) and isinstance(arguments, tuple)):
            raise BrokenWireError("its answer makes no sense")
        is_remote = type(cls) is RemoteClass
        if is_remote:
            raised = cls.__new__(cls, *arguments)
            raised.args = arguments
            return raised
        try:
            return cls(*arguments)
        except Exception:  # noqa: BLE001 - what the class makes of hostile arguments is its own
            return RuntimeError(text)

    def _wrapper(self, kind: str, number: int) -> object:
        found = self._known(number)
        if found is not None:
            return found
        held = Held(self._asker, _whole(number))
        self._asker.remember(number)
        wrapped = _WRAPPERS[kind](self._asker, held)
        key = id(wrapped)
        self._wrapped[key] = (ref(wrapped, lambda _: self._wrapped.pop(key, None)), held)
        self._objects[number] = self._wrapped[key][0]
        return wrapped


def _whole(number: object) -> int:
    if type(number) is not int:
        raise BrokenWireError("its answer makes no sense")
    return number


def _generator(asker: Asker, held: Held) -> Generator[object, object, object]:
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


async def _coroutine(asker: Asker, held: Held) -> object:
    return asker.ask("await", held)


async def _stream(asker: Asker, held: Held) -> AsyncGenerator[object, None]:
    while True:
        try:
            value = asker.ask("await", asker.ask("operator", held, "__anext__", ()))
        except StopAsyncIteration:
            return
        yield value


_WRAPPERS: dict[str, Callable[[Asker, Held], object]] = {"g": _generator, "c": _coroutine, "a": _stream}


def _standard_name(value: object) -> tuple[str, str] | None:
    """Return where the standard library keeps a function or class; None for anything else."""
    name = getattr(value, "__qualname__", None)
    module = getattr(value, "__module__", None)
    if type(name) is not str or type(module) is not str or module == _MAIN:
        return None
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (module, name) if found is value else None
