"""The lines that a session prints: before the first call, on its way, of its failures, at the end."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Parse, Verdict
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.reports.tables import UNKNOWN, rate, share, table
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.scoring.breakdown import Speed
from pytest_helmbench.scoring.intervals import rows_interval

_SKIPS_SHOWN = 5
_MANY_FORM_FAULTS = 0.05
_VERSION = re.compile(r"[-@_.](?:v?[\d.@_-]+|latest)")


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
        why: Why it would not be called; empty when it would.
    """

    name: str
    model: str
    prompts: int
    judge_calls: int
    tokens: int
    price: tuple[float, float, float] | None
    why: str


def cost_text(known_usd: float, unknown: int) -> str:
    """Return a cost for people; what is unknown is said, never shown as 0."""
    if not unknown:
        return _usd(known_usd)
    return UNKNOWN if not known_usd else f"{_usd(known_usd)} + {unknown} unknown"


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
        else f"{about} {_usd(price[1])} USD".strip()
    )
    return (
        f"helmbench: {_listed(models)}: {_count(cases, 'case')}, {least}{_count(calls.number, 'call')}"
        f"{f', fewer {calls.fewer}' if calls.fewer and calls.number else ''}"
        f" ({concurrency} at a time), {cost}{_bounds_text(bounds)}; results in {db}"
    )


def _bounds_text(bounds: Mapping[int, Sequence[str]]) -> str:
    """Return what replies may have at most, and of which models, where they differ."""
    each = [
        f"{tokens:,}" + (f" ({_listed(models)})" if len(bounds) > 1 else "")
        for tokens, models in sorted(bounds.items())
    ]
    return f", at most {' and '.join(each)} tokens a reply (--helmbench-max-cost)" if each else ""


def in_all_text(speed: Speed) -> str:
    """Return how fast a run went beside its calls: `31.0 in all, 4 calls in flight`."""
    return f"{rate(speed.run_tokens_per_second)} in all, {_count(speed.in_flight or 0, 'call')} in flight"


def speed_line(model: str, speed: Speed) -> str:
    """Return how fast a model has answered; empty where that is not known."""
    if speed.tokens_per_second is None:
        return ""
    return f"{model}: {rate(speed.tokens_per_second)} tokens/s of a call, {in_all_text(speed)}"


def places_text(places: Iterable[str]) -> str:
    """Return what the line before the first call says of prompts that do not go to a provider's own server."""
    return "".join(f"; prompts go to {place}" for place in dict.fromkeys(places))


def dry_run_lines(rows: Sequence[DryRow], asked_for: bool) -> list[str]:
    """Return the summary of a dry run: prompts, tokens and price by run and in all, and why no model is called."""
    why = "as asked for" if asked_for else "no model can be called"
    head = ("model", "prompts", "judge calls", "tokens", "USD low", "expected", "high")
    shown = [*rows, _together(rows)] if len(rows) > 1 else rows
    lines = [
        f"dry run, {why}: every prompt was composed, nothing was called, nothing was stored",
        *table(head, map(_dry_cells, shown), left=("model",)),
    ]
    reasons = dict.fromkeys((row.model, row.why) for row in rows if row.why and not asked_for)
    return lines + [f"{model}: {reason}" for model, reason in reasons]


def _together(rows: Sequence[DryRow]) -> DryRow:
    """Return the sum of the rows; its price is unknown where one is."""
    known = [row.price for row in rows if row.price is not None]
    low, expected, high = (sum(price[index] for price in known) for index in range(3))
    return DryRow(
        name="together",
        model="",
        prompts=sum(row.prompts for row in rows),
        judge_calls=sum(row.judge_calls for row in rows),
        tokens=sum(row.tokens for row in rows),
        price=(low, expected, high) if len(known) == len(rows) else None,
        why="",
    )


def _dry_cells(row: DryRow) -> tuple[str, ...]:
    price = (UNKNOWN,) * 3 if row.price is None else tuple(map(_usd, row.price))
    return (row.name, str(row.prompts), str(row.judge_calls), f"~{row.tokens}", *price)


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
                f"{model}: {row.unstated} of {_count(row.judged, 'reply', 'replies')} state no answer:"
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
                f"{model}: {_count(row.inner_thoughts, 'thought')} in the middle of replies taken off before judging"
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
                f"{model}: {_count(row.in_process, 'verdict')} of {row.judged} in_process:"
                " what was judged could run beside what judged it (docs/trust.md)"
            )
        if row.neutral_wrong:
            lines.append(
                f"{model}: {_count(row.neutral_wrong, 'wrong neutral case')} (severity 0):"
                " among the failed of this table, xfailed to pytest, ignored by scores"
            )
    return lines


def cut_lines(rows: Mapping[str, RunCounts]) -> list[str]:
    """Return which models have not read their prompts to the end, or a judge has not: before all else.

    Args:
        rows: By model.
    """
    return [
        f"{model}: its server has cut {_count(prompts, 'prompt')}{f' of the judge {judge}' if judge else ''}:"
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
            f"{model}: the tokens of {_count(row.estimated, 'call')} are estimates, and so is what they cost:"
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


def reasons_text(reasons: Mapping[str, int]) -> str:
    """Return `timeout 3, blocked 1`, the most frequent first."""
    return ", ".join(
        f"{reason} {count}" for reason, count in sorted(reasons.items(), key=lambda r: (-r[1], r[0])) if count
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


def _usd(amount: float) -> str:
    if 0 < amount < 0.0001:
        return "<0.0001"  # a little is not nothing
    return f"{amount:.2f}" if amount >= 10 else f"{amount:.4f}"


def _count(number: int, noun: str, several: str = "") -> str:
    return f"{number} {noun if number == 1 else several or f'{noun}s'}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


_NAMED_IN_FLIGHT = 3


@dataclass(frozen=True, slots=True)
class Progress:
    """A session on its way.

    Args:
        counts: Of all its runs so far.
        planned: Cases in all.
        expected_usd: What it may cost in the end; None where a price is unknown.
        elapsed_s: Since it has begun.
    """

    counts: RunCounts
    planned: int
    expected_usd: float | None
    elapsed_s: float


def progress_text(now: Progress) -> str:
    """Return what is done, the score so far, errors by kind, cost, time left.

    The score is the share of the severity points that was kept, all models and behaviours together: an estimate while
    the session runs. The figure behind ± is half of a 95 % interval for as many cases.
    """
    counts = now.counts
    parts = [f"{counts.results}/{now.planned} done"]
    if counts.points:
        share = max(0.0, min(1.0, 1 - counts.points_lost / counts.points))
        interval = rows_interval(share, counts.verdicts[Verdict.PASSED] + counts.verdicts[Verdict.FAILED])
        parts.append(f"score {100 * share:.1f} % ± {50 * (interval.high - interval.low):.1f}")
    if counts.verdicts[Verdict.ERROR]:
        parts.append(f"errors: {reasons_text(counts.reasons)}")
    about = "" if now.expected_usd is None else f" of about {cost_text(now.expected_usd, 0)}"
    parts.append(f"{cost_text(counts.known_cost_usd, counts.unknown_costs)}{about} USD")
    if counts.results and counts.results < now.planned:
        left_s = now.elapsed_s * (now.planned - counts.results) / counts.results
        parts.append(f"{_span(left_s)} left")
    return f"helmbench: {', '.join(parts)}"


def in_flight_text(calls: Sequence[tuple[str, str, float]]) -> str:
    """Return what is being waited for.

    Args:
        calls: Label, model, age in seconds of what is out, the oldest first.
    """
    named = ", ".join(f"{label} [{model}] {age_s:.0f} s" for label, model, age_s in calls[:_NAMED_IN_FLIGHT])
    more = f", +{len(calls) - _NAMED_IN_FLIGHT}" if len(calls) > _NAMED_IN_FLIGHT else ""
    return f"{len(calls)} in flight: {named}{more}" if calls else "waiting for limits"


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    return f"{round(whole / 60)} min" if whole < 90 * 60 else f"{whole / 3600:.1f} h"


_PARTS_SHOWN = 10
_FIGURES = re.compile(r"\d+\.\d+|\d{4,}|\d+(?= ?(?:ms|s|bytes|tokens)\b)")  # no status codes


@dataclass(slots=True)
class PartCounts:
    """Judged cases of a behaviour, or of a family where there are no behaviours."""

    failed: int = 0
    judged: int = 0

    def add(self, *, is_wrong: bool) -> None:
        """Count one."""
        self.judged += 1
        self.failed += is_wrong


def failure_table(parts: Mapping[str, PartCounts], *, most: int = _PARTS_SHOWN) -> list[str]:
    """Return the behaviours with failed cases, those with the most first.

    Args:
        parts: By code of behaviour or name of family.
        most: Lines at most; the others are one line.
    """
    found = sorted(
        ((name, counts) for name, counts in parts.items() if counts.failed),
        key=lambda one: (-one[1].failed, natural_key(one[0])),
    )
    rows = [
        (name, str(counts.failed), str(counts.judged), share(counts.failed / counts.judged))
        for name, counts in found[:most]
    ]
    rest = found[most:]
    if rest:
        failed, judged = (sum(getattr(one, name) for _, one in rest) for name in ("failed", "judged"))
        rows.append((f"{len(rest)} others", str(failed), str(judged), share(failed / judged)))
    return table(("failed by behaviour", "failed", "judged", ""), rows, left=("failed by behaviour",))


def same_errors(texts: Iterable[str]) -> Sequence[tuple[int, int]]:
    """Return the different errors, the most frequent first: place of the first one of each, and how many there are.

    Args:
        texts: What each says; times, sizes and ports in them do not matter.
    """
    counts: Counter[str] = Counter()
    first: dict[str, int] = {}
    for place, text in enumerate(texts):
        alike = _FIGURES.sub("#", text)
        counts[alike] += 1
        first.setdefault(alike, place)
    return [(first[alike], count) for alike, count in counts.most_common()]


MOST_ANNOTATIONS = 10
"""GitHub shows no more errors of one step."""

_LONGEST = 300
_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


@dataclass(frozen=True, slots=True)
class Annotation:
    """An error that is shown beside a job, and beside a file where it has one.

    Args:
        title: Short.
        message: A sentence.
        path: Relative to the repository's folder; empty for none.
        line: From 1.
    """

    title: str
    message: str
    path: str = ""
    line: int = 1

    def command(self) -> str:
        """Return the line that says it. It counts only where it stands at the start of a line of its own.

        Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
        """
        place = f"file={self.path.translate(_IN_PROPERTIES)},line={self.line}," if self.path else ""
        title = excerpt(self.title, _LONGEST).translate(_IN_PROPERTIES)
        return f"::error {place}title={title}::{excerpt(self.message, _LONGEST).translate(_ESCAPES)}"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Runs, and their results file.

    Args:
        runs: `evaluation_runs.id`; where there are several, a reader chooses.
        db_option: What names the file on a command line; empty where that is the usual one.
    """

    runs: tuple[int, ...] = ()
    db_option: str = ""

    @classmethod
    def of(cls, runs: tuple[int, ...], db: Path, usual: Path) -> RunPlace:
        """Return the place of runs in a file, where commands read another one unless they are told."""
        return cls(runs, "" if db == usual else f" --db={shlex.quote(str(db))}")

    def listing(self, option: str) -> str:
        """Return the command that lists cases of the run: `helmbench show 3 --failed`."""
        run = self.runs[0] if len(self.runs) == 1 else "RUN"
        return f"`helmbench show {run} {option}{self.db_option}`"
