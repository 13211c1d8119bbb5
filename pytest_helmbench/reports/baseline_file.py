"""Runs as a baseline file: one case a line, so that its changes can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pytest_helmbench.core.scrub import quoted_json
from pytest_helmbench.results.comparing import ComparedRun
from pytest_helmbench.results.run_addresses import BASELINE_FORMAT
from pytest_helmbench.store.read.judged_replies import JudgedCase


def baseline_text(runs: Sequence[ComparedRun]) -> str:
    """Return runs as the text of a baseline file, one case a line, so that changes of it can be read."""
    parts = ",\n".join(_run_text(run) for run in runs)
    return f'{{"format": "{BASELINE_FORMAT}", "runs": [\n{parts}\n]}}\n'


def _run_text(run: ComparedRun) -> str:
    rules = sorted({rule for case in run.cases.values() for rule in case.rules.values() if rule is not None})
    numbers = {rule: number for number, rule in enumerate(rules)}
    head = {
        "run": run.ref.run_id,
        "session": run.ref.session_id,
        "benchmark": run.ref.benchmark.name,
        "hash": run.benchmark_hash,
        "model": run.ref.model,
        "status": run.ref.status,
        "scope": run.ref.scope,
        "rules": rules,
        **({"sample": run.sample} if run.sample else {}),
        **({} if run.scoring is None else {"scoring": dict(run.scoring)}),
        "kind": run.ref.benchmark.kind,
        "place": run.ref.benchmark.place,
    }
    opened = json.dumps(head)[:-1]
    cases = ",\n".join(
        f"{json.dumps(code)}: {json.dumps(_case(case, numbers))}" for code, case in sorted(run.cases.items())
    )
    return quoted_json(f'{opened}, "cases": {{\n{cases}\n}}}}')


def _case(case: JudgedCase, numbers: Mapping[str, int]) -> list[object]:
    """Return content, per criterion its rule and its credits by reply, and of a tree what it was judged for."""
    return [
        case.content,
        {
            name: [
                None if rule is None else numbers[rule],
                *(_short(reply.get(name)) for reply in case.replies),
            ]
            for name, rule in sorted(case.rules.items())
        },
        *([] if case.points is None else [[int(value) for value in case.points]]),
    ]


def _short(credit: float | None) -> float | None:
    return credit if credit is None or credit % 1 else int(credit)
