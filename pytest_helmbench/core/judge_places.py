"""The value of `--helmbench-judges`: where replies are judged that take long."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.users_word import UsersWord

__all__ = ["JudgeKind", "JudgePlaces"]

_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_MOST = 1024
_FORMS = "auto, a number of processes, python:MODULE:FACTORY"


class JudgeKind(Enum):
    """Who judges."""

    AUTO = "auto"
    PROCESSES = "processes"
    FACTORY = "python"


@dataclass(frozen=True, slots=True)
class JudgePlaces:
    """Where replies are judged.

    Args:
        kind: Who judges.
        count: Processes, where they are counted; 0 for none.
        target: `module:factory`.
    """

    kind: JudgeKind
    count: int = 0
    target: str = ""

    @property
    def asks_others(self) -> bool:
        """Whether anybody but the session's own process may judge."""
        return self.kind is not JudgeKind.PROCESSES or self.count > 0

    @classmethod
    def parse(cls, given: UsersWord[str] | None) -> JudgePlaces:
        """Read the value of the option; None where nothing is given.

        Raises:
            HelmbenchError: It is none of the forms.
        """
        text = "auto" if given is None else given.value
        head, _, rest = text.partition(":")
        if text == "auto":
            return cls(JudgeKind.AUTO)
        if not rest:
            return cls(JudgeKind.PROCESSES, _count(text))
        if head == "python" and _FACTORY.fullmatch(rest):
            return cls(JudgeKind.FACTORY, target=rest)
        raise _unfit(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST):
        raise _unfit(text)
    return int(text)


def _unfit(text: str) -> HelmbenchError:
    return HelmbenchError(f"--helmbench-judges is {text!r}\n  hint: it takes {_FORMS}")
