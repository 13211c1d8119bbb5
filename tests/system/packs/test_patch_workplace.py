"""The repository as an agent gets it: without a future, and with a patch at the end that no trick of its own bends."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from engines import IMAGE, Running
from repositories import CALCULATOR, bundle_of, git, make_repository, patch_task

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding, AgentRow, FindingError
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchPhase
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import evaluate_patch
from pytest_helmbench.benchmarks.packs.families.repo_patch.family import open_workplace
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import patch_in_reply
from pytest_helmbench.benchmarks.packs.task import PackTask, PlannedFile, Resource, Visibility
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.sandbox.box import Command, Ended, Limits

_MIB = 1024 * 1024
_LIMITS = Limits(wall_s=60, disk_bytes=64 * _MIB)
_PASSED = AgentFinding(Verdict.PASSED)


async def _worked(
    room: Running, task: PackTask, script: str, assets: tuple[PlannedFile, ...] = ()
) -> tuple[Ended, str]:
    """Let an agent run one script; return how that ended, and the patch."""
    async with open_workplace(AgentRow(task, room.engine, assets)) as place:
        ended = await place.box.run(Command(("sh", "-c", script), limits=_LIMITS))
        return ended, await place.patch()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose later history holds the solution, in every place where git keeps commits."""
    folder = tmp_path_factory.mktemp("workplace") / "repository"
    make_repository(
        folder, {"src/calculator.py": CALCULATOR, ".gitignore": "*.log\nforced.txt\n", "k": "k\n"}
    )
    (folder / "forced.txt").write_text("tracked, though ignored\n")
    git(folder, "add", "-f", "forced.txt")
    git(folder, "commit", "-q", "-m", "Base")
    git(folder, "tag", "base")
    (folder / "src" / "calculator.py").write_text(CALCULATOR.replace("a - b", "a + b  # THE-SOLUTION"))
    git(folder, "commit", "-q", "-a", "-m", "Later")
    git(folder, "tag", "later")
    git(folder, "stash", "store", "-m", "kept", git(folder, "rev-parse", "HEAD").strip())
    git(folder, "gc", "-q")
    git(folder, "checkout", "-q", "-b", "other")
    (folder / "k").write_text("THE-SOLUTION\n")
    git(folder, "commit", "-q", "-a", "-m", "Loose")
    git(folder, "checkout", "-q", "base")
    return folder


def _task(folder: Path, *, bundled: Path | None = None) -> PackTask:
    commit = git(folder, "rev-parse", "base^{commit}").strip()
    return patch_task(commit, folder if bundled is None else bundled)


@pytest.mark.parametrize("form", ["clone", "bundle"])
def test_the_future_is_gone_and_the_past_is_there(
    bwrap: Running, folder: Path, tmp_path: Path, form: str
) -> None:
    bundled = bundle_of(folder, tmp_path / "b.bundle") if form == "bundle" else None
    look = (
        "git log --format=%s --all; git for-each-ref; git fsck --unreachable --no-reflogs; git status --porcelain;"
        "for id in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do"
        " git cat-file -p $id | grep -a THE-SOLUTION; done; true"
    )
    ended, patch = bwrap.wait(_worked(bwrap, _task(folder, bundled=bundled), look))
    assert ended.stdout.decode().splitlines() == ["Base", "Start"]
    assert (ended.exit_code, patch) == (0, "")


def test_the_patch_is_what_differs_and_passes_when_it_is_right(bwrap: Running, folder: Path) -> None:
    script = "sed -i s/-/+/ src/calculator.py; echo more >> forced.txt; echo x > x.log; git add -A; git commit -q -m x"
    ended, patch = bwrap.wait(
        _worked(bwrap, _task(folder), f"git config user.email a@b; git config user.name a; {script}")
    )
    assert ended.exit_code == 0
    assert "\n+    return a + b\n" in patch
    assert "\n+more\n" in patch
    assert "x.log" not in patch
    assert bwrap.wait(evaluate_patch(AgentRow(_task(folder), bwrap.engine), patch)) == _PASSED


@pytest.mark.parametrize(
    "trick",
    [
        "rm -rf .git",
        "rm -rf .git; git init -q; git add -A",
        "rm -rf .git; ln -s /etc .git",
        "rm -rf .git; mkfifo .git",
        "git update-index --assume-unchanged src/calculator.py",
        "git update-index --skip-worktree src/calculator.py",
        "echo '*' > .git/info/exclude; echo '* -diff filter=x' > .git/info/attributes; chmod 000 .git",
        "for key in core.fsmonitor core.worktree filter.x.clean; do git config $key 'sh -c \"touch TRAPPED\"'; done;"
        "echo '* filter=x diff=x text eol=crlf' > .git/info/attributes",
        "mkfifo pipe; mkdir closed; chmod 000 closed; ln -s / everything; touch -t 200001010000 src/calculator.py",
        "git init -q nested; echo hidden > nested/file; (cd nested; git add -A)",
    ],
)
def test_nothing_that_is_done_to_gits_folder_bends_the_patch(
    bwrap: Running, folder: Path, trick: str
) -> None:
    _, patch = bwrap.wait(_worked(bwrap, _task(folder), f"sed -i s/-/+/ src/calculator.py; {trick}"))
    assert "\n-    return a - b\n+    return a + b\n" in patch
    assert "TRAPPED" not in patch


def test_a_patch_that_grows_beyond_all_bounds_is_the_agents_fault(bwrap: Running, folder: Path) -> None:
    with pytest.raises(FindingError) as caught:
        bwrap.wait(_worked(bwrap, _task(folder), "head -c 50000000 /dev/urandom > big"))
    assert str(caught.value) == "the changes in the workspace cannot be made into a patch: it is too large"
    finding = caught.value.finding
    assert (finding.verdict, finding.step, finding.reason) == (
        Verdict.FAILED,
        PatchPhase.CANDIDATE_PATCH,
        "no_diff",
    )


def test_a_reply_hands_in_its_patch_where_nothing_was_changed() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    assert patch_in_reply(f"Here:\n```diff\n{patch}```\n") == patch
    assert patch_in_reply("I cannot do that.") == ""
    other = "*** Begin Patch\n*** Update File: x\n-a\n+b\n*** End Patch"
    assert patch_in_reply(other) == other


# --- from an image ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(podman: Running, folder: Path) -> Iterator[str]:
    """An image with the repository at /testbed, as `git checkout base` left it, and an uncommitted file."""
    name = f"localhost/helmbench-test-repository:{os.getpid()}"  # another worker may have one of its own

    def run(*arguments: str) -> str:
        return subprocess.run(
            ("podman", *arguments), check=True, capture_output=True, text=True
        ).stdout.strip()

    container = run("create", "--network", "none", IMAGE, "true")
    try:
        run("cp", str(folder), f"{container}:/testbed")
        (folder / "build.out").write_text("left over\n")
        run("cp", str(folder / "build.out"), f"{container}:/testbed/build.out")
        (folder / "build.out").unlink()
        run("commit", "-q", container, name)
    finally:
        run("rm", "-f", container)
    yield name
    run("rmi", "-f", name)


def test_the_repository_of_an_image(podman: Running, image: str, folder: Path) -> None:
    commit = git(folder, "rev-parse", "base^{commit}").strip()
    task = patch_task(commit, None, image=image, environment_workdir="/testbed", workdir="/testbed")
    ended, patch = podman.wait(
        _worked(podman, task, "git log --all --format=%s; cat build.out; sed -i s/-/+/ src/calculator.py")
    )
    assert ended.stdout.decode().splitlines() == ["Base", "Start", "left over"]
    assert patch.count("diff --git") == 1
    assert podman.wait(evaluate_patch(AgentRow(task, podman.engine), patch)) == _PASSED
    assert (
        podman.wait(evaluate_patch(AgentRow(task, podman.engine), patch.replace("a + b", "a * b"))).reason
        == "tests_failed"
    )


def test_what_the_pack_sets_up_is_there_before_the_agent_starts_and_has_no_past(
    bwrap: Running, folder: Path
) -> None:
    right = CALCULATOR.replace("a - b", "a + b  # RIGHT")
    source = folder.parent / "set-up"
    commit = make_repository(source, {"src/calculator.py": right})
    (source / "src" / "calculator.py").write_text(CALCULATOR.replace("a - b", "a - b  # BROKEN"))
    setup = git(source, "diff")
    git(source, "reset", "-q", "--hard")
    task = patch_task(commit, source, setup_patch=setup)
    look = (
        "grep -c BROKEN src/calculator.py; git log --oneline | wc -l; git status --porcelain; git show HEAD"
    )
    repair = "sed -i 's/a - b/a + b/' src/calculator.py"
    ended, patch = bwrap.wait(_worked(bwrap, task, f"{look}; grep -r RIGHT . ; {repair}"))
    said = ended.stdout.decode()
    assert said.startswith("1\n1\n")
    assert "RIGHT" not in said
    assert "BROKEN" in said
    assert bwrap.wait(evaluate_patch(AgentRow(task, bwrap.engine), patch)) == _PASSED
    lost = patch_task(commit, source, setup_patch=setup.replace("# RIGHT", "# NEVER"))
    with pytest.raises(FindingError, match=r"^eval\.tests\.setup_patch does not apply: "):
        bwrap.wait(_worked(bwrap, lost, "true"))


@pytest.mark.parametrize(
    ("path", "script", "wanted"),
    [
        ("fix.patch", "echo THE-PATCH > fix.patch; echo x > k", "THE-PATCH\n"),
        ("fix.patch", "ln -s /etc/passwd fix.patch", ""),
        ("fix.patch", "echo > fix.patch", ""),
        ("fix.patch", "true", ""),
        ("k", "sed -i s/-/+/ src/calculator.py; touch k", ""),
        ("k", "echo THE-PATCH > k", "THE-PATCH\n"),
    ],
)
def test_a_patch_file_that_the_row_asks_for(
    bwrap: Running, folder: Path, path: str, script: str, wanted: str
) -> None:
    task = patch_task("base", folder)
    task = replace(task, resources={**task.resources, "artifact_path": Resource(path, Visibility.PUBLIC)})

    async def written() -> str:
        async with open_workplace(AgentRow(task, bwrap.engine)) as place:
            await place.box.run(Command(("sh", "-c", script)))
            assert place.artifact() in ("", await place.candidate("in words"))
            return place.artifact()

    assert bwrap.wait(written()) == wanted
