"""Cautions of a run: sentences to read before its numbers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction

from pytest_helmbench.core.case_texts import unreachable_hint
from pytest_helmbench.core.outcome import Beside, Parse, Verdict
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.reports.run_facts import unjudged_rows
from pytest_helmbench.reports.score_lines import score_doubts, score_notes
from pytest_helmbench.reports.tables import count_text, reasons_text, share
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.results.run_report import RunReport

_MANY_FORM_FAULTS = 0.05
_VERSION = re.compile(r"[-@_.](?:v?[\d.@_-]+|latest)")
_ENDINGS = {
    "running": "the run was still going when this was written",
    "interrupted": "the run was interrupted",
    "partial": "not every planned case was judged",
    "waiting": "calls were still in batches when this was written",
}
_NEXT = {
    "no_model": "give the key of the model, or name its server",
    "bad_key": "check the key of the model",
    "no_credit": "add credit with the provider, or choose another model",
    "unknown_model": "check the name of the model",
    "no_judge": "name a judge with --helmbench-marking-model",
    "no_verifier": "build the verifier with --helmbench-build=offline, or name one with --helmbench-verifier=URL",
    "budget": "raise the budget",
    "in_batch": "wait for the batches",
}
"""The remedy for each of the most common reasons, before the run is resumed."""


def stand_in_text(answers: int, judge: str) -> str:
    """Return that the answers of a floor model counted as judgements."""
    text = count_text(answers, f"answer of {judge} stands", f"answers of {judge} stand")
    return f"{text} in for a judge: not a judgement"


def cautions(report: RunReport) -> tuple[str, ...]:
    """Return all cautions of a run, one sentence each: `doubts` first."""
    return (*doubts(report), *remarks(report))


def doubts(report: RunReport) -> tuple[str, ...]:
    """Return the cautions that change the meaning of the numbers; `constant_doubt` comes first."""
    return tuple(filter(None, (constant_doubt(report), *_doubts(report))))


def flagging(report: RunReport) -> Sequence[tuple[str, Fraction]]:
    """Return names and scores of the answers that flag all or nothing, the better one first; of a pack none."""
    return () if report.is_flat else report.constants.flagging


def constant_doubt(report: RunReport) -> str:
    """Return that a constant answer does as well as the model; empty where the model is shown to be better."""
    found, total = flagging(report), None if report.score is None else report.score.total
    if not found or total is None or total.score is None:
        return ""
    name, best = found[0]
    if total.score <= best:
        return f"No better than {name}, which scores {share(best)}"
    if total.interval is not None and total.interval.low <= best:
        return f"Not shown to be better than {name}, which scores {share(best)}"
    return ""


def unjudged_text(report: RunReport) -> tuple[str, str]:
    """Return why a run has no score, and what to do next."""
    if report.score is None:
        return "No score: its cases were selected by earlier outcomes", "Run them without --lf or --sw."
    found = unjudged_rows(report)
    if not found:
        return "No score: no case that counts was judged", ""
    reasons: defaultdict[str, int] = defaultdict(int)
    for outcome, reason, count in found:
        reasons[reason or outcome] += int(count)
    first = next((_NEXT[reason] for _, reason, _ in found if reason in _NEXT), "")
    said = _broken_connection(report) if "unreachable" in reasons else ""
    if said and not first:
        first = unreachable_hint(report.detail.base_url or "")
    resumed = "the same command with --helmbench-resume asks these cases again"
    hint = f"{first}; then {resumed}" if first else resumed
    why = ": ".join(filter(None, (reasons_text(reasons), said)))
    return f"Nothing was judged: {why}", f"{hint[0].upper()}{hint[1:]}."


def _broken_connection(report: RunReport) -> str:
    """Return why most calls reached no server, which is not a word of one; empty where they did."""
    prefix = "unreachable: "
    said = Counter(
        call.error.removeprefix(prefix)
        for calls in report.calls.values()
        for call in calls
        if call.error and call.error.startswith(prefix)
    )
    return scrub(said.most_common(1)[0][0]) if said else ""


def _doubts(report: RunReport) -> Iterator[str]:
    run = report.detail
    yield from cut_sentences(report.counts)
    if run.status in _ENDINGS:
        yield _ENDINGS[run.status]
    if report.judgements and report.judge.startswith("baseline/"):
        yield stand_in_text(report.judgements, report.judge)
    elif report.judgements and not {run.model, run.settings.get("variant_of")}.isdisjoint(report.judges):
        yield f"{run.model} judged its own replies"
    if report.counts.beside[Beside.OWN_BOX]:
        yield from mark_sentences(report.counts)
    if report.words is not None:
        yield from report.words.cautions
    if report.score is None:
        yield "the cases were selected by earlier outcomes (--lf, --sw): not a fair sample, so there is no score"
    else:
        yield from score_doubts(report.score)
    yield from unstated_sentence(report.counts)


def remarks(report: RunReport) -> Iterator[str]:
    """Yield the cautions that do not change the meaning of the numbers."""
    run = report.detail
    if run.rescored_from is not None:
        yield f"judged anew from the stored replies of run {run.rescored_from}; nothing was asked"
    if report.score is not None:
        total = report.score.total
        if total.interval is not None and total.few_clusters:
            clusters = count_text(total.clusters, total.cluster)
            yield f"the score rests on only {clusters}, so its interval is wide"
        yield from score_notes(report.score)
    yield from answer_doubts(str(run.settings.get("variant_of") or run.model), report.counts)
    yield from routine_notes(report.counts)
    yield from box_sentences(report.counts)
    if report.counts.unknown_costs:
        yield f"the cost of {count_text(report.counts.unknown_costs, 'call')} is unknown"


def box_sentences(counts: RunCounts) -> Iterator[str]:
    """Yield the room that living boxes were given, and whose memory was not enough; nothing without any."""
    if counts.boxes:
        _, engines, cpus, memory, _ = ({*values} for values in zip(*counts.boxes, strict=True))
        given = (
            "+".join(sorted(engines)),
            f"{_span(cpus)} {'cpu' if cpus == {1} else 'cpus'}",
            f"{_span(memory)} MB",
        )
        killed = Counter[str]()
        for (part, *_, is_killed), boxes in counts.boxes.items():
            killed[part] += boxes if is_killed else 0
        lost = [f"{count_text(boxes, part)} out of memory" for part, boxes in killed.items() if boxes]
        yield scrub(f"boxes: {'; '.join((', '.join(filter(None, given)), *lost))}")


def _span(numbers: Collection[float]) -> str:
    return " to ".join(f"{number:,}".removesuffix(".0") for number in sorted({min(numbers), max(numbers)}))


def routine_notes(counts: RunCounts) -> list[str]:
    """Return routine notes, a few words each: recovered JSON, estimated tokens."""
    recovered = counts.parses[Parse.RECOVERED]
    found = (
        (recovered, f"JSON recovered {count_text(recovered, 'time')}"),
        (counts.inner_thoughts, f"{count_text(counts.inner_thoughts, 'thought')} taken off before judging"),
        (
            counts.unstated <= _MANY_FORM_FAULTS * counts.judged and counts.unstated,
            f"{count_text(counts.unstated, 'reply', 'replies')} without a stated answer, counted as wrong",
        ),
        (counts.estimated, f"tokens and cost of {count_text(counts.estimated, 'call')} estimated"),
        (
            counts.upper_bounds,
            f"tokens and cost of {count_text(counts.upper_bounds, 'call')} are upper bounds:"
            " the provider's counts contradict each other",
        ),
        (
            counts.unknown_finishes.total(),
            f"replies that ended for unknown reasons, judged as whole: {reasons_text(counts.unknown_finishes)}",
        ),
    )
    return [text for count, text in found if count]


def unstated_sentence(counts: RunCounts, *, least: float = _MANY_FORM_FAULTS) -> Iterator[str]:
    """Yield how many replies state no answer, and the options that help; nothing up to a share of `least`."""
    if counts.unstated > least * counts.judged:
        yield (
            f"{counts.unstated} of {count_text(counts.judged, 'reply', 'replies')} state no answer: counted as wrong;"
            " --helmbench-marking-model=ID has them read, --helmbench-answer-form=json asks more firmly"
        )


def answer_doubts(model: str, counts: RunCounts) -> Iterator[str]:
    """Yield doubts about the replies of a model: answers of other models, faults of form, verdicts in one process."""
    others: dict[str | None, dict[str, int]] = {}
    for (judge, answered), count in sorted(counts.answered_by.items(), key=str):
        if count and not _is_same_model(judge or model, answered):
            others.setdefault(judge, {})[scrub(answered)] = count
    for judge, answers in others.items():
        asked = "the one that was asked" if judge is None else f"the judge {judge}"
        yield f"other models answered than {asked}: {reasons_text(answers)}"
    readable = counts.judged - counts.form_faults
    if counts.judged and counts.form_faults > _MANY_FORM_FAULTS * counts.judged:
        over = f", {share(counts.verdicts[Verdict.PASSED] / readable)} of the others pass" if readable else ""
        yield f"{counts.form_faults} of {counts.judged} failed for the form of the reply{over}"
    yield from mark_sentences(counts)


def mark_sentences(counts: RunCounts) -> Iterator[str]:
    """Yield how many verdicts what was judged could have forged."""
    marks = [f"{counts.beside[mark]} {mark}" for mark in Beside if counts.beside[mark]]
    if marks:
        first, _, rest = ", ".join(marks).partition(" ")
        yield f"{first} of {count_text(counts.judged, 'verdict')} {rest} (docs/trust.md)"


def cut_sentences(counts: RunCounts) -> Iterator[str]:
    """Yield that a model, or its judge, has not read its prompts to the end."""
    for (judge, what), prompts in counts.cut.items():
        if what == "prompts" and prompts:
            yield (
                f"its server has cut {count_text(prompts, 'prompt')}{f' of the judge {judge}' if judge else ''}:"
                f" {counts.cut[judge, 'tokens']:,} tokens counted in {counts.cut[judge, 'characters']:,} characters;"
                " raise the server's context length, or shorten the prompts"
            )


def _is_same_model(asked: str, answered: str) -> bool:
    """Return whether two names are the same model: vendor, date and tag may differ."""
    wanted, found = (name.lower().rpartition("/")[2].partition(":")[0] for name in (asked, answered))
    return wanted == found or any(
        longer.startswith(shorter) and _VERSION.fullmatch(longer[len(shorter) :])
        for shorter, longer in ((wanted, found), (found, wanted))
        if shorter
    )
