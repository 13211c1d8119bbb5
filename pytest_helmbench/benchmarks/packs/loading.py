"""The packs of a session: their rows as jobs, on every model. Imported when a session has a pack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Broken, SessionValues
from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFamily
from pytest_helmbench.benchmarks.packs.agent.agent_work import AgentSessions
from pytest_helmbench.benchmarks.packs.agent.external import AgentCommand, AgentNeeds
from pytest_helmbench.benchmarks.packs.families.family import Family, Trial
from pytest_helmbench.benchmarks.packs.families.registry import family_named, family_of, messages_of
from pytest_helmbench.benchmarks.packs.families.text.text_family import TextFamily
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack, load_pack
from pytest_helmbench.benchmarks.packs.format.row_files import TableError
from pytest_helmbench.benchmarks.packs.format.table_columns import TableOptions
from pytest_helmbench.benchmarks.packs.places import PLACES
from pytest_helmbench.benchmarks.packs.row_tools import (
    PackSettings,
    RowTools,
    Sandboxes,
    held_room,
    room_limits,
)
from pytest_helmbench.benchmarks.packs.task import BrokenRow, PackRule, PackTask
from pytest_helmbench.core.case import BrokenCase, Case, CaseRule
from pytest_helmbench.core.json_types import json_objects
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.core.outline import RowOutline, RowRef
from pytest_helmbench.core.problem import HelmbenchError, Problem
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.engine.questions import judged_evaluations, one_reply, usable_judges
from pytest_helmbench.engine.rules import apply_rule, rule_faults
from pytest_helmbench.engine.work import CaseContext, RunnerSettings, UnjudgedError
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.providers.endpoints import Unusable
from pytest_helmbench.gateway.relay.relay import Relay
from pytest_helmbench.judging.judge import judged_outcome, with_reply
from pytest_helmbench.judging.rubric import Criterion, JudgeRule, deciding_judge
from pytest_helmbench.options.declarations import Options

_NO_JUDGE = "no judge: give --helmbench-marking-model, or --helmbench-pack-rules=parity to judge by the published rules"


class PackWork:
    """Runs and judges the rows of a pack.

    Args:
        agents: For the families that an agent works on.
    """

    def __init__(self, tools: RowTools, agents: AgentSessions) -> None:
        self.tools = tools
        self._agents = agents

    @property
    def settings(self) -> PackSettings:
        """How the session runs and judges packs."""
        return self.tools.settings

    async def perform(self, case: Case, context: CaseContext) -> Outcome:
        if isinstance(case.rule, JudgeRule):
            judges = usable_judges(context)
            reply = await one_reply(case, context)
            return judged_outcome(reply, await judged_evaluations(case, reply, judges, context))
        family, rule = _rule_of(case)
        if family.needs_judge and not rule.parity:
            if not context.marking_models:
                return Outcome(Verdict.SKIPPED, "no_judge", _NO_JUDGE)
            usable_judges(context)
        if obstacle := await self.tools.obstacle(family, rule.task):
            return Outcome(Verdict.SKIPPED, obstacle.code, obstacle.reason)
        if isinstance(family, AgentFamily):
            return await self._agents.run(family, rule, case.messages, self.tools, context)
        reply = await one_reply(case, context)
        fault = reply.form_fault
        if rule.parity:
            reply = replace(reply, text=reply.raw or reply.text)
            fault = fault if fault == "refusal" and not reply.text else None
        if fault is not None:
            by = "words" if isinstance(family, TextFamily) else "tests"
            observed = reply.form_fault_text(fault)
            found = family.row_evaluation(rule, passed=False, observed=observed, reason=fault, by=by)
            return judged_outcome(reply, (found,))
        if isinstance(family, TextFamily):
            return judged_outcome(reply, (await self._judged_by_text(family, case, rule, reply, context),))
        try:
            return judged_outcome(reply, (await family.evaluate(rule, reply, self.tools),))
        except UnjudgedError as stop:
            raise UnjudgedError(with_reply(stop.outcome, reply)) from stop

    async def _judged_by_text(
        self, family: TextFamily, case: Case, rule: PackRule, reply: Reply, context: CaseContext
    ) -> Evaluation:
        shows = self.settings.show_hidden
        criterion = await apply_rule(partial(family.wants_reading, rule), reply) if rule.judge else None
        if criterion is None:
            return await apply_rule(partial(family.evaluation, rule, shows=shows), reply)
        asked = replace(case, rule=self.asked_of_judge(family, criterion))
        (read,) = await judged_evaluations(asked, reply, usable_judges(context), context)
        return replace(family.read_evaluation(rule, read, reply, shows=shows), judgements=read.judgements)

    def asked_of_judge(self, family: Family, criterion: Criterion) -> JudgeRule:
        """Return what a marking model is asked about a reply whose words alone do not say enough."""
        hidden = not self.settings.show_hidden
        return JudgeRule((criterion,), hidden=hidden, of_answer=family.sends_statement)


def _rule_of(case: Case) -> tuple[Family, PackRule]:
    rule = case.rule
    family = family_of(rule.task) if isinstance(rule, PackRule) else None
    if not isinstance(rule, PackRule) or family is None:
        raise TypeError(f"{case.code}: no row of a pack")
    return family, rule


@dataclass(frozen=True, slots=True, eq=False)
class PackJob(CaseJob):
    """A row on its way. It is read again when it runs."""

    loaded: LoadedPack
    ref: RowRef

    @property
    def code(self) -> str:
        """The row's id."""
        return self.ref.id

    @property
    def family(self) -> str:
        """As the row or the manifest names it."""
        return self.ref.family

    @property
    def cluster(self) -> str | None:
        return self.ref.cluster

    @property
    def judge_calls(self) -> int:
        """1 for a rubric, in words or in lists, that a judge reads; word for word it needs none."""
        return self.loaded.judge_calls(self.ref.id)

    @property
    def may_ask_judge(self) -> bool:
        """See `CaseJob.may_ask_judge`: also to read replies whose words do not say enough."""
        family = family_named(self.ref.family)
        return self.ref.judged or (
            family is not None and family.read_by_judge and not self.loaded.work.settings.parity
        )

    def marked_by(self, reply: Reply, /) -> JudgeRule | None:
        rule = self.loaded.rule(self.task())
        family = family_of(rule.task) if isinstance(rule, PackRule) else None
        if isinstance(rule, JudgeRule):
            return rule
        criterion = family.wants_reading(rule, reply) if family and isinstance(rule, PackRule) else None
        return None if family is None or criterion is None else self.work.asked_of_judge(family, criterion)

    def prompt_characters(self) -> int:
        """Return the length of the row: its hidden part is small beside the rest."""
        return self.ref.length

    def task(self) -> PackTask:
        """Read the row.

        Raises:
            ConfigError: It has changed since it was loaded.
        """
        return self.loaded.pack.task(self.ref)

    def asked(self, turn: int | None = None) -> str:
        """Return the question without what the prompt says besides."""
        task = self.task()
        asked = task.input_value("question") or task.input_value("prompt")
        return asked if isinstance(asked, str) else CaseJob.asked(self, turn)

    def case(self, system_prompt: str | None) -> Case:
        """See `CaseJob.case`; for an agent, the message that it starts from."""
        task = self.task()
        family = family_of(task)
        form = self.loaded.answer_form(task)
        earlier = json_objects(task.input_value("messages"))
        return Case(
            code=self.ref.id,
            messages=messages_of(task, system_prompt, form),
            response_format=None if family is None else family.response_format(task, form),
            rule=self._rule(task),
            timeout_s=None if family is not None and family.runs_code else task.environment.timeout_s,
            own_system="\n\n".join(str(one["content"]) for one in earlier if one.get("role") == "system"),
        )

    def _rule(self, task: PackTask) -> CaseRule:
        """Return the rule for the row, and who reads its reply where words do not say enough.

        An embedded model stands in for a judge only where nothing else can judge.
        """
        rule, judges = self.loaded.rule(task), self.target.judges
        family = family_of(task)
        if not isinstance(rule, PackRule) or not judges or family is None or rule.parity:
            return rule
        endpoints = [judge.endpoint for judge in judges]
        if any(
            isinstance(one, Unusable) or (one.server.embedded and not family.needs_judge) for one in endpoints
        ):
            return rule
        return replace(rule, judge=deciding_judge(self.target.judge_ids))

    @property
    def work(self) -> PackWork:
        """That of its pack."""
        return self.loaded.work

    @property
    def is_one_question(self) -> bool:
        """False for the families that an agent works on."""
        family = family_named(self.ref.family)
        return family is None or family.is_one_question

    @property
    def place(self) -> tuple[Path, int]:
        """File and line of its row."""
        return self.ref.path, self.ref.line

    @property
    def skip_reason(self) -> str | None:
        return self.ref.skip_reason

    def rule_hashes(self, case: Case, settings: RunnerSettings) -> tuple[str, ...]:
        rule = case.rule
        if isinstance(rule, JudgeRule):
            return rule.hashes(settings.template.hash, deciding_judge(self.target.judge_ids))
        family = family_of(rule.task) if isinstance(rule, PackRule) else None
        return (family.rule_hash(rule),) if isinstance(rule, PackRule) and family is not None else ()

    @property
    def not_rescored(self) -> str | None:
        family = family_named(self.ref.family)
        return None if family is None else family.not_rescored

    def facts(self) -> dict[str, str | int | None]:
        """Return what the `helmbench` marker says, the row's metadata groups too."""
        # A marker cannot carry an argument of this name.
        groups = {name: value for name, value in self.ref.groups if name != "self"}
        return {
            **groups,
            "benchmark": self.loaded.outline.name,
            "row": self.ref.id,
            **CaseJob.facts(self),
        }


TrialsOf = Callable[[Family, PackRule, RowTools], AsyncIterator[Trial]]
"""Has work judged that no model did."""


class NotTriedError(HelmbenchError):
    """A row cannot be judged here, for the reason that it states."""


class LoadedPack:
    """A pack with the models it runs on.

    Args:
        targets: One per model, in order.
        work: How its rows are run and judged.
    """

    scoring = None

    def __init__(self, pack: Pack, targets: tuple[Target, ...], work: PackWork) -> None:
        self.pack = pack
        self.targets = targets
        self.work = work
        is_own = not pack.manifest.hidden
        self.outline = RowOutline(
            root=pack.root,
            name=pack.id,
            version=str(pack.manifest.version),
            description=pack.manifest.description,
            hash=pack.hash,
            rows={ref.id: ref for ref in pack.rows},
            kind="pack",
            cluster=pack.cluster,
            own_cluster=pack.manifest.cluster,
            title=pack.title if is_own and work.settings.show_hidden else None,
            understood=pack.understood,
            is_own=is_own,
        )
        self._rows: defaultdict[Path, list[RowRef]] = defaultdict(list)
        for ref in pack.rows:
            self._rows[ref.path].append(ref)
        self._broken: defaultdict[Path, list[BrokenRow]] = defaultdict(list)
        for row in pack.broken:
            self._broken[row.path].append(row)

    @property
    def root(self) -> Path:
        """The folder of the manifest."""
        return self.pack.root

    @property
    def item_limits(self) -> Sequence[ModelLimits]:
        """The room that its boxes share with those of all packs, where agents work on its rows."""
        families = {family_named(ref.family) for ref in self.pack.rows}
        return room_limits() if any(isinstance(one, AgentFamily) for one in families) else ()

    @property
    def warnings(self) -> Sequence[Problem]:
        """Warnings about usable files."""
        return self.pack.warnings_of(gives_network=self.work.settings.gives_network)

    @property
    def files(self) -> Iterable[Path]:
        """The files of its healthy rows."""
        return self._rows.keys()

    @property
    def broken(self) -> Broken:
        """Its broken rows."""
        return tuple((row.name, row.problems) for row in self.pack.broken)

    def cases_in(self, path: Path) -> bool:
        """Return whether healthy rows stand in a file."""
        return path in self._rows

    def jobs(self, path: Path, file_id: str, repeat: int) -> Iterator[PackJob]:
        for ref in self._rows[path]:
            for target in self.targets:
                for repetition in range(1, repeat + 1):
                    yield PackJob(target, repetition, False, file_id, self, ref)

    def broken_cases(self, name: str) -> Sequence[BrokenCase]:
        """Return one case for a broken row, none for what is wrong with the pack itself."""
        return [BrokenCase(row.name) for row in self.pack.broken if row.name == name]

    def broken_around(self, _path: Path) -> Broken:
        """Return what is wrong with the pack itself."""
        return self.broken_in(self.pack.manifest.path)

    def broken_in(self, path: Path) -> Broken:
        rows = tuple((row.name, row.problems) for row in self._broken.get(path, ()))
        whole = self.pack.problems if path == self.pack.manifest.path else ()
        return ((self.pack.id or path.stem, whole), *rows) if whole else rows

    def count(self) -> int:
        return len(self.pack.rows)

    def scenario_of(self, code: str) -> str:
        """Return the row's id."""
        return code

    def judge_calls(self, scenario: str) -> int:
        ref = self.outline.rows.get(scenario)
        family = None if ref is None else family_named(ref.family)
        needs = family is not None and family.needs_judge and not self.work.settings.parity
        return int(ref is not None and (ref.judged or needs))

    async def trials(
        self,
        ref: RowRef,
        tried: TrialsOf = lambda family, *given: family.trials(*given),
        *,
        parity: bool = False,
    ) -> Sequence[Trial]:
        """Return a row's verdicts on work that no model did.

        Args:
            tried: Has the work judged; without it, the family brings what a row proves itself by.
            parity: By the published rules, whatever the session says.

        Raises:
            NotTriedError: The row cannot be judged here.
            SandboxError: The sandbox failed.
            HelmbenchError: The row has changed, or its rule broke down.
        """
        family = family_named(ref.family)
        if family is None or ref.skip_reason is not None:
            raise NotTriedError(ref.skip_reason or "its family is unknown")
        task, tools = self.pack.task(ref), self.work.tools
        if obstacle := await tools.obstacle(family, task):
            raise NotTriedError(obstacle.reason)
        rule = PackRule(task, parity or tools.settings.parity)
        with rule_faults():
            async with held_room(tools.sandboxes, family.room_of(task)):
                return [one async for one in tried(family, rule, tools)]

    def rule(self, task: PackTask) -> CaseRule:
        """Return the rule for a row: a rubric in words goes to the judge."""
        family, settings = family_of(task), self.work.settings
        judged = None if family is None else family.judge_rule(task, hidden=not settings.show_hidden)
        if judged is not None:
            return judged
        return PackRule(task, settings.parity, self.answer_form(task))

    def answer_form(self, task: PackTask) -> str:
        """Return the form in which a row asks for its answer."""
        family = family_of(task)
        settings = self.work.settings
        return (
            "text"
            if family is None
            else family.answer_form(task, settings.answer_form, parity=settings.parity)
        )


class PackLoader:
    """Loads packs that share sandboxes and relay.

    Args:
        note: Says something in the summary.
        in_ci: Texts stay out of logs unless they are asked for.

    Raises:
        AgentCommandError: `--helmbench-agent` names nothing that can be started.
    """

    def __init__(self, settings: Options, note: Callable[[str], None], *, in_ci: bool = False) -> None:
        given = settings.packs
        self._shows_own = settings.with_text != "none" or not in_ci
        self._options = table_options_of(settings)
        self._packs = PackSettings(
            parity=given.pack_rules == "parity",
            show_hidden=given.show_hidden,
            allow_commands=given.allow_commands,
            answer_form=given.answer_form,
            network=given.network,
            build=settings.bench_packs.build,
            variables=given.agent_env,
        )
        self._cluster = given.cluster
        agent = None if given.agent is None else AgentCommand.parse(given.agent, Path.cwd())
        needs = AgentNeeds.parse(given.agent_env, given.agent_mount, given.agent_host, Path.cwd())
        self._sandboxes = Sandboxes(given.sandbox, pull=given.pull, note=note, unprotected=given.unprotected)
        self._relay = Relay()
        self._agents = AgentSessions(self._relay, agent, needs)

    def load(self, root: Path, targets: tuple[Target, ...]) -> LoadedPack:
        """Return the pack at a folder.

        Raises:
            UnreadablePackError: Nothing of it can be used.
            TableError: Its table cannot be understood, or has no answers and no judge.
        """
        pack = load_pack(root, cluster=self._cluster, table_options=self._options)
        if pack.columns is not None and pack.columns.rubric and not all(one.judges for one in targets):
            hint = "add --helmbench-marking-model=ID, or --helmbench-columns='answer=…'"
            raise TableError(root, "a marking model reads its replies, and none is named", hint)
        shows = self._packs.show_hidden or (not pack.manifest.hidden and self._shows_own)
        tools = RowTools(replace(self._packs, show_hidden=shows), pack.files, self._sandboxes)
        return LoadedPack(pack, targets, PackWork(tools, self._agents))

    async def close(self) -> None:
        """Remove what was made for the rows."""
        await self._relay.close()
        await self._sandboxes.close()


def table_options_of(settings: Options) -> TableOptions:
    """Return what the options say of tables."""
    return TableOptions(settings.packs.columns or {}, settings.packs.rubric)


class Packs:
    """Loads question packs."""

    name = PLACES.name

    def open(self, session: SessionValues) -> PackLoader:
        return PackLoader(session.settings, session.note, in_ci=bool(session.environ.get("CI")))


KIND = Packs()
