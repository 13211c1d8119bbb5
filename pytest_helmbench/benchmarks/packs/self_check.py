"""Whether a pack's own answers pass its own rules, and what must not pass does not. No model is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from pytest_helmbench.benchmarks.packs.families.code_completion.evaluation import evaluate_code
from pytest_helmbench.benchmarks.packs.families.code_completion.self_check import code_self_check
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import evaluate_patch
from pytest_helmbench.benchmarks.packs.families.text.rules import evaluate_answer
from pytest_helmbench.benchmarks.packs.families.text.self_check import self_check_replies
from pytest_helmbench.benchmarks.packs.format.prompt_texts import prompt_of
from pytest_helmbench.benchmarks.packs.format.spec import eval_text
from pytest_helmbench.benchmarks.packs.jobs import LoadedPack
from pytest_helmbench.benchmarks.packs.sandboxes import Sandboxes
from pytest_helmbench.benchmarks.packs.task import Family, MaterializationError, PackTask
from pytest_helmbench.benchmarks.packs.work import image_of
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.core.row_outline import RowRef
from pytest_helmbench.sandbox.box import Engine, SandboxError, Unavailable

__all__ = ["SelfCheck", "SelfChecked"]

_HINT = "helmbench prompt ROW shows the prompt; correct the row, or judge by --helmbench-pack-rules=parity"


@dataclass(frozen=True, slots=True)
class SelfChecked:
    """What came of the check of a row.

    Args:
        findings: One per violation.
        skipped: Why it could not be checked, in a sentence; None when it was.
    """

    findings: tuple[Problem, ...] = ()
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class _Trial:
    """A reply that the pack itself brings, or that nobody should get away with."""

    label: str
    must_pass: bool
    verdict: Verdict
    message: str = ""


class SelfCheck:
    """Checks rows.

    Args:
        sandboxes: Of the process.
    """

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes

    async def check(self, loaded: LoadedPack, ref: RowRef) -> SelfChecked:
        """Try everything on a row that says how it must be judged.

        Raises:
            ConfigError: The row cannot be read.
        """
        if ref.skip_reason is not None:
            return SelfChecked(skipped=ref.skip_reason)
        task = loaded.pack.task(ref)
        family = task.family
        if family is None or not family.runs_code:
            found = _text_trials(task, parity=loaded.work.settings.parity)
            return SelfChecked(tuple(_problem(ref, trial) for trial in found if _is_wrong(trial)))
        engine = await self._sandboxes.engine()
        obstacle = engine if isinstance(engine, Unavailable) else await engine.obstacle(image_of(task))
        if isinstance(engine, Unavailable) or obstacle is not None:
            return SelfChecked(skipped=(obstacle or engine).reason)  # type: ignore[union-attr]
        try:
            trials = [trial async for trial in self._code_trials(loaded, task, engine)]
        except SandboxError as error:
            return SelfChecked(skipped=f"the sandbox failed: {error}")
        except MaterializationError as error:
            return SelfChecked((Problem(ref.path, ref.line, f"{ref.id}: {error}"),))
        return SelfChecked(tuple(_problem(ref, trial) for trial in trials if _is_wrong(trial)))

    async def _code_trials(self, loaded: LoadedPack, task: PackTask, engine: Engine) -> AsyncIterator[_Trial]:
        if task.family is Family.CODE_COMPLETION:
            for label, candidate, must_pass in code_self_check(task):
                found = await evaluate_code(task, candidate, engine)
                yield _Trial(label, must_pass, found.verdict, found.message)
        if task.family is Family.REPO_PATCH:
            assets = loaded.pack.plan_assets(task)
            gold = eval_text(task, "gold_patch")
            for label, patch, must_pass in (("eval.gold_patch", gold, True), ("an empty patch", "", False)):
                if patch is not None:
                    parity = loaded.work.settings.parity
                    judged = await evaluate_patch(task, patch, engine, parity=parity, assets=assets)
                    yield _Trial(label, must_pass, judged.verdict, judged.message)


def _text_trials(task: PackTask, *, parity: bool) -> list[_Trial]:
    if isinstance(task.eval_value("rubric"), str):
        return []  # only a judge could say
    given, wanted = task.public(), task.evaluation()
    trials = []
    for label, reply, must_pass in self_check_replies(task.task_type, given, wanted, prompt_of(task)):
        passed = evaluate_answer(task.task_type, given, wanted, reply, parity=parity).passed
        trials.append(_Trial(label, must_pass, Verdict.PASSED if passed else Verdict.FAILED))
    return trials


def _is_wrong(trial: _Trial) -> bool:
    wanted = Verdict.PASSED if trial.must_pass else Verdict.FAILED
    return trial.verdict is not wanted


def _problem(ref: RowRef, trial: _Trial) -> Problem:
    should = "must pass" if trial.must_pass else "must fail"
    does = {Verdict.PASSED: "passes", Verdict.FAILED: "fails"}.get(trial.verdict, "cannot be judged")
    why = f" ({trial.message.splitlines()[0]})" if trial.message else ""
    return Problem(ref.path, ref.line, f"{ref.id}: {trial.label} {should}, but it {does}{why}", _HINT)
