"""Attacks by the user's own agent, which a row of a pack has turned: on keys, files, hosts, and on our processes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from engines import missing
from provider import Provider
from relays import open_relay

from pytest_helmbench.benchmarks.packs.agent.external import (
    AgentCommand,
    AgentNeeds,
    ExternalTask,
    run_external,
)
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.sandbox.box import Unavailable
from pytest_helmbench.sandbox.fence import OpenPort, find_fence
from pytest_helmbench.sandbox.workspace import Workspace

_ASKS = """
def ask():
    body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "x"}]}).encode()
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return json.load(opener.open(request))["choices"][0]["message"]["content"]
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-user")
    monkeypatch.setenv("AGENT_SETTING", "given")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "secret").write_text("sk-secret-of-the-user")
    (tmp_path / "user" / "lent").mkdir()
    (tmp_path / "user" / "lent" / "notes").write_text("notes")
    return tmp_path


def _run(place: Path, provider: Provider, code: str, needs: AgentNeeds | None = None) -> Any:
    """Run a Python program as an agent in the fence; return what it leaves in `found.json`."""
    head = "import json, os, socket, sys, urllib.request\nfound = {}\n" + _ASKS
    (place / "user" / "agent.py").write_text(f"{head}\n{code}\njson.dump(found, open('found.json', 'w'))")
    command = AgentCommand.parse(Granted(f"{sys.executable} agent.py"), place / "user")
    workspace = Workspace(place / "workspace")

    async def run() -> None:
        fence = await find_fence(Granted("auto"))
        if isinstance(fence, Unavailable):
            missing(fence.reason)
        try:
            async with open_relay(provider.url) as relay:
                conversation, address = await relay.item()
                port = OpenPort(urlsplit(address.base_url).port or 0, relay.relay.serve, relay.relay)
                async with conversation:
                    task = ExternalTask(
                        "Do it.", workspace, address, "test/good", 60.0, fence, (port,), needs or AgentNeeds()
                    )
                    ended = await run_external(command, task)
                    assert ended.exit_code == 0, ended.stderr_tail
        finally:
            await fence.close()

    asyncio.run(run())
    data = workspace.get("found.json", limit_bytes=100_000)
    assert data is not None
    return json.loads(data)


def test_an_agent_asks_its_model_and_works_in_its_folder(place: Path, provider: Provider) -> None:
    provider.reply = lambda _request: "an answer"
    needs = AgentNeeds(("AGENT_SETTING", "NOT_SET"), (place / "user" / "lent",))
    code = (
        "found['said'] = ask(); found['task'] = open(os.environ['HELMBENCH_TASK_FILE']).read()\n"
        "found['setting'] = os.environ['AGENT_SETTING']; found['cwd'] = os.getcwd()\n"
        f"found['notes'] = open({str(place / 'user' / 'lent' / 'notes')!r}).read()\n"
        "open(os.path.expanduser('~/.cache-of-mine'), 'w').write('x')\n"
    )
    assert _run(place, provider, code, needs) == {
        "said": "an answer",
        "task": "Do it.",
        "setting": "given",
        "cwd": str(place / "workspace"),
        "notes": "notes",
    }
    assert provider.count == 1


def test_an_agent_finds_no_key_and_reaches_nothing_else(place: Path, provider: Provider) -> None:
    provider.reply = lambda _request: "an answer"
    port = urlsplit(provider.url).port
    code = f"""
def can(act):
    try: act(); return True
    except Exception: return False
found["environment"] = "sk-secret" in json.dumps(dict(os.environ))
found["file"] = can(lambda: open({str(place / "user" / "secret")!r}))
found["lent"] = can(lambda: open({str(place / "user" / "lent" / "notes")!r}))
found["home"] = can(lambda: os.listdir({str(Path.home())!r} + "/.ssh"))
found["provider"] = can(lambda: socket.create_connection(("127.0.0.1", {port}), 2))
found["session"] = can(lambda: open("/proc/{os.getpid()}/environ").read())
numbers = [name for name in os.listdir("/proc") if name.isdigit()]
found["parents"] = [pid for pid in numbers if can(lambda: open(f"/proc/{{pid}}/mem", "r+b"))]
found["first"] = can(lambda: open("/proc/1/environ", "rb").read(1))
found["families"] = [n for n in (16, 17, 38, 40) if can(lambda: socket.socket(n, 1))]
found["own"] = can(lambda: open(sys.argv[0], "a"))
os.kill(1, 9)
"""
    assert _run(place, provider, code) == {
        "environment": False,
        "file": False,
        "lent": False,
        "home": False,
        "provider": False,
        "session": False,
        "parents": [],
        "first": False,
        "families": [],
        "own": False,
    }


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"served")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def two_servers() -> Iterator[tuple[int, int]]:
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _Handler) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield servers[0].server_port, servers[1].server_port
    for server in servers:
        server.shutdown()
        server.server_close()


def test_an_agent_reaches_the_hosts_that_the_user_names_and_no_other(
    place: Path, provider: Provider, two_servers: tuple[int, int]
) -> None:
    named, other = two_servers
    code = f"""
def get(port, via_tunnel):
    try:
        proxy = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
        one = socket.create_connection((proxy.hostname, proxy.port), 5)
        if via_tunnel:
            one.sendall(f"CONNECT 127.0.0.1:{{port}} HTTP/1.1\\r\\n\\r\\n".encode())
            said = one.recv(999).split()[1]
            if said != b"200": return said.decode()
            one.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        else:
            one.sendall(f"GET http://127.0.0.1:{{port}}/ HTTP/1.0\\r\\n\\r\\n".encode())
        said = b""
        while chunk := one.recv(999): said += chunk
        return said.split()[-1].decode() if b"served" in said else said.split()[1].decode()
    except OSError as error: return error.strerror
import urllib.parse
found["named"] = [get({named}, True), get({named}, False)]
found["other"] = [get({other}, True), get({other}, False), get(22, True)]
""".replace("\\\\", "\\")
    found = _run(place, provider, code, AgentNeeds(hosts=(f"127.0.0.1:{named}",)))
    assert found == {"named": ["served", "served"], "other": ["403", "403", "403"]}
