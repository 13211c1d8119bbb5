"""The lines before the first call: what the session asks and may cost, and the checks that may end it first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import NO_MODEL
from pytest_helmbench.core.outline import RowOutline
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.engine.job import Target
from pytest_helmbench.engine.work import Route
from pytest_helmbench.gateway.backend import CacheMode
from pytest_helmbench.gateway.local_answers import check_function
from pytest_helmbench.gateway.prices import HALF
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable
from pytest_helmbench.options.settings import DEFAULT_CONCURRENCY
from pytest_helmbench.pytest_side.say.printing import printed, shown_path
from pytest_helmbench.reports.comparison_lines import gone_text
from pytest_helmbench.reports.tables import UNKNOWN, count_text, listed, table, usd
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.run.cost_estimate import PriceSpan, budget_bounds, least_call, price_span, rounded_up
from pytest_helmbench.run.plan import Plan, PlannedRun
from pytest_helmbench.run.targets import (
    batched_models,
    calls_at_a_time,
    few_open_files,
    model_limits,
    session_concurrency,
    unbatched_model,
)

_FREE = PriceSpan(0.0, 0.0, 0.0)
_MOST_DRY_ROWS = 10
_NOTHING_CALLED = "every prompt was composed, nothing was called, nothing was stored"


@dataclass(frozen=True, slots=True)
class DryRow:
    """The calls of one model on one benchmark in a dry run.

    Args:
        name: Name of the run: the model, and the benchmark where there are several.
        tokens: Estimated tokens of the prompts, judges included.
        price: None when a price is unknown.
    """

    name: str
    model: str
    prompts: int
    judge_calls: int
    tokens: int
    price: PriceSpan | None


def announcement(
    plan: Plan,
    left: Plan,
    cache_mode: CacheMode,
    concurrency: int,
    price: PriceSpan | None,
    db: str,
    bounds: Mapping[int, Sequence[str]],
) -> str:
    """Return the line before the first call.

    Args:
        left: The part of the plan that is not on record; agents and packs may make more calls than it has.
        cache_mode: With stored replies there may be fewer calls, or none.
        concurrency: Most calls in flight.
        price: None when a price is unknown.
        bounds: Models by the most tokens of a reply that the budget allows.
    """
    models = list(dict.fromkeys(run.model for run in plan.runs if run.usable))
    calls = 0 if cache_mode is CacheMode.ONLY else left.calls
    least = "at least " if left.open_ended and calls else ""
    about = "at least" if least else "about"
    fewer = ""
    if cache_mode is CacheMode.REUSE and calls:
        least, about = ("" if least else "at most "), ("" if least else "at most")
        fewer = ", fewer where replies are stored"
    cost = (
        "cost unknown"
        if price is None
        else "free"
        if not price.high
        else f"{about} {usd(price.expected)} USD".strip()
    )
    return (
        f"helmbench: {listed(models)}: {count_text(plan.tests, 'case')}, {least}{count_text(calls, 'call')}{fewer}"
        f" ({concurrency} at a time), {cost}{_bounds_text(bounds)}; results in {db}"
    )


def _bounds_text(bounds: Mapping[int, Sequence[str]]) -> str:
    """Return the most tokens of a reply, with the models where they differ."""
    each = [
        f"{tokens:,}" + (f" ({listed(models)})" if len(bounds) > 1 else "")
        for tokens, models in sorted(bounds.items())
    ]
    return f", at most {' and '.join(each)} tokens a reply (--helmbench-max-cost)" if each else ""


def dry_run_lines(rows: Sequence[DryRow], width: int | None = None) -> list[str]:
    """Return the summary of a dry run: prompts, tokens and price by run and in all, of many runs by model.

    Args:
        width: Most columns of a row; None for any.
    """
    if len(rows) > _MOST_DRY_ROWS:
        models = dict.fromkeys(row.model for row in rows)
        rows = [_together([row for row in rows if row.model == model], model) for model in models]
    head = ("", "prompts", "judge calls", "tokens", "USD low", "expected", "high")
    shown = [*rows, _together(rows, "together")] if len(rows) > 1 else rows
    spare = (("judge calls",), ("tokens",))
    return [*table(head, map(_dry_cells, shown), left=("",), width=width, spare=spare), _NOTHING_CALLED]


def after_dry_run(plan: Plan, coordinator: Coordinator) -> str:
    """Return the command that calls the models of a dry run; empty where the reason for it says what helps."""
    if coordinator.settings.dry_run:
        return "the same command without --helmbench-dry-run calls the model"
    variables = dict.fromkeys(run.variable for run in plan.runs if run.variable)
    if variables:
        return f"set {' and '.join(variables)}: then the same command calls the model"
    is_named = any(run.model != NO_MODEL for run in plan.runs)
    return "" if is_named else "the same command with --helmbench-model=PROVIDER/MODEL calls that model"


def _together(rows: Sequence[DryRow], name: str) -> DryRow:
    """Return the sum of the rows; its price is unknown where one is."""
    known = [row.price for row in rows if row.price is not None]
    return DryRow(
        name=name,
        model=name,
        prompts=sum(row.prompts for row in rows),
        judge_calls=sum(row.judge_calls for row in rows),
        tokens=sum(row.tokens for row in rows),
        price=sum(known, _FREE) if len(known) == len(rows) else None,
    )


def _dry_cells(row: DryRow) -> tuple[str, ...]:
    span = row.price
    price = (UNKNOWN,) * 3 if span is None else map(usd, (span.low, span.expected, span.high))
    return (row.name, str(row.prompts), str(row.judge_calls), f"~{row.tokens}", *price)


def refuse_unknown_floors(coordinator: Coordinator, plan: Plan) -> None:
    """Check that every floor of a benchmark with a gate is of one of its pillars.

    Raises:
        pytest.UsageError: One is not, so it can never fail.
    """
    for root in dict.fromkeys(run.benchmark for run in plan.runs if coordinator.gates.any):
        loaded = coordinator.library.load(Path(root))
        floors = {} if loaded.scoring is None else loaded.scoring.floors
        known = {pillar.code for pillar in loaded.outline.catalogue(()).pillars} if floors else set()
        for code in floors:
            if code not in known:
                raise pytest.UsageError(
                    f"scoring.yaml of {loaded.outline.name} has a floor of {code}, which is not a pillar of this"
                    " benchmark, so that floor can never fail; nothing was called\n"
                    f"  hint: known: {', '.join(sorted(known, key=natural_key))}"
                )


def refuse_unknown_gates(coordinator: Coordinator, plan: Plan) -> None:
    """Check that every part with a gate is among the selected cases.

    Raises:
        pytest.UsageError: A part is not, so its gate cannot hold.
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
    """Yield a line for each baseline that is missing or shows too little."""
    baselines = coordinator.baselines
    if baselines is None:
        return
    for model, why in baselines.missing():
        yield f"helmbench: warning: {model} has no baseline, so that gate cannot hold: {why}"
    for name, lost in baselines.lost.items():
        yield f"helmbench: warning: {name}: {gone_text(lost)}"
    for run in plan.runs:
        outlook = baselines.outlook(run.key, run.codes)
        if outlook:
            yield f"helmbench: {run.model} {outlook}" if len(plan.runs) > 1 else f"helmbench: {outlook}"


class Announcer:
    """Prints the lines before the first call, and ends a session that would cost more than the user allows."""

    def __init__(self, config: pytest.Config, coordinator: Coordinator) -> None:
        self._config = config
        self._coordinator = coordinator

    def __call__(self, plan: Plan) -> None:
        """Print what a plan asks and may cost.

        Raises:
            pytest.UsageError: It may cost more than `helmbench_ask_above` and no budget is given,
                a gate is asked of cases that can have no score, or a report cannot be written.
        """
        coordinator = self._coordinator
        self._check_gates(plan)
        if not plan.dry:
            self._check_batches()
        if coordinator.settings.wants_reports and not plan.dry:
            from pytest_helmbench.pytest_side.say.report_files import refuse_unwritable

            refuse_unwritable(coordinator.settings)
        if plan.dry and coordinator.settings.resume and not coordinator.settings.dry_run:
            raise pytest.UsageError(
                f"nothing can be resumed: {'; '.join(dict.fromkeys(run.why_not for run in plan.runs))}\n"
                "  hint: give the command of the unfinished session again, with --helmbench-resume"
            )
        span = plan_price(coordinator.runs.left(plan), coordinator)
        share = () if plan.shard is None else (self._share_line(plan, plan.shard),)
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            outlines = [one.outline for one in coordinator.library.loaded]
            read = [one.understood for one in outlines if isinstance(one, RowOutline) and one.understood]
            fewer_calls = "" if plan.dry else few_open_files(coordinator.settings)
            lowered = (f"helmbench: {fewer_calls}",) if fewer_calls else ()
            lines = (*read, *share, *self._lines(plan, span), *lowered)
            for line in printed(self._config.get_terminal_writer(), lines):
                reporter.write_line(line)
        settings = coordinator.settings
        if plan.dry:
            return
        self._check_routes(coordinator.runs.left(plan))
        budget_usd = coordinator.budget_usd(plan)
        if budget_usd is not None:
            self._check_budget(plan, budget_usd)
            return
        if plan.shard is not None:
            span = plan_price(replace(plan, runs=plan.whole), coordinator)
        if span is None or span.expected <= settings.ask_above_usd or coordinator.runs.resumption is not None:
            return  # the user has allowed a resumed session when it began
        raise pytest.UsageError(
            f"this run may cost {span.expected:.2f} USD ({span.low:.2f} to {span.high:.2f}),"
            f" more than helmbench_ask_above ({settings.ask_above_usd:g} USD); nothing was called\n"
            f"  hint: agree to a bound: --helmbench-max-cost={int(span.high) + 1}"
        )

    def _check_batches(self) -> None:
        """Refuse models that cannot go in batches, and an end at a failure."""
        settings = self._coordinator.settings
        why = unbatched_model(self._coordinator.runs.targets.values(), settings)
        hint = "name the vendor's own server, say 'batch: openai' in models.yml"
        if settings.batch is not None and not why and self._config.getoption("maxfail", 0):
            why, hint = "-x stops at a failure, and a batch is asked as a whole", "leave -x out"
        if why:
            raise pytest.UsageError(
                f"{why}; nothing was called\n  hint: {hint}, or leave --helmbench-batch out"
            )

    def _batch_line(self, plan: Plan, targets: Sequence[Target], span: PriceSpan | None) -> str:
        """Return which models are asked in batches, what that costs, and what goes singly; empty without the option."""
        if self._coordinator.settings.batch is None:
            return ""
        shares = _batch_shares(self._coordinator, targets)
        by_host: dict[str, list[str]] = {}
        for model, (host, name) in _batch_names(targets).items():
            by_host.setdefault(host if model in shares else "", []).append(name)
        alone, cost = plan_price(plan, self._coordinator, singly=True), ""
        if span is not None and alone is not None and span.expected < alone.expected:
            assumed = [model for model, share in shares.items() if share is None]
            whose = "" if len(assumed) == len(shares) else f" of {listed(assumed)}"
            cost = f", about {usd(span.expected)} instead of {usd(alone.expected)} USD"
            cost += f" (half the price is assumed{whose})" if assumed else ""
        families = Counter[str]()
        for run in plan.runs:
            families.update({family: len(codes) for family, codes in run.singly.items()})
        alone_names = by_host.pop("", [])
        alone_names += [f"{count_text(count, 'case')} of {name}" for name, count in families.items() if count]
        asked = " and ".join(f"{' and '.join(names)} at {host}" for host, names in by_host.items())
        singly = f"; singly: {', '.join(alone_names)}" if alone_names else ""
        return f"helmbench: batch: {f'{asked}{cost}, within 24 h' if asked else 'none'}{singly}"

    def _share_line(self, plan: Plan, shard: Shard) -> str:
        """Return the share of this shard: cases, money, calls in flight and rates, each of the whole."""
        settings = self._coordinator.settings
        parts = [f"helmbench: {shard.name}: {plan.tests:,} of {plan.whole_tests:,} cases"]
        budget_usd = self._coordinator.budget_usd(plan)
        if plan.dry:
            return parts[0]
        if budget_usd is not None and settings.max_cost_usd is not None:
            parts.append(f"{usd(budget_usd)} of {usd(settings.max_cost_usd)} USD")
        in_all = settings.concurrency or DEFAULT_CONCURRENCY
        parts.append(f"{session_concurrency(settings)} of {in_all} calls at a time")
        for most, what in (
            (settings.requests_per_minute, "requests"),
            (settings.tokens_per_minute, "tokens"),
        ):
            if most is not None:
                parts.append(f"{settings.rate(most):,.6g} of {most:,.6g} {what} a minute")
        asked = settings.min_score is not None or settings.baselines
        return ", ".join(parts) + (
            "; no gate here: `helmbench merge --gate` checks it over all shards" if asked else ""
        )

    def _check_budget(self, plan: Plan, budget_usd: float) -> None:
        """Refuse a budget that cannot pay one call."""
        coordinator = self._coordinator
        left, targets = coordinator.runs.left(plan), coordinator.runs.targets
        shares = _paid_shares(coordinator, [*targets.values()])
        least = None if coordinator.may_judge_for_nothing else least_call(left, targets, shares)
        spent_usd = coordinator.spent_before_usd
        if least is None or least.usd + spent_usd <= budget_usd:
            return
        spent = f" more: {spent_usd:.4f} USD of it are spent" if spent_usd else ""
        raise pytest.UsageError(
            f"--helmbench-max-cost={budget_usd:g} cannot pay one call{spent}: one of {least.model} may cost"
            f" {least.usd:.6f} USD, with at most {least.tokens:,} tokens in its reply; nothing was called\n"
            f"  hint: give at least --helmbench-max-cost={rounded_up(least.usd + spent_usd)}, or bound the replies with"
            " --helmbench-max-tokens"
        )

    def _lines(self, plan: Plan, span: PriceSpan | None) -> list[str]:
        settings, runs = self._coordinator.settings, self._coordinator.runs
        if plan.dry:
            why = (
                "as asked for"
                if settings.dry_run
                else "; ".join(dict.fromkeys(run.why_not for run in plan.runs))
            )
            line = f"helmbench: dry run ({why}): {plan.tests} cases are composed, nothing is called"
            return [line, *gate_warnings(self._coordinator, plan)]
        db, left = shown_path(settings.db, self._config.invocation_params.dir), runs.left(plan)
        is_replay = settings.cache_mode is CacheMode.ONLY
        bounds = budget_bounds(plan, runs.targets)
        places = () if is_replay else [place for run in plan.runs if run.usable for place in run.places]
        targets = [  # a judge that has nothing to judge is not called
            target if run.judge_calls else replace(target, judges=())
            for run in plan.runs
            if run.usable and (target := runs.targets[run.key])
        ]
        at_a_time = calls_at_a_time(targets, settings)
        line = announcement(plan, left, settings.cache_mode, at_a_time, span, db, bounds)
        lines = [line + "".join(f"; prompts go to {place}" for place in dict.fromkeys(places))]
        lines += gate_warnings(self._coordinator, plan)
        panels = dict.fromkeys(
            " and ".join(_asked_at(judge, is_replay=is_replay) for judge in target.judges)
            for target in targets
            if target.judges
        )
        lines += [f"helmbench: judged by {', '.join(panels)}"] if panels else []
        batch = self._batch_line(left, targets, span)
        lines += [batch] if batch else []
        lines += [f"helmbench: {run.model} is skipped: {run.why_not}" for run in plan.runs if not run.usable]
        return lines

    def _check_routes(self, left: Plan) -> None:
        """Refuse an unusable judge or function that a run needs, before the run is stored."""
        for run in left.runs:
            target = self._coordinator.runs.targets[run.key]
            judges = target.judges if run.judge_calls or run.may_ask_judge else ()
            for route in (target.model, *judges) if run.usable else ():
                if isinstance(route.endpoint, Unusable):
                    at = f"{route.entry.stated_at}: " if route.entry.stated_at else ""
                    raise pytest.UsageError(
                        f"{at}the judge {route.entry.id} cannot be called: {route.endpoint.reason};"
                        " nothing was called\n"
                        "  hint: --helmbench-marking-model=ID names another judge (a model under test, or a name"
                        " without a vendor, is asked at --helmbench-base-url); --helmbench-marking-base-url=URL names"
                        " its server, and --helmbench-marking-api-key-env=NAME the variable of its key"
                    )
                function = route.endpoint.server.function
                if function and self._coordinator.settings.cache_mode is not CacheMode.ONLY:
                    check_function(function)

    def _check_gates(self, plan: Plan) -> None:
        """Refuse a gate that no run can pass."""
        gates = self._coordinator.gates
        if gates.asked and plan.scope == "by_outcome":
            raise pytest.UsageError(
                "a run of cases chosen by earlier outcomes (--lf, --sw) has no score, so no gate can hold\n"
                "  hint: leave --helmbench-min-score and --helmbench-baseline out, or run the whole selection"
            )
        refuse_unknown_gates(self._coordinator, plan)
        refuse_unknown_floors(self._coordinator, plan)


def _batch_shares(coordinator: Coordinator, targets: Sequence[Target]) -> dict[str, float | None]:
    """Return the models whose calls go in batches, each with its part of the price; None where no list says it."""
    settings = coordinator.settings
    if settings.batch is None:
        return {}
    limits = model_limits(targets, settings)
    return {model: limits[model].batch_share for model in batched_models(targets, settings)}


def _paid_shares(coordinator: Coordinator, targets: Sequence[Target]) -> dict[str, float]:
    """Return the parts of their price that calls in batches cost, half where no list says it, by model."""
    return {model: share or HALF for model, share in _batch_shares(coordinator, targets).items()}


def _batch_names(targets: Sequence[Target]) -> dict[str, tuple[str, str]]:
    """Return host and name of models and judges by id; the only judge is `its judge`."""
    models = {target.model.entry.id: target.model for target in targets}
    judges = {judge.entry.id: judge for target in targets for judge in target.judges}
    whose = "its judge" if len(models) == 1 else "their judge"
    return {
        model: (
            urlsplit(route.endpoint.base_url).netloc,
            whose if model not in models and len(judges) == 1 else model,
        )
        for model, route in {**models, **judges}.items()
        if isinstance(route.endpoint, Endpoint)
    }


def run_price(run: PlannedRun, coordinator: Coordinator, *, singly: bool = False) -> PriceSpan | None:
    """Return the possible cost of a run; None where a price is unknown.

    Args:
        singly: As if none of its calls went in a batch.
    """
    loaded, settings = coordinator.library.load(Path(run.benchmark)), coordinator.settings
    target = coordinator.runs.targets[run.key]
    shares = {} if singly else _paid_shares(coordinator, [target])
    return price_span(run, target, loaded, settings.repeat, settings.db, shares)


def plan_price(plan: Plan, coordinator: Coordinator, *, singly: bool = False) -> PriceSpan | None:
    """Return the possible cost of a session; None where a price is unknown; see `run_price`."""
    total = _FREE
    if coordinator.settings.cache_mode is CacheMode.ONLY:
        return total
    for run in plan.runs:
        if run.usable or plan.dry:
            span = run_price(run, coordinator, singly=singly)
            if span is None:
                return None
            total += span
    return total


def _asked_at(judge: Route, *, is_replay: bool) -> str:
    """Return a judge and where it is asked: the host, and the variable of the key that another server gets."""
    endpoint = judge.endpoint
    if is_replay or isinstance(endpoint, Unusable) or not endpoint.base_url:
        return judge.entry.id
    return f"{judge.entry.id} at {endpoint.elsewhere or urlsplit(endpoint.base_url).netloc}"
