"""The packs of a session: loaded, and ready to be worked on. Imported when a session has a pack."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.packs.agent.agent_work import AgentSessions
from pytest_helmbench.benchmarks.packs.agent.external import AgentCommand, AgentNeeds
from pytest_helmbench.benchmarks.packs.families.family import Trial
from pytest_helmbench.benchmarks.packs.families.registry import family_of
from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack
from pytest_helmbench.benchmarks.packs.jobs import LoadedPack
from pytest_helmbench.benchmarks.packs.row_tools import PackSettings, RowTools, Sandboxes
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.benchmarks.packs.work import PackWork
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.outline import RowRef
from pytest_helmbench.core.problem import HelmbenchError, Problem
from pytest_helmbench.engine.job import Target
from pytest_helmbench.engine.rules import rule_faults
from pytest_helmbench.gateway.relay.relay import Relay
from pytest_helmbench.options.declarations import Options
from pytest_helmbench.sandbox.workspace import SandboxError


class PackLoader:
    """Loads packs that share sandboxes and relay.

    Args:
        settings: Of the session.
        note: Says something in the summary.

    Raises:
        AgentCommandError: `--helmbench-agent` names nothing that can be started.
    """

    def __init__(self, settings: Options, note: Callable[[str], None]) -> None:
        given = settings.packs
        self._packs = PackSettings(
            parity=given.pack_rules == "parity",
            show_hidden=given.show_hidden,
            allow_commands=given.allow_commands,
            answer_form=given.answer_form,
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
        """
        pack = load_pack(root, cluster=self._cluster)
        tools = RowTools(self._packs, pack.files, self._sandboxes)
        return LoadedPack(pack, targets, PackWork(tools, self._agents))

    async def self_check_all(self, root: Path) -> tuple[Sequence[Problem], Mapping[str, int]]:
        """Check every healthy row of a pack; return what is wrong, and how many were skipped by reason."""
        loaded = self.load(root, ())
        found = await asyncio.gather(*(self_check(loaded, row) for row in loaded.outline.rows.values()))
        skipped = Counter(one.skipped for one in found if one.skipped is not None)
        return [problem for one in found for problem in one.findings], skipped

    async def close(self) -> None:
        """Remove what was made for the rows."""
        await self._relay.close()
        await self._sandboxes.close()


_HINT = "correct the row; `helmbench prompt ROW` shows its prompt"
_PARITY_HINT = f"{_HINT}. --helmbench-pack-rules=parity judges this one as it should be"


@dataclass(frozen=True, slots=True)
class SelfChecked:
    """What came of the check of a row.

    Args:
        findings: One per violation.
        skipped: Why it could not be checked, in a sentence; None when it was.
    """

    findings: tuple[Problem, ...] = ()
    skipped: str | None = None


async def self_check(loaded: LoadedPack, ref: RowRef) -> SelfChecked:
    """Try everything on a row that says how it must be judged; what fails in it is told of this row alone."""
    try:
        with rule_faults():
            return await _tried(loaded, ref)
    except HelmbenchError as error:
        what, _, hint = str(error).partition("\n  hint: ")
        return SelfChecked((Problem(ref.path, ref.line, f"{ref.id}: {what}", hint),))


async def _tried(loaded: LoadedPack, ref: RowRef) -> SelfChecked:
    if ref.skip_reason is not None:
        return SelfChecked(skipped=ref.skip_reason)
    task, tools = loaded.pack.task(ref), loaded.work.tools
    family = family_of(task)
    if family is None:
        return SelfChecked()
    if family.runs_code:
        denied = family.denied(task, tools.settings.allow_commands)
        if denied is not None:
            return SelfChecked(skipped=denied)
        obstacle = await tools.obstacle(family.image_of(task))
        if obstacle is not None:
            return SelfChecked(skipped=obstacle.reason)
    try:
        trials = [trial async for trial in family.trials(PackRule(task, tools.settings.parity), tools)]
    except SandboxError as error:
        return SelfChecked(skipped=f"the sandbox failed: {error}")
    wrong = [trial for trial in trials if _is_wrong(trial)]
    if not wrong or family.runs_code or tools.settings.parity:
        return SelfChecked(tuple(_problem(ref, trial, _HINT) for trial in wrong))
    published = {trial.label: trial async for trial in family.trials(PackRule(task, parity=True), tools)}
    hints = (_HINT if _is_wrong(published[trial.label]) else _PARITY_HINT for trial in wrong)
    return SelfChecked(tuple(_problem(ref, trial, hint) for trial, hint in zip(wrong, hints, strict=True)))


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
