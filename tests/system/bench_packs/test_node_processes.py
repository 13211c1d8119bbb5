"""The processes of a pack: what they know, how fast they come and go, and that none is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from bench_pack_folders import write_bench_pack_folder
from bench_pack_sessions import node_processes
from bridges import SHORT_BOUNDS, Item, bridge_to, outcomes
from paths import SUPPORT
from waiting import lives, until

from pytest_helmbench.benchmarks.bench_packs.node.process import PackFailedError

_TREE = """async () => {
  const { spawn } = require('node:child_process');
  const options = (detached) => ({ stdio: 'ignore', detached });
  const pids = [false, true].map((detached) => spawn('sleep', ['1000'], options(detached)).pid);
  require('node:fs').writeFileSync(process.env.HOME + '/pids', JSON.stringify([process.pid, ...pids]));
  THEN
}"""
_THENS = {
    "idles": "await new Promise(() => {});",
    "loops": "for (;;);",
    "blocks": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);",
}


def _pids(root: Path) -> list[int]:
    path = root.parent / "work" / "home" / "pids"
    until(lambda: path.exists() and path.read_text().endswith("]"), "the pack runs")
    return list(json.loads(path.read_text()))


def test_the_environment_of_a_pack_holds_no_key_and_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HELMBENCH_API_KEY", "sk-secret")
    monkeypatch.setenv("NODE_OPTIONS", "--throw-deprecation")
    root = write_bench_pack_folder(
        tmp_path / "pack",
        {"A": "async () => result({ env: { ...process.env }, tmp: require('os').tmpdir() })"},
    )

    async def go(**how: Any) -> Any:
        async with bridge_to(root, **how) as bridge:
            return (await outcomes(bridge, [Item("A")]))[0]

    for how in ({"fenced": True}, {"fenced": False}):
        seen = asyncio.run(go(**how))
        env = seen["env"]
        work = tmp_path / "work"
        assert "sk-secret" not in json.dumps(env)
        assert set(env) <= {
            *("PATH", "TZ", "LANG", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"),
            *("NO_PROXY", "no_proxy", "NODE_PATH", "LC_CTYPE", "PWD"),
        }
        assert (env["HOME"], env["TMPDIR"], seen["tmp"]) == (str(work / "home"),) * 3
        assert env["NO_PROXY"] == "127.0.0.1,localhost,::1"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems know no subreaper")
@pytest.mark.parametrize("then", [*_THENS, "stops-its-launcher"])
async def test_nothing_is_left_when_an_item_hangs_or_the_bridge_is_closed(tmp_path: Path, then: str) -> None:
    act = _TREE.replace("THEN", _THENS.get(then, "process.kill(process.ppid, 'SIGSTOP'); " + _THENS["idles"]))
    root = write_bench_pack_folder(tmp_path / "pack", {"A": act})

    async with bridge_to(root, fenced=False, bounds=SHORT_BOUNDS) as bridge:
        running = asyncio.create_task(bridge.run(Item("A"), 1.0))
        if then == "idles":
            await asyncio.to_thread(_pids, root)
            running.cancel()
        with pytest.raises((PackFailedError, asyncio.CancelledError)):
            await running
    pids = _pids(root)
    until(lambda: not any(map(lives, pids)), "they end")


def _sleeping(mark: str) -> list[int]:
    """Return the processes that sleep for so long; inside of the fence they have other numbers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes() == f"sleep\0{mark}\0".encode():
                found.append(int(path.parent.name))
    return found


_SESSION = """
import asyncio, sys
from dataclasses import replace
sys.path[:0] = {path!r}
from bench_pack_sessions import node_processes
from bridges import BOUNDS, SHORT_BOUNDS, Item, bridge_to
from pathlib import Path

async def go():
    bounds = replace(SHORT_BOUNDS, freeze_s=600.0)
    async with bridge_to(Path({root!r}), fenced={permission}, bounds=bounds) as bridge:
        await bridge.run(Item("A"), 600.0)

asyncio.run(go())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("then", _THENS)
@pytest.mark.parametrize("fenced", [True, False])
def test_nothing_is_left_when_we_are_killed(tmp_path: Path, then: str, fenced: bool) -> None:
    mark = f"10{os.getpid()}"
    act = _TREE.replace("THEN", _THENS[then]).replace("1000", mark)
    root = write_bench_pack_folder(tmp_path / "pack", {"A": act})
    text = _SESSION.format(path=[str(SUPPORT)], root=str(root), permission=fenced)
    session = subprocess.Popen([sys.executable, "-c", text], env=os.environ)
    try:
        pids = [*node_processes(root.parent), *_sleeping(mark)] if _pids(root) else []
        assert len(pids) >= 3
        assert all(map(lives, pids))
        session.send_signal(signal.SIGKILL)
        until(lambda: not any(map(lives, pids)), "they end")
    finally:
        session.kill()
        session.wait()
