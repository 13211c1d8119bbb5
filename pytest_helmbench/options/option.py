"""Options: name, type, default, text and group of one, declared as a field of a dataclass.

pytest imports the module whenever it starts, so it imports nothing of ours but two small modules of `core/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.users_word import UsersWord

__all__ = ["Group", "Option", "Type", "Use", "declared_in", "users"]

T = TypeVar("T")
D = TypeVar("D")
Use: TypeAlias = Literal["", "ini", "judges"]


@dataclass(frozen=True, slots=True, eq=False)
class Type(Generic[T]):
    """A type of values: how it is written, and what is made of it.

    Args:
        wanted: What it takes, each time where it is repeatable, for error messages and the page of options.
        make: Makes the value of text, of a tuple of words, or of what argparse has made; ValueError where it cannot.
        metavar: For `--help`.
        fits: Whether a value can be used; paths are whole by then.
        load: Makes the final value of one that fits; ValueError where it cannot.
        blank: Empty text says nothing; else it cannot be used.
        word: What argparse makes of the word; None leaves it as text.
        bare: What the option says without a value; a value then follows `=` alone. Empty where it must have one.
        action: Of argparse.
        ini: pytest's name for the type of the ini key.
        record: Makes of the final value what `evaluation_runs.settings` holds, in a type of JSON; None where it does
            not belong there.
        users: The value gives rights, so it is kept as a `UsersWord`.
    """

    wanted: str
    make: Callable[..., object]
    metavar: str = ""
    fits: Callable[..., bool] = lambda _value: True
    load: Callable[..., object] = lambda value: value
    blank: bool = True
    word: type[int | float] | None = None
    bare: str = ""
    action: Literal["store", "append", "store_true"] = "store"
    ini: Literal["string", "linelist", "args", "bool"] = "string"
    record: Callable[..., object] | None = lambda value: str(value) if isinstance(value, Path) else value
    users: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Whether it is a list, of which the option gives one each time."""
        return self.action == "append"


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """One option with its ini key.

    Args:
        name: Without `--helmbench-`.
        type: Of its value.
        default: Where nothing is given.
        absent: What applies where nothing is given, when the default does not say it.
        text: What it is for.
        group: Where it stands in `--help`, and whose it is.
        use: `ini`: there is an ini key alone; `judges`: it decides verdicts, so replies on record are judged anew with
            the value of their run.
    """

    name: str
    type: Type[Any]
    default: object
    absent: str
    text: str
    group: Group
    use: Use

    @property
    def flag(self) -> str:
        """`--helmbench-max-cost`."""
        return f"--helmbench-{self.name}"

    @property
    def key(self) -> str:
        """`helmbench_max_cost`."""
        return f"helmbench_{self.name.replace('-', '_')}"

    @property
    def default_text(self) -> str:
        """What applies where nothing is given; empty where that is nothing at all."""
        default = self.default.value if isinstance(self.default, UsersWord) else self.default
        if self.absent or default is None or default == () or isinstance(default, bool):
            return self.absent
        if isinstance(default, tuple):
            return " ".join(default)
        return f"{default:g}" if isinstance(default, float) else str(default)

    @property
    def help(self) -> str:
        """For `--help`."""
        again = "; repeatable" if self.type.is_repeatable else ""
        default = f" (default: {self.default_text})" if self.default_text else ""
        return f"{self.text}{again}{default}"


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Options that stand together in `--help`.

    Args:
        title: What they are about.
        kind: The kind of benchmark that they are for, a folder of `benchmarks/`; None for every kind.
        sparse: The settings of a run leave out those that are None.
    """

    title: str
    kind: str | None = None
    sparse: bool = False

    def __call__(
        self, type_: Type[T], default: D, text: str, *, absent: str = "", name: str = "", use: Use = ""
    ) -> T | D:
        """Declare an option as a field of a dataclass; see `Option`. Without a name it has that of the field."""
        option = Option(name, type_, default, absent, text, self, use)
        declared: T | D = field(default=default, metadata={"option": option})
        return declared


def users(type_: Type[T]) -> Type[UsersWord[T]]:
    """Return a type whose values give rights."""
    return cast("Type[UsersWord[T]]", replace(type_, users=True))


def declared_in(values: type) -> Mapping[str, Option]:
    """Return the options that a class of them declares itself, by the names of their fields."""
    found: dict[str, Option] = {
        one.name: one.metadata["option"] for one in fields(values) if "option" in one.metadata
    }
    return {field: replace(one, name=one.name or field.replace("_", "-")) for field, one in found.items()}
