"""The verdict over a candidate's patch, step by step; every step runs in a fresh sandbox."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from pytest_helmbench.benchmarks.packs.evidence.verdicts import Ran, runs_tests, tail, weighed
from pytest_helmbench.benchmarks.packs.families.repo_patch.applying import Applied, Applying
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import (
    CandidateFaultError,
    PackFaultError,
    PatchFinding,
    PatchPhase,
    PatchTests,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.checkout import (
    Checkout,
    Git,
    opened_checkout,
    patch_tests_of,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import MalformedPatchError, read_patch
from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import check_paths, check_special
from pytest_helmbench.benchmarks.packs.families.repo_patch.testing import Testing
from pytest_helmbench.benchmarks.packs.task import PackTask, PathPolicyError, PlannedFile
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import Engine
from pytest_helmbench.sandbox.workspace import SandboxError

_LARGEST_PATCH = 32 * 1024 * 1024
_MOST_SHOWN = 5
# In the words of Python from 3.7 on.
_LACKS = re.compile(
    r"No module named '([\w.]+)'|cannot import name '\w+' from (?:partially initialized module )?'([\w.]+)'"
)


async def evaluate_patch(
    task: PackTask,
    candidate: str,
    engine: Engine,
    *,
    parity: bool = False,
    assets: Sequence[PlannedFile] = (),
) -> PatchFinding:
    """Apply a candidate's patch to a fresh copy of the task's repository and run the task's tests.

    Args:
        task: Of repo_patch.
        candidate: The patch, or a reply with a patch in it; bytes that are not UTF-8 are surrogate-escaped.
        engine: What runs git and the tests.
        parity: Apply the published path rule, and take patches only as they are.
        assets: Public files of the row.

    Raises:
        ConfigError: The task is of another family, or has no tests.

    Source:
        Benchmark packs, section 4, repo_patch.
    """
    tests = patch_tests_of(task)
    if not candidate.strip():
        return PatchFinding(Verdict.FAILED, PatchPhase.EMPTY_PATCH, "empty_patch", "the patch is empty")
    run: _Run | None = None
    try:
        async with opened_checkout(task, engine, assets) as checkout:
            run = _Run(task, tests, parity, engine, checkout, assets)
            await run.judge(candidate)
    except (PackFaultError, CandidateFaultError) as error:
        return error.finding
    except SandboxError as error:
        phase = PatchPhase.BASE_COMMIT if run is None else run.phase
        return PatchFinding(Verdict.ERROR, phase, "sandbox", excerpt(str(error)))
    return PatchFinding(Verdict.PASSED)


@dataclass(slots=True)
class _Run:
    """One patch on its way."""

    task: PackTask
    tests: PatchTests
    parity: bool
    engine: Engine
    checkout: Checkout
    assets: Sequence[PlannedFile]
    phase: PatchPhase = field(default=PatchPhase.BASE_COMMIT, init=False)

    async def judge(self, candidate: str) -> None:
        """Take all steps; what is wrong is raised."""
        patch = self._read(candidate)
        async with await self.engine.open(self.checkout.spec) as box:
            with self.checkout.quiet():
                applying = Applying(self.checkout, self.tests, Git(box))
                self.phase = PatchPhase.CANDIDATE_PATCH
                applied = await applying.apply(patch, self._check, parity=self.parity)
                self._compare(applied)
                self.phase = PatchPhase.TEST_PATCH
                await applying.add_tests(applied.baseline)
            applying.done()
        self.phase = PatchPhase.COMMAND
        await self._test()

    def _read(self, candidate: str) -> str:
        if len(candidate) > _LARGEST_PATCH:
            message = f"the patch has more than {_LARGEST_PATCH:,} characters"
            raise CandidateFaultError(PatchPhase.CANDIDATE_PATCH, "too_large", message)
        try:
            return read_patch(candidate)
        except MalformedPatchError as error:
            raise CandidateFaultError(PatchPhase.CANDIDATE_PATCH, "no_patch", str(error)) from error

    def _check(self, paths: frozenset[str], phase: PatchPhase = PatchPhase.PATH_POLICY) -> None:
        try:
            check_paths(paths, self.tests.policy, parity=self.parity)
        except PathPolicyError as error:
            raise CandidateFaultError(phase, "path_denied", str(error)) from error

    def _compare(self, applied: Applied) -> None:
        """Hold what git has really changed to the announcement, and to the policy once more."""
        self.phase = phase = PatchPhase.CHANGED_PATHS
        changed, announced = applied.changed, applied.announced
        if not changed:
            raise CandidateFaultError(phase, "no_changes", "the patch changes nothing")
        lines = [
            f"{what}: {_listed(paths)}"
            for what, paths in (
                ("announced, but not changed", announced - changed),
                ("changed, but not announced", changed - announced - applied.sources),
            )
            if paths
        ]
        if lines:
            raise CandidateFaultError(phase, "other_paths", "\n".join(lines))
        self._check(changed | announced | applied.sources, phase)
        try:
            if not self.parity:
                check_special(applied.special, self.tests.policy)
        except PathPolicyError as error:
            raise CandidateFaultError(phase, "path_denied", str(error)) from error

    async def _test(self) -> None:
        testing = Testing(self.task, self.tests, self.engine, self.assets)
        ran = await testing.run(self.checkout)
        names_tests = runs_tests(self.tests.command.command)
        found = await weighed(ran, testing.without, names_tests=names_tests, excuses=self._is_packs)
        message = f"eval.tests.command: {found.message}"
        if found.verdict is Verdict.ERROR:
            raise PackFaultError(self.phase, found.reason or "", message)
        if found.verdict is Verdict.FAILED:
            output = "\n".join((*found.details, tail(ran.ended)))
            raise CandidateFaultError(self.phase, found.reason or "", message, output)
        if ran.changed and not self.parity:
            # Some tests write to files of the repository, whoever is tested.
            changed = ran.changed - (await testing.without(False)).changed
            if changed:
                message = (
                    f"eval.tests.command: files of the tests were changed while they ran: {_listed(changed)}"
                )
                raise CandidateFaultError(self.phase, "tests_changed", message)

    def _is_packs(self, ran: Ran) -> bool:
        """Return whether a breakdown that is the same without the candidate is the pack's.

        It is not where tests import what the repository does not have yet: that is what the patch was to add.
        """
        lacks = [_LACKS.search(why) for _, why in ran.seen.broken]
        modules = {(found[1] or found[2]).partition(".")[0] for found in lacks if found is not None}
        return modules.isdisjoint(self.checkout.modules)


def _listed(paths: frozenset[str]) -> str:
    shown = ", ".join(repr(excerpt(path, 200)) for path in sorted(paths)[:_MOST_SHOWN])
    return shown + (f" and {len(paths) - _MOST_SHOWN} more" if len(paths) > _MOST_SHOWN else "")
