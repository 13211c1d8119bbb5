"""Runs of any size as report values, without a database: what the bars of the HTML page are measured on."""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from pytest_helmbench.core.outcome import Evaluation, Parse, Verdict
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.reports.page.document import html_page
from pytest_helmbench.reports.page.parts import PagePart
from pytest_helmbench.results.comparing import RunRef
from pytest_helmbench.results.losses import losses
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import Board, Standing
from pytest_helmbench.scoring.breakdown import breakdown, constant_scores, speed_of
from pytest_helmbench.scoring.rows import Row
from pytest_helmbench.scoring.run_score import run_score
from pytest_helmbench.store.read.results import ResultRow
from pytest_helmbench.store.read.runs import RunDetail

_CATEGORIES = ("ANSWERED", "HAND_OVER", "REFUSED", "ASKED_BACK")
_PILLARS, _BEHAVIOURS, _CONDITIONS, _CONTEXTS = 6, 4, 5, 5
_WORDS = ("water", "energy", "plant", "light", "school", "teacher", "answer", "question", "science", "model")


def run_page(reports: Iterable[RunReport], texts: ShownTexts) -> str:
    """Return the page of some runs."""
    given = [*reports]
    return html_page([PagePart.of(report, texts) for report in given], texts, unpaired_boards(given))


def unpaired_boards(reports: Sequence[RunReport]) -> list[Board]:
    """Return runs by benchmark, the best first, without pairs, whose replies would be read from a file."""
    found: defaultdict[str, list[Standing]] = defaultdict(list)
    for report in sorted(reports, key=lambda one: (-((one.score and one.score.score) or 0), one.detail.id)):
        ref = RunRef.of(report.path, report.detail, report.path)
        found[report.detail.benchmark].append(Standing(report, ref))
    return [
        Board(name, tuple(members), (), max(members, key=lambda one: one.ref.run_id))
        for name, members in sorted(found.items())
    ]


def worst_first(reports: Sequence[RunReport]) -> list[ResultRow]:
    """Return the cases of the first of some runs of the same cases, those that lost most points before all others."""

    def lost(rows: Iterable[ResultRow]) -> float:
        found = (100 * float(report.losses.of(row)) for report, row in zip(reports, rows, strict=True))
        return float(f"{sum(float(f'{points:.4g}') for points in found) / len(reports):.4g}")

    every = zip(*(report.results for report in reports), strict=True)
    return [rows[0] for rows in sorted(every, key=lambda rows: -lost(rows))]


def simulated_report(cases: int, *, run: int = 1, skill: float = 0.8, texts: bool = False) -> RunReport:
    """Return a run of a scenario tree: 24 behaviours, five conditions, five contexts; always the same one.

    Args:
        cases: How many.
        run: Its number, which the verdicts depend on.
        skill: Share of the cases that pass, about.
        texts: With prompts and replies of some 500 bytes.
    """
    rng = random.Random(run)
    results = tuple(_result(code, number, rng, skill, texts) for number, code in enumerate(_codes(cases)))
    rows = [_row(result) for result in results]
    score = run_score(rows)
    lost = losses(((row.code, row) for row in rows), score)
    return RunReport(
        *(_detail(results, run), score),
        losses=lost,
        breakdown=breakdown(rows),
        constants=constant_scores(replace(row, passed=None, credit=None) for row in rows),
        titles={f"P{number}": f"Pillar {number}" for number in range(1, _PILLARS + 1)},
        failures=tuple(lost.worst_first(result for result in results if result.outcome == "failed")),
        counts=RunCounts(
            verdicts=Counter(Verdict(result.outcome) for result in results),
            calls=Counter({"case": cases}),
            known_cost_usd=sum(result.cost_usd or 0 for result in results),
        ),
        judges=(),
        judgements=0,
        costs=(),
        results=results,
        speed=speed_of((row.latency_ms or 0.0, row.completion_tokens) for row in results),
    )


def _codes(cases: int) -> Iterable[str]:
    each = math.ceil(cases / (_PILLARS * _BEHAVIOURS))
    scenarios = max(1, min(12, round(each / 140)))
    perturbations = math.ceil(each / (scenarios * _CONDITIONS * _CONTEXTS))
    made = (
        f"P{pillar}-B{behaviour}-S{scenario}-C{condition}-U{context}-PT{perturbation}"
        for pillar in range(1, _PILLARS + 1)
        for behaviour in range(1, _BEHAVIOURS + 1)
        for scenario in range(1, scenarios + 1)
        for condition in range(1, _CONDITIONS + 1)
        for context in range(1, _CONTEXTS + 1)
        for perturbation in range(1, perturbations + 1)
    )
    return [code for _, code in zip(range(cases), made, strict=False)]


def _result(code: str, number: int, rng: random.Random, skill: float, texts: bool) -> ResultRow:
    scenario, condition, context, perturbation = code.rsplit("-", 3)
    expected = _CATEGORIES[_number_of(scenario) % 4]
    drawn = rng.random()
    outcome = "error" if drawn > 0.992 else "passed" if drawn < skill else "failed"
    observed = expected if outcome == "passed" else rng.choice(_CATEGORIES)
    reply = json.dumps({"why": " ".join(rng.choices(_WORDS, k=80)), "category": observed})
    request = {"model": "m", "messages": [{"role": "user", "content": _prompt(code)}]}
    judged = outcome != "error"
    return ResultRow(
        id=f"result-{number}",
        code=code,
        repetition=1,
        node_id=code,
        family="category_match",
        scenario=scenario,
        outcome=outcome,
        reason=None if judged else rng.choice(("timeout", "rate_limit")),
        score=float(outcome == "passed") if judged else None,
        points_lost=None,
        severity=(1 + _number_of(perturbation) % 9 + int(context[1:]) % 3) * (-1 if context == "U2" else 1),
        difficulty=int(condition[1:]),
        neutral=False,
        latency_ms=rng.lognormvariate(6.6, 0.5),
        prompt_tokens=600 + rng.randint(0, 200),
        completion_tokens=rng.randint(20, 160),
        cached_tokens=0,
        reasoning_tokens=0,
        cost_usd=2e-4 * rng.uniform(0.7, 1.6) if judged else None,
        started_at=None,
        completed_at=None,
        request_hash=None,
        reply_hash=None,
        request=json.dumps(request).encode() if texts else None,
        reply=reply if texts and judged else None,
        evaluations=(
            Evaluation(
                *("", "category_match", "ab", outcome == "passed", float(outcome == "passed")),
                *(None, Parse.STRICT, expected, observed),
            ),
        )
        if judged
        else (),
    )


def _number_of(text: str) -> int:
    """Return a small number that is the same in every process."""
    return sum(map(ord, text))


def _prompt(code: str) -> str:
    """Return a prompt of three elements: the job, which all cases share, the condition, and what the user says."""
    condition = code.split("-")[3]
    elements = {
        "your_job": "Say who is to act.\n\n" * 9,
        "condition": condition * 30,
        "users_input": _prose(code),
    }
    return "\n\n".join(f"<{name}>\n{text}\n</{name}>" for name, text in elements.items())


def _prose(code: str) -> str:
    return " ".join(random.Random(code[:8] + code.rpartition("-")[2]).choices(_WORDS, k=200))


def _row(result: ResultRow) -> Row:
    pillar, behaviour, scenario, condition, context, perturbation = result.code.split("-")
    passed = None if result.outcome == "error" else result.outcome == "passed"
    return Row(
        pillar=pillar,
        behaviour=f"{pillar}-{behaviour}",
        scenario=f"{pillar}-{behaviour}-{scenario}",
        condition=condition,
        user_context=context,
        perturbation=perturbation,
        criterion="",
        repetition=1,
        severity=result.severity,
        difficulty=result.difficulty,
        weighted=True,
        passed=passed,
        credit=None if passed is None else Fraction(int(passed)),
    )


def _detail(results: tuple[ResultRow, ...], run: int) -> RunDetail:
    counts = Counter(result.outcome for result in results)
    outcomes = Counter((result.outcome, result.reason) for result in results)
    return RunDetail(
        *(run, "session", "School day", "1.0", f"test/model-{run}", "complete", "whole"),
        *("2026-11-22T08:00:00Z", "2026-11-22T08:09:00Z", len(results)),
        *(counts["passed"], counts["failed"], counts["error"], 0, 0, len(results)),
        *(None, None, None, None, None, None, None, None),
        kind="scenario_tree",
        benchmark_place=None,
        batches=(),
        provider="test",
        base_url=None,
        benchmark_hash="ab" * 32,
        plugin_version="0.1.0",
        rescored_from=None,
        settings={"repeat": 1},
        outcomes=outcomes,
    )
