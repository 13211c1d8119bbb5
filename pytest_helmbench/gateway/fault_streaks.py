"""A model that answers nothing: its first cases all end in the same fault, with no reply between them."""

from __future__ import annotations

import re

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.faults import Fault, FaultKind

__all__ = ["FailedCase", "FaultStreak", "failed_case"]

_CASES = 20
_OF_ONE_REQUEST = frozenset(
    {"prompt_too_large", "schema_rejected", "unsupported_parameters", "no_answer", "no_reply"}
)
_ABOUT_LENGTH = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|too (?:long|many tokens)|string_above_max_length|exceeds? the"
    r" (?:maximum|limit|model)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FailedCase:
    """A call that has failed for good.

    Args:
        case: Names the case.
        fault: Status and code of the provider; None for the fault of a single request, which says nothing of the model.
        sentence: The fault, for people.
    """

    case: str
    fault: str | None
    sentence: str


class FaultStreak:
    """The first cases of a model."""

    def __init__(self) -> None:
        self._has_answered = False
        self._fault = ""
        self._cases: set[str] = set()

    def answered(self) -> None:
        """Take note that the model works: whatever comes now, it is not stopped for this."""
        self._has_answered = True
        self._cases.clear()

    def ends_with(self, failed: FailedCase) -> str | None:
        """Count a case; return why the model is to be stopped, once the first 20 have ended in the same fault."""
        if self._has_answered or failed.fault is None:
            return None
        if failed.fault != self._fault:
            self._fault = failed.fault
            self._cases.clear()
        self._cases.add(failed.case)
        if len(self._cases) < _CASES:
            return None
        return f"its first {_CASES} cases all ended in the same fault, {failed.sentence}"


def failed_case(case: str, fault: Fault) -> FailedCase:
    """Return what a call that has failed for good says of its model."""
    single = (
        fault.kind in (FaultKind.BLOCKED, FaultKind.TOO_LARGE)
        or fault.reason in _OF_ONE_REQUEST
        or (
            fault.kind is FaultKind.REJECTED
            and _ABOUT_LENGTH.search(f"{fault.code} {fault.message}") is not None
        )
    )
    key = None if single else f"{fault.status} {fault.reason} {fault.code}"
    return FailedCase(case, key, fault.text())
