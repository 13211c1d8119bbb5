"""Gates before the first call: those that cannot hold, and the drop that a comparison can find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.run.plan import Plan


def refuse_unknown_gates(coordinator: Coordinator, plan: Plan) -> None:
    """Do nothing where every part that a gate names is among what was selected.

    Raises:
        pytest.UsageError: One is not, so that its gate cannot hold.
    """
    gates = coordinator.gates
    wanted = [("--helmbench-min-score", threshold.code) for threshold in gates.thresholds]
    if gates.baseline is not None:
        wanted += [("--helmbench-max-drop", limit.code) for limit in gates.baseline.limits]
    if not any(code for _, code in wanted):
        return
    runs = plan.whole or plan.runs
    codes = [code for run in runs for code in (*run.codes, *(case.code for case in run.broken))]
    parts = [code.split("-", 2) for code in codes]
    known = {part[0] for part in parts} | {"-".join(part[:2]) for part in parts}
    for option, code in wanted:
        if code and code not in known:
            raise pytest.UsageError(
                f"{option}: {code} is not among what was selected, so that gate cannot hold; nothing was called\n"
                f"  hint: known: {', '.join(sorted(known, key=natural_key))}"
            )


def gate_warnings(coordinator: Coordinator, plan: Plan) -> Iterator[str]:
    """Yield what is to be said of the baselines before anything is paid, one line each."""
    baselines = coordinator.baselines
    if baselines is None:
        return
    for model, why in baselines.missing():
        yield f"helmbench: warning: {model} has no baseline, so that gate cannot hold: {why}"
    for choice in baselines.passed_over():
        yield f"helmbench: {choice}"
    for run in plan.runs:
        content = coordinator.library.load(Path(run.benchmark)).outline.hash
        outlook = baselines.outlook(run.key, content, run.codes)
        if outlook:
            yield f"helmbench: {run.model} {outlook}" if len(plan.runs) > 1 else f"helmbench: {outlook}"
