"""The process of the candidate: runs a reply's code and serves calls to it, one at a time, as data.

Nothing it says is believed. Whoever takes this process over can answer what it likes to questions it has been asked,
as its functions could; it never learns what answer is wanted.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.candidate_values import (
    MODULE,
    CandidateCodec,
    plain_part,
    state_of,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.compose import REPLY, compose
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import BrokenWireError, Wire
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.printed import Printed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Awaitable, Callable, Generator
    from typing import Any

    from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import Parts

__all__ = ["Candidate", "main"]

_FRAME_LIMIT = 1 << 28

__import__("collections.abc")  # what a reply may use after `import collections`, as where more is imported


class Candidate:
    """Serves what the tests ask of a reply's code.

    Args:
        wire: To the tests.
        printed: What stands for stdout and stderr.
    """

    def __init__(self, wire: Wire, printed: Printed) -> None:
        self._wire = wire
        self._printed = printed
        self._codec = CandidateCodec(self.call_back, self.is_known)
        self._module = type(sys)(MODULE)
        self._known: frozenset[str] = frozenset()
        self._asked = ""
        self._lock = RLock()
        self._loop: AbstractEventLoop | None = None

    def serve(self) -> None:
        """Answer until the other side ends."""
        while True:
            self._answer(self._wire.receive())

    def is_known(self, cls: type) -> bool:
        """Return whether the tests or the starter name a class."""
        return any(getattr(self._module, name, None) is cls for name in self._known)

    def call_back(
        self, kind: str, number: int, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """Have the tests call something of theirs.

        Raises:
            RuntimeError: The tests wait for nothing now.
        """
        with self._lock:
            if not self._asked:
                raise RuntimeError("what the tests have passed can be used during a call only")
            self._say("call", [kind, number, (args, kwargs)])
            while True:
                message = self._wire.receive()
                if message[1] not in ("back", "threw", "stop"):
                    self._answer(message)
                    continue
                value = self._heard(message)
                if message[1] == "threw" and isinstance(value, BaseException):
                    raise value
                if message[1] == "stop":
                    raise StopIteration
                return value

    def _answer(self, message: Parts) -> None:
        outer, self._asked = self._asked, message[0]
        status = "ok"
        try:
            arguments: Any = self._heard(message)
            value = getattr(self, "_do_" + message[1])(*arguments)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the tests see it raised
            status, value = "raised", error
        arguments = None
        try:
            self._say(status, value)
        except RecursionError as error:
            self._say("raised", error.with_traceback(None))
        finally:
            self._asked = outer

    def _heard(self, message: Parts) -> object:
        _, _, data, changes, gone, freed = message
        self._codec.apply(changes)
        self._codec.shared.drop(gone)
        self._codec.free(freed)
        value = self._codec.decode(data)
        self._codec.settle()
        return value

    def _say(self, status: str, value: object) -> None:
        shared = self._codec.shared
        before = set(shared.objects)
        try:
            changes = self._codec.changes()
            data = self._codec.encode(value)
        except RecursionError:
            shared.drop(set(shared.objects) - before)
            raise
        if isinstance(value, BaseException):
            value.__traceback__ = None  # its frames would hold every argument
        value = None
        gone = shared.unheld() if status != "call" else []
        shared.drop(gone)
        self._codec.settle()
        self._wire.send([self._asked, status, data, changes, gone, self._printed.taken()])

    def _do_load(self, blocks: list[str], reply: str, starter: str, known: list[str]) -> None:
        self._known = frozenset(known)
        sys.modules[MODULE] = self._module
        flags = 0
        for name, text in compose(blocks, reply, starter):
            code = compile(text, name, "exec", flags, dont_inherit=True)
            if name != REPLY and "__future__" in text:
                flags = code.co_flags & __import__("__future__").annotations.compiler_flag
            exec(code, vars(self._module))

    def _do_names(self, *names: str) -> dict[str, object]:
        found = vars(self._module)
        return {
            name: found[name] for name in names if name in found and not isinstance(found[name], type(sys))
        }

    def _do_call(
        self, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        return function(*args, **kwargs)

    def _do_method(
        self, value: object, name: str, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        method: Callable[..., object] = getattr(value, name)
        return method(*args, **kwargs)

    def _do_get(self, value: object, name: str) -> object:
        return getattr(value, name)

    def _do_set(self, value: object, name: str, given: object) -> None:
        setattr(value, name, given)

    def _do_delete(self, value: object, name: str) -> None:
        delattr(value, name)

    def _do_operator(self, value: object, name: str, args: tuple[object, ...]) -> object:
        if name in ("__copy__", "__deepcopy__"):
            copy: Callable[..., object] = getattr(__import__("copy"), name.strip("_"))
            return copy(value)
        operator: Callable[..., object] = getattr(type(value), name)
        return operator(value, *args)

    def _do_send(self, generator: Generator[object, object, object], given: object) -> object:
        return generator.send(given)

    def _do_await(self, awaitable: Awaitable[object]) -> object:
        if self._loop is None:
            self._loop = __import__("asyncio").new_event_loop()

        async def wait() -> object:
            return await awaitable

        return self._loop.run_until_complete(wait())

    def _do_value(self, value: object) -> object:
        return plain_part(value)

    def _do_state(self, value: object) -> object:
        return state_of(value)


def main() -> None:
    """Take the conversation away from stdin and stdout, then serve."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    printed = Printed()
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        setattr(sys, name, printed)
    sys.argv[:] = [REPLY]
    try:
        Candidate(Wire(source, target, _FRAME_LIMIT), printed).serve()
    except BrokenWireError:
        os._exit(0)


if __name__ == "__main__":
    main()
