"""Settings and versions of a run, its costs, what was not judged, and the parts that lost most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction

from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.options.recorded_settings import given_settings
from pytest_helmbench.reports.tables import UNKNOWN, cost_text, number, share, text_of
from pytest_helmbench.results.differences import server_name
from pytest_helmbench.results.losses import Losses
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.scoring.breakdown import RowShare
from pytest_helmbench.store.read.costs import CostRow

_SHOWN_SETTING = 300
COST_HEAD = ("behaviour", "purpose", "calls", "stored replies", "tokens in", "tokens out", "cost USD")


def cost_cells(row: CostRow) -> tuple[str, ...]:
    """Return the cells of a row below `COST_HEAD`."""
    return (
        row.behaviour or "-",
        row.whose,
        str(row.calls),
        str(row.cached_answers),
        # Stored replies have no tokens, which is not the same as unknown ones.
        number(row.prompt_tokens) if row.calls else "-",
        number(row.completion_tokens) if row.calls else "-",
        cost_text(row.known_cost_usd, row.unknown_costs),
    )


def setting_rows(report: RunReport) -> Iterator[tuple[str, str]]:
    """Yield versions and settings that are not their defaults; of a server only its name."""
    run = report.detail
    facts: dict[str, object] = {
        "session": run.session_id,
        "started": run.started_at,
        "completed": run.completed_at,
        "benchmark": f"{run.benchmark} {run.version}",
        "benchmark hash": run.benchmark_hash,
        "provider": run.provider,
        "server": run.base_url,
        "pytest-helmbench": run.plugin_version,
    }
    facts |= {
        "judge": list(report.judges) if report.judgements else None,
        **dict(given_settings(run.settings)),
    }
    for name, value in facts.items():
        if value not in (None, "", [], {}):
            shown = server_name(str(value)) if name.endswith(("server", "base_url")) else text_of(value)
            yield name, excerpt(shown, _SHOWN_SETTING) or UNKNOWN


def rate_text(rate: RowShare) -> str:
    """Return `91.3 % (21/23)`; a dash where there is no row."""
    return f"{share(rate.plain)} ({rate.rows}/{rate.of_rows})" if rate.of_rows else "-"


def unjudged_rows(report: RunReport) -> list[tuple[str, str, str]]:
    """Return outcome, reason and number of what was not judged, the most first."""
    found = [
        (outcome, reason or "", count)
        for (outcome, reason), count in report.detail.outcomes.items()
        if outcome in ("error", "skipped")
    ]
    if report.not_run:
        found.append(("not run", "", report.not_run))
    found.sort(key=lambda entry: (-entry[2], entry[0], entry[1]))
    return [(outcome, reason, str(count)) for outcome, reason, count in found]


def lost_parts(reports: Sequence[RunReport]) -> list[tuple[str, str, str]]:
    """Return code, points of the score lost on average, and title of the three parts that lost most in some runs."""
    titles = {code: title for report in reports for code, title in report.titles.items()}
    worst = mean_losses([report.losses for report in reports]).worst_parts[:3]
    return [(code, f"{100 * float(lost):.1f}", titles.get(code, "")) for code, lost in worst]


def mean_losses(found: Sequence[Losses]) -> Losses:
    """Return what behaviours, or groups of a pack, have lost on average over some runs."""
    sums: defaultdict[str, Fraction] = defaultdict(Fraction)
    for losses in found:
        for code, lost in (losses.behaviours or losses.groups).items():
            sums[code] += lost / len(found)
    return Losses(behaviours=sums)
