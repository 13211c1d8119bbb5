"""The one report of how the tests ended, over a channel that no code of the candidate has an end of."""

from __future__ import annotations

import builtins
import os

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

__all__ = ["TESTS", "Verdict", "kind_of", "line_of_tests", "text_of"]

TESTS = "tests.py"
"""Name of the tests, as tracebacks have it."""

_TEXT_LIMIT = 500


class Verdict:
    """Where the tests' end is reported; whatever comes first counts, and ends the process.

    Args:
        target: Descriptor that the report goes to.
        token: Word that only we and the reader know: tests may print what they like.
    """

    def __init__(self, target: int, token: str) -> None:
        self._target = target
        self._token = token
        self._cause: Callable[[], str] | None = None

    def explain(self, cause: Callable[[], str]) -> None:
        """Have every failure from now on say what is known of its cause, which is asked for only then."""
        self._cause = cause

    def end(
        self, verdict: str, phase: str, message: str, detail: str = "", name: tuple[str, str] | None = None
    ) -> NoReturn:
        """Report, and end.

        Args:
            verdict: `passed`, `failed` or `error`.
            phase: `load` or `tests`.
            message: What happened, without words of the reply or of the tests; `{}` stands for a name.
            detail: Words of the reply or of the tests.
            name: What the tests or the reply call it, and words that anybody may see instead.
        """
        report = {
            **{"verdict": verdict, "phase": phase, "message": message, "detail": detail[:_TEXT_LIMIT]},
            "name": [part[:_TEXT_LIMIT] for part in name or ()],
            "cause": self._cause() if verdict == "failed" and self._cause is not None else "",
        }
        os.write(self._target, (self._token + dumps(report) + "\n").encode("ascii"))
        os._exit(0)


def kind_of(error: BaseException) -> tuple[str, str]:
    """Return the name of an exception's class, and what stands for it where the name may not be told."""
    cls = type(error)
    builtin = next(base for base in cls.__mro__ if getattr(builtins, base.__name__, None) is base)
    return cls.__name__, "a kind of " + builtin.__name__


def line_of_tests(error: BaseException) -> str:
    """Return where in the tests an exception was raised, for a message; empty for nowhere."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == TESTS:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" at line {line} of the tests" if line else ""


def text_of(error: BaseException) -> str:
    """Return the text of an exception; empty for one that cannot be asked."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception of the tests may be made of stand-ins
        return ""
