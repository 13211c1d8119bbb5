"""Options: name, type, default, text and group of one, declared as a field of a dataclass.

pytest imports the module whenever it starts, so it imports nothing of ours but two small modules of `core/`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields, is_dataclass, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.light_dataclass import dataclass

T = TypeVar("T")
D = TypeVar("D")
Use: TypeAlias = Literal["", "ini", "judges"]
_FIELDS = ("question", "answer", "answers", "choices", "context", "id", "tolerance", "first_label")


@dataclass(frozen=True, slots=True, eq=False)
class Type(Generic[T]):
    """A type of values: how it is written, and what is made of it.

    Args:
        wanted: What it takes, each time where it is repeatable, for error messages and the page of options.
        make: Makes the value of text, of a tuple of words, or of what argparse has made; ValueError where it cannot.
        fits: Whether a value can be used; paths are whole by then.
        load: Makes the final value of one that fits; ValueError where it cannot.
        blank: Empty text says nothing; else it cannot be used.
        word: What argparse makes of the word; None leaves it as text.
        bare: What the option says without a value; a value then follows `=` alone. Empty where it must have one.
        ini: pytest's name for the type of the ini key.
        record: Makes of the final value what `evaluation_runs.settings` holds, in a type of JSON; None where it does
            not belong there.
        users: The value gives rights, so it is kept as a `Granted`.
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
        return self.ini == "linelist"


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """One option with its ini key.

    Args:
        name: Without `--helmbench-`.
        absent: What applies where nothing is given, when the default does not say it.
        group: Where it stands in `--help`, and whose it is.
        use: `ini`: there is an ini key alone; `judges`: it decides verdicts, so replies on record are judged anew with
            the value of their run.
        is_per_shard: It may differ between the shards of one run: it decides neither cases nor verdicts.
    """

    name: str
    type: Type[Any]
    default: object
    absent: str
    text: str
    group: Group
    use: Use
    is_per_shard: bool

    @property
    def is_private(self) -> bool:
        """Whether its value names a file or folder of this machine: reports leave it out."""
        return self.type.make is Path

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
        """The text of the default; empty where there is none."""
        default = self.default.value if isinstance(self.default, Granted) else self.default
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
    """Options that stand together in `--help`; each is declared with `same` or with `per_shard`.

    Args:
        kind: The kind of benchmark that they are for, a folder of `benchmarks/`; None for every kind.
        sparse: The settings of a run leave out those that are None.
    """

    title: str
    kind: str | None = None
    sparse: bool = False

    def same(
        self, type_: Type[T], default: D, text: str, *, absent: str = "", name: str = "", use: Use = ""
    ) -> T | D:
        """Declare an option that has one value in all shards of a run; without a name it has that of the field."""
        option = Option(name, type_, default, absent, text, self, use, is_per_shard=False)
        return _declared(option, default)

    def per_shard(
        self, type_: Type[T], default: D, text: str, *, absent: str = "", name: str = "", use: Use = ""
    ) -> T | D:
        """Declare an option that may differ between the shards of a run; without a name it has that of the field."""
        option = Option(name, type_, default, absent, text, self, use, is_per_shard=True)
        return _declared(option, default)


def _declared(option: Option, default: D) -> D:
    declared: D = field(default=default, metadata={"option": option})
    return declared


def users(type_: Type[T]) -> Type[Granted[T]]:
    """Return a type whose values give rights."""
    return cast("Type[Granted[T]]", replace(type_, users=True))


def declared_in(values: type) -> Mapping[str, Option]:
    """Return the options that a class of them declares itself, by the names of their fields."""
    found: dict[str, Option] = {
        one.name: one.metadata["option"] for one in fields(values) if "option" in one.metadata
    }
    return {field: replace(one, name=one.name or field.replace("_", "-")) for field, one in found.items()}


def parts_of(values: type) -> Iterator[tuple[str, Any]]:
    """Yield the classes of options that a class of them holds, as values of defaults by field."""
    for one in fields(values):
        if "option" not in one.metadata and is_dataclass(one.default) and not isinstance(one.default, type):
            yield one.name, one.default


def _least_score(text: str) -> float | None:
    """Return the score from which a partial result passes: minus infinity for `pass`, None for `fail`."""
    if text in ("fail", "pass"):
        return -inf if text == "pass" else None
    if not isfinite(least := float(text)):
        raise ValueError(text)
    return least


def least_score_text(least: float | None) -> str:
    """Return how the option says a score from which a partial result passes."""
    return "fail" if least is None else "pass" if least == -inf else f"{least:g}"


def _one_path(given: str | tuple[str, ...]) -> Path:
    """Return the one path that is given; argparse gathers all of them, so that a second one is seen."""
    if isinstance(given, tuple):
        (given,) = given
    return Path(given)


def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig").strip("\n")


def _sample(text: str) -> str:
    """Return what asks for a sample as it is recorded: `0.2` or, where another seed than 1 draws it, `0.2@7`."""
    size, at, seed = text.partition("@")
    if not (size == "pairwise" or (size.isdecimal() and int(size)) or 0 < float(size) <= 1):
        raise ValueError(text)
    return f"{size}@{int(seed)}" if at and int(seed) != 1 else size


@dataclass(frozen=True, slots=True)
class Resume:
    """Which session goes on, by a run of it; without one the last unfinished, or a fresh one where there is none."""

    run: int | None = None
    or_start: bool = False


def _resume(text: str) -> Resume:
    if text in ("last", "or-start"):
        return Resume(or_start=text == "or-start")
    run = int(text)
    if run < 1:
        raise ValueError(text)
    return Resume(run)


def _shard(text: str) -> str:
    """Return what names a shard as it is recorded."""
    if text == "auto":
        return text
    parts = text.split("/")
    if len(parts) != 2 or not all(part.isascii() and part.isdecimal() and len(part) <= 9 for part in parts):
        raise ValueError(text)
    index, of = map(int, parts)
    if not 1 <= index <= of:
        raise ValueError(text)
    return f"{index}/{of}"


def _finite_json(text: str) -> Mapping[str, object]:
    """Return what JSON says; NaN and infinities are none."""
    found: Mapping[str, object] = json.loads(text)
    json.dumps(found, allow_nan=False)
    return found


def _columns(text: str) -> Mapping[str, str]:
    """Return the column of each field; empty text for a field that the table does not have."""
    found = [part.partition("=") for part in text.split(",")]
    columns = {field.strip(): column.strip() for field, equals, column in found if equals}
    if len(columns) < len(found) or not columns.keys() <= {*_FIELDS}:
        raise ValueError(text)
    return columns


def _shown(text: str) -> int | None:
    return None if text == "all" else int(text)


def text(metavar: str) -> Type[str]:
    """Any text."""
    return Type("text", str, metavar)


def stated(metavar: str) -> Type[str]:
    """Text that changes what runs or when the session fails: an empty one is a slip, such as an unset variable."""
    return Type("text", str, metavar, bool, blank=False)


def texts(metavar: str) -> Type[tuple[str, ...]]:
    """Several texts."""
    return Type("text", tuple, metavar, action="append", ini="linelist")


def names(metavar: str, *known: str) -> Type[tuple[str, ...]]:
    """A list without repetition: of any names, or of these."""
    wanted, fits = (", ".join(known), known.__contains__) if known else ("text", bool)
    return Type(
        wanted, lambda names: tuple(dict.fromkeys(names)), metavar, fits, action="append", ini="linelist"
    )


def decimal(metavar: str) -> Type[float]:
    """A number."""
    return Type("a number", float, metavar, isfinite, blank=False, word=float)


def positive(metavar: str) -> Type[float]:
    """A number above 0."""
    return Type("a number above 0", float, metavar, lambda number: 0 < number < inf, blank=False, word=float)


def whole(metavar: str, least: int | None = None) -> Type[int]:
    """A whole number."""
    wanted = "a whole number" if least is None else f"a whole number of at least {least}"
    return Type(wanted, int, metavar, lambda n: least is None or n >= least, blank=False, word=int)


def choice(metavar: str, *names: T) -> Type[T]:
    """One of these."""
    return Type(f"one of {', '.join(map(str, names))}", str, metavar, lambda name: name in names)


JSON_OBJECT: Type[Mapping[str, object]] = Type(
    'a JSON object, for example {"provider": {"sort": "price"}}',
    _finite_json,
    "JSON",
    lambda value: isinstance(value, dict),
)
LEAST_SCORE: Type[float | None] = Type(
    "fail, pass, or the least score that passes, on the Bench Pack's own scale",
    _least_score,
    "RULE",
    record=least_score_text,
)
COLUMNS: Type[Mapping[str, str] | None] = Type(
    f"fields and their columns, for example question=Frage, answer=Antwort; fields: {', '.join(_FIELDS)}",
    lambda given: _columns(given) if isinstance(given, str) else given,
    "FIELD=COLUMN,…",
    blank=False,
)
SHOWN: Type[int | None] = Type(
    "a whole number of at least 0, or all",
    _shown,
    "N|all",
    lambda most: most is None or most >= 0,
    record=None,
)
CONTENT: Type[str] = Type(
    "one file that exists; to compare several, give each a --helmbench-variant='NAME: system_prompt=PATH'",
    _one_path,
    "PATH",
    Path.is_file,
    _content,
    action="append",
)
OUTPUT_FILE: Type[Path] = Type(
    "a file in a folder that exists",
    Path,
    "PATH",
    lambda path: not path.is_dir() and path.parent.is_dir(),
    record=None,
)
FLAG: Type[bool] = Type("", bool, action="store_true", ini="bool")
FILE: Type[Path] = Type("a file that exists", Path, "PATH", Path.is_file)
BATCH: Type[float] = Type(
    "nothing, or behind = a number of minutes, 0 or more",
    float,
    "MINUTES",
    lambda number: number >= 0,
    bare="inf",
    record=None,
)
SHARD: Type[str] = Type("K/N with K from 1 to N, for example 2/8, or auto", _shard, "K/N")
SAMPLE: Type[str] = Type(
    "a share (0.2), a number of cases (200) or pairwise, and a seed (200@7)", _sample, "SIZE[@SEED]"
)
RESUME: Type[Resume] = Type(
    "nothing, or behind = the number of a run or or-start", _resume, "RUN|or-start", bare="last", record=None
)
