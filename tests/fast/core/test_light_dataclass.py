"""Our dataclasses beside the library's: the same for every use."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from abc import ABC, abstractmethod
from typing import Any

import pytest

import pytest_helmbench
from pytest_helmbench.core.light_dataclass import dataclass

_BOTH = pytest.mark.parametrize("make", [dataclass, dataclasses.dataclass], ids=["ours", "the library's"])


@dataclass(frozen=True, slots=True)
class Ours:
    """One of ours, where pickle finds it."""

    first: int
    second: str = "two"
    third: list[int] = dataclasses.field(default_factory=list)
    fourth: int = dataclasses.field(default=4, compare=False, repr=False)
    fifth: int = dataclasses.field(init=False, default=5)


@dataclasses.dataclass(frozen=True, slots=True)
class Theirs:
    """The same by the library."""

    first: int
    second: str = "two"
    third: list[int] = dataclasses.field(default_factory=list)
    fourth: int = dataclasses.field(default=4, compare=False, repr=False)
    fifth: int = dataclasses.field(init=False, default=5)


_PAIR = pytest.mark.parametrize("cls", [Ours, Theirs])


@_PAIR
def test_values_defaults_and_positions(cls: type[Any]) -> None:
    one, other = cls(1), cls(1, "2", [3], fourth=5)

    assert (one.first, one.second, one.third, one.fourth, one.fifth) == (1, "two", [], 4, 5)
    assert (other.second, other.third, other.fourth) == ("2", [3], 5)
    assert len({id(one.third) for one in [cls(1) for _ in range(20)]}) == 20  # of inits shared and written
    assert list(inspect.signature(cls).parameters) == ["first", "second", "third", "fourth"]
    with pytest.raises(TypeError):
        cls()
    with pytest.raises(TypeError):
        cls(1, "2", [], 4, 5)


@_PAIR
def test_compared_and_shown_by_the_fields_that_say_so(cls: type[Any]) -> None:
    assert cls(1, fourth=9) == cls(1)
    assert cls(1) != cls(2)
    assert cls(1) != (1, "two", [], 4, 5)
    assert repr(cls(1)).partition("(")[2] == "first=1, second='two', third=[], fifth=5)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(cls(1))  # of a list


@_PAIR
def test_nothing_is_changed_and_nothing_added(cls: type[Any]) -> None:
    one = cls(1)

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'first'"):
        one.first = 2
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        one.other = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'first'"):
        del one.first
    assert not hasattr(one, "__dict__")


@_PAIR
def test_replaced_copied_pickled_and_taken_apart(cls: type[Any]) -> None:
    one = cls(1, "2", [3], 5)

    assert dataclasses.replace(one, first=2) == cls(2, "2", [3], 5)
    for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert (again, again.fourth) == (one, 5)
    assert dataclasses.asdict(one) == {"first": 1, "second": "2", "third": [3], "fourth": 5, "fifth": 5}
    match one:
        case Ours(first, second) | Theirs(first, second):
            assert (first, second) == (1, "2")


@_BOTH
def test_a_class_with_methods_and_classes_below(make: Any) -> None:
    class Declared:
        number: int

        def __post_init__(self) -> None:
            if self.number < 0:
                raise ValueError(self.number)

    base: Any = make(frozen=True, slots=True)(Declared)
    below: Any = dataclasses.dataclass(frozen=True, slots=True)(
        type("Below", (base,), {"__annotations__": {"name": str}, "name": ""})
    )
    plain: Any = type("Plain", (base,), {})(7)

    assert hash(base(1)) == hash(base(1))
    assert {base(1), base(1)} == {base(1)}
    assert below(1, "x") == below(1, "x") != base(1)
    assert plain.number == 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.number = 9
    with pytest.raises(ValueError, match="-1"):
        base(-1)


@_BOTH
def test_a_class_below_one_of_the_same_make(make: Any) -> None:
    class Shape(ABC):
        sides: int
        colour: str = "red"

        @abstractmethod
        def area(self) -> int: ...

    above: Any = make(frozen=True, slots=True)(Shape)

    class Square(above):  # type: ignore[misc]
        colour: str = "blue"
        side: int = 0
        parts: list[int] = dataclasses.field(default_factory=list, compare=False, repr=False)

        def area(self) -> int:
            return int(self.side**2)

    square: Any = make(frozen=True, slots=True)(Square)

    class Named(square):  # type: ignore[misc]
        name: str = ""

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("no name")

    named: Any = make(frozen=True, slots=True, eq=False)(Named)

    with pytest.raises(TypeError, match="abstract"):
        above(3)
    one = square(4, side=3, parts=[1])
    assert (one.sides, one.colour, one.side, one.parts, one.area()) == (4, "blue", 3, [1], 9)
    assert (one == square(4, "blue", 3), hash(one) == hash(square(4, "blue", 3))) == (True, True)
    assert one != square(4, "green", 3)
    assert repr(one).endswith("Square(sides=4, colour='blue', side=3)")
    assert [field.name for field in dataclasses.fields(one)] == ["sides", "colour", "side", "parts"]
    assert dataclasses.replace(one, side=2).area() == 4
    assert copy.copy(one) == one
    assert not hasattr(one, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'sides'"):
        one.sides = 5
    assert named(4, name="x").name == "x"
    with pytest.raises(ValueError, match="no name"):
        named(4)


def test_init_is_written_for_a_class_of_many_instances_only() -> None:
    @dataclass(frozen=True, slots=True)
    class Late:
        value: int

    before = vars(Late)["__init__"]
    assert Late(1) == Late(value=1)
    assert vars(Late)["__init__"] is before
    assert {Late(1) for _ in range(20)} == {Late(1)}
    assert vars(Late)["__init__"] is not before


def test_every_class_of_the_package_declares_what_the_library_can_read() -> None:
    modules = pkgutil.walk_packages(pytest_helmbench.__path__, "pytest_helmbench.")
    found = {
        cls
        for module in modules
        if not module.name.endswith("__main__")
        for cls in vars(importlib.import_module(module.name)).values()
        if isinstance(cls, type) and "_own_" in vars(cls)
    }

    assert len(found) > 200
    for cls in found:
        assert {field.name for field in dataclasses.fields(cls)} == {*vars(cls)["_names_"]}, cls
