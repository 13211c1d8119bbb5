"""The text of one failed, erroneous or skipped case. No prompt or reply text unless asked for."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Protocol

from pytest_helmbench.core.case import JUDGED_RULE, justified_by
from pytest_helmbench.core.outcome import Evaluation, Outcome
from pytest_helmbench.core.scrub import HIDDEN_TEXT, REDACTED, excerpt, full_observed, quoted

_REASONS = {
    "invalid_json": "the reply is not valid JSON",
    "schema_violation": "the reply breaks the schema",
    "refusal": "the model refused",
    "truncated": "the reply was cut at the token limit",
    "empty": "the reply is empty",
    "no_answer": "the reply states no answer",
    "several": "the reply states several answers",
    "echo": "the reply only repeats what it was given",
}


_HIDDEN = "hidden by the pack (--helmbench-show-hidden)"
_NOT_SHOWN = "text of the reply, not shown in CI (--helmbench-with-text=failures)"
_NOT_ITS_REASON = ("reply", "output")
"""Excerpts of an outcome that do not say why it is wrong."""
_SHORT = 160
_HEADING = re.compile(r"^#.*$", re.MULTILINE)
_WORD = re.compile(r"\w+(?:[.,]\d+)*|[^\w\s]")


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
        wrong = [replace(one, observed=full_observed(one)) for one in wrong]
    headline = "; ".join(_short(evaluation) for evaluation in wrong)
    lines = [f"{quoted(headline)}", f"  case: {job.name}"]
    for evaluation in wrong:
        lines += _details(evaluation)
    if with_text:
        lines += [f"  {name}: {text}" for name, text in quoted_texts(outcome)]
    return "\n".join(lines)


def brief_text(outcome: Outcome, asked: str, *, with_text: bool) -> str:
    """Return what a terminal shows of a case that was judged wrong, in three lines: message, expected, observed.

    Args:
        asked: The message; empty where there is none.
        with_text: The message and running text of the reply are shown.
    """
    wrong = [evaluation for evaluation in outcome.evaluations if not evaluation.passed]
    first = wrong[0]
    observed = full_observed(first) if with_text else first.observed
    if observed == HIDDEN_TEXT:
        observed = _NOT_SHOWN
    elif first.reason not in _REASONS:
        observed = _marked(observed, first.expected)
    elif not observed.startswith("("):
        observed = f"{_REASONS[first.reason]}: {observed}"
    said = first.justification if first.rule == JUDGED_RULE else None
    if outcome.excerpt_of not in _NOT_ITS_REASON:
        said = outcome.excerpt
    if with_text and said and said != REDACTED:
        observed += f": {_in_short(said)}"
    more = f" (and {len(wrong) - 1} more criteria)" if len(wrong) > 1 else ""
    criterion = f"{first.criterion}: " if first.criterion else ""
    lines = [("expected", f"{criterion}{_expected(first)}"), ("observed", observed + more)]
    if with_text and asked:
        lines.insert(0, ("asked", _in_short(_HEADING.sub("", asked))))
    return "\n".join(f"  {name + ':':<9} {quoted(' '.join(text.split()))}" for name, text in lines)


def _in_short(text: str) -> str:
    return excerpt(" ".join(text[: 8 * _SHORT].split()), _SHORT)


def _marked(observed: str, expected: str) -> str:
    """Return what was observed with `»…«` around the words that are wrong; as it is where all or none are."""
    unwanted = expected.startswith("not: ")
    known = {found.casefold() for found in _WORD.findall(expected)}

    def is_wrong(word: str) -> bool:
        return any(map(str.isalnum, word)) and (word.casefold() in known) == unwanted

    words = [word for word in _WORD.findall(observed) if any(map(str.isalnum, word))]
    if all(map(is_wrong, words)):
        return observed
    return _WORD.sub(lambda found: f"»{found[0]}«" if is_wrong(found[0]) else found[0], observed)


def _expected(evaluation: Evaluation) -> str:
    return evaluation.expected.replace(REDACTED, _HIDDEN)


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
    return [*seen, *judges, *([(outcome.excerpt_of, quoted(outcome.excerpt))] if outcome.excerpt else [])]


def error_text(outcome: Outcome) -> str:
    """Return what a case says that was never judged: whose fault it was."""
    message = quoted(outcome.message or outcome.reason or "error")
    return f"{message}\n  not a model failure: never judged"


def _short(evaluation: Evaluation) -> str:
    if evaluation.reason in _REASONS:
        return _REASONS[evaluation.reason]
    criterion = f"{evaluation.criterion}: " if evaluation.criterion else ""
    observed = "" if evaluation.observed == HIDDEN_TEXT else f", observed {evaluation.observed}"
    return f"{criterion}expected {_expected(evaluation)}{observed}"


def _details(evaluation: Evaluation) -> list[str]:
    rule = f"{evaluation.rule} {evaluation.criterion}".strip()
    lines = [f"  rule: {rule} ({evaluation.rule_hash})"]
    if evaluation.reason is not None:
        lines.append(f"  reason: {evaluation.reason}")
    return [
        *lines,
        f"  expected: {quoted(_expected(evaluation))}",
        f"  observed: {quoted(evaluation.observed)}",
    ]
