"""Patches applied by real git, in their order: what the pack sets up, the candidate's, the pack's tests."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchTests
from pytest_helmbench.benchmarks.packs.families.repo_patch.checkout import Checkout
from pytest_helmbench.benchmarks.packs.families.repo_patch.diff import (
    MalformedPatchError,
    Patch,
    encoded,
    read_patch,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.finding import (
    CandidateFaultError,
    PackFaultError,
    PatchPhase,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.git import Git, said
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Applied", "Applying"]

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
[ -f "$GIT_DIR/{_CANDIDATE}" ] || exit 0
apply "$@" || exit {_CANDIDATE_FAILED}
git diff --cached --raw -z --no-renames --abbrev=40 "$commit"
"""
# One commit without a past: what the setup patch takes away stands in the history.
_BEGIN = f"""
git apply "-p$(cat "$GIT_DIR/{_SETUP}.strip")" "$GIT_DIR/{_SETUP}" || exit {_SETUP_FAILED}
rm -f "$GIT_DIR/index"
git read-tree HEAD
git add -A .
tree=$(git write-tree)
git update-ref --no-deref HEAD "$(git commit-tree "$tree" -m "Start")"
"""
_ADD_TESTS = f"""
git apply "-p$2" "$GIT_DIR/{_TESTS}" && exit 0
export GIT_INDEX_FILE="$GIT_DIR/{_TESTS}.index"
git read-tree "$1"
git apply --cached --check "-p$2" "$GIT_DIR/{_TESTS}" || exit {_TESTS_FAILED}
exit {_CANDIDATE_FAILED}
"""


@dataclass(frozen=True, slots=True)
class Applied:
    """What the candidate's patch came to.

    Args:
        baseline: The commit before it.
        changed: Paths that it has changed.
        special: Those of them that are links or submodules.
    """

    baseline: str
    changed: frozenset[str] = frozenset()
    special: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Applying:
    """Patches on their way into a checkout.

    Args:
        checkout: At the base commit.
        tests: Of the row.
        git: In a box over the checkout.
    """

    checkout: Checkout
    tests: PatchTests
    git: Git

    async def apply(self, patch: Patch | None, *, parity: bool = False) -> Applied:
        """Apply the setup patch, commit, apply the candidate's patch whole or not at all.

        Args:
            patch: The candidate's; None for none.
            parity: Take it only as it is.

        Raises:
            PackFaultError: The setup patch does not apply, or the repository cannot be committed.
            CandidateFaultError: The candidate's patch does not apply.
        """
        self._put_setup()
        strip, ways = "1", _WAYS
        if patch is not None:
            self._put(_CANDIDATE, encoded(patch.text))
            strip = str(patch.strip)
            ways = ((),) if parity else _WAYS_OF_MISCOUNTED if patch.miscounted else _WAYS
        ended = await self.git.run(_APPLY, strip, *map(" ".join, ways))
        baseline, committed, raw = ended.stdout.partition(b"\0")
        match ended.exit_code:
            case 0 if not ended.output_cut:
                return Applied(baseline.decode(), *_raw_changes(raw))
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

    async def begin(self) -> None:
        """Apply the setup patch for an agent, and leave one commit without a past; nothing where there is none.

        Raises:
            PackFaultError: It does not apply, or the repository cannot be committed.
        """
        if not self._put_setup():
            return
        ended = await self.git.run(_BEGIN)
        if ended.exit_code == _SETUP_FAILED:
            message = f"eval.tests.setup_patch does not apply: {said(ended)}"
            raise PackFaultError(PatchPhase.SETUP_PATCH, "does_not_apply", message)
        if ended.exit_code != 0:
            message = f"the repository cannot be committed before the patch: {said(ended)}"
            raise PackFaultError(PatchPhase.BASELINE_COMMIT, "no_baseline", message)
        self.done()

    def _put_setup(self) -> bool:
        setup = self.tests.setup_patch
        if setup is None or not setup.strip():
            return False
        self._put(_SETUP, _whole(setup))
        self._put(f"{_SETUP}.strip", str(_strip_of(setup)).encode())
        return True

    async def add_tests(self, baseline: str) -> None:
        """Apply the pack's test patch, if there is one.

        Raises:
            PackFaultError: It does not apply to the baseline.
            CandidateFaultError: It no longer applies after the candidate's patch.
        """
        phase, text = PatchPhase.TEST_PATCH, self.tests.test_patch or ""
        if not text.strip():
            return
        self._put(_TESTS, _whole(text))
        ended = await self.git.run(_ADD_TESTS, baseline, str(_strip_of(text)))
        if ended.exit_code == _CANDIDATE_FAILED:
            message = f"the tests no longer apply after the candidate's patch: {said(ended)}"
            raise CandidateFaultError(phase, "tests_do_not_apply", message)
        if ended.exit_code != 0:
            message = f"eval.tests.test_patch does not apply: {said(ended)}"
            raise PackFaultError(phase, "does_not_apply", message)

    def done(self) -> None:
        """Take our own files out of git's folder."""
        self.checkout.workspace.remove(f".git/{_OWN}")

    def _put(self, name: str, data: bytes) -> None:
        self.checkout.workspace.put(f".git/{name}", data)


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
