"""The verdict over a candidate's patch, step by step; every step runs in a fresh sandbox."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchTests
from pytest_helmbench.benchmarks.packs.families.repo_patch.checkout import (
    Checkout,
    opened_checkout,
    patch_tests_of,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.diff import (
    MalformedPatchError,
    Patch,
    encoded,
    read_patch,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.finding import (
    CandidateFaultError,
    PackFaultError,
    PatchFinding,
    PatchPhase,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.git import Git, said
from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import (
    check_patch,
    check_paths,
    check_special,
)
from pytest_helmbench.benchmarks.packs.task import CommandCheck, PackTask, PathPolicyError, PlannedFile
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.sandbox.box import Box, Command, Ended, Engine, Limits
from pytest_helmbench.sandbox.workspace import SandboxError

__all__ = ["TEST_LIMITS", "evaluate_patch", "repository_environment"]

_MIB = 1024 * 1024
TEST_LIMITS = Limits(
    wall_s=1800.0,
    cpus=2.0,
    memory_bytes=4096 * _MIB,
    pids=512,
    output_bytes=4 * _MIB,
    disk_bytes=8192 * _MIB,
)
"""Bounds of the command that tests a patch; the row's own timeout takes the place of `wall_s`."""

_LARGEST_PATCH = 32 * _MIB
_OUTPUT_TAIL = 4_000
_MOST_SHOWN = 5
_CANNOT_START = (126, 127)
_PYTEST_FAULTS = {
    2: "its run was interrupted, or a test file could not be imported",
    3: "it has met an error of its own",
    4: "its command line is wrong, or names no file that is there",
    5: "it has found no tests",
}
_PYTEST = re.compile(r"(?<![\w./-])(?:[\w./-]*/)?(?:py\.test|pytest)(?![\w.-])")
_OWN = "helmbench"  # a folder of ours in git's own
_SETUP, _CANDIDATE, _TESTS = (f"{_OWN}/{name}.patch" for name in ("setup", "candidate", "tests"))
_SETUP_FAILED, _BASELINE_FAILED, _CANDIDATE_FAILED, _TESTS_FAILED = 71, 72, 73, 74
_SPECIAL_MODES = ("120000", "160000")

# What models write: other white space than the file's, hunks whose last lines or whose counts are missing.
_WAYS: tuple[tuple[str, ...], ...] = ((), ("--ignore-whitespace",), ("--ignore-whitespace", "--unidiff-zero"))
_WAYS_OF_MISCOUNTED = (*(("--recount", *way) for way in _WAYS), ())

# Each step has an exit code of its own. What is tried last must not hide why the first try failed.
_APPLY = f"""
strip=$1; shift
if [ -f "$GIT_DIR/{_SETUP}" ]; then
  git apply "-p$(cat "$GIT_DIR/{_SETUP}.strip")" "$GIT_DIR/{_SETUP}" || exit {_SETUP_FAILED}
fi
baseline() {{
  rm -f "$GIT_DIR/index" && git read-tree HEAD && git add -A . && tree=$(git write-tree) &&
  commit=$(git commit-tree "$tree" -p HEAD -m "Before the candidate's patch") && git update-ref HEAD "$commit"
}}
baseline || exit {_BASELINE_FAILED}
apply() {{
  git apply --index "-p$strip" $1 "$GIT_DIR/{_CANDIDATE}" && return 0
  shift
  for way; do git apply --index "-p$strip" $way "$GIT_DIR/{_CANDIDATE}" 2>/dev/null && return 0; done
  return 1
}}
printf '%s\\0' "$commit"
apply "$@" || exit {_CANDIDATE_FAILED}
git diff --cached --raw -z --no-renames --abbrev=40 "$commit"
"""
_ADD_TESTS = f"""
git apply "-p$2" "$GIT_DIR/{_TESTS}" && exit 0
export GIT_INDEX_FILE="$GIT_DIR/{_TESTS}.index"
git read-tree "$1"
git apply --cached --check "-p$2" "$GIT_DIR/{_TESTS}" || exit {_TESTS_FAILED}
exit {_CANDIDATE_FAILED}
"""
_SAFE = (
    # Tests may ask git about the repository, whoever its files belong to.
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.directory"),
    ("GIT_CONFIG_VALUE_0", "*"),
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
            run = _Run(task, tests, parity, engine, checkout)
            await run.judge(candidate)
    except (PackFaultError, CandidateFaultError) as error:
        return error.finding
    except SandboxError as error:
        phase = PatchPhase.BASE_COMMIT if run is None else run.phase
        return PatchFinding(Verdict.ERROR, phase, "sandbox", excerpt(str(error)))
    return PatchFinding(Verdict.PASSED)


def repository_environment(task: PackTask) -> tuple[tuple[str, str], ...]:
    """Return what commands of a task's repository find in their environment, beside the image's own."""
    home = (("HOME", "/tmp"),) if task.environment.image is None else ()
    return (*_SAFE, *home)


@dataclass(slots=True)
class _Run:
    """One patch on its way."""

    task: PackTask
    tests: PatchTests
    parity: bool
    engine: Engine
    checkout: Checkout
    phase: PatchPhase = field(default=PatchPhase.BASE_COMMIT, init=False)

    async def judge(self, candidate: str) -> None:
        """Take all steps; what is wrong is raised."""
        patch = self._read(candidate)
        async with await self.engine.open(self.checkout.spec) as box:
            with self.checkout.quiet():
                git = Git(box)
                baseline, changed, special = await self._apply(git, patch)
                self._compare(patch, changed, special)
                if self.tests.test_patch is not None:
                    await self._add_tests(git, baseline, self.tests.test_patch)
            self.checkout.workspace.remove(f".git/{_OWN}")
            await self._test(box, self.tests.command)

    def _read(self, candidate: str) -> Patch:
        self.phase = PatchPhase.PATH_POLICY
        if len(candidate) > _LARGEST_PATCH:
            message = f"the patch has more than {_LARGEST_PATCH:,} characters"
            raise CandidateFaultError(PatchPhase.CANDIDATE_PATCH, "too_large", message)
        try:
            patch = read_patch(candidate)
        except MalformedPatchError as error:
            raise CandidateFaultError(PatchPhase.CANDIDATE_PATCH, "no_patch", str(error)) from error
        try:
            check_patch(patch, self.tests.policy, parity=self.parity)
        except PathPolicyError as error:
            raise CandidateFaultError(PatchPhase.PATH_POLICY, "path_denied", str(error)) from error
        return patch

    async def _apply(self, git: Git, patch: Patch) -> tuple[str, frozenset[str], frozenset[str]]:
        """Apply the setup patch, commit, apply the candidate's patch whole or not at all.

        Returns:
            The commit before the candidate's patch, what that has changed, and what of it are links or submodules.
        """
        self.phase = PatchPhase.CANDIDATE_PATCH
        setup = self.tests.setup_patch
        if setup is not None and setup.strip():
            self._put(_SETUP, _whole(setup))
            self._put(f"{_SETUP}.strip", str(_strip_of(setup)).encode())
        self._put(_CANDIDATE, encoded(patch.text))
        ways = ((),) if self.parity else _WAYS_OF_MISCOUNTED if patch.miscounted else _WAYS
        ended = await git.run(_APPLY, str(patch.strip), *map(" ".join, ways))
        baseline, committed, raw = ended.stdout.partition(b"\0")
        match ended.exit_code:
            case 0 if not ended.output_cut:
                return baseline.decode(), *_raw_changes(raw)
            case _ if ended.exit_code == _SETUP_FAILED:
                message = f"eval.tests.setup_patch does not apply: {said(ended)}"
                raise PackFaultError(PatchPhase.SETUP_PATCH, "does_not_apply", message)
            case _ if ended.exit_code == _BASELINE_FAILED or not committed:
                message = f"the repository cannot be committed before the patch: {said(ended)}"
                raise PackFaultError(PatchPhase.BASELINE_COMMIT, "no_baseline", message)
            case _ if ended.exit_code == _CANDIDATE_FAILED:
                message = f"the patch does not apply: {said(ended)}"
                raise CandidateFaultError(PatchPhase.CANDIDATE_PATCH, "does_not_apply", message)
        message = f"git cannot tell what the patch changes: {said(ended)}"
        raise CandidateFaultError(PatchPhase.CHANGED_PATHS, "unknown_changes", message)

    def _compare(self, patch: Patch, changed: frozenset[str], special: frozenset[str]) -> None:
        """Hold what git has really changed to the announcement, and to the policy once more."""
        self.phase = phase = PatchPhase.CHANGED_PATHS
        if not changed:
            raise CandidateFaultError(phase, "no_changes", "the patch changes nothing")
        if changed != patch.changed:
            lines = [
                f"{what}: {_listed(paths)}"
                for what, paths in (
                    ("announced, but not changed", patch.changed - changed),
                    ("changed, but not announced", changed - patch.changed),
                )
                if paths
            ]
            raise CandidateFaultError(phase, "other_paths", "\n".join(lines))
        try:
            check_paths(changed, self.tests.policy, parity=self.parity)
            if not self.parity:
                check_special(special, self.tests.policy)
        except PathPolicyError as error:
            raise CandidateFaultError(phase, "path_denied", str(error)) from error

    async def _add_tests(self, git: Git, baseline: str, text: str) -> None:
        self.phase = phase = PatchPhase.TEST_PATCH
        if not text.strip():
            return
        self._put(_TESTS, _whole(text))
        ended = await git.run(_ADD_TESTS, baseline, str(_strip_of(text)))
        if ended.exit_code == _CANDIDATE_FAILED:
            message = f"the tests no longer apply after the candidate's patch: {said(ended)}"
            raise CandidateFaultError(phase, "tests_do_not_apply", message)
        if ended.exit_code != 0:
            message = f"eval.tests.test_patch does not apply: {said(ended)}"
            raise PackFaultError(phase, "does_not_apply", message)

    def _put(self, name: str, data: bytes) -> None:
        self.checkout.workspace.put(f".git/{name}", data)

    async def _test(self, box: Box, check: CommandCheck) -> None:
        self.phase = PatchPhase.COMMAND
        spec = self.checkout.spec
        wall_s = check.timeout_s or self.task.environment.timeout_s or TEST_LIMITS.wall_s
        limits = Limits(
            wall_s,
            TEST_LIMITS.cpus,
            TEST_LIMITS.memory_bytes,
            TEST_LIMITS.pids,
            TEST_LIMITS.output_bytes,
            TEST_LIMITS.disk_bytes,
        )
        workdir = posixpath.normpath(posixpath.join(spec.workdir, check.workdir or ""))
        command = Command(check.command, workdir, repository_environment(self.task), limits=limits)
        _judge_end(await box.run(command), check.command, wall_s)


def _judge_end(ended: Ended, command: tuple[str, ...], wall_s: float) -> None:
    """Raise what the end of the test command means; exit 0 means nothing."""
    if ended.exit_code == 0:
        return
    phase, output = PatchPhase.COMMAND, _tail(ended)
    if ended.timed_out:
        message = f"eval.tests.command was stopped after {wall_s:g} s"
        raise CandidateFaultError(phase, "timeout", message, output)
    if ended.exit_code is None:
        message = f"eval.tests.command was stopped: {ended.reason}"
        raise CandidateFaultError(phase, "limit", message, output)
    if ended.exit_code in _CANNOT_START:
        message = f"eval.tests.command cannot be started: exit code {ended.exit_code}"
        raise PackFaultError(phase, "cannot_start", message)
    fault = _PYTEST_FAULTS.get(ended.exit_code) if _runs_pytest(command) else None
    if fault is not None:
        message = f"eval.tests.command: pytest ended with exit code {ended.exit_code}: {fault}"
        raise PackFaultError(phase, "pytest", message)
    message = f"eval.tests.command ended with exit code {ended.exit_code}"
    raise CandidateFaultError(phase, "tests_failed", message, output)


def _runs_pytest(command: tuple[str, ...]) -> bool:
    return any(_PYTEST.search(word) for word in command)


def _tail(ended: Ended) -> str:
    raw = ended.stdout[-_OUTPUT_TAIL:] + b"\n" + ended.stderr[-_OUTPUT_TAIL:]
    return scrub(raw.decode("utf-8", "replace")).strip()


def _strip_of(text: str) -> int:
    """Return how many parts of a pack's own patch's paths are left out."""
    try:
        return read_patch(text).strip
    except MalformedPatchError:
        return 1


def _whole(text: str) -> bytes:
    return encoded(text if text.endswith("\n") else f"{text}\n")


def _raw_changes(raw: bytes) -> tuple[frozenset[str], frozenset[str]]:
    """Return the paths of `git diff --raw -z`, and those of them that are links or submodules."""
    fields = raw.split(b"\0")
    changed: set[str] = set()
    special: set[str] = set()
    for facts, name in zip(fields[::2], fields[1::2], strict=False):
        path = name.decode("utf-8", "surrogateescape")
        changed.add(path)
        modes = facts.decode("ascii", "replace").lstrip(":").split(" ")[:2]
        if any(mode in _SPECIAL_MODES for mode in modes):
            special.add(path)
    return frozenset(changed), frozenset(special)


def _listed(paths: frozenset[str]) -> str:
    shown = ", ".join(repr(excerpt(path, 200)) for path in sorted(paths)[:_MOST_SHOWN])
    return shown + (f" and {len(paths) - _MOST_SHOWN} more" if len(paths) > _MOST_SHOWN else "")
