"""Plain data between two processes: messages with a length before them, and the closed table of what may cross.

Values are rebuilt from the table; nothing that is received names code to run. A mutable container gets a number when
it crosses, in the order in which both sides meet them, so an answer can say what a call has changed in its arguments.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing `typing` costs as much as a start of Python
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias, TypedDict

    Container: TypeAlias = "list[object] | set[object] | deque[object] | dict[object, object] | bytearray"
    """A value that both sides can change: one of `_SEQUENCES` or `_MAPPINGS`, or a bytearray."""

    Value: TypeAlias = "tuple[Callable[[Any], list[object]], Callable[[Any, list[Any]], object]]"
    """How a value is taken apart, and how its type is put together from the parts."""

    class ReplyJob(TypedDict):
        """The parts of a reply's program.

        Attributes:
            blocks: The reply's blocks of code that may be Python.
            reply: All of it, for a reply without any.
            starter: Where the row's code starts; may be empty.
            whole: The starter with a body where its last function lacks one.
            imports: Import statements of the starter.
            declared: What the starter defines, by name: `function`, `class` or `value`.
        """

        blocks: list[str]
        reply: str
        starter: str
        whole: str
        imports: str
        declared: dict[str, str]

    class SuiteJob(TypedDict):
        """The first message to the process of the tests.

        Attributes:
            token: Stands before its report.
            in_process: The candidate is loaded beside the tests.
            tests: Of the row.
            given: What the tests take from the starter itself.
            wanted: Names to ask the candidate for.
            modules: Modules that the tests use without importing them.
            needs: What the tests import, statement by statement, but for modules that represent the candidate.
            tested: Modules by which the tests call the candidate.
            entry: The function that the starter declares last; empty for none.
            uncalled: Functions and classes of the tests that no statement of theirs calls.
            runs_cases: The tests run their test cases themselves.
            exits: Lines at which the tests may end by their own words.
            reply: The candidate's program.
        """

        token: str
        in_process: bool
        tests: str
        given: str
        wanted: list[str]
        modules: list[str]
        needs: list[str]
        tested: list[str]
        entry: str
        uncalled: list[str]
        runs_cases: bool
        exits: list[int]
        reply: ReplyJob


_HEAD = 8  # bytes of a message's length
_CHUNK = 1 << 16


class BrokenWireError(Exception):
    """The other side has ended, or says what no honest one would."""


def _quick_json() -> tuple[Callable[[object], str], Callable[[str], object]]:
    """Return encoder and scanner of the C module itself; the `json` package costs half a start of Python."""
    native = __import__("_json")
    constants = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf")}

    class Settings:
        strict = True
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = constants.__getitem__

    encode = native.make_encoder(
        None, None, native.encode_basestring_ascii, None, ":", ",", False, False, True
    )
    scan = native.make_scanner(Settings())

    def to_text(value: object) -> str:
        return "".join(encode(value, 0))

    def from_text(text: str) -> object:
        value, end = scan(text, 0)
        if end != len(text):
            raise ValueError("more than one value")
        return value

    if from_text(to_text([1, 2.5, "\u20ac", None, True])) != [1, 2.5, "\u20ac", None, True]:
        raise TypeError("another _json")
    return to_text, from_text


try:
    dumps, loads = _quick_json()
except (ImportError, AttributeError, TypeError, ValueError):  # its interface is documented nowhere
    dumps, loads = __import__("json").dumps, __import__("json").loads


class Wire:
    """One end of a conversation.

    Args:
        limit: Largest message that is taken, in bytes.
    """

    def __init__(self, source: int, target: int, limit: int) -> None:
        self._source = source
        self._target = target
        self._limit = limit
        self._rest = b""

    def send(self, message: object) -> None:
        """Write a message.

        Raises:
            BrokenWireError: The other side has ended.
            RecursionError: It is nested too deep.
        """
        body = dumps(message).encode("ascii")
        data = memoryview(len(body).to_bytes(_HEAD, "big") + body)
        try:
            while data:
                data = data[os.write(self._target, data) :]
        except OSError as error:
            raise BrokenWireError("it has ended") from error

    def receive(self) -> Any:
        """Read the next message; the other side speaks only when it is its turn.

        Raises:
            BrokenWireError: The other side has ended, or sends no single message within the limit.
        """
        length = int.from_bytes(self._read(_HEAD), "big")
        if length > self._limit:
            raise BrokenWireError(f"it answered with more than {self._limit} bytes")
        body = self._read(length)
        if self._rest:
            raise BrokenWireError("it spoke out of turn")
        try:
            return loads(body.decode("ascii"))
        except (ValueError, StopIteration, RecursionError, MemoryError, SystemError) as error:
            raise BrokenWireError("its answer cannot be read") from error

    def _read(self, size: int) -> bytes:
        parts = [self._rest]
        missing = size - len(self._rest)
        while missing > 0:
            try:
                chunk = os.read(self._source, _CHUNK)
            except OSError as error:
                raise BrokenWireError("it has ended") from error
            if not chunk:
                raise BrokenWireError("it has ended")
            parts.append(chunk)
            missing -= len(chunk)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]


def _parts_of_time(value: Any) -> list[object]:
    return [value.hour, value.minute, value.second, value.microsecond, value.tzinfo, value.fold]


def _time(cls: Callable[..., object], parts: list[Any]) -> object:
    *numbers, zone, fold = parts
    return cls(*numbers, tzinfo=zone, fold=fold)


def _text(value: object) -> list[object]:
    return [str(value)]


def _made(cls: Callable[..., object], parts: list[Any]) -> object:
    return cls(*parts)


# Immutable types of the standard library: taken apart into data, put together from it.
_VALUES: dict[str, Value] = {
    "decimal.Decimal": (_text, _made),
    "fractions.Fraction": (lambda v: [v.numerator, v.denominator], _made),
    "datetime.timedelta": (lambda v: [v.days, v.seconds, v.microseconds], _made),
    "datetime.timezone": (lambda v: [v.utcoffset(None)], _made),
    "datetime.date": (lambda v: [v.year, v.month, v.day], _made),
    "datetime.time": (_parts_of_time, _time),
    "datetime.datetime": (lambda v: [v.year, v.month, v.day, *_parts_of_time(v)], _time),
    "zoneinfo.ZoneInfo": (lambda v: [v.key], _made),
    "uuid.UUID": (lambda v: [v.hex], _made),
    "pathlib.PosixPath": (_text, _made),
    "pathlib.PurePosixPath": (_text, _made),
    "pathlib._local.PosixPath": (_text, _made),
    "pathlib._local.PurePosixPath": (_text, _made),
    "builtins.complex": (lambda v: [v.real, v.imag], _made),
    "builtins.range": (lambda v: [v.start, v.stop, v.step], _made),
    "builtins.slice": (lambda v: [v.start, v.stop, v.step], _made),
}
_SINGLES = {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}
_FACTORIES = {cls.__name__: cls for cls in (list, dict, set, int, float, str, tuple, bool)}

# Mutable ones: how each is filled again in place.
_SEQUENCES = {"builtins.list": "extend", "builtins.set": "update", "collections.deque": "extend"}
_MAPPINGS = ("builtins.dict", "collections.OrderedDict", "collections.Counter", "collections.defaultdict")
_CONTAINERS = frozenset((*_SEQUENCES, *_MAPPINGS, "builtins.bytearray"))
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))

_LARGEST = 2**53  # whole numbers within are written as such
_PLAIN = frozenset((str, bool, float, type(None)))
_SCALARS = _PLAIN | {int}
_RAW, _CODED = 1, 0


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


class Parcel:
    """The values of one question and its answer.

    Args:
        encode_foreign: Returns what crosses in place of a value that is not plain data.
        decode_foreign: Returns what stands here for a value of the other side, by tag and parts.
    """

    def __init__(
        self, encode_foreign: Callable[[object], object], decode_foreign: Callable[[str, list[Any]], object]
    ) -> None:
        self._encode_foreign = encode_foreign
        self._decode_foreign = decode_foreign
        self._containers: list[Container] = []
        self._numbers: dict[int, int] = {}
        self._prints: list[str] = []

    def _add(self, value: Container) -> None:
        self._numbers[id(value)] = len(self._containers)
        self._containers.append(value)

    def settle(self) -> None:
        """Remember how the containers look that have crossed so far."""
        self._prints = [dumps(self._body(each)) for each in self._containers]

    def changes(self) -> list[object]:
        """Return what was changed since `settle` in the containers that had crossed by then."""
        bodies = ((number, self._body(self._containers[number])) for number in range(len(self._prints)))
        return [[number, body] for number, body in bodies if dumps(body) != self._prints[number]]

    def apply(self, changes: list[Any]) -> None:
        """Bring in what the other side has changed.

        Raises:
            BrokenWireError: It names what has not crossed, or puts in what does not fit.
        """
        try:
            for number, body in changes:
                self._fill(self._containers[number], body)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise BrokenWireError("its answer makes no sense") from error

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

    def _encode_other(self, value: Any) -> object:
        for name, single in _SINGLES.items():
            if value is single:
                return ["e", name]
        name = name_of(type(value))
        if name in _VALUES:
            return ["v", name, [self.encode(part) for part in _VALUES[name][0](value)]]
        if name in _CONTAINERS:
            return self._encode_container(value, name)
        if type(value) in _VIEWS:
            return ["w", type(value).__name__, self._encode_items(value)]
        return self._encode_foreign(value)

    def _encode_container(self, value: Any, name: str) -> object:
        number = self._numbers.get(id(value))
        if number is not None:
            return ["r", number]
        self._add(value)
        extra = None
        if name == "collections.deque":
            extra = value.maxlen
        elif name == "collections.defaultdict":
            extra = next((word for word, cls in _FACTORIES.items() if cls is value.default_factory), None)
        return ["m", name, extra, self._body(value)]

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
            BrokenWireError: No honest side sends it.
        """
        if type(data) is not list:
            return data
        try:
            return self._decode_tagged(data[0], data)
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, ImportError) as error:
            raise BrokenWireError("its answer makes no sense") from error

    def _decode_tagged(self, tag: str, data: list[Any]) -> object:
        if tag == "t":
            return tuple(self._decode_items(data[1]))
        if tag == "r":
            return self._containers[data[1]]
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
            return _view(data[1], self._decode_items(data[2]))
        return self._decode_foreign(tag, data[1:])

    def _decode_container(self, name: str, extra: Any, body: Any) -> Container:
        if name not in _CONTAINERS:
            raise BrokenWireError("it names a type that cannot cross")
        arguments: tuple[object, ...] = ()
        if name == "collections.deque":
            arguments = ((), extra)
        elif name == "collections.defaultdict":
            arguments = (None if extra is None else _FACTORIES[extra],)
        value: Container = _type_named(name)(*arguments)
        self._add(value)
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

    def _decode_items(self, data: list[Any]) -> list[Any]:
        kind, items = data
        return list(items) if kind == _RAW else [self.decode(item) for item in items]


def _view(kind: str, items: list[Any]) -> object:
    if kind == "dict_items":
        return dict(items).items()
    return dict.fromkeys(items).keys() if kind == "dict_keys" else dict(enumerate(items)).values()
