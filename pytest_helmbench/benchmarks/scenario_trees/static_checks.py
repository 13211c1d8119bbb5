"""Static checks of a tree that loads: answers without thought, expectations out of reach, lopsided points."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.known_types import EVALUATION_TYPES
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rules import FieldRule
from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import key_line
from pytest_helmbench.benchmarks.scenario_trees.format.response_schema import bare_schema
from pytest_helmbench.benchmarks.scenario_trees.format.schema_fields import Menu, field_menu, names_in
from pytest_helmbench.benchmarks.scenario_trees.tree import Component, Scenario, ScenarioTree
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.files.strict_json import a_mapping

_LISTED_WHOLE = 8  # of so many options every list is looked at, of more only those that tell
_LOPSIDED = 0.9
_MOSTLY_NEUTRAL = 0.5


@dataclass(frozen=True, slots=True)
class _Demand:
    """What one scenario asks of the field that its rule reads.

    Args:
        values: All values that its schema allows; None where it leaves them open.
        signs: For the scored cases: whether the verdict is inverted.
        always_there: Whether every reply that fits the schema has the field.
    """

    scenario: Scenario
    rule: FieldRule
    values: tuple[JsonValue, ...] | None
    signs: tuple[bool, ...]
    always_there: bool

    def met_by(self, value: JsonValue) -> bool:
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
        single += [
            problem
            for scenario in scenarios
            for problem in EVALUATION_TYPES[scenario.family].warnings(scenario)
        ]
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
    schema = None if scenario.response_format is None else bare_schema(scenario.response_format)
    menu = None if schema is None else field_menu(schema, rule.field, is_list=rule.reads_list)
    values = None if menu is None else _all_values(menu, rule)
    always_there = schema is not None and _always_there(schema, rule.field)
    return _Demand(scenario, rule, values, tuple(sorted(signs)), always_there)


def _all_values(menu: Menu, rule: FieldRule) -> tuple[JsonValue, ...]:
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
        elif all(right) and demand.always_there:
            message = f"constant answer: every reply that fits the schema passes{where}"
            hint = f"ask more of the field {field!r}, or let the schema offer more values"
            yield _at_rule(scenario, message, hint)


def _constant_answer(behaviour: str, demands: list[_Demand]) -> Iterator[Problem]:
    """Yield a behaviour of which one reply passes every scored case; schemas with other fields have their own."""
    by_field: defaultdict[tuple[str, bool], list[_Demand]] = defaultdict(list)
    for demand in demands:
        if demand.signs:
            by_field[demand.rule.field, demand.rule.reads_list].append(demand)
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


def _candidates(group: Iterable[_Demand]) -> Iterator[JsonValue]:
    """Yield values that could satisfy all; the expected ones first, for they are the ones to name."""
    group = list(group)
    expected: list[JsonValue] = [*sorted({value for demand in group for value in demand.rule.expected})]
    if group[0].rule.reads_list:
        yield from ([value] for value in expected)
        yield expected
    else:
        yield from expected
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


def _always_there(schema: JsonObject, path: str) -> bool:
    """Return whether every reply has the field; False where that cannot be seen at a glance."""
    part = schema
    for name in path.split("."):
        if name not in names_in(part, "required"):
            return False
        part = a_mapping(a_mapping(part.get("properties")).get(name))
    return True


def _at(component: Component, message: str, hint: str) -> Problem:
    return Problem(component.path, component.line, message, hint)


def _at_rule(scenario: Scenario, message: str, hint: str) -> Problem:
    line = key_line(scenario.path, "evaluation") or key_line(scenario.path, "category")
    return Problem(scenario.path, line, message, hint)


def _as_text(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
