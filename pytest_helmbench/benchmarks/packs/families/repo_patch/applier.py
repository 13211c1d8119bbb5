"""Applies patches by real git, in their order: what the pack sets up, the candidate's, the pack's tests."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from pytest_helmbench.benchmarks.packs.agent.agent_family import FindingError
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchPhase, PatchTests
from pytest_helmbench.benchmarks.packs.families.repo_patch.checkout import Git, ending_of
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import encoded, strip_of
from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import PatchPolicy, covering
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.sandbox.box import Ended
from pytest_helmbench.sandbox.workspace import Workspace

_OWN = "helmbench"  # a folder of ours in git's own
_SETUP, _CANDIDATE, _TESTS = (f"{_OWN}/{name}.patch" for name in ("setup", "candidate", "tests"))
_UNREADABLE, _SETUP_FAILED, _BASELINE_FAILED, _CANDIDATE_FAILED, _TESTS_FAILED, _LATE = range(70, 76)
_SPECIAL_MODES = ("120000", "160000")

# Models write hunks that are longer or shorter than they say, other white space than the file's, no last lines.
_WAYS = (
    "--recount",
    "",
    "--recount --ignore-whitespace",
    "--recount --ignore-whitespace --unidiff-zero",
    "--ignore-whitespace",
    "--ignore-whitespace --unidiff-zero",
)

# Each step has an exit code of its own. Parts of the output end with `=`: the paths that the patch announces, the
# baseline, the paths as the way that applied reads them, the same from behind (old names), and what has really changed.
_APPLY = f"""
strip=$1; shift
patch=$GIT_DIR/{_CANDIDATE}
announced() {{
  for way; do
    kept --numstat -z "-p$strip" $way "$patch" 2>/dev/null || continue
    kept -R --numstat -z "-p$strip" $way "$patch" && return 0
  done
  kept --numstat "-p$strip" "$patch"
}}
apply() {{
  for way; do kept --index "-p$strip" $way "$patch" 2>/dev/null && return 0; done
  kept --index "-p$strip" "$patch"
}}
baseline() {{
  rm -f "$GIT_DIR/index" && git read-tree HEAD && git add -A . && tree=$(git write-tree) &&
  commit=$(git commit-tree "$tree" -p HEAD -m "Before the candidate's patch") && git update-ref HEAD "$commit"
}}
if [ -f "$patch" ]; then announced "$@" || exit {_UNREADABLE}; fi
printf '=\\0'
if [ -f "$GIT_DIR/{_SETUP}" ]; then
  git apply "-p$(cat "$GIT_DIR/{_SETUP}.strip")" "$GIT_DIR/{_SETUP}" || exit {_SETUP_FAILED}
fi
baseline || exit {_BASELINE_FAILED}
printf '%s\\0=\\0' "$commit"
[ -f "$patch" ] || exit 0
apply "$@" || exit {_CANDIDATE_FAILED}
kept --numstat -z "-p$strip" $way "$patch"
printf '=\\0'
kept -R --numstat -z "-p$strip" $way "$patch"
printf '=\\0'
git diff --cached --raw -z --no-renames --abbrev=40 "$commit"
"""
_PARTS = 5
# One commit without a past: what the setup patch takes away stands in the history.
_BEGIN = f"""
git apply "-p$(cat "$GIT_DIR/{_SETUP}.strip")" "$GIT_DIR/{_SETUP}" || exit {_SETUP_FAILED}
rm -f "$GIT_DIR/index"
git read-tree HEAD && git add -A . || exit {_BASELINE_FAILED}
tree=$(git write-tree) || exit {_BASELINE_FAILED}
git update-ref --no-deref HEAD "$(git commit-tree "$tree" -m "Start")" || exit {_BASELINE_FAILED}
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
    """The changes of the candidate's patch; git names every path.

    Args:
        baseline: The commit before it.
        announced: Paths that the patch names as its results.
        sources: Paths that it names as what is changed, moved or copied.
        changed: Paths that it has changed.
        special: Those of them that are links or submodules.
    """

    baseline: str
    announced: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    special: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PatchApplier:
    """Applies the patches of a row to its repository, which is at the base commit."""

    workspace: Workspace
    tests: PatchTests
    git: Git

    async def apply(
        self, patch: str | None, check: Callable[[frozenset[str]], None], *, parity: bool = False
    ) -> Applied:
        """Apply the setup patch, commit, apply the candidate's patch whole or not at all.

        Args:
            patch: The candidate's; None for none.
            check: Called first with every path that the patch names; what it raises goes on.
            parity: Take it only as it is.

        Raises:
            FindingError: A patch cannot be read or does not apply, or the repository cannot be committed.
        """
        self._put_setup()
        strip = 1
        if patch is not None:
            self._put(_CANDIDATE, encoded(patch))
            strip = strip_of(patch)
        ended = await self.git.run(
            f"{_kept(self.tests.policy)}{_APPLY}", str(strip), *(("",) if parity else _WAYS)
        )
        named, baseline, announced, sources, raw = _parts(ended.stdout)
        if ended.exit_code != _UNREADABLE:
            check(_paths(named))
        if ended.exit_code != 0 or ended.output_cut:
            raise _fault(ended)
        changed, special = _raw_changes(raw)
        return Applied(b"".join(baseline).decode(), _paths(announced), _paths(sources), changed, special)

    async def begin(self) -> None:
        """Apply the setup patch for an agent, and leave one commit without a past; nothing where there is none.

        Raises:
            FindingError: It does not apply, or the repository cannot be committed.
        """
        if self._put_setup():
            ended = await self.git.run(_BEGIN)
            if ended.exit_code != 0:
                raise _fault(ended)
            self.done()

    async def add_tests(self, baseline: str) -> None:
        """Apply the pack's test patch, if there is one.

        Raises:
            FindingError: It does not apply to the baseline, or no longer after the candidate's patch.
        """
        text = self.tests.test_patch or ""
        if text.strip():
            self._put(_TESTS, _whole(text))
            ended = await self.git.run(_ADD_TESTS, baseline, str(strip_of(text)))
            if ended.exit_code != 0:
                raise _fault(ended, _LATE if ended.exit_code == _CANDIDATE_FAILED else _TESTS_FAILED)

    def done(self) -> None:
        """Take our own files out of git's folder."""
        self.workspace.remove(f".git/{_OWN}")

    def _put_setup(self) -> bool:
        setup = self.tests.setup_patch
        if setup is None or not setup.strip():
            return False
        self._put(_SETUP, _whole(setup))
        self._put(f"{_SETUP}.strip", str(strip_of(setup)).encode())
        return True

    def _put(self, name: str, data: bytes) -> None:
        self.workspace.put(f".git/{name}", data)


def _kept(policy: PatchPolicy) -> str:
    """Return the shell function that applies a patch without what it does to files that stay as they are."""
    left_out = [f"--exclude={each}" for pattern in policy.preserved for each in covering(pattern)]
    return f'kept() {{ git apply {shlex.join(left_out)} "$@"; }}'


_OURS, _THEIRS = Verdict.ERROR, Verdict.FAILED
_UNKNOWN = (_THEIRS, PatchPhase.CHANGED_PATHS, "unknown_changes", "git cannot tell what the patch changes")
_UNREAD = "there seems to be a patch in it, but none that git reads"
_NO_COMMIT = "the repository cannot be committed before the patch"
_OUTDATED = "the tests no longer apply after the candidate's patch"
_FAULTS = {
    _UNREADABLE: (_THEIRS, PatchPhase.CANDIDATE_PATCH, "no_patch", _UNREAD),
    _SETUP_FAILED: (_OURS, PatchPhase.SETUP_PATCH, "does_not_apply", "eval.tests.setup_patch does not apply"),
    _BASELINE_FAILED: (_OURS, PatchPhase.BASELINE_COMMIT, "no_baseline", _NO_COMMIT),
    _CANDIDATE_FAILED: (_THEIRS, PatchPhase.CANDIDATE_PATCH, "does_not_apply", "the patch does not apply"),
    _TESTS_FAILED: (_OURS, PatchPhase.TEST_PATCH, "does_not_apply", "eval.tests.test_patch does not apply"),
    _LATE: (_THEIRS, PatchPhase.TEST_PATCH, "tests_do_not_apply", _OUTDATED),
}


def _fault(ended: Ended, step: int | None = None) -> FindingError:
    """Return whose fault it is that patches were not applied, by the step that ended."""
    verdict, phase, reason, what = _FAULTS.get(step or ended.exit_code or 0, _UNKNOWN)
    return FindingError(verdict, reason, f"{what}: {ending_of(ended)}", phase)


def _parts(stdout: bytes) -> list[list[bytes]]:
    """Return the fields of each part of the output; those that were not reached are empty."""
    parts: list[list[bytes]] = [[]]
    for each in stdout.split(b"\0"):
        if each == b"=" and len(parts) < _PARTS:
            parts.append([])
        elif each:
            parts[-1].append(each)
    return parts + [[] for _ in range(_PARTS - len(parts))]


def _paths(fields: list[bytes]) -> frozenset[str]:
    """Return the paths of `git apply --numstat -z`."""
    return frozenset(each.split(b"\t", 2)[2].decode("utf-8", "surrogateescape") for each in fields)


def _whole(text: str) -> bytes:
    return encoded(text if text.endswith("\n") else f"{text}\n")


def _raw_changes(fields: list[bytes]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the paths of `git diff --raw -z`, and those of them that are links or submodules."""
    changed: set[str] = set()
    special: set[str] = set()
    for facts, name in zip(fields[::2], fields[1::2], strict=False):
        path = name.decode("utf-8", "surrogateescape")
        changed.add(path)
        modes = facts.decode("ascii", "replace").lstrip(":").split(" ")[:2]
        if any(mode in _SPECIAL_MODES for mode in modes):
            special.add(path)
    return frozenset(changed), frozenset(special)
