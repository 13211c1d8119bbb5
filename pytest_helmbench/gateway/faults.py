"""Faults: why an attempt brought no reply, and what that means for the call, the case and the model."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import lru_cache

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.core.scrub import REDACTED, scrub
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.providers.servers import without_keys

_BROKEN_OFF = frozenset({"timeout", "reset", "truncated_body", "not_http", "content_encoding", "batch_gone"})
_NAMED = ("temperature", "maxItems")  # parts of a request that it can go without
_SHOWN = 200
_READ = 20_000  # characters of an error body that are looked at


class FaultKind(StrEnum):
    """Class of a fault, by what it means for the call, the case and the model."""

    RATE_LIMITED = "rate_limited"
    TRANSIENT = "transient"
    TIMEOUT = "timeout"
    DEAD_MODEL = "dead_model"
    BLOCKED = "blocked"
    REJECTED = "rejected"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an attempt brought no reply.

    Args:
        kind: What it means.
        status: HTTP status; None when no answer came.
        reason: One stable word for tables: `overloaded`, `bad_key`, `moderation`, …
        message: One sentence for people that says whose fault it was; foreign text cut and scrubbed.
        retry_after_s: How long the provider asked to wait; None when it did not say.
        hint: What to do; empty when there is nothing to add.
        code: The provider's own codes and types for it; empty where it named none.
        parameter: Request parameter that the provider named as the culprit.
        usage: What the provider counted nevertheless (a reply that its moderation cut is paid).
        finish_reason: Of such a reply.
    """

    kind: FaultKind
    status: int | None
    reason: str
    message: str
    retry_after_s: float | None = None
    hint: str = ""
    code: str = ""
    parameter: str | None = None
    usage: Usage = Usage()
    finish_reason: str | None = None

    def without_words(self) -> Fault:
        """Return the fault without what the provider has written of it; what it says of no answer is our own."""
        if self.status is None:
            return self
        said = f" {self.code}" if self.code else ""
        named = self.parameter or next((one for one in _NAMED if one in self.message), None)
        return replace(
            self, message=f"the provider answered {self.status}{said} ({REDACTED})", parameter=named
        )

    def text(self) -> str:
        """Return the message, and the hint on a line of its own."""
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


def is_unanswered(fault: Fault) -> bool:
    """Return whether a request was sent and brought no reply, and the provider may bill it all the same.

    It says what it has cost itself, or it never was connected, or it answered that it refuses.
    """
    if fault.usage.cost_usd is not None:
        return False
    if fault.status is None:
        return fault.reason in _BROKEN_OFF
    return fault.kind in (FaultKind.MALFORMED, FaultKind.TOO_LARGE) or fault.finish_reason is not None


def excerpt(text: str, endpoint: Endpoint | None = None) -> str:
    """Return foreign text for a message: one line, no key, no control characters, at most 200 characters."""
    start = text[:_READ]
    # Before the cut: half a key must not survive it.
    return _cut_line(endpoint.redacted(start)) if endpoint is not None else _keyless_line(start)


@lru_cache(maxsize=64)
def _keyless_line(text: str) -> str:
    return _cut_line(without_keys(text))


def _cut_line(text: str) -> str:
    line = scrub(" ".join(text.split()))
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
