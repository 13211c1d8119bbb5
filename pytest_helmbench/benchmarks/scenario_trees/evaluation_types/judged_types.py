"""Evaluation types that a marking model judges: by one rubric file, by several, or by words in frontmatter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.format.folders import ScenarioFiles
from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import linted_headings, split_file
from pytest_helmbench.benchmarks.scenario_trees.format.markdown_text import outline
from pytest_helmbench.benchmarks.scenario_trees.format.side_files import CRITERIA
from pytest_helmbench.benchmarks.scenario_trees.places import bare_name
from pytest_helmbench.core.case import JUDGED_RULE
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault, Reader, listed
from pytest_helmbench.files.strict_json import a_mapping, a_text, numbers, texts
from pytest_helmbench.files.validation import validate
from pytest_helmbench.files.yaml_text import Document
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

_PASS, _FAIL = "PASS", "FAIL"


def _check_criteria(source: RuleSource) -> None:
    if source.files.criteria is None:
        hint = "add it with 'options' and 'pass_values' in its frontmatter and the rubric below"
        fault = Fault(None, "the rubric of sqe is missing", hint)
        source.reader.findings.add(source.files.prompt.parent / "criteria.md", fault)


def _by_criteria(source: RuleSource) -> JudgeRule | None:
    if source.files.criteria is None:
        return None
    criterion = load_criterion(source.reader, source.files.criteria, "")
    return JudgeRule((criterion,), source.by_severity) if criterion is not None else None


def multi_criteria_rule(reader: Reader, files: ScenarioFiles) -> JudgeRule | None:
    """Return the rule of a scenario whose prompt is `MCSQE.md`: every rubric `CR1.md`, … is judged by itself."""
    if not files.rubrics:
        hint = "add CR1.md, CR2.md, … with 'options' and 'pass_values' in their frontmatter"
        fault = Fault(None, "the multi-criteria scenario has no rubric", hint)
        reader.findings.add(files.prompt.parent / "CR1.md", fault)
        return None
    criteria = [load_criterion(reader, path, bare_name(path.stem)) for path in files.rubrics]
    healthy = tuple(criterion for criterion in criteria if criterion is not None)
    return JudgeRule(healthy) if len(healthy) == len(criteria) else None


@dataclass(frozen=True, slots=True)
class CaseRubric(JudgeRule):
    """One criterion, with what more holds for single perturbations.

    Args:
        cases: By the code of the perturbation.
    """

    type: ClassVar[str] = "rubric"

    cases: Mapping[str, str] = field(default_factory=dict)

    def of_case(self, part: str) -> JudgeRule:
        (criterion,) = self.criteria
        more = self.cases.get(part)
        text = "\n\n".join(text for text in (criterion.rubric, more) if text)
        return JudgeRule((replace(criterion, rubric=text),), self.by_severity)

    def data(self) -> JsonObject:
        return {**JudgeRule.data(self), "cases": dict(self.cases)}


def _check_cases(source: RuleSource) -> None:
    """File words about perturbations that the scenario does not have, or twice about one."""
    known = source.perturbations
    seen: set[str] = set()
    for code in a_mapping(source.values.get("cases")):
        if known is not None and code.upper() not in {name.upper() for name in known}:
            message = f"rubric: 'cases' names {code!r}, which is not a perturbation of the scenario"
            source.fault(message, listed(code, known, "its perturbations"), "cases", code)
        if code.upper() in seen:
            source.fault(f"rubric: 'cases' names {code!r} twice", "keep one of them", "cases", code)
        seen.add(code.upper())


def _by_words(source: RuleSource) -> CaseRubric:
    cases = {code.upper(): str(text) for code, text in a_mapping(source.values.get("cases")).items()}
    criterion = Criterion("", (source.text("rubric") or "").strip(), (_PASS, _FAIL), (_PASS,))
    return CaseRubric((criterion,), source.by_severity, cases=cases)


SQE = EvaluationType(JUDGED_RULE, {}, _by_criteria, _check_criteria, is_judged=True, reads_rubric=True)
"""Structured qualitative evaluation: `criteria.md` holds the rubric and the judge's menu."""
RUBRIC = EvaluationType(
    CaseRubric.type,
    {
        "rubric": {"description": "say in words what passes", "type": "string", "minLength": 1},
        "cases": {
            "description": "write codes of perturbations, and in words what passes there",
            "type": "object",
            "additionalProperties": {
                "description": "write in words what passes there",
                "type": "string",
                "minLength": 1,
            },
            "minProperties": 1,
        },
    },
    _by_words,
    _check_cases,
    needed=("rubric",),
    is_judged=True,
)
"""`rubric` says what passes, `cases` what passes where a perturbation stands; the judge says PASS or FAIL."""


def load_criterion(reader: Reader, path: Path, name: str) -> Criterion | None:
    """Read a rubric, filing what is wrong with it.

    Args:
        path: `criteria.md` or `CR1.md`.
        name: `CR1`, …; empty for the only criterion of a scenario.
    """
    text = reader.text(path)
    if text is None:
        return None
    split = split_file(text)
    faults = [*split.faults]
    body = outline(text).part(split.body_start or 0, len(text))
    if split.document is None and not faults:
        hint = "start the file with '---', 'options:', 'pass_values:' and '---'"
        faults.append(Fault(1, "the rubric has no frontmatter", hint))
    elif split.document is not None and not faults:
        document = split.document if split.document.data is not None else Document({}, {(): 1})
        faults.extend(split.document.faults or validate(document, CRITERIA))
        faults.extend(() if faults else _menu_faults(document))
    if split.body_start is not None:
        faults.extend(linted_headings(body, only_first_lines=True))
        if not body.trimmed():
            faults.append(
                Fault(None, "the rubric is empty", "write below the frontmatter what the judge looks for")
            )
    reader.findings.add(path, *faults)
    if any(not fault.usable for fault in faults) or split.document is None:
        return None
    data = split.document.mapping()
    return Criterion(
        name=name,
        rubric=body.trimmed(),
        options=texts(data["options"]),
        pass_values=texts(data["pass_values"]),
        response_field=a_text(data.get("response_field")) or "judgment",
        response_type="multi" if data.get("response_type") == "multi" else "single",
        credit=numbers(data.get("credit")),
    )


def _menu_faults(document: Document) -> Iterator[Fault]:
    data = document.mapping()
    options = texts(data["options"])
    for index, value in enumerate(texts(data["pass_values"])):
        if value not in options:
            message = f"pass_values has {value!r}, which is not an option"
            yield Fault(document.line("pass_values", index), message, listed(value, options, "options"))
    for option in a_mapping(data.get("credit")):
        if option not in options:
            message = f"credit has {option!r}, which is not an option"
            yield Fault(document.line("credit", option), message, listed(option, options, "options"))
