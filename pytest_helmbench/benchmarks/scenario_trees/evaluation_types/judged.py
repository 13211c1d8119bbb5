"""`sqe`: a marking model judges the reply by one rubric, or by several of a multi-criteria scenario."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.format.folders import ScenarioFiles
from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import key_line
from pytest_helmbench.benchmarks.scenario_trees.format.rubrics import load_criterion
from pytest_helmbench.benchmarks.scenario_trees.places import bare_name
from pytest_helmbench.benchmarks.scenario_trees.tree import Scenario
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.core.rule import JUDGED_RULE
from pytest_helmbench.files.source import Fault, Reader
from pytest_helmbench.judging.rubric import JudgeRule

__all__ = ["JudgedType", "multi_criteria_rule"]


class JudgedType(EvaluationType):
    """Structured qualitative evaluation: `criteria.md` holds the rubric and the judge's menu."""

    name = JUDGED_RULE
    reads_rubric = True
    is_judged = True

    def check(self, source: RuleSource) -> None:
        """See `EvaluationType.check`."""
        if source.files.criteria is None:
            hint = "add it with 'options' and 'pass_values' in its frontmatter and the rubric below"
            fault = Fault(None, "the rubric of sqe is missing", hint)
            source.reader.findings.add(source.files.prompt.parent / "criteria.md", fault)

    def rule(self, source: RuleSource) -> JudgeRule | None:
        """See `EvaluationType.rule`."""
        if source.files.criteria is None:
            return None
        criterion = load_criterion(source.reader, source.files.criteria, "")
        return JudgeRule((criterion,), source.by_severity) if criterion is not None else None

    def warnings(self, scenario: Scenario) -> Iterator[Problem]:
        """Yield rubrics whose every option passes."""
        criteria = scenario.rule.criteria if isinstance(scenario.rule, JudgeRule) else ()
        for criterion in criteria:
            if set(criterion.options) <= set(criterion.pass_values):
                path = scenario.path.with_name(f"{criterion.name or 'criteria'}.md")
                if not path.is_file():
                    path = scenario.path
                message = "constant answer: every option of the rubric passes"
                hint = "leave out of pass_values what is wrong"
                yield Problem(path, key_line(path, "pass_values"), message, hint)


def multi_criteria_rule(reader: Reader, files: ScenarioFiles) -> JudgeRule | None:
    """Return the rule of a scenario whose prompt is `MCSQE.md`: every rubric `CR1.md`, … is judged by itself.

    Args:
        reader: Reads the rubrics, and files what is wrong.
        files: Of the scenario.
    """
    if not files.rubrics:
        hint = "add CR1.md, CR2.md, … with 'options' and 'pass_values' in their frontmatter"
        fault = Fault(None, "the multi-criteria scenario has no rubric", hint)
        reader.findings.add(files.prompt.parent / "CR1.md", fault)
        return None
    criteria = [load_criterion(reader, path, bare_name(path.stem)) for path in files.rubrics]
    healthy = tuple(criterion for criterion in criteria if criterion is not None)
    return JudgeRule(healthy) if len(healthy) == len(criteria) else None
