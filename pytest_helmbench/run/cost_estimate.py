"""Cost estimates: by the results file's own history where there is one, else by price lists."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.shard import share_of
from pytest_helmbench.engine.job import Target
from pytest_helmbench.engine.work import Route
from pytest_helmbench.gateway.prices import token_price
from pytest_helmbench.gateway.providers.endpoints import Endpoint, replay_endpoint
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.options.shard_variables import ShardError
from pytest_helmbench.run.plan import CHARACTERS_PER_TOKEN, Plan, PlannedRun
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey, place_of
from pytest_helmbench.store.read.costs import CostRange, price_history

_COMPLETION_TOKENS = (20, 150, 1_024)  # low, expected, high where nothing is known

History = Mapping[str, CostRange]


@dataclass(frozen=True, slots=True)
class PriceSpan:
    """A range of costs, in USD."""

    low: float
    expected: float
    high: float

    def __add__(self, other: PriceSpan) -> PriceSpan:
        return PriceSpan(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def __mul__(self, factor: float) -> PriceSpan:
        return PriceSpan(self.low * factor, self.expected * factor, self.high * factor)


def price_span(
    run: PlannedRun,
    target: Target,
    loaded: Loaded,
    repeat: int,
    db: Path,
    shares: Mapping[str, float] = MappingProxyType({}),
) -> PriceSpan | None:
    """Return what a run may cost with its judge, or None when a price is unknown.

    The history is that of its benchmark in a results file, which need not exist.
    """
    of_scenario = Counter(map(loaded.scenario_of, run.codes))
    cases = Counter({scenario: count * repeat for scenario, count in of_scenario.items()})
    calls = Counter({code: -(-count * run.calls // max(1, run.tests)) for code, count in cases.items()})
    benchmark = BenchmarkKey(loaded.outline.name, loaded.outline.kind, place_of(loaded.root, db))
    history = _history(db, benchmark, run.model, "case")
    batched = 1 - sum(map(len, run.singly.values())) / max(1, of_scenario.total())
    own = _span(target.model, calls, run.prompt_tokens, run.max_tokens, history)
    if own is not None:
        own *= 1 - batched * (1 - shares.get(target.model.entry.id, 1))
    verdicts = +Counter({code: count * loaded.judge_calls(code) for code, count in cases.items()})
    for judge in target.judges if verdicts else ():
        judged = _span(
            judge,
            verdicts,
            run.judge_prompt_tokens // len(target.judges),
            judge.entry.sampling.max_tokens,
            _history(db, benchmark, run.model, "judge", judge.entry.id),
        )
        if own is None or judged is None:
            return None
        own += judged * (1 - batched * (1 - shares.get(judge.entry.id, 1)))
    return own


def planned_cost(run: PlannedRun, target: Target) -> Fraction | None:
    """Return what a run is expected to cost by price lists alone, or None when a price is unknown.

    It is exact, and that of a run is the sum of those of its parts, so that a budget can be shared out by it.
    """
    if not run.usable:
        return Fraction()
    asked = [(target.model, Fraction(run.calls), Fraction(run.prompt_tokens))]
    for judge in target.judges if run.judge_calls else ():
        share = Fraction(1, len(target.judges))
        asked.append((judge, run.judge_calls * share, run.judge_prompt_tokens * share))
    cost = Fraction()
    for route, calls, tokens in asked:
        price = (
            token_price(route.entry.price, route.endpoint) if isinstance(route.endpoint, Endpoint) else None
        )
        if price is None:
            return None
        reply = min(_COMPLETION_TOKENS[1], route.entry.sampling.max_tokens or _COMPLETION_TOKENS[1])
        cost += Fraction(price.input) * tokens + Fraction(price.output) * calls * reply
    return cost / 10**6


def _history(
    db: Path, benchmark: BenchmarkKey, model: str, purpose: str, judge: str | None = None
) -> History:
    try:
        return price_history(db, benchmark, model, purpose=purpose, judge=judge)
    except HelmbenchError:
        return {}  # opening the file for writing says what is wrong with it


def _span(
    route: Route, calls: Counter[str], prompt_tokens: int, max_tokens: int | None, history: History
) -> PriceSpan | None:
    """Return the price of calls to one model: remembered scenario by scenario, the rest by its price."""
    calls = +calls
    remembered, in_all = PriceSpan(0.0, 0.0, 0.0), calls.total()
    unknown = in_all
    for code, count in calls.items():
        spread = history.get(code)
        if spread is not None:
            unknown -= count
            remembered += PriceSpan(spread.low * count, spread.mean * count, spread.high * count)
    if not unknown:
        return remembered
    listed = _listed(route, unknown, prompt_tokens * unknown // in_all, max_tokens)
    return None if listed is None else remembered + listed


def _listed(route: Route, calls: int, prompt_tokens: int, max_tokens: int | None) -> PriceSpan | None:
    # Without a key: what it will cost once there is one.
    endpoint = (
        route.endpoint if isinstance(route.endpoint, Endpoint) else replay_endpoint(route.entry.model_id)
    )
    price = token_price(route.entry.price, endpoint)
    if price is None:
        return None
    low, expected, high = (
        price.usd(prompt_tokens, calls * min(tokens, max_tokens or tokens))
        for tokens in (*_COMPLETION_TOKENS[:2], max_tokens or _COMPLETION_TOKENS[2])
    )
    return PriceSpan(low, expected, high)


Targets = Mapping[tuple[str, str], Target]


@dataclass(frozen=True, slots=True)
class LeastCall:
    """The cheapest call of a plan: its model, the bound of its reply in tokens, and what it may cost."""

    model: str
    tokens: int
    usd: float


def budget_bounds(plan: Plan, targets: Targets) -> Mapping[int, Sequence[str]]:
    """Return the models that a budget bounds, judges too, by the most tokens of a reply."""
    bounds: dict[int, dict[str, None]] = {}
    for run in plan.runs:
        target = targets[run.key]
        judges = target.judges if run.judge_calls else ()
        for route in (target.model, *judges) if run.usable else ():
            if route.entry.budget_tokens is not None and route.entry.sampling.max_tokens is None:
                bounds.setdefault(route.entry.budget_tokens, {})[route.entry.id] = None
    return {tokens: tuple(models) for tokens, models in bounds.items()}


def least_call(plan: Plan, targets: Targets, shares: Mapping[str, float]) -> LeastCall | None:
    """Return the call that may cost least; None where a price or a bound is unknown, or nothing is to be paid.

    Args:
        shares: As for `price_span`.
    """
    found = []
    for run in plan.runs:
        entry, endpoint = targets[run.key].model.entry, targets[run.key].model.endpoint
        if not run.usable or not run.tests or not isinstance(endpoint, Endpoint):
            continue
        if run.open_ended:
            return None  # a pack states bounds of its own
        price = token_price(entry.price, endpoint)
        tokens = entry.sampling.max_tokens or entry.budget_tokens
        if price is None or tokens is None:
            return None
        prompt = run.prompt_tokens * CHARACTERS_PER_TOKEN // run.calls  # as many tokens as it may have
        usd = price.most_usd(prompt, tokens) * shares.get(entry.id, 1)
        found.append(LeastCall(entry.id, tokens, usd))
    return min(found, key=lambda call: call.usd, default=None)


def rounded_up(usd: float) -> str:
    """Return a sum for an option: two digits that count, and a little more than asked for."""
    unit = 10.0 ** (math.floor(math.log10(usd)) - 1)
    return f"{math.ceil(usd * 1.05 / unit) * unit:.10f}".rstrip("0").rstrip(".")


def check_shard(settings: Settings, *, by_outcome: bool) -> None:
    """Refuse what no shard can do alone.

    Args:
        by_outcome: Cases are selected by earlier outcomes (`--lf`, `--sw`).

    Raises:
        ShardError: It is asked for.
    """
    if settings.shard is None:
        return
    if by_outcome:
        raise ShardError(
            "a shard is a share of one plan, and --lf and --sw select by what has failed in this folder before\n"
            "  hint: leave them out; --helmbench-resume goes on with a shard"
        )


def budget_of(plan: Plan, targets: Mapping[tuple[str, str], Target], budget_usd: float) -> float:
    """Return what a session may spend of a budget: a shard its share of the planned cost, rounded down.

    Where a price is unknown, calls are counted instead. History plays no part: it differs from shard to shard.
    """
    if plan.shard is None:
        return budget_usd
    own_costs, costs = (
        [planned_cost(run, targets[run.key]) for run in runs] for runs in (plan.runs, plan.whole)
    )
    total = sum((cost for cost in costs if cost is not None), Fraction())
    if total and None not in costs:
        return share_of(budget_usd, sum((cost or Fraction() for cost in own_costs), Fraction()) / total)
    own, whole = (sum(run.calls + run.judge_calls for run in runs) for runs in (plan.runs, plan.whole))
    return share_of(budget_usd, Fraction(own, whole)) if whole else budget_usd
