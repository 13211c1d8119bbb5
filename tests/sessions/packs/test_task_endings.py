"""Verdicts over task folders, with real boxes: sessions over many folders, of which each differs in one place."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any
from xml.etree import ElementTree

import pytest
from agent_scripts import answer_turns, item_of, turn_of
from engines import IMAGE, Running
from provider import Provider, Request
from sessions import Session, until
from task_folders import write_task
from trees import rows, run_tree

_TOML = """{root}
[agent]
timeout_sec = {agent_s}
{agent}
[verifier]
timeout_sec = {verifier_s}
{verifier}
[environment]
{image}
workdir = "{workdir}"
cpus = 0.25
memory_mb = {memory_mb}
network_mode = "no-network"
{environment}
{more}
"""
_USUAL = {
    **dict.fromkeys(("root", "agent", "verifier", "environment", "more"), ""),
    **{"agent_s": "60.0", "verifier_s": "60.0", "workdir": "/app", "memory_mb": "128"},
    "image": f'docker_image = "{IMAGE}"',
}
_BUILT = {"image": ""}
_ANSWER = "/app/answer.txt"
_REWARD = "/logs/verifier/reward.txt"
_RIGHT = f'[ "$(cat {_ANSWER} 2>/dev/null)" = 42 ]'
_WRITES = f"echo 42 > {_ANSWER}"
_GREEDY = "python3 -c 'bytearray(1 << 30)'"
_NO_HALT = """#!/bin/sh
[ "$1" = pause ] && {0} exec "$2" test -e /tmp/never-halts && exit 1
exec {0} "$@"
"""
"""An engine that cannot halt all boxes, as none can that start programs without end."""
_SILENT = "#!/bin/sh\nexit 0\n"
_KINDS = {"failure": "F", "error": "E", "skipped": "s"}


def _script(condition: str = _RIGHT, before: str = "") -> str:
    """Return a test.sh that rewards where a condition holds."""
    return f"#!/bin/sh\n{before}\nif {condition}; then echo 1; else echo 0; fi > {_REWARD}\n"


def _says(text: str, name: str = "reward.json") -> str:
    """Return a test.sh that writes a reward as it stands."""
    return f"#!/bin/sh\nprintf '%s' '{text}' > /logs/verifier/{name}\n"


def _separate(artifacts: str = f'"{_ANSWER}"', **lines: str) -> dict[str, str]:
    """Return lines of a task.toml by which artifacts alone are judged."""
    return {"root": f"artifacts = [{artifacts}]", "verifier": 'environment_mode = "separate"', **lines}


@dataclass(frozen=True)
class Told:
    """A task folder with the commands of its agent and its end.

    Args:
        outcome: `P`, `F`, `E` or `s`.
        reason: On record.
        mark: Of its verdict.
        says: A pattern in the report of its item, or in what its evaluations note.
        toml: Lines and values of its task.toml.
        test: Its test.sh.
        files: More of it.
        agent: Commands, one by turn.
        credits: By criterion; empty where the outcome says it all.
    """

    outcome: str
    reason: str | None = None
    mark: str | None = None
    says: str = ""
    toml: Mapping[str, str] = field(default_factory=dict)
    test: str = field(default_factory=_script)
    files: Mapping[str, str | None] = field(default_factory=dict)
    agent: Sequence[str] = (_WRITES,)
    credits: Mapping[str, float] = field(default_factory=dict)


_IN_BOX = ("in_process",)
_KEY = "key-of-this-test"

REWARDS = {
    "separate": Told("P", toml=_separate()),
    "separate-wrong": Told(
        "F", "tests_failed", toml=_separate(), says="reward is 0", agent=["echo 41 > answer.txt"]
    ),
    "separate-nothing": Told("F", "tests_failed", toml=_separate(), agent=()),
    "shared": Told("P", None, *_IN_BOX),
    "shared-wrong": Told("F", "tests_failed", *_IN_BOX, agent=()),
    "exits-1": Told("P", None, *_IN_BOX, test=f"{_script()}exit 1\n"),
    "silent": Told("E", "no_reward", says="wrote no reward", test=_SILENT),
    "old": Told(
        "E",
        "no_reward",
        says="wrote no reward",
        test=_SILENT,
        agent=["for n in json txt; do echo 1 > /logs/verifier/reward.$n; done"],
    ),
    "empty": Told("E", "no_reward", says="wrote no reward", test=_says("", "reward.txt")),
    "nan": Told("E", "no_reward", says="finite number", test=_says("nan", "reward.txt")),
    "nan-json": Told("E", "no_reward", says="finite number", test=_says('{"reward": NaN}')),
    "deep": Told("E", "no_reward", says="reward.json is not JSON", test=_says("[" * 60_000)),
    "huge": Told("P", None, *_IN_BOX, test=_says('{"reward": 1' + "0" * 400 + "}")),
    "huger": Told("E", "no_reward", says="reward.json", test=_says('{"reward": 1' + "0" * 5000 + "}")),
    "below-0": Told("F", "tests_failed", *_IN_BOX, test=_says("-3", "reward.txt"), credits={"": 0}),
    "half": Told("F", "tests_failed", *_IN_BOX, test=_says("0.5", "reward.txt"), credits={"": 0.5}),
    "criteria": Told(
        "F",
        "tests_failed",
        *_IN_BOX,
        test=_says('{"speed": 1, "taste": 0.25}'),
        credits={"speed": 1, "taste": 0.25},
    ),
    "all-criteria": Told("P", None, *_IN_BOX, test=_says('{"a": 1, "b": 2}'), credits={"a": 1, "b": 1}),
    "json-wins": Told(
        "P", None, *_IN_BOX, test=_says('{"reward": 1, "b": 0}') + f"echo 0 > {_REWARD}\n", credits={"": 1}
    ),
    "agents-nan": Told(
        "F",
        "no_reward",
        *_IN_BOX,
        "finite number",
        test=f"#!/bin/sh\ncat {_ANSWER} > {_REWARD} || echo 0 > {_REWARD}\n",
        agent=[f"echo nan > {_ANSWER}"],
    ),
    "loud": Told("P", toml=_separate(), test=_script(before="head -c 2147483648 /dev/zero")),
    "hangs": Told("E", "no_reward", says="no end within 1 s", toml={"verifier_s": "1.0"}, test="sleep 600\n"),
    "made-to-hang": Told(
        "F",
        "no_reward",
        *_IN_BOX,
        "no end within 2 s",
        {"verifier_s": "2.0"},
        f"[ ! -e {_ANSWER} ] || cat {_ANSWER}; echo 0 > {_REWARD}",
        agent=[f"mkfifo {_ANSWER}"],
    ),
    "tells-key": Told(
        "E",
        "no_reward",
        says="exit code 1: <redacted> -",
        toml={"verifier": 'env = {A = "${TASK_KEY}"}'},
        test="#!/bin/sh\necho $A -- >&2; exit 1\n",
    ),
    "greedy": Told(
        "E", "no_reward", says="wrote no reward .exit code 137", test=f"#!/bin/sh\nexec {_GREEDY}\n"
    ),
}
"""Rewards, and verifiers without one."""

BOXES = {
    "elsewhere": Told("P", None, "own_box", test=_script("[ -f /opt/done ]"), agent=["touch /opt/done"]),
    "server": Told(
        "P",
        None,
        "own_box",
        test=_script("python3 -c 'import urllib.request as r; r.urlopen(\"http://127.0.0.1:8080/\")'"),
        agent=["cd /srv && python3 -m http.server 8080 >/dev/null 2>&1 &", "sleep 2; ls -d /tests /solution"],
    ),
    "broken": Told("F", "no_reward", *_IN_BOX, agent=[f"{_WRITES}; rm -f /bin/*sh /usr/bin/*sh"]),
    "over": Told("P", toml=_separate(agent_s="2.0"), agent=[f"{_WRITES}; sleep 600"]),
    "hungry": Told("P", toml=_separate(memory_mb="64"), agent=[_GREEDY, _WRITES]),
    "starved": Told(
        "F",
        "out_of_memory",
        None,
        "more than 67108864 bytes of memory",
        {"memory_mb": "64"},
        agent=["true", f"head -c 30M /dev/zero > /dev/shm/x; {_GREEDY}; sleep 60"],
    ),
    "hoards": Told(
        "F", "no_reward", *_IN_BOX, toml={"memory_mb": "64"}, agent=[f"{_WRITES}; cat /dev/zero > /dev/shm/x"]
    ),
    "killed": Told("E", "sandbox", None, "the box has ended", agent=["true", "sleep 60"]),
    "links": Told(
        "F",
        "no_reward",
        *_IN_BOX,
        agent=[
            "rm -rf /logs/verifier /tests; ln -s /app /tests; ln -s /app /logs/verifier; echo 1 > reward.txt"
        ],
    ),
    "reward-links": Told(
        "F",
        "tests_failed",
        *_IN_BOX,
        agent=["echo 1 > /app/one; for n in json txt; do ln -s /app/one /logs/verifier/reward.$n; done"],
    ),
    "planted": Told(
        "F",
        "no_reward",
        *_IN_BOX,
        "cannot be put where the agent worked",
        agent=[f"{_WRITES}; mkdir -p /logs/verifier/reward.json/x; echo > /tests"],
    ),
    "unhealthy": Told(
        "E",
        "unhealthy",
        None,
        "does not become healthy .no luck",
        {
            "more": '[environment.healthcheck]\ncommand = "echo no luck; false"\nretries = 2\ninterval_sec = 0.1'
        },
    ),
    "made-unhealthy": Told(
        "F",
        "no_reward",
        None,
        "does not become healthy",
        _separate(more=f'[environment.healthcheck]\ncommand = "test ! -e {_ANSWER}"\nretries = 1'),
    ),
    "never-halts": Told(
        "F", "no_reward", *_IN_BOX, "could not be halted", agent=[f"{_WRITES}; touch /tmp/never-halts"]
    ),
    "healthy": Told(
        "P",
        None,
        *_IN_BOX,
        toml={"more": '[environment.healthcheck]\ncommand = "test -f ready"\nretries = 1'},
        files={"environment/ready": ""},
    ),
    "no-workdir": Told("E", "sandbox", None, "/dev/null/x cannot be made", {"workdir": "/dev/null/x"}),
    "no-image": Told(
        "s",
        "no_image",
        None,
        "localhost/no-such-image",
        {"image": 'docker_image = "localhost/no-such-image"'},
    ),
    "not-built": Told(
        "E",
        "no_image",
        None,
        "could not build its image",
        _BUILT,
        files={"environment/Dockerfile": f"FROM {IMAGE}\nRUN false\n"},
    ),
    "built": Told(
        "P",
        None,
        *_IN_BOX,
        "",
        _BUILT,
        _script("[ -f built ]"),
        {"environment/Dockerfile": f"FROM {IMAGE}\nRUN echo 1 > /built\n"},
        ["cp /built ."],
    ),
    "judge-built": Told(
        "P",
        toml=_separate(),
        test=_script(f"{_RIGHT} && [ -f /judge ]"),
        files={"tests/Dockerfile": f"FROM {IMAGE}\nRUN echo 1 > /judge\nCOPY . /tests\n"},
    ),
    "steps": Told(
        "s", "unsupported", None, "it needs steps, unknown here", {"more": '[[steps]]\nname = "a"'}
    ),
    "downloads": Told(
        "s",
        "no_network",
        None,
        "tests/test.sh:2: the verifier downloads",
        {"verifier": 'network_mode = "public"'},
        "#!/bin/sh\npip install pytest\n",
    ),
    "denied": Told("s", "denied_variable", None, "TASK_SECRET", {"verifier": 'env = {A = "${TASK_SECRET}"}'}),
}
"""The ends of boxes."""

_SEEN = "$(stat -c '%n %a %u %F' $(find /app/out | sort))"
_FOUND = """\
/app/out 755 0 directory
/app/out/keep 751 0 directory
/app/out/keep/run 755 0 regular file
/app/out/lib 777 0 symbolic link
/app/out/secret 600 0 regular file
/app/out/twice 600 0 regular file
"""
_LEAVES = """\
mkdir -p out/keep out/cache; chmod 751 out/keep; cd out; cp /bin/true keep/run; chmod 6755 keep/run
echo 1 > secret; chmod 600 secret; ln secret twice; touch -d 1900-01-01 secret
touch a.log keep/b.log cache/c; cp -r keep cache
mkfifo pipe "$(printf 'p\\377')"; ln -s /usr/lib lib; ln -s /etc/passwd out; ln -s ../../etc up
"""

HANDED_OVER = {
    "modes": Told(
        "P",
        None,
        *_IN_BOX,
        r"(?s)out/out was taken away.*out/p\W* was taken away.*out/up was taken away: it is a link to '../../etc'",
        _separate('{source = "out", exclude = ["*.log", "cache"]}'),
        _script('[ "$(cat /tests/expected)" = "$seen" ]', f'seen={_SEEN}; echo "$seen"'),
        {"tests/expected": _FOUND},
        [_LEAVES],
    ),
    "link-out": Told(
        "F",
        "tests_failed",
        None,
        "answer.txt was taken away|passwd was taken away",
        _separate(),
        _script(f"[ -e {_ANSWER} ]"),
        agent=[f"ln -s /etc/passwd {_ANSWER}"],
    ),
    "data-mode": Told(
        "P",
        toml=_separate(),
        test=_script(f'[ "$(stat -c %a {_ANSWER})" = 644 ]'),
        agent=[f"{_WRITES}; chmod 4755 {_ANSWER}"],
    ),
    "data-folder": Told(
        "F",
        "tests_failed",
        None,
        "it is not a plain file",
        _separate(),
        _script(f"[ -e {_ANSWER} ]"),
        agent=[f"mkdir {_ANSWER}; echo 1 > {_ANSWER}/x"],
    ),
    "logs": Told(
        "P",
        None,
        *_IN_BOX,
        toml={"verifier": 'environment_mode = "separate"'},
        test=_script("[ -f /logs/artifacts/a.txt ]"),
        agent=["echo 1 > /logs/artifacts/a.txt"],
    ),
    "logs-unnamed": Told(
        "F",
        "tests_failed",
        toml={"verifier": 'environment_mode = "separate"'},
        test=_script('[ -f "/logs/art""ifacts/a.txt" ]'),
        agent=["echo 1 > /logs/artifacts/a.txt"],
    ),
    "collect": Told(
        "P",
        toml=_separate(
            more=f'[[verifier.collect]]\ncommand = "cp /var/x {_ANSWER}; id -u >> {_ANSWER}"\nuser = 7'
        ),
        test=_script(f'[ "$(tr "\\n" " " < {_ANSWER})" = "42 7 " ]'),
        agent=["chmod 777 /app; echo 42 > /var/x"],
    ),
    "too-large": Told(
        "F", "too_large", None, "1,073,741,824 bytes", _separate(), agent=[f"truncate -s 3G {_ANSWER}"]
    ),
    "user": Told(
        "P", None, *_IN_BOX, toml={"verifier": "user = 1234"}, test=_script('[ "$(id -u)" = 1234 ]')
    ),
    "agents-user": Told(
        "P",
        None,
        *_IN_BOX,
        toml={"agent": "user = 1234"},
        test=_script('[ "$(cat /logs/artifacts/who)" = 1234 ]'),
        agent=["id -u > /logs/artifacts/who"],
    ),
    "private": Told(
        "P",
        None,
        *_IN_BOX,
        toml=_separate('"/logs/artifacts"', agent="user = 1234")
        | {"verifier": 'environment_mode = "separate"\nuser = 1234'},
        test=_script("grep -q 42 /logs/artifacts/a"),
        agent=["umask 077; echo 42 > /logs/artifacts/a"],
    ),
    "no-user": Told("E", "no_user", None, "no user 'nemo'", {"agent": 'user = "nemo"'}),
    "no-program": Told("P", None, *_IN_BOX, test=_script().removeprefix("#!/bin/sh\n")),
    "bash": Told(
        "P", None, *_IN_BOX, test=_script('[ "$BASH_VERSION" ]').replace("/bin/sh", "/usr/bin/env bash")
    ),
    "variables": Told(
        "P",
        None,
        *_IN_BOX,
        toml={
            "verifier": 'env = {A = "${TASK_KEY}", B = "${TASK_NONE:-b c}"}',
            "environment": 'env = {C = "d"}',
        },
        test=_script('[ "${#A} $B $C" = "16 b c d" ] && [ "$(cat seen)" = d ]'),
        agent=["echo $A$B$C$TASK_KEY > seen"],
    ),
    "volume": Told(
        "P",
        None,
        *_IN_BOX,
        toml=_BUILT,
        test=_script(f"{_RIGHT} && [ -f twice ]"),
        files={"environment/Dockerfile": f"FROM {IMAGE}\nVOLUME /app /logs/verifier\n"},
        agent=[f"{_WRITES}; ln answer.txt twice"],
    ),
    "loose": Told(
        "P", None, *_IN_BOX, files={"environment/given.txt": "42"}, agent=["cp given.txt answer.txt"]
    ),
}
"""The files that an agent leaves, and how they are judged."""


def _write(folder: Path, told: Told) -> None:
    files = {"instruction.md": f"Do it (item {folder.name}).\n", "tests/test.sh": told.test, **told.files}
    write_task(folder, _TOML.format_map({**_USUAL, **told.toml}), files)
    (folder / "tests" / "test.sh").chmod(0o644)  # as archives leave it


def _items(report: Path) -> dict[str, tuple[str, str]]:
    """Return the end of each item with what its report says."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        ends = [(_KINDS[one.tag], f"{one.get('message')} {one.text}") for one in case if one.tag in _KINDS]
        found[str(case.get("name")).partition("[")[0]] = ends[0] if ends else ("P", "")
    return found


def _of_boxes(database: Path, name: str, kind: str = "box") -> list[dict[str, Any]]:
    query = (
        f"JOIN results ON results.id = result_id WHERE code = '{name}' AND type = '{kind}' ORDER BY events.id"
    )
    return [json.loads(payload) for (payload,) in rows(database, f"SELECT payload FROM events {query}")]


def _podman(*words: str) -> str:
    return subprocess.run(["podman", *words], capture_output=True, check=True, text=True).stdout


def _meddle(name: str) -> None:
    """Do to the box of a task what happens to machines."""
    container, pid = _podman(
        "ps", "--filter", f"label=helmbench.task={name}", "--format", "{{.Names}} {{.Pid}}"
    ).split()
    if name == "killed":
        _podman("kill", container)
    else:
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


@pytest.mark.parametrize("tasks", [REWARDS, BOXES, HANDED_OVER], ids=["rewards", "boxes", "handed-over"])
def test_verdicts(
    pytester: pytest.Pytester,
    provider: Provider,
    podman: Running,
    monkeypatch: pytest.MonkeyPatch,
    tasks: Mapping[str, Told],
) -> None:
    for name, told in tasks.items():
        _write(pytester.path / "benchmark" / name, told)
    monkeypatch.setenv("TASK_KEY", _KEY)
    monkeypatch.setenv("TASK_SECRET", "s")
    answer_turns(provider, {name: told.agent for name, told in tasks.items()})
    program = pytester.mkdir("programs") / "podman"
    program.write_text(_NO_HALT.format(which("podman")))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    scripted = provider.reply
    assert scripted is not None

    def reply(request: Request) -> Any:
        if turn_of(request) == 1 and item_of(request) in ("killed", "starved"):
            _meddle(item_of(request))
        return scripted(request)

    provider.reply = reply

    result = run_tree(
        pytester, "--junitxml=junit.xml", "--helmbench-sandbox=podman", "--helmbench-build=offline",
        "--helmbench-agent-env=TASK_KEY", "--helmbench-show-hidden", url=provider.url,
    )  # fmt: skip

    database, items = pytester.path / "helmbench.db", _items(pytester.path / "junit.xml")
    ends = {
        name: (end, dict(rows(database, "SELECT code, reason FROM results"))[name])
        for name, (end, _) in items.items()
    }
    assert ends == {name: (told.outcome, told.reason) for name, told in tasks.items()}, result.stdout.str()
    assert _KEY not in result.stdout.str()
    assert _KEY.encode() not in database.read_bytes()
    query = "SELECT criterion, credit, beside, justification FROM evaluations JOIN results ON results.id = result_id"
    for name, told in tasks.items():
        judged = rows(database, f"{query} WHERE code = '{name}'")
        assert {one[2] for one in judged} <= {told.mark}, name
        assert not told.credits or {one[0]: one[1] for one in judged} == told.credits, name
        said = "\n".join([items[name][1], *(str(one[3]) for one in judged)])
        assert re.search(told.says, said), (name, said)
    if "hungry" in tasks:
        (_, agents), (handed,) = _of_boxes(database, "hungry"), _of_boxes(database, "hungry", "handed_over")
        assert (agents["memory_mb"], agents["memory_kills"], agents["disk_mb"]) == (64, 1, None)
        assert 32 < agents["peak_mb"] <= 64
        assert (handed["bytes"], handed["files"]) == (3, 1)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_killed_session_goes_on_where_it_was_and_leaves_no_box(
    pytester: pytest.Pytester, provider: Provider, podman: Running, workers: str
) -> None:
    names = [f"hello-{number}" for number in range(4)]
    for name in names:
        _write(pytester.path / "benchmark" / name, Told("P", toml=_separate()))
    answer_turns(provider, {name: ["sleep 0.5", _WRITES] for name in names})
    own = "label=helmbench.task"

    first = Session(pytester.path, provider.url, workers, "-q", "--helmbench-sandbox=podman")
    until(lambda: provider.count >= 2, "agents work")
    first.kill_all()
    assert any("hello-" in name for name in _podman("ps", "-a", "--format", "{{.Labels}}").splitlines())
    [(stored,)] = rows(pytester.path / "helmbench.db", "SELECT count(*) FROM calls")
    before = provider.count
    result = run_tree(pytester, workers, "--helmbench-sandbox=podman", "--helmbench-resume", url=provider.url)

    result.assert_outcomes(passed=4)
    assert provider.count - before == 12 - stored, "nothing on record is asked again"
    left = _podman("ps", "-a", "--filter", own, "--format", "{{.Labels}}").splitlines()
    assert [name for name in left if "hello-" in name] == []
