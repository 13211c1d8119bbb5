"""One row of what a run's calls cost, as terminal and reports show it."""

from __future__ import annotations

from pytest_helmbench.reports.session_texts import cost_text
from pytest_helmbench.reports.tables import number
from pytest_helmbench.store.cost_queries import CostRow

__all__ = ["COST_HEAD", "cost_cells"]

COST_HEAD = ("behaviour", "purpose", "calls", "from record", "tokens in", "tokens out", "cost USD")


def cost_cells(row: CostRow) -> tuple[str, ...]:
    """Return the cells of a row below `COST_HEAD`."""
    return (
        row.behaviour or "-",
        row.whose,
        str(row.calls),
        str(row.cached_answers),
        # What only came from the record has no tokens, which is not the same as unknown ones.
        number(row.prompt_tokens) if row.calls else "-",
        number(row.completion_tokens) if row.calls else "-",
        cost_text(row.known_cost_usd, row.unknown_costs),
    )
