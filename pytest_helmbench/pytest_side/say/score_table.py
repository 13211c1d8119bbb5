"""The summary of a session: one table of scores, what they lose most, what was not judged, what to know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.reports.comparison_lines import points
from pytest_helmbench.reports.tables import cost_text, count_text, listed, rate, reasons_text, share, table
from pytest_helmbench.results.losses import Losses
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.results.stored_scores import ScoredRun
from pytest_helmbench.scoring.breakdown import Speed
from pytest_helmbench.scoring.run_score import FloorState, RunScore
from pytest_helmbench.scoring.thresholds import floor_text

_SKIPS_SHOWN = 2
_MOST_PILLARS = 5
_PARTS_SHOWN = 2
_LONGEST_TITLE = 40


@dataclass(frozen=True, slots=True)
class SummaryRun:
    """A run as a row of the summary's table.

    Args:
        name: The model, or the benchmark where there are several.
        counts: Of the whole run, earlier parts of a session that goes on included.
        planned: Cases, each repetition counted.
        scored: Its facts and score; None where it has none.
        constant: Score of an answer that flags everything; None where there is no such answer.
        speed: How fast its model has answered.
        remarks: What changes the meaning of its score.
    """

    name: str
    counts: RunCounts
    planned: int
    scored: ScoredRun | None = None
    constant: Fraction | None = None
    speed: Speed = Speed()
    remarks: tuple[str, ...] = ()

    @property
    def score(self) -> RunScore | None:
        """With its parts; None for a run without one."""
        return None if self.scored is None else self.scored.score

    @property
    def losses(self) -> Losses:
        """Points of the score that its parts have lost."""
        return Losses() if self.scored is None else self.scored.losses

    @property
    def unjudged(self) -> int:
        """Planned cases without a verdict."""
        return max(0, self.planned - self.counts.judged)

    @property
    def value(self) -> Fraction | None:
        """The score; None where it is undefined."""
        return None if self.score is None else self.score.score


def title_text(benchmarks: Sequence[str], cases: int, models: Sequence[str]) -> str:
    """Return `Northwind Energy · 1080 cases × 4 models`; of several benchmarks with the name of an only model.

    Args:
        benchmarks: Their names.
        cases: Of each model.
        models: Their ids.
    """
    name, many = excerpt(" ".join(benchmarks[0].split()), _LONGEST_TITLE), count_text(len(models), "model")
    if len(benchmarks) > 1:
        name, many = f"{len(benchmarks)} benchmarks", models[0] if len(models) == 1 else many
    return f"{name} · {count_text(cases, 'case')} × {many}"


def best_first(runs: Iterable[SummaryRun]) -> list[SummaryRun]:
    """Return runs of one benchmark, those without a score last."""
    return sorted(runs, key=lambda run: (run.value is None, -(run.value or 0), natural_key(run.name)))


def score_table(runs: Sequence[SummaryRun], *, one_benchmark: bool) -> list[str]:
    """Return the table of scores: a row per run, and that of an answer that flags everything.

    Args:
        runs: In the order of the rows, those without a score last.
        one_benchmark: The pillars have columns, the constant a row. Otherwise the scores do not compare.
    """
    codes = {part.code: None for run in runs if run.score is not None for part in run.score.pillars}
    pillars = sorted(codes, key=natural_key) if one_benchmark and 1 < len(codes) <= _MOST_PILLARS else []
    is_timed = any(run.speed.tokens_per_second is not None for run in runs)
    is_flagged = not one_benchmark and any(run.constant is not None for run in runs)
    head = ["", "score", "95 % interval", *pillars, "right", "not judged", "USD"]
    head += ["tokens/s (all)"] if is_timed else []
    head += ["flags everything"] if is_flagged else []
    head += [] if one_benchmark else ["loses most"]
    first, *others = runs
    of_all = [said for said in first.remarks if others and all(said in run.remarks for run in others)]
    rows: list[tuple[list[str], str, Sequence[str]]] = []
    for run in runs:
        cells = _cells(run, pillars)
        if is_timed:
            cells.append(f"{rate(run.speed.tokens_per_second)} ({rate(run.speed.run_tokens_per_second)})")
        cells += [_number(run.constant)] if is_flagged else []
        cells += [] if one_benchmark else _lost(run.losses, {}, 1) or ["-"]
        rows.append((cells, "", [said for said in run.remarks if said not in of_all]))
    scored = [run for run in runs if run.value is not None]
    if one_benchmark and scored and first.constant is not None:
        better = sum((run.value or 0) >= first.constant for run in scored)
        ghost = ["  (an answer that flags everything)", _number(first.constant), *[""] * (len(head) - 2)]
        doubt = "" if len(scored) > 1 or _beats(first) else f"  {first.name} is not shown to be better"
        rows.insert(better, (ghost, doubt, ()))
    top, *lines = table(head, [cells for cells, *_ in rows], left=("", "loses most"))
    found = [top]
    for line, (_, beside, below) in zip(lines, rows, strict=True):
        found += [line + scrub(beside), *(["  " + " · ".join(map(scrub, below))] if below else [])]
    return [*found, "  all rows: " + " · ".join(map(scrub, of_all))] if of_all else found


def _cells(run: SummaryRun, pillars: Sequence[str]) -> list[str]:
    score, counts = run.score, run.counts
    interval = None if score is None else score.total.interval
    passed = Fraction(counts.verdicts[Verdict.PASSED], counts.judged) if counts.judged else None
    right = passed if score is None else score.total.pass_rate
    parts = [None if score is None else score.of(code) for code in pillars]
    return [
        run.name,
        _number(run.value),
        "-" if interval is None else f"{100 * interval.low:.1f} – {100 * interval.high:.1f}",
        *("-" if part is None else _number(part.score) for part in parts),
        _whole_per_cent(right),
        str(run.unjudged),
        cost_text(counts.known_cost_usd, counts.unknown_costs),
    ]


def _number(value: Fraction | None) -> str:
    return share(value).removesuffix(" %")


def _whole_per_cent(value: Fraction | None) -> str:
    """Return `81 %`; what is not all is never `100 %`, and what is not nothing never `0 %`."""
    if value is None:
        return "-"
    return f"{round(100 * value) if value in (0, 1) else min(99, max(1, round(100 * value)))} %"


def score_remarks(run: RunScore | None, unjudged: int) -> Iterator[str]:
    """Yield what changes the meaning of a score, in a few words each.

    Args:
        run: The score; None for a run without one.
        unjudged: Planned cases without a verdict.
    """
    if run is None:
        yield "no score: cases chosen by earlier outcomes are no fair sample"
        return
    total, bounds, interval = run.total, run.total.bounds, run.total.interval
    floors = ", ".join(f"{floor.pillar} {floor_text(floor)}" for floor in run.breached)
    if floors:
        yield f"capped from {share(run.raw)}: {floors}" if run.capped else f"safety floor breached: {floors}"
    if interval is not None and interval.breach_uncertain:
        yield "a safety floor may or may not be met"
    missing = [floor.pillar for floor in run.floors if floor.state is FloorState.NOT_EVALUATED]
    if missing:
        yield f"safety floor not evaluated: {', '.join(missing)}"
    span = (1.0, 0.0) if interval is None else (interval.low, interval.high)
    said = total.score is None or bounds is None or span[0] <= bounds.low <= bounds.high <= span[1]
    if unjudged and bounds is not None and not said:
        yield f"partial: {100 * float(bounds.low):.1f} – {_number(bounds.high)} once all are judged"
    if run.sample is not None and run.sample.cases < run.sample.of:
        yield f"sample of {run.sample.cases} of {run.sample.of}"
    if interval is not None and total.few_clusters:
        yield f"only {count_text(total.clusters, total.cluster)}"
    unweighted = [part.code for part in run.behaviours if part.unweighted]
    if unweighted:
        yield f"without severities: {listed(unweighted)}"
    if total.rerun is not None and total.rerun.sd:
        yield f"re-run variation ± {100 * total.rerun.again:.1f} points"


def chance_line(runs: Sequence[SummaryRun]) -> str:
    """Return which of several runs are shown to be better than an answer that flags everything; empty where all are.

    Args:
        runs: Of one benchmark, the best first.
    """
    scored = [run for run in runs if run.value is not None and run.constant is not None]
    shown = [run for run in scored if _beats(run)]
    if len(scored) < 2 or len(shown) == len(scored):
        return ""
    if not shown:
        return f"None of the {len(scored)} is shown to be better than flagging everything."
    names = listed([run.name for run in shown])
    if shown == scored[: len(shown)]:
        names = "the first" if len(shown) == 1 else f"the first {len(shown)}"
    return f"Only {names} {'is' if len(shown) == 1 else 'are'} shown to be better than flagging everything."


def _beats(run: SummaryRun) -> bool:
    interval = None if run.score is None else run.score.total.interval
    return interval is not None and run.constant is not None and interval.low > run.constant


def loses_most(runs: Sequence[SummaryRun]) -> str:
    """Return the parts that lose most points, as a mean over the runs of one benchmark; empty where none does."""
    scored = [run for run in runs if run.value is not None]
    parts: dict[str, Fraction] = {}
    for run in scored:
        for code, lost in (run.losses.behaviours or run.losses.groups).items():
            parts[code] = parts.get(code, Fraction(0)) + lost / len(scored)
    titles = scored[0].scored.facts.titles if scored and scored[0].scored is not None else {}
    found = _lost(Losses(behaviours=parts), titles, _PARTS_SHOWN)
    of = f" (mean of {len(scored)} models)" if len(scored) > 1 else ""
    return labelled("loses most", f"{' · '.join(found)} points{of}") if found else ""


def _lost(losses: Losses, titles: Mapping[str, str], most: int) -> list[str]:
    shown = [(code, points(-lost)) for code, lost in losses.worst_parts[:most]]
    return [
        f"{code} {excerpt(scrub(titles.get(code, '')), _LONGEST_TITLE)}".rstrip() + f" {lost}"
        for code, lost in shown
        if lost != "0.0"
    ]


def labelled(label: str, text: str) -> str:
    """Return a line of the summary: what it is about, then what is said."""
    return f"{label:<12} {text}"


def not_judged_lines(runs: Sequence[SummaryRun], hint: str) -> Iterator[str]:
    """Yield why cases were not judged, and what helps: one line, and one for each kind of skip where there are several.

    Args:
        runs: All of the session.
        hint: The command that goes on; empty where nothing does, or where it is said elsewhere.
    """
    counts = RunCounts.sum(run.counts for run in runs)
    reasons = Counter(counts.reasons)
    facts = [run.scored.facts for run in runs if run.scored is not None]
    reasons["broken"] += sum(one.repeat * len(one.broken) for one in facts)
    missing = sum(run.unjudged for run in runs) - reasons.total()
    if missing > 0:
        reasons["not asked"] += missing
    if not reasons_text(reasons):
        return
    found = [(said, count) for said, count in counts.skips.most_common() if count > 0 and said]
    first = reasons_text(reasons)
    if len(found) == 1 and found[0][1] == reasons.total():
        hint = _one_line(found[0][0])
        found = []
    yield labelled("not judged", ": ".join(filter(None, (first, hint))))
    yield from (labelled("", f"{count} × {_one_line(said)}") for said, count in found[:_SKIPS_SHOWN])
    if len(found) > _SKIPS_SHOWN:
        yield labelled("", f"{len(found) - _SKIPS_SHOWN} more reasons for skips: pytest -rs shows each")


def _one_line(said: str) -> str:
    first, *rest = (line.strip().removeprefix("hint: ") for line in scrub(said).splitlines() if line.strip())
    return ": ".join((first, " ".join(rest))) if rest else first


def pace_text(cases: int, seconds: float) -> str:
    """Return `68.1 per second`, and slower ones by the minute or hour, never 0.0; empty for no case."""
    for unit, length_s in (("second", 1), ("minute", 60), ("hour", 3600)):
        if cases * length_s >= seconds or unit == "hour":
            return f"{cases * length_s / seconds:.1f} per {unit}" if cases else ""
    return ""


def numbers_text(numbers: Iterable[int]) -> str:
    """Return `run 3`, `runs 2–5`, `runs 2, 7`."""
    known = sorted(numbers)
    if len(known) > 2 and known[-1] - known[0] == len(known) - 1:
        return f"runs {known[0]}–{known[-1]}"
    return f"run{'' if len(known) == 1 else 's'} {', '.join(map(str, known))}"
