"""The points that a case puts at risk, by which failures are ordered."""

from __future__ import annotations

__all__ = ["at_risk"]


def at_risk(severity: int, difficulty: int) -> int:
    """Return what a case that is judged wrong costs, in tenths of its points: |severity| × (10 − difficulty)."""
    return abs(severity) * (10 - difficulty)
