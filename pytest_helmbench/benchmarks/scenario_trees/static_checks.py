"""What is odd about a tree that loads: answers that need no thought, expectations out of reach, lopsided points."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import FieldRule
from pytest_helmbench.benchmarks.scenario_trees.format.response_schema import Menu, field_menu
from pytest_helmbench.benchmarks.scenario_trees.tree import Component, Scenario, ScenarioTree
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.judging.rubric import JudgeRule

__all__ = ["static_warnings"]

_LISTED_WHOLE = 8  # of so many options every list is looked at, of more only those that tell
_LOPSIDED = 0.9
_MOSTLY_NEUTRAL = 0.5


@dataclass(frozen=True, slots=True)
class _Demand:
    """What one scenario asks of the field that its rule reads.

    Args:
        values: All values that its schema allows; None where it leaves them open.
        signs: For the scored cases: whether the verdict is inverted.
    """

    scenario: Scenario
    rule: FieldRule
    values: tuple[Any, ...] | None
    signs: tuple[bool, ...]

    def met_by(self, value: Any) -> bool:
        """Return whether a value is allowed and right in every scored case."""
        if self.values is not None and value not in self.values:
            return False
        right = self.rule.passes(value)
        return all(right is not inverted for inverted in self.signs)


def static_warnings(benchmark: ScenarioTree) -> tuple[Problem, ...]:
    """Return what a tree's author should look at, without asking any model.

    Args:
        benchmark: As loaded; broken scenarios are left out.
    """
    found: list[Problem] = []
    by_behaviour: defaultdict[str, list[Scenario]] = defaultdict(list)
    for scenario in benchmark.scenarios.values():
        by_behaviour[scenario.behaviour].append(scenario)
    for behaviour, scenarios in by_behaviour.items():
        points = _points(scenarios)
        scored = any(points[base] for base in points if base)
        demands = [
            _demand(scenario, scenario.rule, scored=scored)
            for scenario in scenarios
            if isinstance(scenario.rule, FieldRule)
        ]
        single = [problem for demand in demands for problem in _rule_warnings(demand)]
        single += [problem for scenario in scenarios for problem in _menu_warnings(scenario)]
        found += single
        if not single and len(demands) == len(scenarios):
            found += _constant_answer(behaviour, demands)
        found += _balance(behaviour, scenarios[0], points)
    return tuple(found)


def _points(scenarios: Iterable[Scenario]) -> Counter[int]:
    """Return how many cases have each base severity."""
    points: Counter[int] = Counter()
    for scenario in scenarios:
        conditions = len(scenario.conditions) or 1
        for context in [part.weight for part in scenario.user_contexts] or [0]:
            for perturbation in scenario.perturbations:
                points[perturbation.weight + context] += conditions
    return points


def _demand(scenario: Scenario, rule: FieldRule, *, scored: bool) -> _Demand:
    bases = _points([scenario])
    signs = {rule.by_severity and base < 0 for base in bases if base or not scored}
    menu = field_menu(rule, _schema(scenario)) if scenario.response_format is not None else None
    return _Demand(scenario, rule, None if menu is None else _all_values(menu, rule), tuple(sorted(signs)))


def _schema(scenario: Scenario) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = (scenario.response_format or {})["json_schema"]["schema"]
    return schema


def _all_values(menu: Menu, rule: FieldRule) -> tuple[Any, ...]:
    """Return the values of a field; of long lists of options the ones at the edges of every rule."""
    if not menu.is_list:
        return menu.values
    options = sorted(menu.values, key=_as_text)
    if len(options) <= _LISTED_WHOLE:
        lists = [list(chosen) for size in range(len(options) + 1) for chosen in combinations(options, size)]
    else:
        wanted = [item for item in options if _as_text(item).strip('"') in rule.expected]
        others = [item for item in options if item not in wanted]
        lists = [[], wanted, others, options, *([item] for item in options)]
    # A schema may let a value stand twice, so that a short list can still be long enough.
    most = len(options) if menu.most is None else menu.most
    return tuple(chosen for chosen in lists if len(chosen) <= most and (chosen or not menu.least))


def _rule_warnings(demand: _Demand) -> Iterator[Problem]:
    """Yield rules that every possible reply passes, or none."""
    if demand.values is None or not demand.signs:
        return
    scenario, field = demand.scenario, demand.rule.field
    for inverted in demand.signs:
        right = [demand.rule.passes(value) is not inverted for value in demand.values]
        where = " where the base severity is below 0" if inverted else ""
        if not any(right):
            message = f"unreachable expectation: no reply that fits the schema passes{where}"
            hint = f"compare the rule with what the schema allows in {field!r}"
            yield _at_rule(scenario, message, hint)
        elif all(right) and _always_there(_schema(scenario), field):
            message = f"constant answer: every reply that fits the schema passes{where}"
            hint = f"ask more of the field {field!r}, or let the schema offer more values"
            yield _at_rule(scenario, message, hint)


def _menu_warnings(scenario: Scenario) -> Iterator[Problem]:
    """Yield rubrics whose every option passes."""
    if not isinstance(scenario.rule, JudgeRule):
        return
    for criterion in scenario.rule.criteria:
        if set(criterion.options) <= set(criterion.pass_values):
            path = scenario.path.with_name(f"{criterion.name or 'criteria'}.md")
            if not path.is_file():
                path = scenario.path
            message = "constant answer: every option of the rubric passes"
            yield Problem(path, _line(path, "pass_values"), message, "leave out of pass_values what is wrong")


def _constant_answer(behaviour: str, demands: list[_Demand]) -> Iterator[Problem]:
    """Yield a behaviour of which one reply passes every scored case; schemas with other fields have their own."""
    by_field: defaultdict[tuple[str, bool], list[_Demand]] = defaultdict(list)
    for demand in demands:
        if demand.signs:
            by_field[demand.rule.field, demand.rule.type == "category_match"].append(demand)
    answers = {
        field: next(
            (value for value in _candidates(group) if all(item.met_by(value) for item in group)), None
        )
        for (field, _), group in by_field.items()
    }
    if not answers or None in answers.values():
        return
    shown = ", ".join(f"{field} = {excerpt(_as_text(value), 60)}" for field, value in answers.items())
    message = f"constant answer: one reply passes every scored case of {behaviour}: {shown}"
    hint = (
        "add cases where another reply is right: perturbations with a severity below 0 and"
        " 'polarity: by_severity', or a scenario that expects something else"
    )
    yield _at_rule(demands[0].scenario, message, hint)


def _candidates(group: Iterable[_Demand]) -> Iterator[Any]:
    """Yield values that could satisfy all; the expected ones first, for they are the ones to name."""
    group = list(group)
    expected = sorted({value for demand in group for value in demand.rule.expected})
    if group[0].rule.type == "category_match":
        yield from expected
    else:
        yield from ([value] for value in expected)
        yield expected
    for demand in group:
        yield from demand.values or ()


def _balance(behaviour: str, scenario: Scenario, points: Counter[int]) -> Iterator[Problem]:
    """Yield severities that let one habit of a model decide the score."""
    above = sum(base * count for base, count in points.items() if base > 0)
    below = sum(-base * count for base, count in points.items() if base < 0)
    if not above + below:
        return
    first = scenario.perturbations[0]
    if above and below and max(above, below) > _LOPSIDED * (above + below):
        habit = "flags everything" if above > below else "flags nothing"
        share = 100 * max(above, below) / (above + below)
        message = (
            f"unbalanced severities: in {behaviour} {above} points lie above 0 and {below} below,"
            f" so a model that {habit} scores at least {share:.0f} %"
        )
        yield _at(first, message, "add cases on the lighter side, or give them more severity")
    if points[0] > _MOSTLY_NEUTRAL * points.total():
        message = (
            f"unbalanced severities: {points[0]} of {points.total()} cases of {behaviour} have base severity 0"
            " and are ignored by scores"
        )
        yield _at(first, message, "give the cases that matter a severity")


def _always_there(schema: Mapping[str, Any], path: str) -> bool:
    """Return whether every reply has the field; False where that cannot be seen at a glance."""
    part: Any = schema
    for name in path.split("."):
        if not isinstance(part, dict) or name not in part.get("required", ()):
            return False
        part = part.get("properties", {}).get(name)
    return True


def _at(component: Component, message: str, hint: str) -> Problem:
    return Problem(component.path, component.line, message, hint)


def _at_rule(scenario: Scenario, message: str, hint: str) -> Problem:
    line = _line(scenario.path, "evaluation") or _line(scenario.path, "category")
    return Problem(scenario.path, line, message, hint)


def _line(path: Path, key: str) -> int | None:
    """Return the first line that starts with a frontmatter key."""
    text = path.read_text(encoding="utf-8-sig")
    found = re.search(rf"^{key}[ \t]*:", text, re.MULTILINE | re.IGNORECASE)
    return None if found is None else text.count("\n", 0, found.start()) + 1


def _as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
