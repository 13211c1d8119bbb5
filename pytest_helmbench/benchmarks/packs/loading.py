"""The packs of a session: their rows as jobs, on every model. Imported when a session has a pack."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pytest_helmbench.benchmarks.kind import Broken
from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFamily
from pytest_helmbench.benchmarks.packs.agent.agent_work import AgentSessions
from pytest_helmbench.benchmarks.packs.agent.external import AgentCommand, AgentNeeds
from pytest_helmbench.benchmarks.packs.families.family import Trial
from pytest_helmbench.benchmarks.packs.families.registry import family_named, family_of, messages_of
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack, load_pack
from pytest_helmbench.benchmarks.packs.format.row_files import TableError
from pytest_helmbench.benchmarks.packs.format.table_columns import TableOptions
from pytest_helmbench.benchmarks.packs.row_tools import (
    PackSettings,
    RowTools,
    Sandboxes,
    held_room,
    room_limits,
)
from pytest_helmbench.benchmarks.packs.task import BrokenRow, PackRule, PackTask
from pytest_helmbench.benchmarks.packs.work import PackWork
from pytest_helmbench.core.case import BrokenCase, Case, CaseRule
from pytest_helmbench.core.json_types import json_objects
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply, Verdict
from pytest_helmbench.core.outline import RowOutline, RowRef
from pytest_helmbench.core.problem import HelmbenchError, Problem
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.engine.rules import rule_faults
from pytest_helmbench.engine.work import RunnerSettings
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.providers.endpoints import Unusable
from pytest_helmbench.gateway.relay.relay import Relay
from pytest_helmbench.judging.rubric import JudgeRule, deciding_judge
from pytest_helmbench.options.declarations import Options
from pytest_helmbench.sandbox.workspace import SandboxError

_HINT = "correct the row; `helmbench prompt ROW` shows its prompt"
_OWN_BOX_HINT = 'list in artifacts what the tests read, with verifier.environment_mode = "separate"'
_PARITY_HINT = f"{_HINT}. --helmbench-pack-rules=parity judges this one as it should be"


@dataclass(frozen=True, slots=True, eq=False)
class PackJob(CaseJob):
    """A row on its way. It is read again when it runs.

    Args:
        loaded: Its pack.
        ref: Where it stands.
    """

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
        own: dict[str, str | int | None] = {
            "benchmark": self.loaded.outline.name,
            "row": self.ref.id,
            "model": self.model_id,
            "family": self.ref.family,
            "severity": 0,
            "repetition": self.repetition,
        }
        # A marker cannot carry an argument of this name.
        groups = {name: value for name, value in self.ref.groups if name != "self"}
        return {**groups, **own}


class LoadedPack:
    """A pack with the models it runs on.

    Args:
        pack: As loaded.
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
        settings: Of the session.
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

    async def self_check_all(self, root: Path) -> Sequence[RowCheck]:
        """Check every healthy row of a pack."""
        loaded = self.load(root, ())
        return await asyncio.gather(*(self_check(loaded, row) for row in loaded.outline.rows.values()))

    async def close(self) -> None:
        """Remove what was made for the rows."""
        await self._relay.close()
        await self._sandboxes.close()


def table_options_of(settings: Options) -> TableOptions:
    """Return what the options say of tables."""
    return TableOptions(settings.packs.columns or {}, settings.packs.rubric)


class RowCheck(NamedTuple):
    """The findings of a row's self-check: one error per violation, warnings, and why it was skipped."""

    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    skipped: str = ""


async def self_check(loaded: LoadedPack, ref: RowRef) -> RowCheck:
    """Judge the answers whose verdicts a row states itself; whatever fails is a problem of this row alone."""
    try:
        with rule_faults():
            return await _checked(loaded, ref)
    except HelmbenchError as error:
        what, _, hint = str(error).partition("\n  hint: ")
        return RowCheck((Problem(ref.path, ref.line, f"{ref.id}: {what}", hint),))


async def _checked(loaded: LoadedPack, ref: RowRef) -> RowCheck:
    if ref.skip_reason is not None:
        return RowCheck(skipped=ref.skip_reason)
    task, tools = loaded.pack.task(ref), loaded.work.tools
    family = family_of(task)
    if family is None:
        return RowCheck()
    obstacle = await tools.obstacle(family, task)
    if obstacle is not None:
        return RowCheck(skipped=obstacle.reason)
    try:
        async with held_room(tools.sandboxes, family.room_of(task)):
            trials = [trial async for trial in family.trials(PackRule(task, tools.settings.parity), tools)]
    except SandboxError as error:
        return RowCheck(skipped=f"the sandbox failed: {error}")
    notes = tuple(
        Problem(
            ref.path, None, f"{trial.label} passes only in its own box: passes will be own_box", _OWN_BOX_HINT
        )
        for trial in trials
        if trial.must_pass and trial.in_own_box
    )
    wrong = [trial for trial in trials if _is_wrong(trial)]
    if not wrong or family.runs_code or tools.settings.parity:
        return RowCheck(tuple(_problem(ref, trial, _HINT) for trial in wrong), notes)
    published = {trial.label: trial async for trial in family.trials(PackRule(task, parity=True), tools)}
    hints = (_HINT if _is_wrong(published[trial.label]) else _PARITY_HINT for trial in wrong)
    return RowCheck(tuple(_problem(ref, trial, hint) for trial, hint in zip(wrong, hints, strict=True)))


def _is_wrong(trial: Trial) -> bool:
    if trial.must_pass is None:
        return trial.verdict not in (Verdict.PASSED, Verdict.FAILED)
    return trial.verdict is not (Verdict.PASSED if trial.must_pass else Verdict.FAILED)


def _problem(ref: RowRef, trial: Trial, hint: str) -> Problem:
    should = {True: "must pass", False: "must fail", None: "must have a verdict"}[trial.must_pass]
    does = {Verdict.PASSED: "passes", Verdict.FAILED: "fails"}.get(trial.verdict, "cannot be judged")
    why = f" ({trial.message.splitlines()[0]})" if trial.message else ""
    return Problem(
        ref.path, ref.line, f"{ref.id}: {trial.label} {should}, but it {does}{why}", trial.hint or hint
    )
