"""The summary of a session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pytest_helmbench.core.outcome import Parse, Verdict
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.reports.tables import cost_text, count_text, rate, reasons_text, table
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.scoring.breakdown import Speed

_SKIPS_SHOWN = 5
_MANY_FORM_FAULTS = 0.05
_VERSION = re.compile(r"[-@_.](?:v?[\d.@_-]+|latest)")


def in_all_text(speed: Speed) -> str:
    """Return how fast a run went beside its calls: `31.0 in all, 4 calls in flight`."""
    return f"{rate(speed.run_tokens_per_second)} in all, {count_text(speed.in_flight or 0, 'call')} in flight"


def speed_line(model: str, speed: Speed) -> str:
    """Return how fast a model has answered; empty where that is not known."""
    if speed.tokens_per_second is None:
        return ""
    return f"{model}: {rate(speed.tokens_per_second)} tokens/s of a call, {in_all_text(speed)}"


def model_table(rows: Mapping[str, RunCounts]) -> list[str]:
    """Return one line per model under a head.

    Args:
        rows: By model.
    """
    cells = []
    for model, row in rows.items():
        calls = f"{row.case_calls} + {row.judge_calls} judge" if row.judge_calls else str(row.case_calls)
        calls += f" + {row.replays} recorded" if row.replays else ""
        cost = cost_text(row.known_cost_usd, row.unknown_costs)
        counts = (row.verdicts[verdict] for verdict in Verdict)
        cells.append((model, *map(str, counts), calls, str(row.tokens), cost))
    head = ("model", "passed", "failed", "errors", "skipped", "calls", "tokens", "cost USD")
    return table(head, cells, left=("model",))


def resumed_tables(whole: Mapping[str, RunCounts], now: Mapping[str, RunCounts]) -> list[str]:
    """Return the table of a session that went on: of its runs as a whole, and of this part of it.

    Args:
        whole: From the record, by model.
        now: Of this session, with what it has reported again, by model.
    """
    part = {model: replace(row, verdicts=row.verdicts - row.from_record) for model, row in now.items()}
    return ["the whole run:", *model_table(whole), "this session:", *model_table(part)]


def unstated_lines(rows: Mapping[str, RunCounts], *, many: bool | None = None) -> list[str]:
    """Return how many replies state no answer, by model, and what reads them.

    Args:
        rows: By model.
        many: Only models of which these are more than 5 %, or only the others; None for all.
    """
    lines = []
    for model, row in rows.items():
        is_many = row.unstated > _MANY_FORM_FAULTS * row.judged
        if row.unstated and many in (None, is_many):
            lines.append(
                f"{model}: {row.unstated} of {count_text(row.judged, 'reply', 'replies')} state no answer:"
                " counted as wrong; --helmbench-marking-model=ID has them read,"
                " --helmbench-answer-form=json asks more firmly"
            )
    return lines


def judging_lines(rows: Mapping[str, RunCounts]) -> list[str]:
    """Return what must be known to read the table: recovered replies, faults of form, neutral rows, other models.

    Args:
        rows: By model.
    """
    lines = unstated_lines(rows, many=False)
    for model, row in rows.items():
        lines += answerer_lines(model, row)
        if row.unknown_finishes:
            lines.append(
                f"{model}: replies ended for reasons that are not known: {reasons_text(row.unknown_finishes)};"
                " judged as whole ones"
            )
        if row.inner_thoughts:
            lines.append(
                f"{model}: {count_text(row.inner_thoughts, 'thought')} in the middle of replies,"
                " taken off before judging"
            )
        strict, recovered = row.parses[Parse.STRICT], row.parses[Parse.RECOVERED]
        if recovered:
            lines.append(
                f"{model}: JSON read strictly {strict} times, recovered from other text {recovered} times"
            )
        readable = row.judged - row.form_faults
        if row.judged and row.form_faults > _MANY_FORM_FAULTS * row.judged:
            passed = row.verdicts[Verdict.PASSED]
            over = f"; over readable replies {100 * passed / readable:.1f} % pass" if readable else ""
            lines.append(
                f"{model}: {row.form_faults} of {row.judged} failed for the form of the reply:"
                f" the numbers measure format too{over}"
            )
        if row.in_process:
            lines.append(
                f"{model}: {count_text(row.in_process, 'verdict')} of {row.judged} in_process:"
                " what was judged could run beside what judged it (docs/trust.md)"
            )
        if row.neutral_wrong:
            lines.append(
                f"{model}: {count_text(row.neutral_wrong, 'wrong neutral case')} (severity 0):"
                " among the failed of this table, xfailed to pytest, ignored by scores"
            )
    return lines


def cut_lines(rows: Mapping[str, RunCounts]) -> list[str]:
    """Return which models have not read their prompts to the end, or a judge has not: before all else.

    Args:
        rows: By model.
    """
    return [
        f"{model}: its server has cut {count_text(prompts, 'prompt')}{f' of the judge {judge}' if judge else ''}:"
        f" {row.cut[judge, 'tokens']:,} tokens counted in {row.cut[judge, 'characters']:,} characters;"
        " raise the server's context length, or shorten the prompts"
        for model, row in rows.items()
        for (judge, what), prompts in row.cut.items()
        if what == "prompts" and prompts
    ]


def answerer_lines(model: str, row: RunCounts) -> list[str]:
    """Return what must be known of who answered and what was counted."""
    lines = []
    others: dict[str | None, dict[str, int]] = {}
    for (judge, answered), count in sorted(row.answered_by.items(), key=str):
        if count and not _is_same_model(judge or model, answered):
            others.setdefault(judge, {})[scrub(answered)] = count
    for judge, counts in others.items():
        asked = "the one that was asked" if judge is None else f"the judge {judge}"
        lines.append(f"{model}: other models answered than {asked}: {reasons_text(counts)}")
    if row.estimated:
        lines.append(
            f"{model}: the tokens of {count_text(row.estimated, 'call')} are estimates, and so is what they cost:"
            " the provider named none"
        )
    return lines


def _is_same_model(asked: str, answered: str) -> bool:
    """Return whether a model goes by the name that was asked: with another vendor, a date or a tag it is the same."""
    wanted, found = (name.lower().rpartition("/")[2].partition(":")[0] for name in (asked, answered))
    return wanted == found or any(
        longer.startswith(shorter) and _VERSION.fullmatch(longer[len(shorter) :])
        for shorter, longer in ((wanted, found), (found, wanted))
        if shorter
    )


def skip_lines(rows: Mapping[str, RunCounts]) -> list[str]:
    """Return why cases were skipped, with what helps, the most frequent first.

    Args:
        rows: By model.
    """
    said = RunCounts.sum(rows.values()).skips
    found = [(sentence, count) for sentence, count in said.most_common() if count > 0 and sentence]
    lines = []
    for sentence, count in found[:_SKIPS_SHOWN]:
        first, *rest = scrub(sentence).splitlines() or [""]
        lines += [f"skipped: {count} × {first}", *rest]
    if len(found) > _SKIPS_SHOWN:
        lines.append(f"… and {len(found) - _SKIPS_SHOWN} more reasons for skips: pytest -rs shows each")
    return lines
