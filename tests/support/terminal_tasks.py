"""Terminal tasks judged in a sandbox: what a script leaves in the workspace, by a command or by files of a pack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines import Running

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding, AgentRow
from pytest_helmbench.benchmarks.packs.families.terminal_task.check import TerminalTests
from pytest_helmbench.benchmarks.packs.families.terminal_task.evaluation import evaluate_terminal
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import CheckerFiles, open_place
from pytest_helmbench.benchmarks.packs.task import (
    CommandCheck,
    Environment,
    FileCheck,
    PackTask,
    PlannedFile,
    Resource,
    Visibility,
)
from pytest_helmbench.sandbox.box import Command, Limits

__all__ = ["Judge", "writing"]

_MIB = 1024 * 1024


@dataclass
class Judge:
    """A sandbox, and a place for files of packs."""

    room: Running
    folder: Path
    environment: Environment = Environment()
    assets: tuple[PlannedFile, ...] = ()
    inputs: tuple[PlannedFile, ...] = ()

    def evaluator(self, contents: Mapping[str, str], entry: str | None) -> CheckerFiles:
        """Write files of a checker and plan them."""
        planned = []
        for name, content in contents.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            planned.append(PlannedFile(path, name, 0o644, path.stat().st_size, False, True))
        return CheckerFiles(tuple(planned), entry)

    def task(self, checker: CommandCheck | FileCheck, needed: tuple[str, ...] = ()) -> PackTask:
        """Return a task with a checker."""
        tests = TerminalTests(checker, needed)
        words = "Write solution.py, answer.txt, or the program run."
        public = {"instructions": Resource(words, Visibility.PUBLIC)}
        return PackTask("demo/answer", "demo", "terminal_task", {}, public, self.environment, check=tests)

    def command(self, *argv: str, script: str = "true", **changes: Any) -> AgentFinding:
        """Judge what a script leaves, by a command."""
        return self._judge(CommandCheck(argv, **changes), CheckerFiles(inputs=self.inputs), script)

    def tests(
        self,
        contents: Mapping[str, str],
        script: str = "true",
        *,
        entry: str = ".",
        source: Any = "pytest",
        **changes: Any,
    ) -> AgentFinding:
        """Judge what a script leaves, by files of the pack."""
        return self._judge(FileCheck(source, entry, **changes), self.evaluator(contents, entry), script)

    def _judge(self, checker: CommandCheck | FileCheck, evaluator: CheckerFiles, script: str) -> AgentFinding:
        return self.room.wait(self.judged(checker, evaluator, script))

    async def judged(
        self, checker: CommandCheck | FileCheck, evaluator: CheckerFiles, script: str
    ) -> AgentFinding:
        """Judge what a script leaves, which may end as it likes."""
        row = AgentRow(self.task(checker), self.room.engine, self.assets)
        limits = Limits(wall_s=20, disk_bytes=64 * _MIB)
        async with open_place(row) as (spec, workspace):
            async with await row.engine.open(spec) as box:
                await box.run(Command(("sh", "-c", script), limits=limits))
            return await evaluate_terminal(row, workspace, evaluator)


def writing(contents: Mapping[str, str]) -> str:
    """Return a script that writes files, which may be run."""
    lines = []
    for name, content in contents.items():
        folder = name.rpartition("/")[0] or "."
        lines += [f"mkdir -p '{folder}'", f"cat > '{name}' <<'END-OF-FILE'", content.rstrip("\n")]
        lines += ["END-OF-FILE", f"chmod 755 '{name}'"]
    return "\n".join((*lines, ""))
