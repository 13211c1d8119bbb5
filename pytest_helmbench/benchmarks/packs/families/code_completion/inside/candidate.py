"""The process of the candidate: runs a reply's code and serves calls to it, one at a time, as plain data.

Nothing it says is believed. Code that takes this process over can answer what it likes to questions it has been asked,
as its functions could; it never learns what answer is wanted.
"""

from __future__ import annotations

import os
import sys

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import (
    BrokenWireError,
    Parcel,
    Wire,
    name_of,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.reply import (
    REPLY,
    builtin_name,
    load,
    trace_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import ReplyJob

_MODULE = "solution"
_MESSAGE_LIMIT = 1 << 28
_PRINT_LIMIT = 1 << 20
_PLAIN_BASES = (int, float, str, bytes, tuple, frozenset, complex, list, dict, set, bytearray)

__import__("collections.abc")  # a reply may use it after `import collections`, as where more is imported


class _PrintedText:
    """Represents stdout and stderr: text is kept for tests that redirect theirs."""

    encoding = "utf-8"
    errors = "strict"
    closed = False

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = 0
        self.taken()

    def write(self, text: str) -> int:
        """Keep the text as long as there is room."""
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Keep texts one after the other, as long as there is room."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: there is nothing behind."""

    def isatty(self) -> bool:
        """Return False: no terminal stands behind."""
        return False

    def taken(self) -> str:
        """Return what was written since the last time."""
        text = "".join(self._parts)
        self._parts.clear()
        self._room = _PRINT_LIMIT
        return text


class _Candidate:
    """Serves what the tests ask of a reply's code."""

    def __init__(self, wire: Wire, printed: _PrintedText) -> None:
        self._wire = wire
        self._printed = printed
        self._module = type(sys)(_MODULE)
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._parcel = self._new_parcel()

    def _new_parcel(self) -> Parcel:
        return Parcel(self._encode_object, lambda _, parts: self._objects[parts[0]])

    def answer(self) -> None:
        """Answer the next question."""
        nonce, what, data = self._wire.receive()
        parcel = self._parcel = self._new_parcel()
        arguments: Any = parcel.decode(data)
        parcel.settle()
        try:
            status, value = "ok", getattr(self, "_do_" + what)(*arguments)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the tests see it raised
            status, value = "raised", _facts_of(error)
        try:
            message = [status, parcel.changes(), parcel.encode(value)]
        except RecursionError as error:
            message = ["raised", [], parcel.encode(_facts_of(error))]
        self._wire.send([nonce, *message, self._printed.taken()])

    def _encode_object(self, value: Any) -> object:
        """Return what crosses for a value that is not plain data: it stays here, and a number represents it."""
        if isinstance(value, type) and name_of(value).startswith("builtins."):
            return ["n", value.__name__]
        base = next((base for base in _PLAIN_BASES if issubclass(type(value), base)), None)
        if base is not None:
            return self._parcel.encode(_plain_value(value, base))
        kind = "o"
        if hasattr(type(value), "__next__"):
            kind = "y"
        elif callable(value):
            kind = "F"
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        return [kind, number, _name_of_function(value) if kind == "F" else ""]

    def _do_load(self, job: ReplyJob) -> None:
        sys.modules[_MODULE] = self._module
        load(job, self._module)

    def _do_names(self, *names: str) -> dict[str, object]:
        found = vars(self._module)
        return {
            name: found[name] for name in names if name in found and not isinstance(found[name], type(sys))
        }

    def _do_call(self, number: int, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        return self._objects[number](*args, **kwargs)

    def _do_next(self, number: int) -> object:
        return next(self._objects[number])


def _name_of_function(value: Any) -> str:
    try:
        return str(value.__name__)
    except Exception:  # noqa: BLE001 - an object that can be called need not have one
        return type(value).__name__


def _plain_value(value: Any, base: Any) -> object:
    """Return what a value of a class that builds on a plain one is without that class, and without asking it."""
    if base is dict:
        return dict(zip(dict.keys(value), dict.values(value)))
    if base is int:
        return int.__index__(value)
    if base in (float, complex):
        return base.__pos__(value)
    if base is str:
        return str.__str__(value)
    return base(base.__iter__(value))


def _facts_of(error: BaseException) -> list[object]:
    """Return an exception as its built-in name, arguments, text, own name and line of the reply's code."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the candidate's own method may do anything
        text = ""
    line = next((line for name, line in reversed(trace_of(error)) if name == REPLY), 0)
    return [builtin_name(error), tuple(error.args), text, str(type(error).__name__), line]


def main() -> None:
    """Take the conversation away from stdin and stdout, then serve until the other side ends."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    printed = _PrintedText()
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        setattr(sys, name, printed)
    sys.argv[:] = [REPLY]
    candidate = _Candidate(Wire(source, target, _MESSAGE_LIMIT), printed)
    try:
        while True:
            candidate.answer()
    except BrokenWireError:
        os._exit(0)


if __name__ == "__main__":
    main()
