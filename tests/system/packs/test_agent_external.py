"""An external agent: a real program of the user's, a real relay, and nothing of ours in its reach but its own token."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from engines import Running
from waiting import lives, until

from pytest_helmbench.benchmarks.packs.agent.external import (
    AgentCommand,
    AgentCommandError,
    AgentFailedError,
    ExternalRun,
    ExternalTask,
    run_external,
)
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.gateway.relay.relay import RelayAddress
from pytest_helmbench.sandbox.box import BoxSpec, Command
from pytest_helmbench.sandbox.workspace import Workspace

_NOWHERE = RelayAddress("http://127.0.0.1:9/x/v1", "relay-token")


@dataclass
class Stage:
    """A workspace, and a folder that the user stands in."""

    workspace: Workspace
    folder: Path

    def command(self, code: str, *arguments: str) -> AgentCommand:
        """Return a Python program as a command."""
        (self.folder / "agent.py").write_text(code)
        return AgentCommand.parse(Granted(" ".join((sys.executable, "agent.py", *arguments))), self.folder)

    def run(
        self,
        command: AgentCommand,
        wall_s: float = 30.0,
        address: RelayAddress = _NOWHERE,
        message: str = "Do it.\n",
    ) -> ExternalRun:
        """Run an agent that asks no model."""
        return asyncio.run(
            run_external(command, ExternalTask(message, self.workspace, address, "test/good", wall_s))
        )

    def read(self, name: str) -> str:
        """Return a file of the workspace."""
        data = self.workspace.get(name, limit_bytes=100_000)
        assert data is not None
        return data.decode()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "user").mkdir()
    return Stage(Workspace(tmp_path / "workspace"), tmp_path / "user")


def test_its_environment_is_made_from_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "HELMBENCH_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "HTTPS_PROXY",
    ):
        monkeypatch.setenv(name, "sk-secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    code = "import json, os; json.dump({**os.environ, 'CWD': os.getcwd()}, open('env.json', 'w'))"
    stage.run(stage.command(code))
    env = json.loads(stage.read("env.json"))
    assert "sk-secret" not in json.dumps(env)
    assert env["OPENAI_BASE_URL"] == env["OPENAI_API_BASE"] == "http://127.0.0.1:9/x/v1"
    assert (env["OPENAI_API_KEY"], env["HELMBENCH_MODEL"]) == ("relay-token", "test/good")
    assert env["CWD"] == env["HELMBENCH_WORKSPACE"] == str(stage.workspace.path)
    assert (env["PATH"], env["LANG"]) == (os.environ["PATH"], "C.UTF-8")
    task_file, temporary = Path(env["HELMBENCH_TASK_FILE"]), Path(env["TMPDIR"])
    assert not task_file.is_relative_to(stage.workspace.path)
    assert temporary.parent == task_file.parent
    assert not task_file.parent.exists()


def test_an_exit_code_is_an_error_and_what_it_said_is_kept_apart(stage: Stage) -> None:
    code = "import sys; print('out'); sys.stderr.write('x' * 50000 + '\\n\\x1b[31mthe prompt was …'); sys.exit(3)"
    with pytest.raises(AgentFailedError) as caught:
        stage.run(stage.command(code))
    lines = str(caught.value).splitlines()
    assert lines == [
        f"the agent ended with exit code 3: {sys.executable} agent.py",
        "  hint: its last words on stderr are shown with the item",
    ]
    run = caught.value.run
    assert run is not None
    assert (run.exit_code, run.stdout_tail) == (3, "out")
    assert run.stderr_tail.endswith("x\n\\x1b[31mthe prompt was …")
    assert len(run.stderr_tail) < 20_000
    (event,) = run.events()
    assert (event.type, event.payload["exit_code"], event.payload["stdout"]) == ("end", 3, "out")


def test_at_its_time_limit_it_is_killed_with_all_it_started(stage: Stage) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('pid', 'w').write(str(child.pid)); time.sleep(60)"
    )
    run = stage.run(stage.command(code), wall_s=2.0)
    assert run.exit_code is None
    assert run.wall_s < 50  # the child would sleep for 60 s
    pid = int(stage.read("pid"))
    until(lambda: not lives(pid), "its child ends")


def test_nothing_that_it_started_outlives_it(stage: Stage) -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('pid', 'w').write(str(child.pid))"
    )
    assert stage.run(stage.command(code)).exit_code == 0
    pid = int(stage.read("pid"))
    until(lambda: not lives(pid), "its child ends")


def test_what_it_makes_belongs_to_whoever_runs_in_the_sandbox(bwrap: Running, stage: Stage) -> None:
    code = "import os\nos.umask(0o077)\nos.mkdir('d')\nopen('d/f', 'w').write('x')\nos.symlink('/etc', 'l')"
    with bwrap.engine.new_workspace() as workspace:
        stage.workspace = workspace
        stage.run(stage.command(code))
        box = bwrap.wait(bwrap.engine.open(BoxSpec(workspace=workspace)))
        ended = bwrap.wait(box.run(Command(("sh", "-c", "cat d/f; echo y > d/f; rm l"))))
        assert (ended.exit_code, ended.stdout) == (0, b"x")


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("", "there is no command", ""),
        ("  ", "there is no command", ""),
        ("agent 'x", '"agent \'x" cannot be split: no closing quotation', "quote it as in a shell"),
        ("no-agent --x", "the program 'no-agent' is not there", "give its path, or put it on PATH"),
    ],
)
def test_commands_that_cannot_be_started(tmp_path: Path, text: str, what: str, hint: str) -> None:
    with pytest.raises(AgentCommandError) as caught:
        AgentCommand.parse(Granted(text), tmp_path)
    assert str(caught.value) == f"--helmbench-agent: {what}" + (f"\n  hint: {hint}" if hint else "")


_KILLED = """
import asyncio, sys
from pathlib import Path
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.benchmarks.packs.agent.external import AgentCommand, ExternalTask, run_external
from pytest_helmbench.gateway.relay.relay import RelayAddress
from pytest_helmbench.sandbox.workspace import Workspace
place = Path(sys.argv[1])
command = AgentCommand.parse(Granted(sys.argv[2]), place)
task = ExternalTask("task", Workspace(place), RelayAddress("http://127.0.0.1:9/x/v1", "token"), "m")
asyncio.run(run_external(command, task))
"""


def test_a_killed_session_leaves_no_agent(tmp_path: Path) -> None:
    # The agent's own child has left its process group, and says that it is there.
    agent = tmp_path / "agent.sh"
    agent.write_text("#!/bin/sh\nsetsid sh -c 'echo $$ > pid; exec sleep 600' &\nexec sleep 600\n")
    agent.chmod(0o755)
    session = subprocess.Popen([sys.executable, "-c", _KILLED, str(tmp_path), str(agent)])
    pid = tmp_path / "pid"
    until(lambda: pid.exists() and pid.read_text().strip())
    child = Path(f"/proc/{pid.read_text().strip()}")
    assert child.exists()
    session.kill()
    session.wait()
    until(lambda: not child.exists())
