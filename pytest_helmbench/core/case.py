"""A case: what is sent and what the reply is held to. Plain data that any process can take over."""

from __future__ import annotations

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.rule import CaseRule

__all__ = ["BrokenCase", "Case", "Message"]


@dataclass(frozen=True, slots=True)
class BrokenCase:
    """A case that cannot run since its files are broken: planned as far as these could be read, never judged.

    Args:
        code: As far as it could be read: `P1-B2-S1-C1-PT3`, `P1-B2-S1`, the id of a row.
        severity: Base (−20..20); at least 1 where none could be read.
        difficulty: 0..10.
        evaluations: Rows that it would have had in each repetition.
    """

    code: str
    severity: int = 1
    difficulty: int = 0
    evaluations: int = 1


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Case:
    """One composed case.

    Args:
        code: `P1-B2-S1-C1-U1-PT3`.
        messages: In order; the last one is the user's.
        response_format: Wire form of the wanted reply, or None for plain text.
        rule: What the reply is held to.
        severity: Base severity (−20..20).
        difficulty: 0..10.
        timeout_s: Of a request; None for that of the session.
    """

    code: str
    messages: tuple[Message, ...]
    response_format: JsonObject | None
    rule: CaseRule
    severity: int = 0
    difficulty: int = 0
    timeout_s: float | None = None

    @property
    def schema(self) -> JsonObject | None:
        """The bare JSON Schema of the wanted reply, or None for plain text."""
        if self.response_format is None:
            return None
        envelope = self.response_format["json_schema"]
        schema = envelope["schema"] if isinstance(envelope, dict) else None
        return schema if isinstance(schema, dict) else None
