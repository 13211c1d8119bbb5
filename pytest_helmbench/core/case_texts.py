"""The text of one failed, erroneous or skipped case. No prompt or reply text unless asked for."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Protocol

from pytest_helmbench.core.case import JUDGED_RULE, justified_by
from pytest_helmbench.core.outcome import Evaluation, Outcome, wrong_turn
from pytest_helmbench.core.scrub import HIDDEN_TEXT, OBSERVED_LIMIT, REDACTED, excerpt, full_observed, quoted

REASON_TEXTS = {
    "invalid_json": "the reply is not valid JSON",
    "schema_violation": "the reply breaks the schema",
    "refusal": "the model refused",
    "truncated": "the reply was cut at the token limit",
    "empty": "the reply is empty",
    "too_many_rounds": "the model called tools without end",
    "no_answer": "the reply states no answer",
    "several": "the reply states several answers",
    "echo": "the reply only repeats what it was given",
}

MARKS = ("✗", "✓")
"""Begin the line of one of several rules in `observed`: wrong, right."""
_LINES_LIMIT = 4_000
_EARLY = 40
"""Characters that every cut of an observed text leaves at its beginning."""
_BEFORE = 24
_THIS_MACHINE = re.compile(r"\w+://(?:[\w.-]+\.)?(?:localhost|127\.[\d.]+|\[::1\])(?![\w.-])")
HIDDEN = "hidden (--helmbench-show-hidden)"


class Named(Protocol):
    """Anything with a name: a job."""

    @property
    def name(self) -> str:
        """Code and model."""


def failure_text(job: Named, outcome: Outcome, *, with_text: bool) -> str:
    """Return what a judged-wrong case says: code and model, then per criterion rule, expected, observed.

    Args:
        with_text: Also the start of the reply, what was observed in running text, and the judge's words.
    """
    wrong = [evaluation for evaluation in outcome.evaluations if not evaluation.passed]
    if with_text:
        wrong = [replace(one, observed=full_observed(one), observed_text=None) for one in wrong]
    headline = "; ".join(short_text(evaluation) for evaluation in wrong)
    lines = [f"{quoted(headline)}", f"  case: {job.name}"]
    for evaluation in wrong:
        lines += _details(evaluation)
    if with_text:
        lines += [
            f"  {name}: {text}" for name, text in quoted_texts(replace(outcome, evaluations=tuple(wrong)))
        ]
    return "\n".join(lines)


def expected_text(evaluation: Evaluation) -> str:
    """Return what was expected, or which option shows it."""
    return evaluation.expected.replace(REDACTED, HIDDEN)


def quoted_texts(outcome: Outcome) -> list[tuple[str, str]]:
    """Return what a wrong case's reply, its judges and its pack say, by name: for terminals, not for CI logs."""
    seen = [
        (f"observed {evaluation.criterion}".strip(), quoted(evaluation.observed_text))
        for evaluation in outcome.evaluations
        if evaluation.observed_text
        and not evaluation.passed
        and evaluation.observed_text not in outcome.excerpt
    ]
    judges = [
        (f"{justified_by(evaluation.rule)} {evaluation.criterion}".strip(), quoted(evaluation.justification))
        for evaluation in outcome.evaluations
        if evaluation.justification and not evaluation.passed and evaluation.rule == JUDGED_RULE
    ]
    turn = wrong_turn(outcome.evaluations)
    whose = outcome.excerpt_of if turn is None else f"{outcome.excerpt_of} turn {turn}"
    return [*seen, *judges, *([(whose, quoted(outcome.excerpt))] if outcome.excerpt else [])]


def unreachable_hint(base_url: str) -> str:
    """Return what to do where no connection to a server is made."""
    if _THIS_MACHINE.match(base_url):
        return "start the server, or check the port in the base URL"
    return "check the base URL and the network"


def error_text(outcome: Outcome) -> str:
    """Return what a case says that was never judged: whose fault it was."""
    message = quoted(outcome.message or outcome.reason or "error")
    return f"{message}\n  not a model failure: never judged"


def short_text(evaluation: Evaluation) -> str:
    """Return in one line what is wrong by one rule; its turn or criterion goes before."""
    criterion = f"{evaluation.criterion}: " if evaluation.criterion else ""
    if evaluation.reason in REASON_TEXTS:
        return f"{criterion}{REASON_TEXTS[evaluation.reason]}"
    if has_lines(evaluation.observed):
        return f"{criterion}{'; '.join(wrong_lines(evaluation.observed))}"
    observed = "" if evaluation.observed == HIDDEN_TEXT else f", observed {evaluation.observed}"
    return f"{criterion}expected {expected_text(evaluation)}{observed}"


def _details(evaluation: Evaluation) -> list[str]:
    rule = f"{evaluation.rule} {evaluation.criterion}".strip()
    lines = [f"  rule: {rule} ({evaluation.rule_hash})"]
    if evaluation.reason is not None:
        lines.append(f"  reason: {evaluation.reason}")
    return [
        *lines,
        f"  expected: {quoted(expected_text(evaluation))}",
        f"  observed: {under(quoted(evaluation.observed), 12)}",
    ]


def has_lines(observed: str) -> bool:
    """Return whether what was observed has a line for each of several rules."""
    return observed.startswith(MARKS)


def wrong_lines(observed: str) -> list[str]:
    """Return the lines of the rules that are wrong; all of them, where a reply had to break one."""
    lines = observed.splitlines()
    return [line for line in lines if line.startswith(MARKS[0])] or lines


def observed_excerpt(observed: str) -> str:
    """Return what was observed, cut; lines of several rules are cut one by one already."""
    return excerpt(observed, _LINES_LIMIT if has_lines(observed) else OBSERVED_LIMIT)


def observed_from(text: str, place: int | None) -> str:
    """Return an observed text from a few words before a place in it: the cuts of all reports then show the place.

    Args:
        place: Of what decides; None for all of the text.
    """
    if place is None or place <= _EARLY or len(text) <= 2 * _EARLY:
        return text
    begin = place - _BEFORE
    words = text[begin:place].partition(" ")[2]
    return f"…{text[place - len(words) if words else begin : place + OBSERVED_LIMIT + 1]}"


def under(observed: str, indent: int) -> str:
    """Return what was observed with every line but the first moved to the right."""
    return observed.replace("\n", "\n" + " " * indent)


def ruled_out(expected: str) -> tuple[str, bool]:
    """Return the words of what was expected, and whether a reply must not have them."""
    plain = expected.removeprefix("not: ")
    words = plain.removeprefix("contains none of ")
    return words, (plain != expected) != (words != plain)
