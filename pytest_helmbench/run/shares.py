"""The share of a shard: what it may spend, and what it cannot do alone."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from pytest_helmbench.core.shard import share_of
from pytest_helmbench.engine.job import Target
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.options.shard_variables import ShardError
from pytest_helmbench.run.cost_estimate import planned_cost
from pytest_helmbench.run.plan import Plan


def check_shard(settings: Settings, *, by_outcome: bool) -> None:
    """Refuse what no shard can do alone.

    Args:
        settings: Of the session.
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
    own, whole = (sum(run.tests + run.judge_calls for run in runs) for runs in (plan.runs, plan.whole))
    return share_of(budget_usd, Fraction(own, whole)) if whole else budget_usd
