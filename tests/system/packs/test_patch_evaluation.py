"""The verdict over a patch: order and phases, whose fault it is, and that git does only what it should."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from controls import controls_once
from engines import Running
from repositories import CALCULATOR, TEST, bundle_of, git, make_repository, patch_task

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding, AgentRow
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchPhase
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import evaluate_patch
from pytest_helmbench.core.outcome import Verdict

_WRONG = {"src/calculator.py": CALCULATOR.replace("a - b", "a * b")}
_RIGHT = {"src/calculator.py": CALCULATOR.replace("a - b", "a + b")}
_PASSED = AgentFinding(Verdict.PASSED)


@dataclass(frozen=True)
class PatchBench:
    """A repository, and a sandbox that patches are judged in."""

    room: Running
    folder: Path
    commit: str

    def diff(self, changes: Mapping[str, str | bytes | None], *options: str) -> str:
        """Return real git's diff of changes to the repository: contents by path, None to delete."""
        for name, content in changes.items():
            path = self.folder / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        git(self.folder, "add", "-A")
        text = git(self.folder, "diff", "--cached", "--binary", *options)
        git(self.folder, "reset", "-q", "--hard")
        return text

    def judge(self, patch: str, *, parity: bool = False, **changes: Any) -> AgentFinding:
        """Judge a patch; `changes` go to the task."""
        task = patch_task(
            changes.pop("commit", self.commit), changes.pop("repository", self.folder), **changes
        )
        return self.room.wait(evaluate_patch(AgentRow(task, self.room.engine, parity=parity), patch))


@pytest.fixture(scope="module")
def bench(bwrap: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PatchBench]:
    folder = tmp_path_factory.mktemp("bench") / "repository"
    files: dict[str, str | bytes] = {
        "src/calculator.py": CALCULATOR,
        "tests/test_add.py": TEST,
        ".gitignore": "*.cache\n",
    }
    with controls_once():
        yield PatchBench(bwrap, folder, make_repository(folder, files))


def _is(finding: AgentFinding, verdict: Verdict, phase: PatchPhase, reason: str, start: str = "") -> None:
    assert (finding.verdict, finding.step, finding.reason) == (verdict, phase, reason), finding
    assert finding.message.startswith(start), finding.message


_FAILED, _ERROR = Verdict.FAILED, Verdict.ERROR


def test_a_right_patch_passes_and_a_wrong_one_fails(bench: PatchBench, tmp_path: Path) -> None:
    assert bench.judge(bench.diff(_RIGHT)) == _PASSED
    finding = bench.judge(bench.diff(_WRONG))
    _is(finding, _FAILED, PatchPhase.COMMAND, "tests_failed", "eval.tests.command: ended with exit code 1")
    assert finding.output.endswith("AssertionError")
    bundle = bundle_of(bench.folder, tmp_path / "repository.bundle")
    assert bench.judge(bench.diff(_RIGHT), repository=bundle) == _PASSED
    bare = tmp_path / "bare"
    git(tmp_path, "clone", "-q", "--bare", "--no-hardlinks", str(bench.folder), str(bare))
    assert bench.judge(bench.diff(_RIGHT), repository=bare, commit=bench.commit[:9].upper()) == _PASSED


@pytest.mark.parametrize("patch", ["", "  \n\t\n"])
def test_an_empty_patch_fails_before_anything_else(bench: PatchBench, patch: str) -> None:
    finding = bench.judge(patch, commit="abc123", repository=Path("/nowhere"))
    _is(finding, _FAILED, PatchPhase.EMPTY_PATCH, "empty_patch", "the patch is empty")


def test_a_wrong_base_commit_is_the_packs_fault_whatever_the_patch(bench: PatchBench, tmp_path: Path) -> None:
    finding = bench.judge("no patch at all", commit="abc123")
    message = (
        f"base_commit is 'abc123', which repository does not hold: it is at '{bench.commit}'\n"
        "  hint: correct input.base_commit, or the repository"
    )
    assert finding == AgentFinding(_ERROR, "wrong_base_commit", message, step=PatchPhase.BASE_COMMIT)
    for commit in ("--all", "HEAD..main", "x" * 300, "a\nb", ""):
        finding = bench.judge("no patch at all", commit=commit)
        _is(finding, _ERROR, PatchPhase.BASE_COMMIT, "wrong_base_commit", "base_commit is ")
    assert bench.judge(bench.diff(_RIGHT), commit="main") == _PASSED


def test_a_missing_repository_is_the_packs_fault(bench: PatchBench, tmp_path: Path) -> None:
    start = "base_commit 'abc123' cannot be found: "
    finding = bench.judge("x", commit="abc123", repository=None)
    _is(finding, _ERROR, PatchPhase.BASE_COMMIT, "no_repository", f"{start}the row names neither")
    broken = tmp_path / "broken.bundle"
    broken.write_bytes(b"# v2 git bundle\nnothing\n")
    finding = bench.judge("x", commit="abc123", repository=broken)
    _is(finding, _ERROR, PatchPhase.BASE_COMMIT, "no_repository", f"{start}the bundle cannot be read: ")
    finding = bench.judge("x", commit="abc123", repository=bench.folder, workdir="/usr")
    _is(finding, _ERROR, PatchPhase.BASE_COMMIT, "no_repository", "the repository cannot be at '/usr'")


@pytest.mark.parametrize("pattern", ["tests/test_add.py", "tests/", "tests/**", "*_add.py"])
@pytest.mark.parametrize("parity", [True, False])
def test_what_a_patch_does_to_files_that_the_row_keeps_is_left_out(
    bench: PatchBench, pattern: str, parity: bool
) -> None:
    check = (
        "sh",
        "-c",
        "grep -q assert tests/test_add.py && python3 -c 'from src.calculator import add; add(1, 2)'",
    )
    for change in ("", None, "def test_add(): pass\n"):
        patch = bench.diff({**_RIGHT, "tests/test_add.py": change})
        kept = {"preserved": (pattern,), "allow_paths": ("src/",), "command": check}
        assert bench.judge(patch, parity=parity, **kept) == _PASSED
        assert bench.judge(patch, parity=parity).reason == "path_denied"
    only = bench.diff({"tests/test_add.py": ""})
    _is(bench.judge(only, preserved=(pattern,)), _FAILED, PatchPhase.CHANGED_PATHS, "no_changes")
    moved = bench.diff({"tests/test_add.py": None, "src/moved.py": TEST}, "-M")
    found = bench.judge(moved, preserved=(pattern,), allow_sensitive_paths=("tests/",), parity=parity)
    assert found.verdict is _FAILED


@pytest.mark.parametrize("name", ["tests/test_add.py", "conftest.py", "Makefile", "src/.gitattributes"])
def test_a_path_that_is_announced_is_held_to_the_policy(bench: PatchBench, name: str) -> None:
    finding = bench.judge(bench.diff({name: "x\n", **_RIGHT}))
    _is(finding, _FAILED, PatchPhase.PATH_POLICY, "path_denied", f"'{name}': ")
    if name == "conftest.py":
        return
    assert bench.judge(bench.diff({name: TEST, **_RIGHT}), allow_sensitive_paths=(name,)) == _PASSED


def test_both_rules_for_paths(bench: PatchBench) -> None:
    patch = bench.diff({"Makefile": "x:\n", **_RIGHT})
    assert bench.judge(patch, parity=True) == _PASSED
    finding = bench.judge(patch, parity=True, allow_paths=("src/",))
    _is(finding, _FAILED, PatchPhase.PATH_POLICY, "path_denied", "'Makefile': it is not among the paths")
    _is(bench.judge(patch), _FAILED, PatchPhase.PATH_POLICY, "path_denied", "'Makefile': files of this name")


def test_the_setup_patch_comes_first_and_its_trouble_is_the_packs(bench: PatchBench) -> None:
    setup = bench.diff({"src/calculator.py": f"# Set up\n{CALCULATOR}", "src/x.cache": "cached\n"}, "-p")
    git(bench.folder, "commit", "-q", "--allow-empty", "-m", "Later")
    on_top = bench.diff(_RIGHT).replace("@@ -1,", "@@ -2,").replace(" +1,", " +2,")
    command = (
        "sh",
        "-c",
        "head -1 src/calculator.py | grep -q '^# Set up$' && grep -q 'a + b' src/calculator.py",
    )
    assert bench.judge(on_top, setup_patch=setup, command=command) == _PASSED
    finding = bench.judge(on_top, setup_patch=setup.replace("a - b", "never there"))
    _is(finding, _ERROR, PatchPhase.SETUP_PATCH, "does_not_apply", "eval.tests.setup_patch does not apply: ")


def test_a_patch_that_does_not_apply_fails(bench: PatchBench) -> None:
    finding = bench.judge(bench.diff(_RIGHT).replace("def add", "def sub"))
    start = "the patch does not apply: error: patch failed: src/calculator.py:1"
    _is(finding, _FAILED, PatchPhase.CANDIDATE_PATCH, "does_not_apply", start)


_BARE_HUNK = "@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"


@pytest.mark.parametrize(
    "patch",
    [
        f"--- a/src/calculator.py\n+++ b/src/calculator.py\n{_BARE_HUNK}",
        f"--- src/calculator.py\n+++ src/calculator.py\n{_BARE_HUNK}",
        f"Done:\n```diff\ndiff --git a/src/calculator.py b/src/calculator.py\n"
        f"--- a/src/calculator.py\n+++ b/src/calculator.py\n{_BARE_HUNK.replace('-1,2 +1,2', '-1,7 +1,9')}```\n",
        f"--- a/src/calculator.py\n+++ b/src/calculator.py\n{_BARE_HUNK}".replace("\n", "\r\n"),
        f"--- a/src/calculator.py\n+++ b/src/calculator.py\n{_BARE_HUNK.replace('def add(a, b)', 'def add(a,  b)')}",
    ],
    ids=["no trailing context", "no prefixes", "wrong counts", "CRLF", "white space"],
)
def test_patches_as_models_write_them(bench: PatchBench, patch: str) -> None:
    assert bench.judge(patch) == _PASSED


def test_what_really_changed_must_be_what_was_announced(bench: PatchBench) -> None:
    finding = bench.judge(
        bench.diff(_RIGHT) + "diff --git a/src/x b/src/y\nold mode 100644\nnew mode 100644\n"
    )
    assert finding.verdict is _FAILED
    same = "--- a/src/calculator.py\n+++ b/src/calculator.py\n@@ -1 +1 @@\n-def add(a, b):\n+def add(a, b):\n"
    _is(bench.judge(same), _FAILED, PatchPhase.CHANGED_PATHS, "no_changes", "the patch changes nothing")
    finding = bench.judge(bench.diff({"src/new.py": "x\n"}) + same)
    start = "announced, but not changed: 'src/calculator.py'"
    _is(finding, _FAILED, PatchPhase.CHANGED_PATHS, "other_paths", start)
    elsewhere = bench.diff(_RIGHT).replace("+++ b/src/calculator.py", "+++ b/src/other.py")
    finding = bench.judge(elsewhere, allow_paths=("src/calculator.py",))
    _is(finding, _FAILED, PatchPhase.PATH_POLICY, "path_denied", "'src/other.py': it is not among the paths")
    plain = "--- a/src/calculator.py.orig\n+++ b/src/calculator.py\n" + _BARE_HUNK
    assert bench.judge(plain, allow_paths=("src/calculator.py",)) == _PASSED


def test_links_and_submodules(bench: PatchBench) -> None:
    link = (
        "diff --git a/src/link b/src/link\nnew file mode 120000\n--- /dev/null\n"
        "+++ b/src/link\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n"
    )
    start = "'src/link': symbolic links and submodules are sensitive"
    _is(bench.judge(link), _FAILED, PatchPhase.CHANGED_PATHS, "path_denied", start)
    through = f"{link}diff --git a/src/link/x b/src/link/x\nnew file mode 100644\n--- /dev/null\n"
    through += "+++ b/src/link/x\n@@ -0,0 +1 @@\n+x\n"
    assert bench.judge(through).reason == "does_not_apply"
    module = (
        "diff --git a/src/sub b/src/sub\nnew file mode 160000\n--- /dev/null\n+++ b/src/sub\n@@ -0,0 +1 @@\n"
        f"+Subproject commit {'1' * 40}\n"
    )
    _is(bench.judge(module), _FAILED, PatchPhase.CHANGED_PATHS, "path_denied", "'src/sub': symbolic links")
    copied = "diff --git a/tests/test_add.py b/src/x.py\ncopy from tests/test_add.py\ncopy to src/x.py\n"
    _is(bench.judge(copied), _FAILED, PatchPhase.PATH_POLICY, "path_denied", "'tests/test_add.py': ")
    allowed = bench.judge(copied, allow_sensitive_paths=("tests/",))
    assert allowed.step == PatchPhase.COMMAND


def test_tests_are_added_after_the_candidate(bench: PatchBench) -> None:
    added = bench.diff({"tests/test_more.py": "from src.calculator import add\nassert add(2, 2) == 4\n"})
    command = ("python3", "-c", "import runpy; runpy.run_path('tests/test_more.py')")
    command = ("sh", "-c", "PYTHONPATH=. python3 tests/test_more.py")
    assert bench.judge(bench.diff(_RIGHT), test_patch=added, command=command) == _PASSED
    assert bench.judge(bench.diff(_WRONG), test_patch=added, command=command).verdict is Verdict.PASSED
    squatter = bench.diff({"tests/test_more.py": "pass\n", **_RIGHT})
    finding = bench.judge(squatter, test_patch=added, command=command, allow_sensitive_paths=("tests/",))
    start = "the tests no longer apply after the candidate's patch: "
    _is(finding, _FAILED, PatchPhase.TEST_PATCH, "tests_do_not_apply", start)
    broken = bench.diff({"tests/test_add.py": f"{TEST}# more\n"}).replace("add(1, 2)", "add(7, 7)")
    finding = bench.judge(bench.diff(_RIGHT), test_patch=broken, command=command)
    _is(finding, _ERROR, PatchPhase.TEST_PATCH, "does_not_apply", "eval.tests.test_patch does not apply: ")


_WITHOUT = ", as it does without the candidate"
_IF_RIGHT = "grep -q 'a + b' src/calculator.py && "


@pytest.mark.parametrize(
    ("command", "verdict", "reason", "message"),
    [
        (("no-such-program",), _ERROR, "cannot_start", f"cannot be started (exit code 127){_WITHOUT}"),
        (("/etc",), _ERROR, "cannot_start", f"cannot be started (exit code 126){_WITHOUT}"),
        (("sh", "-lc", "exit 127"), _ERROR, "cannot_start", f"cannot be started (exit code 127){_WITHOUT}"),
        (("sh", "-c", f"{_IF_RIGHT}exit 127"), _FAILED, "cannot_start", "cannot be started (exit code 127)"),
        (("sh", "-c", "exit 2"), _FAILED, "tests_failed", "ended with exit code 2"),
        (("sh", "-c", "kill -9 $$"), _FAILED, "tests_failed", "ended with exit code 137"),
        (("sh", "-c", f"{_IF_RIGHT}sleep 60"), _FAILED, "timeout", "was stopped: no end within 1 s"),
        (("sleep", "60"), _ERROR, "timeout", f"was stopped: no end within 1 s{_WITHOUT}"),
        (
            *(("sh", "-lc", "true pytest x; exit 3"), _ERROR, "broken_off"),
            f"ended with exit code 3 before its tests had all reported{_WITHOUT}",
        ),
        (("sh", "-c", "true pytest x"), _ERROR, "no_evidence", "its tests do not report"),
        (
            ("sh", "-lc", "cat pytest.ini tests/pytest_x; exit 4"),
            _FAILED,
            "tests_failed",
            "ended with exit code 4",
        ),
    ],
)
def test_how_the_command_ends(
    bench: PatchBench, command: tuple[str, ...], verdict: Verdict, reason: str, message: str
) -> None:
    finding = bench.judge(bench.diff(_RIGHT), command=command, timeout_s=1.0)
    _is(finding, verdict, PatchPhase.COMMAND, reason, f"eval.tests.command: {message}")
    assert (_WITHOUT in finding.message) == (_WITHOUT in message)


def test_a_broken_command_is_an_error_and_a_broken_candidate_fails(bench: PatchBench) -> None:
    def judge(patch: str, *arguments: str) -> AgentFinding:
        command = ("env", "X=1", "python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)
        return bench.judge(patch, command=command)

    assert judge(bench.diff(_RIGHT), "tests/test_add.py") == _PASSED
    finding = judge(bench.diff(_WRONG), "tests/test_add.py")
    message = "eval.tests.command: 1 of 1 tests failed"
    _is(finding, _FAILED, PatchPhase.COMMAND, "tests_failed", message)
    assert "assert" in finding.output
    for argument, how in (
        ("tests/gone.py", "ended with exit code 4 before its tests had all reported"),
        ("src", "there are no tests"),
    ):
        start = f"eval.tests.command: {how}, as it does"
        _is(judge(bench.diff(_RIGHT), argument), _ERROR, PatchPhase.COMMAND, "broken_off", start)


_TRAP = "touch /workspace/TRAPPED; cat"


def test_nothing_of_a_hostile_repository_runs(bwrap: Running, tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    make_repository(
        folder, {"src/calculator.py": CALCULATOR, ".gitattributes": "* filter=trap diff=trap text eol=crlf\n"}
    )
    for hook in ("pre-commit", "post-commit", "reference-transaction", "post-index-change", "post-checkout"):
        path = folder / ".git" / "hooks" / hook
        path.write_text(f"#!/bin/sh\n{_TRAP}\n")
        path.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "filter.trap.clean",
        "filter.trap.smudge",
        "diff.trap.textconv",
        "diff.external",
    ):
        git(folder, "config", key, _TRAP)
    git(folder, "config", "core.hooksPath", "/workspace/.git/hooks")
    commit = git(folder, "rev-parse", "HEAD").strip()
    patch = (
        "--- a/src/calculator.py\n+++ b/src/calculator.py\n"
        "@@ -1,5 +1,5 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n \n \n def twice(a):\n"
    )
    check = "test ! -e TRAPPED && test ! -e .git/hooks/pre-commit && git status && ! grep -q $(printf '\\r') src/*.py"
    task = patch_task(commit, folder, command=("sh", "-c", check))
    assert bwrap.wait(evaluate_patch(AgentRow(task, bwrap.engine), patch)) == _PASSED
