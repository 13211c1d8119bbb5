"""Refusal of runs that cannot be judged anew from the record."""

from __future__ import annotations

from pytest_helmbench.benchmarks.registry import places_named
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.store.run_queries import RunDetail

__all__ = ["refuse_kind", "refuse_run"]


def refuse_run(detail: RunDetail) -> None:
    """Refuse a run of another tool, and one of a kind whose replies nobody but itself can judge.

    Raises:
        HelmbenchError: It is such a run, or its kind is not installed.
    """
    run_id, tool = detail.summary.id, detail.settings.get("imported_from")
    if tool is not None:
        raise HelmbenchError(
            f"run {run_id} cannot be judged anew: another tool has run it ({tool}), and its replies are not on record"
        )
    refuse_kind(run_id, detail.kind)


def refuse_kind(run_id: int, kind: str) -> None:
    """Refuse a kind whose replies nobody but itself can judge; see `refuse_run`."""
    sentence = places_named(kind).not_rescored
    if sentence:
        raise HelmbenchError(f"run {run_id} cannot be judged anew: {sentence}")
