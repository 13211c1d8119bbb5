"""`dataclass` for a package that declares hundreds of them: what the library's makes, in a third of the time.

The library writes and compiles six functions for each frozen class, half a millisecond, whenever a session starts.
Here only `__init__` is written for a class, when the first instance is made; comparing, hashing, showing, refusing to
change and pickling are shared.
What is not frozen with slots, or out of the ordinary otherwise, is left to the library.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
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
_MISSING = dataclasses.MISSING


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
    return _MADE_HERE.isdisjoint(vars(cls)) and all(map(_is_light, _dataclasses_above(cls)))


def _dataclasses_above(cls: type) -> list[type]:
    return [above for above in cls.__mro__[1:] if "__dataclass_fields__" in vars(above)]


def _is_light(cls: type) -> bool:
    return vars(cls).get("__getstate__") is _state


def _light(cls: type[T], *, eq: bool, shows: bool) -> type[T]:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else the library composes one
    # The library wants all frozen or none, and compiles two functions for each that is.
    frozen = bool(_dataclasses_above(cls))
    made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, frozen=frozen)(cls)
    members: dict[str, object] = {
        "__init__": _init_on_demand(made),
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__getstate__": _state,
        "__setstate__": _restore,
    }
    fields = dataclasses.fields(made)  # type: ignore[arg-type]
    members["_names_"] = [field.name for field in fields]
    if eq:
        compared = _values(field for field in fields if field.compare)
        hashed = _values(field for field in fields if (field.compare if field.hash is None else field.hash))
        members |= {"__eq__": _equal, "__hash__": _hash, "_compared_": compared, "_hashed_": hashed}
    if shows:
        members |= {"__repr__": _shown, "_shown_": [field.name for field in fields if field.repr]}
    for name, member in members.items():
        setattr(made, name, member)
    # Where somebody else's dataclass has this one for its base, the library asks.
    made.__dataclass_params__.frozen = True  # type: ignore[attr-defined]
    return made


def _init_on_demand(cls: type) -> Callable[..., None]:
    """Return an `__init__` that puts the written one in its place when it is first called."""

    def first(self: object, *given: object, **named: object) -> None:
        written = _init(cls)
        type.__setattr__(cls, "__init__", written)
        written(self, *given, **named)

    first.__name__, first.__qualname__ = "__init__", f"{cls.__qualname__}.__init__"
    return first


def _init(cls: type) -> Callable[..., None]:
    """Write `__init__`: it fills the slots, then calls `__post_init__`."""
    known: dict[str, object] = {"missing": _MISSING}
    parameters, lines = [], []
    for number, field in enumerate(dataclasses.fields(cls)):
        known[f"set_{number}"] = getattr(cls, field.name).__set__  # of a slot, maybe that of a class above
        value = field.name
        if field.default_factory is not _MISSING:
            known[f"make_{number}"] = field.default_factory
            made = f"make_{number}()"
            value = f"{made} if {field.name} is missing else {field.name}" if field.init else made
        elif field.default is not _MISSING:
            known[f"default_{number}"] = field.default
            value = field.name if field.init else f"default_{number}"
        if field.init:
            parameters.append(_parameter(field, number))
        if field.init or value != field.name:
            lines.append(f"  set_{number}(self, {value})")
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


def _parameter(field: dataclasses.Field[object], number: int) -> str:
    if field.default_factory is not _MISSING:
        return f"{field.name}=missing"
    return field.name if field.default is _MISSING else f"{field.name}=default_{number}"


class _Made(Protocol):
    """What a class made here has besides its fields."""

    _names_: Sequence[str]
    _compared_: Values
    _hashed_: Values
    _shown_: Sequence[str]


def _values(fields: Iterable[dataclasses.Field[object]]) -> Values:
    names = [field.name for field in fields]
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
