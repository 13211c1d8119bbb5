"""Gates before the first call: those that cannot hold, and the drop that a comparison can find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.session.coordinator import Coordinator
from pytest_helmbench.session.plan import Plan

__all__ = ["gate_warnings"]


def gate_warnings(coordinator: Coordinator, plan: Plan) -> list[str]:
    """Return one line per gate that cannot hold; said before anything is paid."""
    return [*_unknown_gates(coordinator, plan), *_baselines(coordinator, plan)]


def _unknown_gates(coordinator: Coordinator, plan: Plan) -> Iterator[str]:
    """Yield a line per threshold that nothing selected can reach."""
    gates = coordinator.gates
    wanted = [("--helmbench-min-score", threshold.code) for threshold in gates.thresholds]
    if gates.baseline is not None:
        wanted += [("--helmbench-max-drop", limit.code) for limit in gates.baseline.limits]
    if not any(code for _, code in wanted):
        return
    parts = [code.split("-", 2) for run in plan.runs for code in run.codes]
    known = {part[0] for part in parts} | {"-".join(part[:2]) for part in parts}
    for option, code in wanted:
        if code and code not in known:
            yield (
                f"helmbench: warning: {option}: {code} is not among what was selected, so that gate cannot"
                f" hold; known: {', '.join(sorted(known, key=natural_key))}"
            )


def _baselines(coordinator: Coordinator, plan: Plan) -> Iterator[str]:
    baselines = coordinator.baselines
    if baselines is None:
        return
    for model, why in baselines.missing():
        yield f"helmbench: warning: {model} has no baseline, so that gate cannot hold: {why}"
    for run in plan.runs:
        content = coordinator.library.load(Path(run.benchmark)).outline.hash
        outlook = baselines.outlook(run.key, content, run.codes)
        if outlook:
            yield f"helmbench: {run.model} {outlook}" if len(plan.runs) > 1 else f"helmbench: {outlook}"
