"""`dataclass` for a package that declares hundreds of them: what the library's makes, in a fraction of the time.

The library writes and compiles six functions for each frozen class and looks at every annotation, half a
millisecond, whenever a session starts. Here comparing, hashing, showing, refusing to change and pickling are shared,
and so is `__init__` of the first instances, as most classes of a short session have no more; then one is written.
`__dataclass_fields__` and the like are made at their first use.
The library makes all classes that are not frozen with slots, or need more of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field as LibraryField
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol, TypeVar

__all__ = ["dataclass"]

T = TypeVar("T")
Values = Callable[[object], object]

_MADE_HERE = frozenset(
    {
        "__init__",
        "__eq__",
        "__hash__",
        "__repr__",
        "__setattr__",
        "__delattr__",
        "__getstate__",
        "__setstate__",
    }
)
_NO_FIELDS = ("InitVar", "KW_ONLY", "dataclasses.", "typing.")
_OF_A_COPY = ("__annotations__", "__doc__", "__module__", "__orig_bases__")
_OF_NO_SLOTS = ("__dict__", "__weakref__")
_MISSING = dataclasses.MISSING
_FIRST_INSTANCES = 16
"""Writing an `__init__` takes as long as a hundred instances without it. Gain: 3 % of the instructions of a start."""


def _dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True, order: bool = False, **others: bool
) -> Callable[[type[T]], type[T]]:
    """Return a decorator that makes a dataclass; arguments and result as in `dataclasses.dataclass`."""

    def made(cls: type[T]) -> type[T]:
        if frozen and slots and not order and others.keys() <= {"repr"} and _is_plain(cls):
            return _light(cls, eq=eq, shows=others.get("repr", True))
        return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, order=order, **others)(cls)

    return made


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _is_plain(cls: type) -> bool:
    """Return whether a class asks for no more: it has none of these methods, and above it are dataclasses of ours."""
    return (
        _MADE_HERE.isdisjoint(vars(cls))
        and all(map(_is_light, _dataclasses_above(cls)))
        and all(
            isinstance(word, str) and not word.startswith(_NO_FIELDS) for word in cls.__annotations__.values()
        )
    )


def _dataclasses_above(cls: type) -> list[type]:
    return [above for above in cls.__mro__[1:] if "__dataclass_fields__" in vars(above)]


def _is_light(cls: type) -> bool:
    return vars(cls).get("__getstate__") is _state


def _light(cls: type[T], *, eq: bool, shows: bool) -> type[T]:
    own = {
        name: vars(cls).get(name, _MISSING)
        for name, word in cls.__annotations__.items()
        if not word.startswith("ClassVar")
    }
    above: dict[str, object] = {}
    for base in reversed(_dataclasses_above(cls)):
        above |= vars(base)["_own_"]
    fields = above | own
    members: dict[str, object] = {
        "__slots__": tuple(name for name in own if name not in above),
        "__qualname__": cls.__qualname__,
        "__annotations__": cls.__annotations__,
        "__doc__": cls.__doc__ or cls.__name__,
        "__match_args__": tuple(name for name, value in fields.items() if _says(value, "init")),
        "__dataclass_fields__": _FIELDS,
        "__dataclass_params__": _PARAMS,
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__getstate__": _state,
        "__setstate__": _restore,
        "_own_": own,
        "_names_": tuple(fields),
    }
    if eq:
        compared = [name for name, value in fields.items() if _says(value, "compare")]
        hashed = [name for name in compared if _says(fields[name], "hash") is not False]
        members |= {"__eq__": _equal, "_compared_": _values(compared)}
        members |= {"__hash__": _hash, "_hashed_": _values(hashed)}
    if shows:
        shown = [name for name, value in fields.items() if _says(value, "repr")]
        members |= {"__repr__": _shown, "_shown_": shown}
    kept = {
        name: member for name, member in vars(cls).items() if name not in fields and name not in _OF_NO_SLOTS
    }
    metaclass: Callable[..., type[T]] = type(cls)
    made = metaclass(cls.__name__, cls.__bases__, kept | members)
    type.__setattr__(made, "__init__", _first_inits(made, fields))
    return made


def _says(value: object, word: str) -> object:
    """Return what a field says of a use of it: one without `field()` is of all uses."""
    return getattr(value, word) if isinstance(value, LibraryField) else True


class _Kept:
    """An attribute of the library on a class, made at its first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, _instance: object, asked: type) -> object:
        cls = next(cls for cls in asked.__mro__ if vars(cls).get(self._name) is self)
        members = {name: vars(cls)[name] for name in _OF_A_COPY if name in vars(cls)}
        members |= {name: value for name, value in vars(cls)["_own_"].items() if value is not _MISSING}
        plain: type = type(cls)(cls.__name__, cls.__bases__, members)
        made: type = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=True)(plain)
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            type.__setattr__(cls, name, vars(made)[name])
        return vars(cls)[self._name]


_FIELDS, _PARAMS = _Kept("__dataclass_fields__"), _Kept("__dataclass_params__")


def _first_inits(cls: type, fields: Mapping[str, object]) -> Callable[..., None]:
    """Return an `__init__` for some instances; it puts the written one in its place."""
    left = _FIRST_INSTANCES
    given_in = cls.__match_args__  # type: ignore[attr-defined]

    def first(self: object, *given: object, **named: object) -> None:
        nonlocal left
        left -= 1
        values = dict(zip(given_in, given, strict=False)) | named
        fits = len(values) == len(given) + len(named) and values.keys() <= set(given_in)
        if left < 0 or not fits or not _fill(self, fields, values):
            written = _init(cls, fields)
            type.__setattr__(cls, "__init__", written)
            written(self, *given, **named)  # arguments that do not fit fail there
        elif hasattr(cls, "__post_init__"):
            cls.__post_init__(self)

    first.__name__, first.__qualname__ = "__init__", f"{cls.__qualname__}.__init__"
    return first


def _fill(self: object, fields: Mapping[str, object], values: Mapping[str, object]) -> bool:
    """Fill the slots; return False where a value is missing."""
    for name, value in fields.items():
        given = values[name] if name in values else _default(value)
        if given is _MISSING:
            return False
        object.__setattr__(self, name, given)
    return True


def _default(value: object) -> object:
    if not isinstance(value, LibraryField):
        return value
    return value.default if value.default_factory is _MISSING else value.default_factory()


def _init(cls: type, fields: Mapping[str, object]) -> Callable[..., None]:
    """Write `__init__`: it fills the slots, then calls `__post_init__`."""
    known: dict[str, object] = {"missing": _MISSING}
    parameters, lines = [], []
    for number, (name, value) in enumerate(fields.items()):
        known[f"set_{number}"] = getattr(cls, name).__set__  # of a slot, maybe that of a class above
        parameter = filled = name
        if isinstance(value, LibraryField) and value.default_factory is not _MISSING:
            known[f"make_{number}"] = value.default_factory
            parameter = f"{name}=missing"
            filled = f"make_{number}() if {name} is missing else {name}"
        elif (default := _default(value)) is not _MISSING:
            known[f"default_{number}"] = default
            parameter = f"{name}=default_{number}"
        if _says(value, "init"):
            parameters.append(parameter)
        else:
            filled = f"make_{number}()" if f"make_{number}" in known else f"default_{number}"
        if _says(value, "init") or filled in (f"make_{number}()", f"default_{number}"):
            lines.append(f"  set_{number}(self, {filled})")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    text = "\n".join(
        (
            f"def make({', '.join(known)}):",
            f" def __init__({', '.join(('self', *parameters))}):",
            *(lines or ("  pass",)),
            " return __init__",
        )
    )
    found: dict[str, Callable[..., Callable[..., None]]] = {}
    exec(text, {}, found)
    init = found["make"](**known)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    return init


class _Made(Protocol):
    """A class made here: the attributes besides its fields."""

    _names_: Sequence[str]
    _compared_: Values
    _hashed_: Values
    _shown_: Sequence[str]


def _values(names: Sequence[str]) -> Values:
    return attrgetter(*names) if names else _nothing


def _nothing(_self: object) -> tuple[()]:
    return ()


def _equal(self: _Made, other: _Made) -> object:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared_(self) == self._compared_(other)


def _hash(self: _Made) -> int:
    return hash(self._hashed_(self))


def _shown(self: _Made) -> str:
    values = (f"{name}={getattr(self, name)!r}" for name in self._shown_)
    return f"{self.__class__.__qualname__}({', '.join(values)})"


def _refuse_to_set(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: _Made) -> list[object]:
    return [getattr(self, name) for name in self._names_]


def _restore(self: _Made, values: Sequence[object]) -> None:
    for name, value in zip(self._names_, values, strict=True):
        object.__setattr__(self, name, value)
