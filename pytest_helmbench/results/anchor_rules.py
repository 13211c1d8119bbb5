"""The anchors of a benchmark with the rubrics that they are judged by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.core.anchor import Anchor
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.files.anchors_file import anchors_path, load_anchors
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

__all__ = ["AnchoredRule", "HeldTo", "anchored_rules", "reply_of"]

_WHICH = "'scenario: P1-B1-S1' (a row of a pack: its id) says whose, 'rubric' gives words of its own"


@dataclass(frozen=True, slots=True)
class AnchoredRule:
    """An anchor and what a judge is asked about it."""

    anchor: Anchor
    rule: JudgeRule


@dataclass(frozen=True, slots=True)
class HeldTo:
    """What the judges of a benchmark are held to.

    Args:
        path: Of the file.
        rules: In file order.
        allowed: How many of them a judge may get wrong.
    """

    path: Path
    rules: tuple[AnchoredRule, ...]
    allowed: int

    @property
    def calls(self) -> int:
        """Calls to each judge."""
        return sum(len(one.rule.criteria) for one in self.rules)

    @property
    def characters(self) -> int:
        """About how much one judge is sent, its wording apart."""
        return sum(
            len(one.anchor.prompt) + len(one.anchor.reply) + len(criterion.rubric)
            for one in self.rules
            for criterion in one.rule.criteria
        )


def anchored_rules(loaded: Loaded) -> HeldTo | None:
    """Return the anchors of a benchmark; None where it has none.

    Raises:
        UnreadableBenchmarkError: The file is broken, or an anchor names no rubric.
    """
    path = anchors_path(loaded.root)
    if path is None:
        return None
    anchors = load_anchors(path)
    jobs = {loaded.scenario_of(job.code): job for job in _jobs(loaded)}
    rules: list[AnchoredRule] = []
    problems: list[Problem] = []
    for anchor in anchors.entries:
        found = _rule(anchor, jobs)
        if isinstance(found, JudgeRule):
            rules.append(AnchoredRule(anchor, found))
        else:
            problems.append(Problem(path, anchor.line, f"{anchor.name}: {found}", _WHICH))
    if problems:
        raise UnreadableBenchmarkError(tuple(problems))
    return HeldTo(path, tuple(rules), anchors.allowed)


def reply_of(anchor: Anchor) -> Reply:
    """Return the reply of an anchor, as if a model had given it."""
    return Reply(anchor.reply, None, "stop", Usage(), 0.0, None, f"anchor {anchor.name}")


def _jobs(loaded: Loaded) -> Iterator[CaseJob]:
    for file in loaded.files:
        yield from loaded.jobs(file, "", 1)


def _rule(anchor: Anchor, jobs: dict[str, CaseJob]) -> JudgeRule | str:
    """Return what an anchor is judged by, or what is wrong with it."""
    if anchor.rubric:
        return JudgeRule((Criterion("", anchor.rubric, ("PASS", "FAIL"), ("PASS",)),))
    name = anchor.scenario
    if not name:
        judged = [scenario for scenario, job in jobs.items() if job.judge_calls]
        if len(judged) != 1:
            return f"whose rubric is meant? {len(judged) or 'no'} scenarios here are judged by a model"
        name = judged[0]
    if name not in jobs:
        return f"there is no scenario {name!r}"
    try:
        rule = jobs[name].marked_by(reply_of(anchor))
    except HelmbenchError as error:
        return f"{name} cannot be read: {str(error).splitlines()[0]}"
    if rule is None:
        return f"no model judges this reply to {name}: rules do"
    return _narrowed(rule, anchor.criterion)


def _narrowed(rule: JudgeRule, criterion: str) -> JudgeRule | str:
    """Return a rule with one of its criteria; the polarity is that of the words, whatever the severity."""
    chosen: Iterable[Criterion] = [one for one in rule.criteria if one.name == criterion or not criterion]
    if not chosen:
        return (
            f"there is no criterion {criterion!r} among {', '.join(one.name or '-' for one in rule.criteria)}"
        )
    return replace(rule, criteria=tuple(chosen), by_severity=False)
