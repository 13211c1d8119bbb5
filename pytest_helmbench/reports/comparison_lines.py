"""A comparison as people read it: a line per run and named part, what fell, what was left out; in Markdown, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.reports.markup import pipe_table, plain
from pytest_helmbench.reports.tables import count_text, seconds, share, table, text_of, usd
from pytest_helmbench.results.comparing import PlannedCase, RunComparison
from pytest_helmbench.results.differences import ChangedVerdicts, SideBySide
from pytest_helmbench.scoring.changes import Conclusion, about
from pytest_helmbench.scoring.comparison import BehaviourChange, ScopeChange

FIGURES_HEAD = ("", "score", "cost USD", "median time", "errors", "tokens")
_SHOWN_VALUE = 60
_FEW = 6
_GONE_SHOWN = _FLIPPED_SHOWN = 10
_NOT_SHOWN = "not shown to be worse"
ACCEPT_GONE = "accept that with --helmbench-allow-gone, or with a new baseline"
_SCOPE_HEAD = ("", "baseline", "now", "change (points)", "95 %", "p", "changed", "verdict")
_BEHAVIOUR_HEAD = (
    *("behaviour", "baseline", "now", "change (points)", "pairs of replies", "changed", "p (Holm)"),
    "",
)
_LEFT = ("", "behaviour", "95 %", "p", "p (Holm)", "changed", "verdict")


def shown_change(before: Fraction, after: Fraction) -> str:
    """Return the change in points that the two scores have as they are shown: `−18.5` for 89.3 and 70.8."""
    one, other = (round(float(share(value).removesuffix(" %")), 1) for value in (before, after))
    return points((other - one) / 100)


def span(before: float | Fraction | None, after: float | Fraction | None) -> str:
    """Return `89.3 → 70.8 %`."""
    return f"{share(before).removesuffix(' %')} → {share(after)}"


def points(value: float | Fraction) -> str:
    """Return a difference of scores in points with its sign: `−3.1`, `+0.4`, `0.0`."""
    shown = f"{abs(100 * float(value)):.1f}"
    sign = "" if shown == "0.0" else "−" if value < 0 else "+"
    return f"{sign}{shown}"


def p_text(p: float) -> str:
    """Return `p = 0.021`, `p < 0.0001`."""
    if p < 0.0001:
        return "p < 0.0001"
    if 0.045 < p < 0.055:
        return f"p = {p:.4f}"  # near the limit it must not look like it
    return f"p = {p:.2g}"


def baseline_name(found: RunComparison) -> str:
    """Return what the sentences of a comparison call its baseline."""
    return "its baseline" if found.baseline is None else found.baseline.name


def flipped_codes(cases: Sequence[PlannedCase], most: int) -> str:
    """Return `P1-B1-S1-PT1 (severity 9), P1-B2-S1-PT1 (severity 7) …`."""
    codes = ", ".join(f"{case.code} (severity {case.severity})" for case in cases[:most])
    return f"{codes} …" if len(cases) > most else codes


def gone_text(found: RunComparison) -> str:
    """Return `3 cases are gone from the benchmark since run 2`."""
    cases = count_text(len(found.gone), "case is", "cases are")
    return f"{cases} gone from the benchmark since {baseline_name(found)}"


def lost_parts(found: RunComparison) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield label, cases and sentence of the baseline's cases that are gone, and of those no longer counted."""
    if found.gone:
        yield "gone", found.gone, gone_text(found)
    if found.uncounted:
        cases, verb = count_text(len(found.uncounted), "case"), "is" if len(found.uncounted) == 1 else "are"
        text = f"{cases} that {baseline_name(found)} counted {verb} no longer counted"
        yield "no longer counted", found.uncounted, text


def changed_rules_text(found: RunComparison) -> str:
    """Return `rules that differ from run 1's: floor of P1 0.8 → none, severity of P1-B1-S1-PT3 9 → 1`."""
    shown = [
        f"{name} {setting_text(one)} → {setting_text(other)}"
        for name, one, other in found.rules_changed[:_GONE_SHOWN]
    ]
    more = len(found.rules_changed) - len(shown)
    shown += [f"{more} more"] if more else []
    return f"rules that differ from those of {baseline_name(found)}: {', '.join(shown)}"


def missing_parts(found: RunComparison) -> Iterator[str]:
    """Yield that a part with a limit has no case in both runs; the reason where nothing was compared."""
    yield from filter(None, (found.reason,))
    compared = {scope.code for scope in found.scopes}
    for limit in found.limits if compared else ():
        if limit.code not in compared:
            yield f"no case of {limit.code} is in both runs"


def comparison_lines(found: RunComparison, name: str) -> list[str]:
    """Return the sentences of a comparison of the run `name`, one line each."""
    baseline = baseline_name(found)
    head = f"compare {name} with {baseline}"
    lines = [f"{head}: {line}" for line in _lost_lines(found)]
    lines += [
        f"{f'compare {name} {scope.code}'.strip()} with {baseline}: {scope_line(found, scope)}"
        for scope in found.scopes
    ]
    lines += [f"{head}: does not hold: {missing}" for missing in missing_parts(found)]
    return [*lines, *(f"{head}: {note}" for note in comparison_notes(found))]


def comparison_text(found: RunComparison) -> list[str]:
    """Return a comparison as plain text: its lines, the row before → after, the settings that differ."""
    lines = comparison_lines(found, found.model)
    if found.beside is None:
        return lines
    row = table(FIGURES_HEAD, [figure_cells(found.beside)], left=("",))
    changed = changed_text(found.beside.changed)
    flips = [
        f"{label} {len(cases)}: {flipped_codes(cases, _FLIPPED_SHOWN)}" for label, cases in _flips(found)
    ]
    return [*lines, *flips, *row, changed, *differing_lines(found.beside)]


def _flips(found: RunComparison) -> list[tuple[str, Sequence[PlannedCase]]]:
    """Return the cases that fail and those that pass newly, each with their label."""
    both = (("newly failing", found.newly_failing), ("newly passing", found.newly_passing))
    return [(label, cases) for label, cases in both if cases]


def changed_text(found: ChangedVerdicts) -> str:
    """Return `verdicts that changed: 5 (3 now pass, 2 now fail), 95 as before; credits that changed: 7`."""
    many = found.now_pass + found.now_fail
    verdicts = f"{many} ({found.now_pass} now pass, {found.now_fail} now fail), {found.same} as before"
    return f"verdicts that changed: {verdicts}; credits that changed: {found.credits_changed}"


def differing_lines(found: SideBySide) -> list[str]:
    """Return the differences of two runs that can change an answer or a verdict, a line each."""
    return [
        f"different {name}: {setting_text(one)} in the baseline, {setting_text(other)} in the candidate"
        for name, one, other in found.differing
    ]


def setting_text(value: JsonValue) -> str:
    """Return a setting in a word or two; of a hash the first digits."""
    text = text_of(value)
    is_hash = len(text) == 64 and set(text) <= set("0123456789abcdef")
    return "none" if value is None else excerpt(text[:12] if is_hash else text, _SHOWN_VALUE)


def figure_cells(found: SideBySide) -> tuple[str, ...]:
    """Return the cells below `FIGURES_HEAD`, each `before → after`."""
    sides = [
        (
            "?" if run["cost_usd"] is None else usd(run["cost_usd"]),
            seconds(run["median_ms"]),
            *(f"{run[name] or 0:,}" for name in ("errors", "tokens")),
        )
        for run in (found.before, found.after)
    ]
    pairs = (f"{one} → {other}" for one, other in zip(*sides, strict=True))
    return ("before → after", span(found.before["score"], found.after["score"]), *pairs)


def _some_codes(codes: Sequence[str]) -> str:
    more = len(codes) - _GONE_SHOWN
    return ", ".join(codes[:_GONE_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _lost_lines(found: RunComparison) -> Iterator[str]:
    for _, codes, said in lost_parts(found):
        text = f"{said}: {_some_codes(codes)}"
        yield text if found.allows_gone else f"does not hold: {text}; {ACCEPT_GONE}"


def scope_line(found: RunComparison, scope: ScopeChange) -> str:
    """Return how the run or a part of it has changed, without its name."""
    verdict, conclusion = found.verdict_of(scope), conclusion_text(found, scope)
    if verdict is Conclusion.NO_CHANGE:
        return f"no change shown: {conclusion}"
    size = f"{span(scope.baseline_score, scope.score)}, {change_size(scope)}"
    if found.has_too_little_in_common:
        return f"{size}: {conclusion}"
    if verdict is Conclusion.COLLAPSED:
        return f"{size}: worse; {conclusion}"
    if verdict is Conclusion.WORSE:
        conclusion = f"{conclusion.removeprefix(f'{scope.direction}; ')} (one-sided {p_text(scope.change.p)})"
    direction = f"{size}: {scope.direction} (two-sided {p_text(scope.p_two_sided)})"
    return f"{direction}; {conclusion}".replace(f"; {_NOT_SHOWN}", "", 1)


def change_size(scope: ScopeChange, *, gated: bool = False) -> str:
    """Return `−0.6 points (95 %: −3.2 to +1.9)`.

    Args:
        gated: With the interval at the level of a gate, 90 %: each end is a one-sided limit at 95 %.
    """
    low, high = (scope.change.low, scope.change.high) if gated else (scope.low, scope.high)
    size = f"{shown_change(scope.baseline_score, scope.score)} points"
    if low is None or high is None:
        return size
    return f"{size} ({90 if gated else 95} %: {points(low)} to {points(high)})"


def conclusion_text(found: RunComparison, scope: ScopeChange) -> str:
    """Return the conclusion on the run or a part of it, without figures of the scores."""
    verdict = found.verdict_of(scope)
    change = scope.change
    very_cases = " on these very cases" if scope.unit == "reply" else ""
    beyond = f" by more than {100 * float(scope.drop):g} points" if scope.drop else ""
    units = "replies" if scope.unit == "reply" else f"{scope.unit}s"
    if verdict is Conclusion.WORSE:
        moved = f"{change.changed} of {change.units} {units} changed: {change.down} down, {change.up} up"
        return f"worse{beyond}{very_cases}; {moved}"
    if verdict is Conclusion.COLLAPSED:
        return "; ".join(_collapsed(one) for one in found.collapsed)
    if verdict is Conclusion.NOT_WORSE:
        return f"not worse{beyond}{very_cases}"
    beside = None if found.beside is None else found.beside.changed
    if verdict is Conclusion.NO_CHANGE and beside is not None and beside.now_pass + beside.now_fail:
        cases = count_text(found.cases_compared, "compared case has", "compared cases have")
        return f"{cases} the same verdict in both runs"
    if verdict is Conclusion.NO_CHANGE:
        return f"no verdict differs in {count_text(found.cases_compared, 'case')}"
    reason = found.reason_of(scope)
    if reason:
        return f"inconclusive{very_cases}: {reason}"
    found_drop = (
        ""
        if scope.detectable is None
        else f"; a drop of {about(scope.detectable)} would be seen 4 times of 5"
    )
    return f"{_NOT_SHOWN}{beyond}{very_cases}{found_drop}"


def comparison_notes(found: RunComparison) -> Iterator[str]:
    """Yield notes beside the conclusion: behaviours that fell, cases left out."""
    if found.fallen and not found.has_too_little_in_common:
        fallen = "; ".join(map(_fallen, found.fallen))
        behaviours = count_text(len(found.behaviours), "behaviour")
        yield f"fell on these very cases (Holm over {behaviours}): {fallen}"
    if found.cases_compared and (
        found.cases_left_out or found.cases_not_selected or found.rows_by_other_rules
    ):
        parts = [f"on the {count_text(found.cases_compared, 'case')} in both"]
        if found.cases_left_out:
            parts.append(f"{found.cases_left_out} left out")
        if found.cases_not_selected:
            parts.append(f"{found.cases_not_selected} of the baseline not selected")
        if found.cases_changed:
            parts.append(f"{count_text(found.cases_changed, 'case has', 'cases have')} changed")
        if found.rows_by_other_rules:
            other = count_text(found.rows_by_other_rules, "evaluation was", "evaluations were")
            hint = " (`helmbench rescore` judges the older run by the rules of now, not by another judge)"
            is_done = found.beside is not None and found.beside.is_rescored
            parts.append(f"{other} judged by other rules or another judge{'' if is_done else hint}")
        yield ", ".join(parts)
    if found.rules_changed:
        yield changed_rules_text(found)
    if found.much_recorded:
        yield f"{found.recorded} of {found.replies} replies are stored ones and cannot differ"


def _collapsed(one: BehaviourChange) -> str:
    change = span(one.baseline_score, one.score)
    return f"{one.code} collapsed: {change} on these very cases, {p_text(one.p_adjusted)}"


def _fallen(one: BehaviourChange) -> str:
    few = ""
    if one.units is not None and one.units < _FEW:
        few = f"; {count_text(one.units, 'perturbation is', 'perturbations are')} too few to say more"
    return f"{one.code} {span(one.baseline_score, one.score)}, {p_text(one.p_adjusted)}{few}"


def comparison_markdown(comparisons: Iterable[RunComparison]) -> str:
    """Return comparisons as Markdown that pastes into a pull request."""
    return "\n".join(line for found in comparisons for line in comparison_section(found, {})) + "\n"


def comparison_section(found: RunComparison, opening: Mapping[str, str]) -> Iterator[str]:
    """Yield a comparison as a section: cases with another verdict, each with its perturbation's start, then figures."""
    title = f"{plain(found.model)} with {plain(baseline_name(found))}"
    beside = found.beside
    if found.verdict is Conclusion.NO_CHANGE and not [*_flips(found), *lost_parts(found)]:
        said = (found.verdict.value, *_remarks(found), *([] if beside is None else differing_lines(beside)))
        yield from (f"{title}: {'; '.join(map(plain, said))}.", "")
        return
    yield from (f"### {title}: {found.verdict.value}", "")
    names = ("case", "severity", "asked")[: 3 if opening else 2]
    for label, cases in _flips(found):
        rows = [
            (one.code, str(one.severity), plain(excerpt(opening.get(one.code, ""), 120)))[: len(names)]
            for one in cases
        ]
        table = pipe_table(names, rows, left=("case", "asked"), most=_FLIPPED_SHOWN)
        yield from (f"**{label.capitalize()}: {len(cases)}**", "", *table, "")
    for label, codes, _ in lost_parts(found):
        advice = "" if found.allows_gone else " (`--helmbench-allow-gone` or a new baseline accepts that)"
        yield from (f"**{label.capitalize()}: {len(codes)}**{advice}: {plain(_some_codes(codes))}", "")
    if found.scopes:
        scopes = [_scope_cells(found, one) for one in found.scopes]
        yield from (*pipe_table(_SCOPE_HEAD, scopes, left=_LEFT), "")
    if beside is not None:
        yield from (*pipe_table(FIGURES_HEAD, [figure_cells(beside)], left=("",)), "")
    differences = [] if beside is None else [changed_text(beside.changed), *differing_lines(beside)]
    yield from (*(f"- {plain(line)}" for line in (*_remarks(found), *differences)), "")
    if moved := [_behaviour_cells(one) for one in found.behaviours if one.changed]:
        yield from (*pipe_table(_BEHAVIOUR_HEAD, moved, left=_LEFT), "")


def _remarks(found: RunComparison) -> Iterator[str]:
    """Yield remarks on a comparison that its figures do not show."""
    for scope in found.scopes:
        verdict, said = found.verdict_of(scope), conclusion_text(found, scope)
        if verdict is not Conclusion.WORSE and said != verdict.value:
            yield f"{scope.code}: {said}".removeprefix(": ")
    yield from (*missing_parts(found), *comparison_notes(found))


def _scope_cells(found: RunComparison, scope: ScopeChange) -> tuple[str, ...]:
    change = scope.change
    verdict, low, high = found.verdict_of(scope).value, scope.low, scope.high
    return (
        scope.code or "run",
        *map(share, (scope.baseline_score, scope.score)),
        shown_change(scope.baseline_score, scope.score),
        "-" if low is None or high is None else f"{points(low)} to {points(high)}",
        p_text(scope.p_two_sided),
        f"{change.changed} of {change.units}: {change.down} down, {change.up} up",
        scope.direction if verdict in scope.direction else f"{scope.direction} ({verdict})",
    )


def _behaviour_cells(one: BehaviourChange) -> tuple[str, ...]:
    scores = map(share, (one.baseline_score, one.score))
    counts = (str(one.pairs), str(one.changed))
    return (
        one.code,
        *scores,
        shown_change(one.baseline_score, one.score),
        *counts,
        p_text(one.p_adjusted),
        one.word,
    )
