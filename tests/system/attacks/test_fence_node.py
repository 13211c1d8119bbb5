"""Attacks by a Bench Pack: Node's own ways to write and to look, threads, programs, signals, sockets, our channel."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_pack_folders import write_bench_pack_folder
from bridges import BOUNDS, Item, bridge_to, outcomes

from pytest_helmbench.benchmarks.bench_packs.node.process import BridgeBounds

_TRY = """
const can = (act) => { try { act(); return true; } catch { return false; } };
const { execFileSync, execSync } = require("node:child_process");
const fs = require("node:fs"), net = require("node:net"), os = require("node:os"), v8 = require("node:v8");
const { Worker } = require("node:worker_threads");
const connects = (where) => new Promise((resolve) => {
  const one = net.connect(where);
  one.on("connect", () => resolve(true));
  one.on("error", () => resolve(false));
});
const inThread = (code) => new Promise((resolve) => {
  const thread = new Worker(code, { eval: true, env: process.env, execArgv: [] });
  thread.on("message", resolve); thread.on("error", () => resolve("error"));
});
"""


def _ran(root: Path, runs: dict[str, str], bounds: BridgeBounds = BOUNDS) -> list[Any]:
    write_bench_pack_folder(root, runs, head=_TRY)

    async def go() -> list[Any]:
        async with bridge_to(root, bounds=bounds) as bridge:
            return await outcomes(bridge, [Item(name) for name in runs], 60.0)

    return asyncio.run(go())


# Each is true where the attack got through; what it writes is looked for from outside as well.
_REACHES = {
    "a file": "() => can(() => fs.writeFileSync('PLACE/taken', 'x'))",
    "its own code": "() => can(() => { process.chdir(__dirname); fs.writeFileSync('x', '') })",
    "a trace file of v8": """() => {
      v8.setFlagsFromString('--trace-turbo'); v8.setFlagsFromString('--trace-turbo-cfg-file=PLACE/taken');
      const hot = (n) => { let sum = 0; for (let i = 0; i < n; i += 1) sum += i; return sum };
      for (let i = 0; i < 300; i += 1) hot(10_000);
      return fs.existsSync('PLACE/taken');
    }""",
    "a report": "() => { process.report.directory = 'PLACE'; process.report.writeReport('taken');"
    " return fs.existsSync('PLACE/taken') }",
    "a heap snapshot": "() => can(() => v8.writeHeapSnapshot('PLACE/taken'))",
    "a database": """() => {
      try { new (require('node:sqlite').DatabaseSync)('PLACE/taken').exec('CREATE TABLE t (a)'); return true }
      catch { return false }
    }""",
    "a thread": "async () => await inThread(`const fs = require('fs'); let done = false;"
    " try { fs.writeFileSync('PLACE/taken', 'x'); done = true } catch {}"
    " require('worker_threads').parentPort.postMessage(done)`)",
    "a program": "() => can(() => execSync('echo x > PLACE/taken', { stdio: 'ignore' }))",
    "a link": "() => can(() => { fs.symlinkSync('PLACE', process.env.HOME + '/l');"
    " fs.writeFileSync(process.env.HOME + '/l/taken', 'x') })",
    "a secret": "() => can(() => fs.readFileSync('PLACE/secret'))",
    "a home": "() => can(() => fs.readdirSync('/root/.ssh')) || can(() => fs.readdirSync('/home'))",
    "the environment of the session": "() => can(() => fs.readFileSync('/proc/SESSION/environ'))",
    "the environment of the first process": "() => can(() => fs.readFileSync('/proc/1/environ'))",
    "memory of a parent": "() => can(() => fs.openSync(`/proc/${process.ppid}/mem`, 'r+'))",
    "memory of its own, by a file": "() => can(() => fs.openSync('/proc/self/mem', 'r+'))",
    "a signal to the session": "() => can(() => process.kill(SESSION, 0))",
    "a debugger of the session": "() => can(() => process._debugProcess(SESSION))",
    "a socket of this machine": "async () => await connects({ port: PORT, host: '127.0.0.1' })",
    "a socket with a path": "async () => await connects('PLACE/socket')",
    "a socket with an abstract name": "async () => await connects('\\\\0helmbench-node-PORT')",
    "another machine": "async () => await connects({ port: 80, host: '192.0.2.1' })",
    "a key": "() => JSON.stringify(process.env).includes('sk-secret')"
    " || execFileSync('env', { encoding: 'utf8' }).includes('sk-secret')",
    "the kernel": "() => can(() => fs.writeFileSync('/proc/sys/kernel/core_pattern', 'x'))"
    " || can(() => fs.readdirSync('/sys/kernel'))",
}


def test_a_pack_reaches_nothing_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    place = tmp_path / "place"
    place.mkdir()
    (place / "secret").write_text("x")
    place.chmod(0o777)
    with (
        socket.socket() as tcp,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        tcp.bind(("127.0.0.1", 0))
        port = tcp.getsockname()[1]
        named.bind(str(place / "socket"))
        abstract.bind(f"\0helmbench-node-{port}")
        for one in (tcp, named, abstract):
            one.listen()
        filled = {"PLACE": str(place), "SESSION": str(os.getpid()), "PORT": str(port)}
        runs = {}
        for name, act in _REACHES.items():
            for word, value in filled.items():
                act = act.replace(word, value)  # noqa: PLW2901 - word by word
            runs[name] = f"async () => result({{ note: await ({act})() }})"
        ran = _ran(tmp_path / "pack", runs)
    got = {name: getattr(one, "message", None) or one["note"] for name, one in zip(runs, ran, strict=True)}
    assert got == dict.fromkeys(runs, False)
    assert sorted(path.name for path in place.iterdir()) == ["secret", "socket"]


def test_an_honest_pack_works_with_files_threads_programs_and_servers_of_its_own(tmp_path: Path) -> None:
    act = """async () => {
      const home = process.env.HOME;
      fs.writeFileSync(home + '/a', 'text');
      fs.writeFileSync(os.tmpdir() + '/b', fs.readFileSync(home + '/a'));
      const said = execFileSync('cat', [home + '/a'], { encoding: 'utf8' });
      const thread = await inThread(`require('worker_threads').parentPort.postMessage(6 * 7)`);
      const server = net.createServer((one) => one.end('x'));
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
      const reached = await connects({ port: server.address().port, host: 'localhost' });
      server.close();
      process.report.getReport(); v8.getHeapStatistics(); new Intl.DateTimeFormat('de').format(0);
      return result({ note: [said, thread, reached, os.cpus().length > 0] });
    }"""
    (ran,) = _ran(tmp_path / "pack", {"A": act})
    assert ran["note"] == ["text", 42, True, True]


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (
            "() => { process.kill(process.ppid, 'SIGKILL'); process.kill(1, 'SIGSTOP'); return result() }",
            None,
        ),
        ("async () => { execSync('setsid sleep 600 >/dev/null 2>&1 &'); return result() }", None),
        ("() => { process.kill(-1, 'SIGKILL') }", "threw"),
    ],
)
def test_a_pack_hurts_only_itself(tmp_path: Path, act: str, reason: str | None) -> None:
    bad, good = _ran(tmp_path / "pack", {"bad": act, "good": ""})
    assert good["status"] == "pass"
    assert (bad["status"] == "pass") if reason is None else (bad.reason == reason)


def test_memory_of_a_pack_and_its_programs_is_bounded(tmp_path: Path) -> None:
    act = """() => {
      const held = []; for (let n = 0; n < 60; n += 1) held.push(Buffer.alloc(100 * 2 ** 20, 1)); return result();
    }"""
    (bad,) = _ran(tmp_path / "pack", {"bad": act}, replace(BOUNDS, freeze_s=60.0, alone_freeze_s=60.0))
    assert bad.reason == "crashed", bad.message
    assert "bytes of memory" in bad.message
