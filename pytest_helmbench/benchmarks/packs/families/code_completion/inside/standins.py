"""Stand-ins that the tests hold in place of the candidate's objects and classes.

A stand-in passes on what it is asked, within a policy: an object of a class that neither starter nor tests name may
not take the place of plain data, so it is never asked to compare itself, or to compute with what the tests bring.
Equality is decided here, on data.
"""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.asker import Asker
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.discerning import Discernment
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.operators import (
    ASKING,
    COMPUTING,
    JUDGING,
    KEYED,
    OPERATORS,
    ORDERING,
    SHOWN_BY,
    VALUE_METHODS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

__all__ = [
    "ClassFacts",
    "Held",
    "Remote",
    "RemoteClass",
    "make_known",
    "new_class",
    "new_stand_in",
    "number_of",
    "trust",
]

_NUMBER = "_helmbench_number"
_TRUST = "_helmbench_trust"
_FACTS = "_helmbench_facts"

_GIVEN, _COMPUTED, _MADE = 0, 1, 2
"""How the tests came by an object: it was given, they computed it from one they made, they made it themselves."""

_MIRRORED = {cls.__name__: cls for cls in (int, float, str, bytes, tuple, frozenset, complex)}


class ClassFacts:
    """What is known of a class of the candidate.

    Args:
        asker: Who asks the candidate.
        number: The class, as the candidate calls it.
        operators: The special methods that it has.
        methods: Names that are methods of its objects.
        plain: Name of the plain type that it builds on; empty for none.
    """

    def __init__(
        self, asker: Asker, number: int, operators: list[str], methods: list[str], plain: str
    ) -> None:
        self.asker = asker
        self.number = number
        self.operators = OPERATORS.intersection(operators)
        self.methods = frozenset(methods)
        self.plain = plain
        self.discernment = Discernment(asker)
        self.is_known = False
        """Starter or tests name it: its objects are what the tests are about."""

    def make_known(self) -> None:
        """Take note that starter or tests name it."""
        self.is_known = True


class Held:
    """An object of the candidate that has no other stand-in, such as a running generator."""

    __slots__ = ("__weakref__", "asker", "number")

    def __init__(self, asker: Asker, number: int) -> None:
        self.asker = asker
        self.number = number

    def __del__(self) -> None:
        self.asker.forget(self.number)


class RemoteClass(type):
    """The class of what stands for the candidate's classes."""

    def __new__(cls, name: str, bases: tuple[type, ...], *_: object, **__: object) -> RemoteClass:
        """Refuse a class of the tests that is derived from one of the candidate's."""
        remote = next(base for base in bases if type(base) is RemoteClass)
        said = "the tests derive a class from one of the candidate's{}"
        _facts(remote).asker.refuse(said, (": " + name, ""))

    def __init__(cls, *_: object, **__: object) -> None:
        """Do nothing, whatever `__new__` has been given."""

    def __call__(cls, *args: object, **kwargs: object) -> object:
        """Have the candidate make an object of the class."""
        facts = _facts(cls)
        value = facts.asker.ask("call", cls, args, kwargs)
        if facts.is_known and isinstance(value, Remote) and type(value) is cls:
            object.__setattr__(value, _TRUST, _MADE)
            facts.discernment.keep(value, args, kwargs)
        return value

    def __getattr__(cls, name: str) -> object:
        """Return an attribute of the candidate's class."""
        return _facts(cls).asker.ask("get", cls, name)

    def __setattr__(cls, name: str, value: object) -> None:
        """Set an attribute of the candidate's class."""
        _facts(cls).asker.ask("set", cls, name, value)

    def __delattr__(cls, name: str) -> None:
        """Delete an attribute of the candidate's class."""
        _facts(cls).asker.ask("delete", cls, name)

    def __iter__(cls) -> object:
        """Iterate over the class itself, as over an enumeration."""
        return _facts(cls).asker.ask("operator", cls, "__iter__", ())

    def __len__(cls) -> object:
        """Return how many members it has."""
        return _facts(cls).asker.ask("operator", cls, "__len__", ())

    def __bool__(cls) -> bool:
        """Return True, as for every class: without this, `__len__` would decide."""
        return True

    def __getitem__(cls, key: object) -> object:
        """Return a member by its name."""
        return _facts(cls).asker.ask("operator", cls, "__getitem__", (key,))

    def __contains__(cls, value: object) -> object:
        """Return whether it is a member."""
        return _facts(cls).asker.ask("operator", cls, "__contains__", (value,))


def _facts(cls: type) -> ClassFacts:
    facts = type.__getattribute__(cls, _FACTS)
    assert isinstance(facts, ClassFacts)
    return facts


def make_known(value: object) -> None:
    """Take note that starter or tests name a class of the candidate; anything else is left alone."""
    if type(value) is RemoteClass:
        _facts(value).make_known()


def number_of(value: object) -> int | None:
    """Return what the candidate calls a value of its own; None for one of ours."""
    cls = type(value)
    if type(value) is Held:
        return value.number
    if issubclass(cls, RemoteClass) and isinstance(value, type):
        return _facts(value).number
    if type(cls) is not RemoteClass:
        return None
    number = object.__getattribute__(value, _NUMBER)
    return int(number)


class _Method:
    """A method of a stand-in."""

    __slots__ = ("_helmbench_name", "_helmbench_owner")

    def __init__(self, owner: object, name: str) -> None:
        self._helmbench_owner = owner
        self._helmbench_name = name

    @property
    def __self__(self) -> object:
        return self._helmbench_owner

    @property
    def __name__(self) -> str:
        return self._helmbench_name

    def __call__(self, *args: object, **kwargs: object) -> object:
        return _facts(type(self.__self__)).asker.ask("method", self.__self__, self.__name__, args, kwargs)

    def __getattr__(self, name: str) -> object:
        return getattr(_facts(type(self.__self__)).asker.ask("get", self.__self__, self.__name__), name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Method) and (other.__self__, other.__name__) == (
            self.__self__,
            self.__name__,
        )

    def __hash__(self) -> int:
        return hash(self.__name__)


def _get(self: object, name: str) -> object:
    facts = _facts(type(self))
    if not facts.is_known and name in VALUE_METHODS:
        raise AttributeError(_in_place_of_data(self) + ", which has its own " + name)
    if name in facts.methods:
        return _Method(self, name)
    return facts.asker.ask("get", self, name)


def _get_raised(self: object, name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    return _facts(type(self)).asker.ask("get", self, name)


def _set(self: object, name: str, value: object) -> None:
    _facts(type(self)).asker.ask("set", self, name, value)


def _delete(self: object, name: str) -> None:
    _facts(type(self)).asker.ask("delete", self, name)


def _forget(self: object) -> None:
    _facts(type(self)).asker.forget(object.__getattribute__(self, _NUMBER))


def _document(self: object) -> object:
    return _facts(type(self)).asker.ask("get", self, "__doc__")


def _equals(self: object, other: object) -> object:
    """Decide on data; what the candidate says of equality counts only when the fields say the same."""
    if self is other:
        return True
    facts = _facts(type(self))
    both = isinstance(other, Remote)
    if facts.plain:
        return facts.asker.ask("value", self) == (_value_of(other) if both else other)
    if "__eq__" not in facts.operators:
        return False if both else NotImplemented
    if not both:
        if not facts.is_known or trust(self) != _MADE:
            return NotImplemented
        if facts.asker.ask("operator", self, "__eq__", (other,)) is not True:
            return False
        facts.asker.refuse("the tests compare an object of the candidate with data, by its own word for it")
    says = facts.asker.ask("operator", self, "__eq__", (other,)) is True
    if not says or not facts.discernment.is_there(type(self)):
        return False
    if facts.asker.have_same_fields(self, other):
        return True
    if facts.is_known and _facts(type(other)).is_known:
        facts.asker.refuse("two objects of the candidate call themselves equal, and their fields differ")
    return False


def _value_of(value: object) -> object:
    facts = _facts(type(value))
    return facts.asker.ask("value", value) if facts.plain else value


def _hash(self: object) -> int:
    facts = _facts(type(self))
    if facts.plain:
        return hash(facts.asker.ask("value", self))
    if "__eq__" not in facts.operators:
        return hash(object.__getattribute__(self, _NUMBER))
    if "__hash__" not in facts.operators:
        raise TypeError("unhashable type: '" + type(self).__name__ + "'")
    answer = facts.asker.ask("operator", self, "__hash__", ())
    if not isinstance(answer, int):
        raise TypeError("__hash__ method should return an integer")
    return answer


def trust(value: object) -> int:
    """Return how the tests came by a stand-in."""
    level = object.__getattribute__(value, _TRUST)
    assert isinstance(level, int)
    return level


def _may(self: object, name: str, args: tuple[object, ...]) -> bool:
    """Return whether a question may reach the candidate."""
    if name in ASKING:
        return True
    known = _facts(type(self)).is_known
    if name in KEYED:
        return known
    if all(isinstance(value, Remote) for value in args):
        return known or name not in ORDERING
    return known and trust(self) >= (_MADE if name in JUDGING else _COMPUTED)


def _in_place_of_data(self: object) -> str:
    return "an object of the reply's own class " + type(self).__name__ + " stands where data is expected"


def _operator(name: str) -> Callable[..., object]:
    def operate(self: object, *args: object) -> object:
        if not _may(self, name, args):
            if name in KEYED or name == "__contains__":
                raise TypeError(_in_place_of_data(self))
            return NotImplemented
        if name in ("__exit__", "__aexit__"):
            args = (*args[:2], None)  # a traceback is no business of the candidate
        asker = _facts(type(self)).asker
        value = asker.ask("operator", self, name, args)
        if name == "__exit__":
            return bool(value) and _may_end(asker, args[1])
        if name == "__aexit__":
            return _left(asker, value, args[1])
        if name in COMPUTING and isinstance(value, Remote) and trust(self) and not trust(value):
            object.__setattr__(value, _TRUST, _COMPUTED)
        return value

    operate.__name__ = name
    return operate


async def _left(asker: Asker, leaving: Any, error: object) -> bool:
    return bool(await leaving) and _may_end(asker, error)


def _may_end(asker: Asker, error: object) -> bool:
    return not isinstance(error, BaseException) or asker.may_swallow(error)


def _call(self: object, *args: object, **kwargs: object) -> object:
    return _facts(type(self)).asker.ask("call", self, args, kwargs)


def _await(self: object) -> Generator[object, None, object]:
    async def wait() -> object:
        return _facts(type(self)).asker.ask("await", self)

    return wait().__await__()


def _itself(self: object, *_: object) -> object:
    return self


_OWN = {
    "__slots__": (_NUMBER, _TRUST, "__weakref__"),
    "__getattr__": _get,
    "__setattr__": _set,
    "__delattr__": _delete,
    "__del__": _forget,
    "__doc__": property(_document),
    "__eq__": _equals,
    "__hash__": _hash,
    _FACTS: ClassFacts(Asker(), -1, [], [], ""),
    **{name: _operator(name) for name in (*SHOWN_BY, "__dir__", "__copy__", "__deepcopy__")},
}
Remote: type = type.__new__(RemoteClass, "Remote", (), _OWN)
"""The base of all that stands for an object of the candidate."""


def new_class(facts: ClassFacts, name: str, bases: tuple[type, ...], *, mirrored: bool) -> RemoteClass:
    """Make what stands for a class.

    Args:
        facts: What is known of the class.
        name: What the candidate calls it.
        bases: What stands for its bases; exceptions of Python itself are their own.
        mirrored: Whether its objects are values of the plain type it builds on, here as there.
    """
    body: dict[str, object] = {_FACTS: facts, "__module__": "solution"}
    if any(issubclass(base, BaseException) for base in bases):
        body.update(
            {"__getattr__": _get_raised, "__str__": lambda self: vars(self).get("_helmbench_text", "")}
        )
        return type.__new__(RemoteClass, name, bases, body)
    if mirrored:
        body.update({"__getattr__": _get_raised, "__copy__": _itself, "__deepcopy__": _itself})
        body.update((shown, _operator(shown)) for shown in SHOWN_BY & facts.operators)
        return type.__new__(RemoteClass, name, bases or (_MIRRORED[facts.plain],), body)
    body["__slots__"] = ()
    body.update((operator, _operator(operator)) for operator in facts.operators - {"__eq__", "__hash__"})
    ways = {"__call__": _call, "__await__": _await}
    body.update((special, way) for special, way in ways.items() if special in facts.operators)
    return type.__new__(RemoteClass, name, bases or (Remote,), body)


def new_stand_in(cls: type, number: int) -> object:
    """Make what stands for an object that is not known yet.

    Args:
        cls: What stands for its class, one below `Remote`.
        number: The object, as the candidate calls it.
    """
    value: object = object.__new__(cls)
    object.__setattr__(value, _NUMBER, number)
    object.__setattr__(value, _TRUST, _GIVEN)
    return value
