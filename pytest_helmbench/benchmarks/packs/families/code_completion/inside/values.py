"""Values as they cross between two processes: plain data, and lists that both sides go on sharing.

Plain data is rebuilt from a closed table of types; nothing that is received names code to run. A mutable container
gets a number when it first crosses. Both sides keep it while both still hold it, and every message brings what was
changed in it since, so that a call sees and makes changes as if it were made in one process.
"""

from __future__ import annotations

import sys

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import BrokenWireError, dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias, TypeGuard

    from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import Parts

    Container: TypeAlias = "list[object] | set[object] | deque[object] | dict[object, object] | bytearray"
    """What both sides share: one of `_SEQUENCES` or `_MAPPINGS`, or `_BYTES`."""

    Value: TypeAlias = "tuple[Callable[[Any], list[object]], Callable[[Any, Parts], object]]"
    """How a value is taken apart, and how its type is put together from the parts."""

__all__ = ["Codec", "Shared", "name_of"]

_LARGEST = 2**53  # whole numbers within are written as such
_PLAIN = frozenset((str, bool, float, type(None)))
_SCALARS = _PLAIN | {int}
_RAW, _CODED = 1, 0


def _parts_of_time(value: Any) -> list[object]:
    return [value.hour, value.minute, value.second, value.microsecond, value.tzinfo, value.fold]


def _time(cls: Callable[..., object], parts: Parts) -> object:
    *numbers, zone, fold = parts
    return cls(*numbers, tzinfo=zone, fold=fold)


def _memory(cls: Callable[..., Any], parts: Parts) -> object:
    data, form, shape = parts
    return cls(data).cast("B").cast(form, shape) if len(shape) > 1 else cls(data).cast(form)


# Immutable types of the standard library: taken apart into data, put together from it.
_VALUES: dict[str, Value] = {
    "decimal.Decimal": (lambda v: [str(v)], lambda cls, parts: cls(parts[0])),
    "fractions.Fraction": (lambda v: [v.numerator, v.denominator], lambda cls, parts: cls(*parts)),
    "datetime.timedelta": (lambda v: [v.days, v.seconds, v.microseconds], lambda cls, parts: cls(*parts)),
    "datetime.timezone": (lambda v: [v.utcoffset(None)], lambda cls, parts: cls(parts[0])),
    "datetime.date": (lambda v: [v.year, v.month, v.day], lambda cls, parts: cls(*parts)),
    "datetime.time": (_parts_of_time, _time),
    "datetime.datetime": (lambda v: [v.year, v.month, v.day, *_parts_of_time(v)], _time),
    "zoneinfo.ZoneInfo": (lambda v: [v.key], lambda cls, parts: cls(parts[0])),
    "uuid.UUID": (lambda v: [v.hex], lambda cls, parts: cls(parts[0])),
    "pathlib.PosixPath": (lambda v: [str(v)], lambda cls, parts: cls(parts[0])),
    "pathlib.PurePosixPath": (lambda v: [str(v)], lambda cls, parts: cls(parts[0])),
    "pathlib._local.PosixPath": (lambda v: [str(v)], lambda cls, parts: cls(parts[0])),
    "pathlib._local.PurePosixPath": (lambda v: [str(v)], lambda cls, parts: cls(parts[0])),
    "builtins.complex": (lambda v: [v.real, v.imag], lambda cls, parts: cls(*parts)),
    "builtins.range": (lambda v: [v.start, v.stop, v.step], lambda cls, parts: cls(*parts)),
    "builtins.memoryview": (lambda v: [v.tobytes(), v.format, v.shape], _memory),
    "builtins.slice": (lambda v: [v.start, v.stop, v.step], lambda cls, parts: cls(*parts)),
}
_SINGLES = {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}

# Mutable ones: how each is emptied and filled again in place.
_SEQUENCES = {"builtins.list": "extend", "builtins.set": "update", "collections.deque": "extend"}
_MAPPINGS = ("builtins.dict", "collections.OrderedDict", "collections.Counter", "collections.defaultdict")
_BYTES = "builtins.bytearray"
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def name_of(cls: type) -> str:
    """Return `module.name` of a type, if it can be found under it; empty otherwise."""
    module = cls.__module__
    name = cls.__qualname__
    if type(module) is not str or type(name) is not str:
        return ""
    return module + "." + name if getattr(sys.modules.get(module), name, None) is cls else ""


def _type_named(name: str) -> Callable[..., Any]:
    module, _, short = name.rpartition(".")
    found: Callable[..., Any] = getattr(__import__(module, fromlist=(short,)), short)
    return found


def _is_container(_value: object, name: str) -> TypeGuard[Container]:
    """Return whether a value is one that both sides can share, by the name of its type."""
    return name in _SEQUENCES or name in _MAPPINGS or name == _BYTES


def _is_view(value: object) -> TypeGuard[Iterable[object]]:
    return type(value) in _VIEWS


class Shared:
    """The containers that both sides know, by number.

    Args:
        first: Number of the first that this side names; the other side's are between them.
    """

    def __init__(self, first: int) -> None:
        self.objects: dict[int, Container] = {}
        self.prints: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._next = first
        self._probe: dict[int, list[object]] = {0: [None]}
        self._unheld = sys.getrefcount(self._probe[0]) if hasattr(sys, "getrefcount") else 0

    def number_of(self, value: object) -> int | None:
        """Return the number of a container that has crossed already."""
        return self._numbers.get(id(value))

    def add(self, value: Container, number: int | None = None) -> int:
        """Remember a container.

        Args:
            value: The container.
            number: As the other side calls it; None for a new one of ours.
        """
        if number is None:
            number = self._next
            self._next += 2
        self.objects[number] = value
        self._numbers[id(value)] = number
        return number

    def drop(self, numbers: Iterable[int]) -> None:
        """Forget containers."""
        for number in numbers:
            value = self.objects.pop(number, None)
            self.prints.pop(number, None)
            if value is not None:
                self._numbers.pop(id(value), None)

    def unheld(self) -> list[int]:
        """Return those that nothing on this side holds any more but this table."""
        inner: dict[int, list[int]] = {}
        held: dict[int, int] = {}
        for number in self.objects:
            held[number] = sys.getrefcount(self.objects[number]) - self._unheld
        for number in self.objects:
            inner[number] = self._inside(self.objects[number])
            for child in inner[number]:
                held[child] -= 1
        reached: set[int] = set()
        todo = [number for number, count in held.items() if count > 0]
        while todo:
            number = todo.pop()
            if number not in reached:
                reached.add(number)
                todo += inner[number]
        return [number for number in self.objects if number not in reached]

    def _inside(self, value: Container) -> list[int]:
        """Return the containers that stand in this one themselves."""
        items: Iterable[object] = value.values() if isinstance(value, dict) else value
        if set(map(type, items)) <= _SCALARS:
            return []
        numbers = (self._numbers.get(id(item)) for item in items)
        return [number for number in numbers if number is not None]


class Codec:
    """Values to JSON and back, for one side of a conversation.

    Args:
        shared: The containers that both sides know.
    """

    def __init__(self, shared: Shared) -> None:
        self.shared = shared

    def encode_foreign(self, value: object) -> object:
        """Return what crosses in place of a value that is no plain data."""
        raise NotImplementedError

    def decode_foreign(self, tag: str, parts: Parts) -> object:
        """Return what stands here for a value of the other side."""
        raise NotImplementedError

    def encode(self, value: object) -> object:
        """Return a value as JSON."""
        if type(value) in _PLAIN:
            return value
        if type(value) is int:
            return value if -_LARGEST < value < _LARGEST else ["i", hex(value)]
        if type(value) is tuple:
            return ["t", self._encode_items(value)]
        if type(value) is list:
            return self._encode_container(value, "builtins.list")
        if type(value) is dict:
            return self._encode_container(value, "builtins.dict")
        if type(value) is bytes:
            return ["b", value.hex()]
        if type(value) is frozenset:
            return ["f", self._encode_items(value)]
        return self._encode_other(value)

    def _encode_other(self, value: object) -> object:
        for name, single in _SINGLES.items():
            if value is single:
                return ["e", name]
        name = name_of(type(value))
        if name in _VALUES:
            return ["v", name, [self.encode(part) for part in _VALUES[name][0](value)]]
        if _is_container(value, name):
            return self._encode_container(value, name)
        if _is_view(value):
            return ["w", type(value).__name__, self._encode_items(value)]
        return self.encode_foreign(value)

    def _encode_container(self, value: Container, name: str) -> object:
        number = self.shared.number_of(value)
        if number is not None:
            return ["r", number]
        return ["m", self.shared.add(value), name, self._extra(value, name), self._body(value)]

    def _extra(self, value: Any, name: str) -> object:
        if name == "collections.deque":
            return value.maxlen
        return self.encode(value.default_factory) if name == "collections.defaultdict" else None

    def _body(self, value: Container) -> object:
        if isinstance(value, bytearray):
            return value.hex()
        if isinstance(value, dict):
            return [self._encode_items(value), self._encode_items(value.values())]
        return self._encode_items(value)

    def _encode_items(self, found: Iterable[object]) -> object:
        items = list(found)
        types = set(map(type, items))
        if types <= _PLAIN:
            return [_RAW, items]
        if types <= _SCALARS and all(type(item) is not int or -_LARGEST < item < _LARGEST for item in items):
            return [_RAW, items]
        return [_CODED, [self.encode(item) for item in items]]

    def decode(self, data: object) -> object:
        """Return the value of a JSON text.

        Raises:
            BrokenWireError: It is none that an honest side sends.
        """
        if type(data) is not list:
            return data
        try:
            return self._decode_tagged(data[0], data)
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, ImportError) as error:
            raise BrokenWireError("its answer makes no sense") from error

    def _decode_tagged(self, tag: str, data: Parts) -> object:
        if tag == "t":
            return tuple(self._decode_items(data[1]))
        if tag == "r":
            return self.shared.objects[data[1]]
        if tag == "m":
            return self._decode_container(*data[1:])
        if tag == "i":
            return int(data[1], 16)
        if tag == "b":
            return bytes.fromhex(data[1])
        if tag == "f":
            return frozenset(self._decode_items(data[1]))
        if tag == "e":
            return _SINGLES[data[1]]
        if tag == "v":
            return _VALUES[data[1]][1](_type_named(data[1]), [self.decode(part) for part in data[2]])
        if tag == "w":
            return self._decode_view(data[1], self._decode_items(data[2]))
        return self.decode_foreign(tag, data[1:])

    def _decode_view(self, kind: str, items: Parts) -> object:
        if kind == "dict_items":
            return dict(items).items()
        return dict.fromkeys(items).keys() if kind == "dict_keys" else dict(enumerate(items)).values()

    def _decode_container(self, number: int, name: str, extra: object, body: Any) -> Container:
        if type(number) is not int or number in self.shared.objects:
            raise BrokenWireError("it names two things alike")
        value: Container
        if name == "collections.deque":
            value = _type_named(name)((), extra)
        elif name == "collections.defaultdict":
            value = _type_named(name)(self.decode(extra))
        elif name in _SEQUENCES or name in _MAPPINGS or name == _BYTES:
            value = _type_named(name)()
        else:
            raise BrokenWireError("it names a type that cannot cross")
        self.shared.add(value, number)
        self._fill(value, body)
        return value

    def _fill(self, value: Container, body: Any) -> None:
        """Give a container that stands already its content, so that others hold the same one."""
        if isinstance(value, bytearray):
            value[:] = bytes.fromhex(body)
        elif isinstance(value, dict):
            keys, values = self._decode_items(body[0]), self._decode_items(body[1])
            value.clear()
            for key, item in zip(keys, values):
                value[key] = item
        else:
            items = self._decode_items(body)
            value.clear()
            getattr(value, _SEQUENCES[name_of(type(value))])(items)

    def _decode_items(self, data: Parts) -> Parts:
        kind, items = data
        return items if kind == _RAW else [self.decode(item) for item in items]

    def changes(self) -> list[object]:
        """Return what the other side has not seen yet of the containers that both know."""
        found: list[object] = []
        for number in list(self.shared.objects):
            if number not in self.shared.prints:
                continue  # crosses for the first time, with all its content
            body = self._body(self.shared.objects[number])
            if dumps(body) != self.shared.prints[number]:
                found.append([number, body])
                self.shared.prints[number] = self._print(number)
        return found

    def apply(self, changes: Parts) -> None:
        """Bring in what the other side has changed.

        Raises:
            BrokenWireError: It names containers that are not shared, or puts in what does not fit.
        """
        try:
            for number, body in changes:
                self._fill(self.shared.objects[number], body)
                self.shared.prints[number] = self._print(number)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise BrokenWireError("its answer makes no sense") from error

    def settle(self) -> None:
        """Remember how the containers look that have crossed since the last time; both sides see the same now."""
        for number in list(self.shared.objects):
            if number not in self.shared.prints:
                self.shared.prints[number] = self._print(number)

    def _print(self, number: int) -> str:
        return dumps(self._body(self.shared.objects[number]))
