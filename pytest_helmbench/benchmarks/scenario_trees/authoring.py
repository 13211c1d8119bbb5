"""Scenario trees as authors read them."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.authoring import (
    BrokenCaseError,
    CaseRef,
    Checked,
    Listing,
    Prompt,
    Stake,
    counted,
)
from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.known_types import SCENARIO_SCHEMA
from pytest_helmbench.benchmarks.scenario_trees.format.side_files import (
    BENCHMARK,
    COMPONENT,
    CRITERIA,
    SCORING,
    TOOLS,
)
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.tree import (
    BrokenScenario,
    Combination,
    Scenario,
    ScenarioTree,
)
from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.core.request_template import unfilled

_SCHEMAS = (BENCHMARK, COMPONENT, CRITERIA, SCENARIO_SCHEMA, SCORING, TOOLS)
_HEAD = ("code", "behaviour", "family", "cases", "title")
_LEFT = ("code", "behaviour", "family", "title")


class ReadTree:
    """A scenario tree as its authors read it.

    Args:
        add_no_context: Cases without a user context are added.
    """

    is_selected_by_code = True

    def __init__(self, tree: ScenarioTree, *, add_no_context: bool) -> None:
        self._tree = tree
        self._add_no_context = add_no_context

    @property
    def root(self) -> Path:
        """The folder that holds `scenarios/`."""
        return self._tree.root

    def listing(self) -> Listing:
        """Return the healthy scenarios, in natural order; cases are counted, not made."""
        tree = self._tree
        titles = {behaviour.code: behaviour.title for behaviour in tree.behaviours}
        rows: list[tuple[str, ...]] = []
        records: list[dict[str, object]] = []
        total = 0
        for scenario in tree.scenarios.values():
            cases = scenario.count(add_no_context=self._add_no_context)
            total += cases
            title = titles.get(scenario.behaviour, "")
            behaviour = f"{scenario.behaviour} {title}".strip()
            rows.append((scenario.code, behaviour, scenario.family, str(cases), scenario.title))
            records.append(_record(tree, scenario, title, cases))
        notes = [f"{counted(len(rows), 'scenario')}, {total} cases"]
        broken = dict.fromkeys(tree.broken.values())
        if broken:
            check = f"`helmbench check {shlex.quote(str(tree.root))}`"
            notes.append(f"broken, not listed: {', '.join(broken)} ({check} says why)")
        return Listing(f"{tree.name} {tree.version}", _HEAD, _LEFT, rows, tuple(notes), records)

    def prompt(self, code: str, system_prompt: str | None) -> Prompt | None:
        wanted = _scenario_of(code)
        scenario = self._scenarios().get(wanted)
        if scenario is not None:
            found = (item for item in scenario.combinations(add_no_context=True) if item.code == code)
            case = next(found, None)
            return None if case is None else Prompt(case.case(system_prompt))
        if wanted in self._tree.broken.values():
            raise BrokenCaseError("\n".join([f"{wanted} is broken:", *self._texts_of(wanted)]))
        return None

    def near(self, code: str) -> Iterator[str]:
        """Yield the cases of the scenario that is named, else the first one of each."""
        scenarios = self._scenarios()
        scenario = scenarios.get(_scenario_of(code))
        if scenario is not None:
            yield from (item.code for item in scenario.combinations(add_no_context=True))
        else:
            yield from (next(item.combinations()).code for item in scenarios.values())

    def first_cases(self) -> Sequence[CaseRef]:
        """Return the first case of each scenario; of a broken one its own code, since it must not vanish."""
        tree = self._tree
        healthy = [
            CaseRef(scenario.path, next(scenario.combinations()).code) for scenario in tree.scenarios.values()
        ]
        broken = [CaseRef(path, code) for path, code in tree.broken.items() if code.count("-") == 2]
        return [*healthy, *broken]

    def find(self, code: str) -> CaseRef | None:
        """Return a scenario, healthy or not."""
        path = next((path for path, own in self._paths() if own == code), None)
        return None if path is None else CaseRef(path, code)

    def scenario_codes(self) -> Iterable[str]:
        """Return the codes of the scenarios, healthy or not."""
        return [code for _, code in self._paths()]

    def _paths(self) -> Iterator[tuple[Path, str]]:
        yield from ((scenario.path, scenario.code) for scenario in self._tree.scenarios.values())
        yield from self._tree.broken.items()

    def _scenarios(self) -> dict[str, Scenario]:
        return {scenario.code: scenario for scenario in self._tree.scenarios.values()}

    def _texts_of(self, scenario: str) -> list[str]:
        tree = self._tree
        return [
            problem.text(tree.root)
            for path, problems in tree.problems.items()
            if tree.broken[path] == scenario
            for problem in problems
        ]


def _unfilled(tree: ScenarioTree) -> Iterator[Problem]:
    """Yield places of templates in prompts, once per file: nothing fills them."""
    places: dict[tuple[Path, str], str] = {}
    ones: list[Scenario | BrokenScenario] = [*tree.scenarios.values(), *tree.unrun.values()]
    for one in ones:
        for part in (one, *one.conditions, *one.user_contexts, *one.perturbations):
            places |= {(part.path, place): wrong for place, wrong in unfilled(part.body).items()}
    for (path, place), wrong in places.items():
        lines = path.read_text("utf-8", "replace").splitlines()
        line = next((number for number, text in enumerate(lines, 1) if place in text), None)
        yield Problem(path, line, wrong, "write the value")


def _stakes(tree: ScenarioTree) -> Iterator[Stake]:
    """Yield what every case weighs that is in the score."""
    weights = tree.scoring.weights if tree.scoring is not None else {}
    found: defaultdict[str, list[Combination]] = defaultdict(list)
    for scenario in tree.scenarios.values():
        found[scenario.behaviour].extend(scenario.combinations())
    for behaviour, cases in found.items():
        weighted = any(case.severity for case in cases)
        for case in cases:
            points = abs(case.severity) if weighted else 1
            if points:
                weight, unit = float(weights.get(behaviour, 1)), case.perturbation.full_code
                yield Stake(behaviour, weight, unit, points * (case.scenario.judge_calls or 1))


def _record(tree: ScenarioTree, scenario: Scenario, behaviour_title: str, cases: int) -> dict[str, object]:
    return {
        "benchmark": tree.name,
        "code": scenario.code,
        "pillar": scenario.pillar,
        "behaviour": scenario.behaviour,
        "behaviour_title": behaviour_title,
        "title": scenario.title,
        "family": scenario.family,
        "conditions": len(scenario.conditions),
        "user_contexts": len(scenario.user_contexts),
        "perturbations": len(scenario.perturbations),
        "cases": cases,
        "path": str(scenario.path),
    }


def _scenario_of(code: str) -> str:
    parts = CaseCode.parse(code)
    return code if parts is None else f"{parts.pillar}-{parts.behaviour}-{parts.scenario}"


class TreeAuthoring:
    def check(self, root: Path, session: SessionValues) -> Checked:
        tree = load_tree(root, trust_hint=session.trust_hint(root))
        errors = tuple(problem for problems in tree.problems.values() for problem in problems)
        cases = sum(scenario.count() for scenario in tree.scenarios.values())
        healthy = f"{tree.name}: {counted(len(tree.scenarios), 'healthy scenario')}, {counted(cases, 'case')}"
        broken = ""
        if tree.unrun:
            unrun = sum(1 for scenario in tree.unrun.values() for _ in scenario.cases())
            broken = f"{counted(unrun, 'case')} of {counted(len(tree.unrun), 'broken scenario')} cannot run"
        warnings = (*tree.warnings, *_unfilled(tree))
        return Checked(healthy, errors, warnings, tuple(_stakes(tree)), broken)

    def read(self, root: Path, session: SessionValues) -> ReadTree:
        return ReadTree(
            load_tree(root, trust_hint=session.trust_hint(root)),
            add_no_context=session.settings.add_no_context,
        )

    def schema(self, name: str) -> JsonObject:
        return next(schema for schema in _SCHEMAS if schema.name == name).document()


AUTHORING = TreeAuthoring()
