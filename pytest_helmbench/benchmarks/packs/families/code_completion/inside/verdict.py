"""The one report of how the tests ended, over a channel that no code of the candidate has an end of."""

from __future__ import annotations

import os

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["TESTS", "Verdict", "line_of_tests", "text_of"]

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

    def end(self, verdict: str, phase: str, message: str, detail: str = "") -> NoReturn:
        """Report, and end.

        Args:
            verdict: `passed`, `failed` or `error`.
            phase: `load` or `tests`.
            message: What happened, without words of the reply.
            detail: Words of the reply or of the tests.
        """
        report = {"verdict": verdict, "phase": phase, "message": message, "detail": detail[:_TEXT_LIMIT]}
        os.write(self._target, (self._token + dumps(report) + "\n").encode("ascii"))
        os._exit(0)


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
