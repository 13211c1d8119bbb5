"""`scoring.yaml` as a value: weights of behaviours, floors of pillars, the cap of a breach."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Scoring"]


@dataclass(frozen=True, slots=True)
class Scoring:
    """`scoring.yaml`: weights by behaviour code, floors by pillar code, the cap of a breach."""

    weights: Mapping[str, float]
    floors: Mapping[str, float]
    cap: float | None = None
