"""Scenario trees as a kind of benchmark: every combination of a scenario as a job, on every model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Broken, SessionValues
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.conversation_rule import (
    ConversationRule,
    in_turns,
)
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.places import PLACES, is_prompt_file
from pytest_helmbench.benchmarks.scenario_trees.tree import Combination, ScenarioTree
from pytest_helmbench.core.case import BrokenCase, Case
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Reply, Verdict
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.engine.questions import judged_evaluations, one_reply, usable_judges
from pytest_helmbench.engine.rules import apply_rule
from pytest_helmbench.engine.work import CaseContext, RunnerSettings, UnjudgedError
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.judging.judge import judged_outcome
from pytest_helmbench.judging.rubric import JudgeRule, deciding_judge


class TreeWork:
    """Asks a case's question, or all of its conversation, and judges the replies."""

    async def perform(self, case: Case, context: CaseContext) -> Outcome:
        refusal = case.rule.refusal()
        if refusal:
            raise UnjudgedError(Outcome(Verdict.ERROR, "not_trusted", refusal))
        rule = in_turns(case.rule)
        judges = () if rule.judged is None else usable_judges(context)
        reply = await one_reply(case, context)
        found = await apply_rule(partial(rule.evaluations, case, context.settings.strict_json), reply)
        if rule.judged is not None:
            asked = replace(case, rule=rule.judged)
            found = (*await judged_evaluations(asked, reply, judges, context), *found)
        outcome = judged_outcome(reply, found)
        if isinstance(case.rule, ConversationRule):  # one case, of which every part must pass
            return replace(outcome, score=min(part.credit for part in found))
        return outcome


@dataclass(frozen=True, slots=True, eq=False)
class TreeJob(CaseJob):
    """A combination of a scenario tree on its way."""

    combination: Combination

    @property
    def code(self) -> str:
        """`P1-B2-S1-C1-U1-PT3`."""
        return self.combination.code

    @property
    def family(self) -> str:
        """Evaluation type of the scenario."""
        return self.combination.scenario.family

    @property
    def work(self) -> TreeWork:
        """The same for all."""
        return _WORK

    @property
    def parts(self) -> tuple[str | None, ...]:
        return self.combination.parts

    @property
    def part(self) -> str:
        """Code of its behaviour."""
        return self.combination.scenario.behaviour

    @property
    def place(self) -> tuple[Path, int]:
        """File and line of its perturbation."""
        return self.combination.perturbation.path, self.combination.perturbation.line

    @property
    def judge_calls(self) -> int:
        """One per criterion of a judged scenario."""
        return self.combination.scenario.judge_calls

    @property
    def evaluations(self) -> int:
        return self.combination.evaluations

    def marked_by(self, _reply: Reply) -> JudgeRule | None:
        return in_turns(self.case(None).rule).judged

    @property
    def calls(self) -> int:
        """One per turn without a scripted reply."""
        return len(self.combination.perturbation.asked_turns)

    @property
    def is_open_ended(self) -> bool:
        """Whether it has tools."""
        return self.combination.scenario.toolbox is not None

    @property
    def goes_singly(self) -> bool:
        return self.combination.scenario.rule.bounds_a_call

    @property
    def severity(self) -> int:
        return self.combination.severity

    @property
    def difficulty(self) -> int:
        return self.combination.difficulty

    def prompt_characters(self) -> int:
        return self.combination.prompt_characters()

    def case(self, system_prompt: str | None) -> Case:
        return self.combination.case(system_prompt)

    def asked(self, turn: int | None = None) -> str:
        """Return the perturbation, or its message at a turn."""
        part = self.combination.perturbation
        later = [message.content for message in part.script if message.role == "user"]
        return [part.block if part.script else part.body, *later][-1 if turn is None else turn - 1]

    def rule_hashes(self, case: Case, settings: RunnerSettings) -> tuple[str, ...]:
        judge = deciding_judge(self.target.judge_ids)
        return in_turns(case.rule).hashes(case, settings.template, judge)

    def facts(self) -> dict[str, str | int | None]:
        """Return what the `helmbench` marker says."""
        combination, scenario = self.combination, self.combination.scenario
        return {
            "pillar": scenario.pillar,
            "behaviour": scenario.behaviour,
            "scenario": scenario.code,
            "condition": combination.condition.code if combination.condition else None,
            "user_context": combination.user_context.code if combination.user_context else None,
            "perturbation": combination.perturbation.code,
            **CaseJob.facts(self),
        }


class LoadedTree:
    """A scenario tree with the models it runs on, and its broken files by the file that represents them.

    Args:
        targets: One per model, in order.
        add_no_context: Cases without a user context are added.
    """

    item_limits: Sequence[ModelLimits] = ()

    def __init__(self, tree: ScenarioTree, targets: tuple[Target, ...], *, add_no_context: bool) -> None:
        self.outline = tree
        self.root = tree.root
        self.scoring = tree.scoring
        self.warnings = tree.warnings
        self.files = tree.scenarios.keys()
        self.targets = targets
        self._add_no_context = add_no_context
        self._hosts = _hosts(tree)
        self._judge_calls = {one.code: one.judge_calls for one in tree.scenarios.values()}
        self._weighted = weighted_behaviours(tree)

    @property
    def broken(self) -> Broken:
        """Its broken scenarios."""
        codes = dict.fromkeys(self.outline.broken.values())
        return tuple((code, self.problems_of_code(code)) for code in codes)

    def cases_in(self, path: Path) -> bool:
        """Return whether a file is the prompt file of a healthy scenario."""
        return path in self.outline.scenarios

    def jobs(self, path: Path, file_id: str, repeat: int) -> Iterator[TreeJob]:
        for combination in self.outline.scenarios[path].combinations(add_no_context=self._add_no_context):
            # Base severity 0 in a behaviour that has other severities.
            neutral = combination.severity == 0 and combination.scenario.behaviour in self._weighted
            for target in self.targets:
                for repetition in range(1, repeat + 1):
                    yield TreeJob(target, repetition, neutral, file_id, combination)

    def broken_cases(self, name: str) -> Sequence[BrokenCase]:
        """Return what a broken scenario would have run, as far as it could be read."""
        found = self.outline.unrun.get(name)
        return () if found is None else tuple(found.cases(add_no_context=self._add_no_context))

    def broken_around(self, path: Path) -> Broken:
        """Return what is broken elsewhere in the scenario of a prompt file."""
        if not is_prompt_file(path):
            return ()
        codes = {code for broken, code in self.outline.broken.items() if path.parent in broken.parents}
        return tuple((code, self.problems_of_code(code)) for code in sorted(codes))

    def broken_in(self, path: Path) -> Broken:
        return self._hosts.get(path, ())

    def count(self) -> int:
        healthy = self.outline.scenarios.values()
        return sum(scenario.count(add_no_context=self._add_no_context) for scenario in healthy)

    def scenario_of(self, code: str) -> str:
        """Return `P1-B2-S1` of `P1-B2-S1-C1-PT3`."""
        return "-".join(code.split("-", 3)[:3])

    def judge_calls(self, scenario: str) -> int:
        return self._judge_calls.get(scenario, 0)

    def problems_of_code(self, code: str) -> tuple[Problem, ...]:
        """Return every problem of a scenario, whatever its file."""
        broken, found = self.outline.broken, self.outline.problems.items()
        return tuple(problem for path, problems in found if broken[path] == code for problem in problems)


def weighted_behaviours(tree: ScenarioTree) -> frozenset[str]:
    """Return the behaviours in which some case has a base severity other than 0."""
    return frozenset(
        scenario.behaviour
        for scenario in tree.scenarios.values()
        if any(
            perturbation.weight + context != 0
            for perturbation in scenario.perturbations
            for context in {part.weight for part in scenario.user_contexts} or {0}
        )
    )


def _hosts(tree: ScenarioTree) -> dict[Path, Broken]:
    """Give every broken file an existing file that represents it: itself, or a neighbour when it is missing."""
    hosts: dict[Path, dict[str, list[Problem]]] = defaultdict(lambda: defaultdict(list))
    for path, problems in tree.problems.items():
        hosts[_host(path, tree)][tree.broken[path]].extend(problems)
    return {
        path: tuple((code, tuple(problems)) for code, problems in by_code.items())
        for path, by_code in hosts.items()
    }


def _host(path: Path, tree: ScenarioTree) -> Path:
    if path.is_file():
        return path
    prompt = f"{tree.broken[path].rpartition('-')[2]}.md"
    for folder in (path, *path.parents):
        files = sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []
        if files:
            return next((file for file in files if file.name == prompt), files[0])
        if folder == tree.root:
            break
    return path


class ScenarioTrees:
    name = PLACES.name

    def open(self, session: SessionValues) -> TreeLoader:
        return TreeLoader(session.trust_hint, add_no_context=session.settings.add_no_context)


class TreeLoader:
    """Loads scenario trees; they share nothing.

    Args:
        trust_hint: Returns how the user trusts a benchmark; empty where he does.
        add_no_context: Cases without a user context are added.
    """

    def __init__(self, trust_hint: Callable[[Path], str], *, add_no_context: bool) -> None:
        self._trust_hint = trust_hint
        self._add_no_context = add_no_context

    def load(self, root: Path, targets: tuple[Target, ...]) -> LoadedTree:
        tree = load_tree(root, trust_hint=self._trust_hint(root))
        return LoadedTree(tree, targets, add_no_context=self._add_no_context)

    async def close(self) -> None:
        """Nothing was made."""


_WORK = TreeWork()
KIND = ScenarioTrees()
