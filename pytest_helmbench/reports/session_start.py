"""The lines that a session prints before the first call, and those of a dry run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.reports.tables import UNKNOWN, count_text, listed, table, usd

_MOST_DRY_ROWS = 10
_NOTHING_CALLED = "every prompt was composed, nothing was called, nothing was stored"


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """Calls of a plan.

    Args:
        number: As far as they can be told.
        more: There may be more: what agents and packs ask cannot be told.
        fewer: Where there may be fewer, `where replies are on record`; empty where there are not.
    """

    number: int
    more: bool = False
    fewer: str = ""


@dataclass(frozen=True, slots=True)
class DryRow:
    """What one model would be asked of one benchmark.

    Args:
        name: Of the run: the model, and the benchmark where there are several.
        tokens: Of the prompts, estimated, judges included.
        price: Low, expected, high in USD; None when a price is unknown.
    """

    name: str
    model: str
    prompts: int
    judge_calls: int
    tokens: int
    price: tuple[float, float, float] | None


def announcement(
    models: Sequence[str],
    cases: int,
    calls: PlannedCalls,
    concurrency: int,
    price: tuple[float, float, float] | None,
    db: str,
    bounds: Mapping[int, Sequence[str]],
) -> str:
    """Return the line before the first call.

    Args:
        models: Under test, those that can be called.
        cases: How many.
        calls: How many.
        concurrency: Calls in flight.
        price: Low, expected, high in USD; None when a price is unknown.
        db: Results file.
        bounds: Models by the most tokens of a reply that the budget lets them have.
    """
    least = "at least " if calls.more and calls.number else ""
    about = "at least" if least else "about"
    if calls.fewer and calls.number:
        least, about = ("" if least else "at most "), ("" if least else "at most")
    cost = (
        "cost unknown"
        if price is None
        else "free"
        if not price[2]
        else f"{about} {usd(price[1])} USD".strip()
    )
    return (
        f"helmbench: {listed(models)}: {count_text(cases, 'case')}, {least}{count_text(calls.number, 'call')}"
        f"{f', fewer {calls.fewer}' if calls.fewer and calls.number else ''}"
        f" ({concurrency} at a time), {cost}{_bounds_text(bounds)}; results in {db}"
    )


def _bounds_text(bounds: Mapping[int, Sequence[str]]) -> str:
    """Return what replies may have at most, and of which models, where they differ."""
    each = [
        f"{tokens:,}" + (f" ({listed(models)})" if len(bounds) > 1 else "")
        for tokens, models in sorted(bounds.items())
    ]
    return f", at most {' and '.join(each)} tokens a reply (--helmbench-max-cost)" if each else ""


def places_text(places: Iterable[str]) -> str:
    """Return what the line before the first call says of prompts that do not go to a provider's own server."""
    return "".join(f"; prompts go to {place}" for place in dict.fromkeys(places))


def dry_run_lines(rows: Sequence[DryRow]) -> list[str]:
    """Return the summary of a dry run: prompts, tokens and price by run and in all, of many runs by model.

    The line before the first call has told why no model is called.
    """
    if len(rows) > _MOST_DRY_ROWS:
        models = dict.fromkeys(row.model for row in rows)
        rows = [_together([row for row in rows if row.model == model], model) for model in models]
    head = ("", "prompts", "judge calls", "tokens", "USD low", "expected", "high")
    shown = [*rows, _together(rows, "together")] if len(rows) > 1 else rows
    return [*table(head, map(_dry_cells, shown), left=("",)), _NOTHING_CALLED]


def _together(rows: Sequence[DryRow], name: str) -> DryRow:
    """Return the sum of the rows; its price is unknown where one is."""
    known = [row.price for row in rows if row.price is not None]
    low, expected, high = (sum(price[index] for price in known) for index in range(3))
    return DryRow(
        name=name,
        model=name,
        prompts=sum(row.prompts for row in rows),
        judge_calls=sum(row.judge_calls for row in rows),
        tokens=sum(row.tokens for row in rows),
        price=(low, expected, high) if len(known) == len(rows) else None,
    )


def _dry_cells(row: DryRow) -> tuple[str, ...]:
    price = (UNKNOWN,) * 3 if row.price is None else tuple(map(usd, row.price))
    return (row.name, str(row.prompts), str(row.judge_calls), f"~{row.tokens}", *price)
