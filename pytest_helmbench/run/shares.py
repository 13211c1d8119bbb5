"""The share of a shard: which cases are its own, what it may spend, and what it is called."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from statistics import fmean

from pytest_helmbench.core.shard import Shard, hashed_share, longest_first, share_of
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.options.shard_variables import ShardError
from pytest_helmbench.run.cost_estimate import planned_cost
from pytest_helmbench.run.plan import Plan
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.latency_history import latencies

__all__ = ["Shares", "budget_of", "check_shard"]

CaseName = tuple[str, str, str]
"""Name of the benchmark, id of the model, code."""


def check_shard(settings: Settings, *, by_outcome: bool) -> None:
    """Refuse what no shard can do alone.

    Args:
        settings: Of the session.
        by_outcome: Cases are selected by earlier outcomes (`--lf`, `--sw`).

    Raises:
        ShardError: It is asked for.
    """
    if settings.shard is None:
        if "shard-by" in settings.stated or settings.shard_history is not None:
            raise ShardError(
                "--helmbench-shard-by and --helmbench-shard-history share cases out, but no shard is named\n"
                "  hint: add --helmbench-shard=K/N"
            )
        return
    if (settings.shard_by == "history") != (settings.shard_history is not None):
        raise ShardError(
            "--helmbench-shard-by=history and --helmbench-shard-history=FILE belong together\n"
            "  hint: give both, the same file in every shard"
        )
    if by_outcome:
        raise ShardError(
            "a shard is a share of one plan, and --lf and --sw select by what has failed in this folder before\n"
            "  hint: leave them out; --helmbench-resume goes on with a shard"
        )


class Shares:
    """Shares the cases of a plan out: the same in every shard and every process.

    All repetitions of a case on a model belong to one share.

    Args:
        shard: Of this session.
        jobs: All that is planned, in all shards.
        names: Returns the name of the benchmark of a job.
        settings: Of the session.

    Raises:
        StoreError: The file of the history cannot be read.
    """

    def __init__(
        self, shard: Shard, jobs: Iterable[CaseJob], names: Callable[[CaseJob], str], settings: Settings
    ) -> None:
        self._shard = shard
        self._placed: Mapping[str, int] = {}
        self.rule = "hash"
        if settings.shard_history is not None:
            weights = _weights(Counter((names(job), job.model_id, job.code) for job in jobs), settings)
            self._placed = longest_first(weights, shard.of)
            self._names = names
            digest = hashlib.sha256(repr(sorted(weights.items())).encode("utf-8", "surrogatepass"))
            self.rule = f"history {digest.hexdigest()[:16]}"

    def has_job(self, job: CaseJob) -> bool:
        """Return whether a case is in the share of this session."""
        if self._placed:
            key = "\0".join((self._names(job), job.model_id, job.code))
            return self._placed[key] == self._shard.index
        return hashed_share(f"{job.model_id}\0{job.code}", self._shard.of) == self._shard.index

    def has_item(self, node_id: str) -> bool:
        """Return whether an item that is no case is in the share of this session."""
        return hashed_share(node_id, self._shard.of) == self._shard.index


def _weights(counts: Mapping[CaseName, int], settings: Settings) -> dict[str, float]:
    """Return what each case will take, in ms: what it has taken, else the mean of those that are known."""
    assert settings.shard_history is not None  # by whoever asks
    try:
        found = latencies(settings.shard_history)
    except StoreError as error:
        hint = error.hint.replace("--helmbench-db=PATH", "--helmbench-shard-history=PATH")
        raise StoreError(error.path, error.problem, hint) from error
    known = {name: ms for name, ms in found.items() if name in counts}
    usual = fmean(known.values()) if known else 1.0
    return {"\0".join(name): known.get(name, usual) * count for name, count in counts.items()}


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
