"""Several judges over the same replies: as a sentence, as lines of a case, as a Markdown table, as JSON types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from pytest_helmbench.reports.markup import folded, pipe_table, plain
from pytest_helmbench.reports.tables import count_text, share
from pytest_helmbench.results.run_report import PanelReport
from pytest_helmbench.store.read.judgements import JudgedCriterion

_WORDS = {True: "pass", False: "fail"}


def panel_sentence(found: PanelReport) -> str:
    """Return how far the judges agree, and whose verdict stands where they do not."""
    both, first, second = found.agreement, *found.judges
    text = (
        f"judges {first} and {second} agree on {share(both.share)} of {both.verdicts} verdicts"
        f" ({100 * both.low:.1f} – {share(both.high)}), {_kappa(found)}"
    )
    if not both.disagreements:
        return text
    count = count_text(both.disagreements, "disagreement")
    text += f"; {count}: {both.first_only} passed by {first} alone, {both.second_only} by {second} alone"
    return f"{text}; the verdict of {first} stands"


def _kappa(found: PanelReport) -> str:
    both = found.agreement
    if both.kappa is None:
        return "kappa undefined (one verdict alone)"
    span = ""
    if both.kappa_low is not None and both.kappa_high is not None:
        span = f" ({both.kappa_low:.2f} to {both.kappa_high:.2f})"
    return f"kappa {both.kappa:.2f}{span}"


def disputed_cells(row: JudgedCriterion, judges: int) -> tuple[str, ...]:
    """Return case, repetition, criterion and the verdict of each judge; the one of record has a star."""
    said = [f"{_WORDS[one.passed]}{' *' if one.of_record else ''}" for one in row.said]
    return row.code, str(row.repetition), row.criterion, *said, *("",) * (judges - len(said))


def judgement_lines(rows: Sequence[JudgedCriterion]) -> list[str]:
    """Return what each judge said about a case."""
    lines = ["", "judges"] if rows else []
    for row in rows:
        for one in row.said:
            record = ", counts" if one.of_record else ""
            name = f"{row.criterion} {one.judge}".strip()
            lines.append(f"  {name}: {_WORDS[one.passed]} ({one.observed}){record}")
            if one.justification:
                lines.append(f"    {' '.join(one.justification.split())}")
    return lines


def panel_table(found: PanelReport | None, most: int) -> Iterator[str]:
    """Yield how far the judges agree, and what they disagree on; nothing for one judge."""
    if found is None:
        return
    yield "#### Judges"
    yield ""
    yield plain(panel_sentence(found))
    yield ""
    if found.disputed:
        head = ("case", "repetition", "criterion", *map(plain, found.judges))
        rows = [tuple(map(plain, disputed_cells(row, len(found.judges)))) for row in found.disputed]
        lines = pipe_table(head, rows, left=head, most=most)
        yield from folded("What the judges disagree on", [*lines, "", "The verdict with a star counts."])


def panel_record(found: PanelReport | None) -> dict[str, object] | None:
    """Return it in JSON types; the judges' words are left out, since they quote replies."""
    if found is None:
        return None
    return {
        "judges": list(found.judges),
        **asdict(found.agreement),
        "verdicts": found.agreement.verdicts,
        "disputed": [
            {
                "code": row.code,
                "repetition": row.repetition,
                "criterion": row.criterion,
                "passed": {one.judge: one.passed for one in row.said},
                "of_record": next((one.judge for one in row.said if one.of_record), None),
            }
            for row in found.disputed
        ],
    }
