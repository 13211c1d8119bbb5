"""A loaded scenario tree and its cases, as values; the files are read by `format/`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Literal

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.conversation_rule import (
    ConversationRule,
    in_turns,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.core.case import BrokenCase, Case, Message, asked_turns
from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import (
    BehaviourEntry,
    CaseAxes,
    Catalogue,
    PartEntry,
    PillarEntry,
    ScenarioEntry,
    Scoring,
)
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.core.tools import Toolbox
from pytest_helmbench.judging.rubric import JudgeRule

_COMPONENTS = ("scenario", "condition", "user_context", "perturbation")
"""As `roles` of `benchmark.yml` names them, in the order of a prompt."""

Rule = ReplyRule | JudgeRule | ConversationRule
"""The rule for a scenario."""


@dataclass(frozen=True, slots=True)
class Component:
    """A condition, user context or perturbation.

    Args:
        code: Local code: `C1`, `U2`, `PT3a`.
        full_code: With its scenario: `P1-B1-S1-C1`.
        body: Markdown body without frontmatter, blank lines at both ends removed.
        block: Body with every H2 section turned into a tag block; empty for an empty body. A perturbation with
            several turns has the first of them here.
        weight: Severity (−10..10) of a user context or perturbation, difficulty (0..10) of a condition.
        line: 1-based line of its H1 (consolidated) or of the body (individual file).
        script: Scripted replies and later messages of the user, in order; see `Case.script`.
    """

    code: str
    full_code: str
    body: str
    block: str
    weight: int
    path: Path
    line: int
    script: tuple[Message, ...] = ()

    @property
    def asked_turns(self) -> tuple[int, ...]:
        return asked_turns(self.script)


def _contexts(found: Sequence[Component], *, add_no_context: bool) -> Sequence[Component | None]:
    """Return the user contexts that cases are made with; None is the case without one."""
    return (None, *found) if add_no_context or not found else found


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """One healthy scenario.

    Args:
        code: `P1-B2-S1`.
        path: The prompt file (`S1.md`, or `MCSQE.md` of a multi-criteria scenario).
        title: Readability suffix of the folder in words, or empty.
        body: Markdown body of the prompt file.
        block: Composed body.
        category: The frontmatter's `category`, as written, else the one label that its rule expects.
        response_format: `{"type": "json_schema", "json_schema": {name, strict, schema}}` as sent, or None.
        conditions: In natural order; empty when the axis is left out.
        user_contexts: In natural order; empty when there are none.
        perturbations: In natural order; never empty.
        family: Name of its evaluation type.
        system: The components whose text stands in the system message: `scenario`, `condition`, `user_context`.
        schema_turns: Which replies of a conversation have the response format.
        toolbox: What the model may call; None for nothing.
    """

    code: str
    path: Path
    title: str
    body: str
    block: str
    category: str | None
    response_format: JsonObject | None
    rule: Rule
    conditions: tuple[Component, ...]
    user_contexts: tuple[Component, ...]
    perturbations: tuple[Component, ...]
    family: str
    system: frozenset[str] = frozenset()
    schema_turns: Literal["last", "all"] = "last"
    toolbox: Toolbox | None = None

    @property
    def pillar(self) -> str:
        """`P1` of `P1-B2-S1`."""
        return self.code.split("-")[0]

    @property
    def behaviour(self) -> str:
        """`P1-B2` of `P1-B2-S1`."""
        return self.code.rpartition("-")[0]

    @property
    def judge_calls(self) -> int:
        """Calls to a judge that a case needs: one per criterion."""
        judged = in_turns(self.rule).judged
        return 0 if judged is None else len(judged.criteria)

    def combinations(self, *, add_no_context: bool = False) -> Iterator[Combination]:
        """Yield every condition × user context × perturbation in natural order.

        Args:
            add_no_context: Also the combinations without a user context, where the scenario has some.
        """
        contexts = _contexts(self.user_contexts, add_no_context=add_no_context)
        for parts in product(self.conditions or (None,), contexts, self.perturbations):
            yield Combination(self, *parts)

    def count(self, *, add_no_context: bool = False) -> int:
        """Return the number of `combinations`, without making them."""
        contexts = _contexts(self.user_contexts, add_no_context=add_no_context)
        return (len(self.conditions) or 1) * len(contexts) * len(self.perturbations)


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """One case of a scenario before it is composed: four references, no text of its own."""

    scenario: Scenario
    condition: Component | None
    user_context: Component | None
    perturbation: Component

    @property
    def code(self) -> str:
        """`P1-B2-S1-C1-U1-PT3`."""
        parts = [self.scenario.code]
        if self.condition is not None:
            parts.append(self.condition.code)
        if self.user_context is not None:
            parts.append(self.user_context.code)
        parts.append(self.perturbation.code)
        return "-".join(parts)

    @property
    def parts(self) -> tuple[str | None, ...]:
        """The six components of the code; None where an axis is absent."""
        return (
            *self.scenario.code.split("-"),
            self.condition.code if self.condition else None,
            self.user_context.code if self.user_context else None,
            self.perturbation.code,
        )

    @property
    def severity(self) -> int:
        """Base severity: perturbation plus user context (−20..20)."""
        return self.perturbation.weight + (self.user_context.weight if self.user_context else 0)

    @property
    def difficulty(self) -> int:
        """Difficulty of the condition (0..10)."""
        return self.condition.weight if self.condition else 0

    @property
    def evaluations(self) -> int:
        """Rows of the case: one per criterion, and one per turn and rule that judges its reply."""
        return in_turns(self.scenario.rule).rows(self.perturbation.asked_turns)

    def blocks(self, *, system: bool = False) -> tuple[str, ...]:
        """Return the composed blocks of the first user message, or of the system message, in order, without empty ones.

        Args:
            system: Those of the system message, which `roles` of `benchmark.yml` names.
        """
        named = self.scenario.system
        return tuple(
            part.block
            for name, part in zip(_COMPONENTS, self._texts(), strict=True)
            if part is not None and part.block and (name in named) is system
        )

    def _texts(self) -> tuple[Scenario | Component | None, ...]:
        return self.scenario, self.condition, self.user_context, self.perturbation

    def prompt_characters(self) -> int:
        """Return the length of the prompts of all its calls without composing them; unknown replies apart."""
        said = sum(len(part.block) + 2 for part in self._texts() if part is not None and part.block) - 2
        earlier, before = 0, "user"
        for message in self.perturbation.script:
            earlier += said if before == message.role == "user" else 0  # the model replies between them
            said, before = said + len(message.content), message.role
        return earlier + said

    def prompt(self) -> str:
        """Return the first user message of the case."""
        return "\n\n".join(self.blocks())

    def case(self, system_prompt: str | None = None) -> Case:
        """Compose the case.

        Args:
            system_prompt: Text of a system message before the user message; None for none. Components that
                `benchmark.yml` puts into the system message follow it there.
        """
        own = self.blocks(system=True) if self.scenario.system else ()
        system = own if system_prompt is None else (system_prompt, *own)
        task = self.scenario.block
        user = Message("user", self.prompt(), task=task)
        return Case(
            code=self.code,
            messages=(Message("system", "\n\n".join(system), task=task), user) if system else (user,),
            response_format=self.scenario.response_format,
            rule=self.scenario.rule.of_case(self.perturbation.code.upper()),
            severity=self.severity,
            difficulty=self.difficulty,
            script=self.perturbation.script,
            toolbox=self.scenario.toolbox,
            schema_turns=self.scenario.schema_turns,
            own_system="\n\n".join(own),
        )


@dataclass(frozen=True, slots=True)
class BrokenScenario:
    """The cases that a scenario with errors would have run, as far as its files could be read.

    Args:
        code: `P1-B2-S1`, as its place gives it or seems to.
        path: The prompt file, whether it is there or not.
        body: Its Markdown body as far as it could be read.
        conditions: Those that were found; `user_contexts` and `perturbations` likewise.
        evaluations: Criteria that were found; at least 1.
    """

    code: str
    path: Path
    body: str = ""
    conditions: Sequence[Component] = ()
    user_contexts: Sequence[Component] = ()
    perturbations: Sequence[Component] = ()
    evaluations: int = 1

    def cases(self, *, add_no_context: bool = False) -> Iterator[BrokenCase]:
        """Yield every combination that was found; one without a perturbation where none was.

        Args:
            add_no_context: Also the combinations without a user context, where the scenario has some.
        """
        contexts = _contexts(self.user_contexts, add_no_context=add_no_context)
        for condition, *weighted in product(
            self.conditions or (None,), contexts, self.perturbations or (None,)
        ):
            severity = sum(part.weight for part in weighted if part is not None)
            yield BrokenCase(
                "-".join((self.code, *(part.code for part in (condition, *weighted) if part is not None))),
                severity or 1,  # what could not be read counts one point
                condition.weight if condition is not None else 0,
                self.evaluations,
            )


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioTree:
    """A scenario tree with everything that was found in it.

    Args:
        root: The folder that holds `scenarios/`.
        name: From `benchmark.yml`, else the folder's name.
        version: From `benchmark.yml`, else the first 12 digits of the hash.
        hash: SHA-256 (hex) over every file that can change a case or a score.
        pillars: With what their READMEs say; empty texts where there is none. `behaviours` likewise.
        scenarios: Healthy scenarios by prompt file, in natural order of their codes.
        scoring: None without `scoring.yaml`.
        problems: Errors by broken file, in natural order; each broken file is one erroring item.
        broken: Broken file to the code its item is named by (a scenario code, or the file's stem).
        warnings: What is odd but usable.
        unrun: What broken scenarios would have run, by the code in `broken`.
    """

    root: Path
    name: str
    version: str
    description: str
    hash: str
    pillars: tuple[PillarEntry, ...]
    behaviours: tuple[BehaviourEntry, ...]
    scenarios: Mapping[Path, Scenario]
    scoring: Scoring | None
    problems: Mapping[Path, tuple[Problem, ...]]
    broken: Mapping[Path, str]
    warnings: tuple[Problem, ...]
    unrun: Mapping[str, BrokenScenario]
    kind: str = "scenario_tree"

    def catalogue(self, _codes: Iterable[str]) -> Catalogue:
        """Return all that was loaded, planned or not.

        Names and descriptions are the READMEs', which the hash does not cover.
        """
        return Catalogue(
            map(_scenario_entry, self.scenarios.values()), self._pillar_entries(), self._behaviour_entries()
        )

    def axes(self, code: str) -> CaseAxes:
        """Return the components of a case code; nothing for text that is not a code."""
        parts = CaseCode.parse(code)
        if parts is None:
            return CaseAxes()
        scenario = f"{parts.pillar}-{parts.behaviour}-{parts.scenario}"
        return CaseAxes(
            scenario,
            *(
                f"{scenario}-{part}" if part else ""
                for part in (parts.condition, parts.user_context, parts.perturbation)
            ),
        )

    def _pillar_entries(self) -> Iterable[PillarEntry]:
        found = {scenario.pillar: PillarEntry(scenario.pillar) for scenario in self.scenarios.values()}
        found |= {behaviour.pillar: PillarEntry(behaviour.pillar) for behaviour in self.behaviours}
        found |= {stated.code: stated for stated in self.pillars}
        return found.values()

    def _behaviour_entries(self) -> Iterable[BehaviourEntry]:
        healthy = self.scenarios.values()
        found = {scenario.behaviour: BehaviourEntry(scenario.behaviour) for scenario in healthy}
        found |= {behaviour.code: behaviour for behaviour in self.behaviours}
        weights = self.scoring.weights if self.scoring is not None else {}
        for code, behaviour in found.items():
            yield replace(behaviour, weight=float(weights.get(code, 1)))


def _scenario_entry(scenario: Scenario) -> ScenarioEntry:
    said = {
        "roles": sorted(scenario.system),
        "schema_turns": scenario.schema_turns,
        "toolbox": scenario.toolbox,
    }
    sent = {} if said == {"roles": [], "schema_turns": "last", "toolbox": None} else {"sent": said}
    return ScenarioEntry(
        code=scenario.code.rpartition("-")[2],
        full_code=scenario.code,
        family=scenario.family,
        about={**scenario.rule.data(), **sent},
        title=scenario.title,
        behaviour=scenario.behaviour,
        category=scenario.category,
        schema=scenario.response_format,
        text=scenario.body,
        conditions=_part_entries(scenario.conditions),
        user_contexts=_part_entries(scenario.user_contexts),
        perturbations=_part_entries(scenario.perturbations),
    )


def _part_entries(parts: Iterable[Component]) -> tuple[PartEntry, ...]:
    return tuple(PartEntry(part.code, part.full_code, part.weight, part.body) for part in parts)
