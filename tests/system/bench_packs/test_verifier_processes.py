"""A pack's verifier as a process of this machine, as a server of the user's, and when there is none."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paths import SUPPORT
from verifiers import PROCESS, SERVER, Pack, Upstream, asked, free_port, plain, used
from waiting import lives, until

from pytest_helmbench.benchmarks.bench_packs.bench_pack import VerifierDefault
from pytest_helmbench.benchmarks.bench_packs.verifiers.verifiers import OpenVerifiers, Verifiers
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.sandbox.fence import Fence, OpenPort, find_fence


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    """A pack whose verifier is a server of its own in Python."""
    return Pack(tmp_path).with_files(server__py=SERVER)


def test_the_packs_own_server_is_started_with_no_key_and_ends_with_the_session(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    temporary: list[Path] = []

    async def check(verifiers: Verifiers) -> None:
        assert await verifiers.ready() is None
        async with await verifiers.open() as opened:
            (endpoint,) = opened.endpoints
            assert endpoint == {
                "id": "verifier",
                "transport": "http",
                "mode": "custom_url",
                "required": True,
                "status": "running",
                "url": f"http://127.0.0.1:{endpoint['port']}",
                "port": endpoint["port"],
            }
            env = dict(line.split("=", 1) for line in (await asked(opened, "/env"))[1].splitlines())
            assert (opened.fault, opened.absent) == (None, ())
        assert await verifiers.bridge_address() is None
        assert env.pop("PORT") == env.pop("LISTEN_PORT") != str(endpoint["port"])
        assert env.pop("HOST") == "127.0.0.1"
        assert "sk-secret" not in env.values()
        assert set(env) <= {
            *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
            *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
        }
        temporary.append(Path(env["TMPDIR"]))

    used(pack.verifiers(PROCESS), check)
    assert temporary[0].name.startswith("tmp")
    assert not temporary[0].exists()
    assert pack.events == [
        {
            "type": "verifier_preparing",
            "benchPackId": "the-pack",
            "benchPackName": "The Pack",
            "verifierId": "verifier",
            "phase": "starting_container",
            "message": "The command that you named is started, unprotected, on this machine.",
        }
    ]
    assert [path.name for path in pack.folder.iterdir()] == ["server.py"]


@pytest.mark.parametrize(
    ("files", "waits", "sentence"),
    [
        (
            {"server__py": "import sys\nsys.exit('no module named flask')"},
            {},
            "verifier 'verifier' did not come up: its server ended with exit code 1: no module named flask",
        ),
        (
            {"server__py": "import time\nprint('\\x1b[2Jthinking')\ntime.sleep(60)"},
            {"process_s": 3.0},
            "verifier 'verifier' did not come up: Connection refused at /health: \\x1b[2Jthinking",
        ),
        (
            {"server__py": SERVER.replace("200 OK", "404 Not Found")},
            {"process_s": 3.0},
            "verifier 'verifier' did not come up: it answered 404 at /health: listening on PORT",
        ),
    ],
)
def test_a_server_that_does_not_come_up_is_said_with_its_last_words(
    tmp_path: Path, files: dict[str, str], waits: dict[str, float], sentence: str
) -> None:
    pack = Pack(tmp_path).with_files(**files)

    async def check(verifiers: Verifiers) -> None:
        said = await verifiers.ready()
        assert said is not None
        told = said.partition("listening on ")[2]
        assert said.replace(told or "\0", "PORT") == sentence
        told_before = len(pack.events)
        assert await verifiers.ready() == said
        assert len(pack.events) == told_before  # nothing is tried a second time
        async with await verifiers.open() as opened:
            assert opened.endpoints[0]["status"] == "failed"
            assert "url" not in opened.endpoints[0]

    used(pack.verifiers(PROCESS, **waits), check)


def test_a_server_that_breaks_in_the_middle_of_an_item_is_its_fault_and_started_anew_for_the_next(
    pack: Pack,
) -> None:
    async def check(verifiers: Verifiers) -> None:
        assert await verifiers.ready() is None
        async with await verifiers.open() as first, await verifiers.open() as beside:
            status, said = await asked(first, "/end")
            assert (await asked(first))[0] == status == 502
            fault = first.fault or ""
            assert json.loads(said) == {"error": fault}
            # How a connection breaks that dies with its process is the kernel's to say.
            assert re.fullmatch(r"verifier 'verifier' gave no answer \([\w ]+\): GET /end", fault)
            assert beside.fault is None
        assert await verifiers.ready() is None
        async with await verifiers.open() as second:
            assert (await asked(second, "/broken"))[0] == 503
            assert second.fault == "verifier 'verifier' answered 503: GET /broken\n  it said: broken"
        started = len(pack.events)
        assert await verifiers.ready() is None  # it answers: nothing is started
        assert len(pack.events) == started == 2

    used(pack.verifiers(PROCESS), check)


_SESSION = """
import asyncio, sys
from pathlib import Path
from verifiers import Pack

async def main():
    verifiers = Pack(Path(sys.argv[1])).verifiers(sys.argv[2])
    said = await verifiers.ready()
    print(said or "ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_killed_session_takes_the_server_and_all_it_started_with_it(tmp_path: Path) -> None:
    who = "import os\nopen(__file__ + '.pids', 'w').write(f'{os.getpid()} {child.pid}')\n"
    child = "import subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    pack = Pack(tmp_path).with_files(server__py=child + who + SERVER)
    session = subprocess.Popen(
        [sys.executable, "-c", _SESSION, str(tmp_path), PROCESS],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
    )
    assert session.stdout is not None
    assert session.stdout.readline() == "ready\n"
    pids = [int(pid) for pid in (pack.folder / "server.py.pids").read_text().split()]
    assert all(map(lives, pids))
    session.kill()
    session.wait()
    session.stdout.close()
    until(lambda: not any(map(lives, pids)), "they end")


@pytest.mark.parametrize(
    ("spec", "choices", "mode"),
    [
        ({"default_mode": VerifierDefault.CUSTOM_URL, "url": "URL/"}, ("URL/",), "custom_url"),
        ({"default_mode": VerifierDefault.CLOUD, "url": "URL"}, ("verifier=URL",), "custom_url"),
        ({"default_mode": VerifierDefault.DOCKER}, ("URL",), "custom_url"),
    ],
)
async def test_another_users_server_is_used_when_it_is_well_and_its_url_stays_hidden(
    tmp_path: Path, spec: dict[str, Any], choices: tuple[str, ...], mode: str
) -> None:
    async with Upstream(plain()) as upstream:
        filled = {
            name: value.replace("URL", upstream.url) if name.endswith("url") else value
            for name, value in spec.items()
        }
        pack = Pack(tmp_path, {**filled, "health_path": "/well"})
        verifiers = pack.verifiers(*(choice.replace("URL", upstream.url) for choice in choices))
        assert await verifiers.ready() is None
        assert upstream.seen[0].line == "GET /well HTTP/1.1"
        async with await verifiers.open() as opened:
            (endpoint,) = opened.endpoints
            assert (endpoint["mode"], endpoint["status"]) == (mode, "running")
            assert endpoint["url"] != upstream.url
            assert await asked(opened) == (200, "well")
        await verifiers.close()
    assert pack.events[0]["message"] == "The verifier is looked for at /well."
    assert pack.phases == ["waiting_for_healthcheck"]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"default_mode": VerifierDefault.CUSTOM_URL, "url": "http://127.0.0.1:{port}"},
            "verifier 'verifier' is at http://127.0.0.1:{port}, an address that only the manifest names\n"
            "  hint: if you want it to be asked: --helmbench-verifier=verifier=http://127.0.0.1:{port}",
        ),
        (
            {"default_mode": VerifierDefault.CLOUD},
            "verifier 'verifier' has no URL in the manifest\n  hint: give one: --helmbench-verifier=URL",
        ),
    ],
)
def test_without_a_server_the_pack_cannot_run(tmp_path: Path, spec: dict[str, Any], sentence: str) -> None:
    port = free_port()
    filled = {name: value.format(port=port) for name, value in spec.items()}
    pack = Pack(tmp_path, {**filled, "default_mode": spec["default_mode"]})

    async def check(verifiers: Verifiers) -> None:
        assert await verifiers.ready() == sentence.format(port=port)

    used(pack.verifiers(url_s=0.1), check)


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        (
            (),
            "verifier 'verifier' needs docker or podman, and neither answers here (docker is not installed; podman is "
            "not installed)\n"
            "  hint: --helmbench-verifier=process:COMMAND starts it on this machine, or give its URL",
        ),
        (
            ("podman",),
            "verifier 'verifier' needs podman (podman is not installed)\n"
            "  hint: --helmbench-verifier=process:COMMAND starts it on this machine, or give its URL",
        ),
    ],
)
def test_without_an_engine_the_sentence_says_what_else_there_is(
    pack: Pack, choices: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    async def check(verifiers: Verifiers) -> None:
        assert await verifiers.ready() == sentence
        async with await verifiers.open() as opened:
            assert opened.endpoints[0]["status"] == "missing_dependency"

    used(pack.verifiers(*choices), check)


@pytest.mark.parametrize(("busy_s", "again_s", "starts"), [(0.3, 20.0, 1), (60.0, 0.1, 2)])
def test_a_server_that_hangs_is_replaced_and_one_that_is_busy_is_not(
    tmp_path: Path, busy_s: float, again_s: float, starts: int
) -> None:
    busy = f"    client.close()\n    if path == '/broken':\n        import time; time.sleep({busy_s})\n"
    pack = Pack(tmp_path).with_files(server__py=SERVER.replace("    client.close()\n", busy))

    async def check(verifiers: Verifiers) -> None:
        assert await verifiers.ready() is None
        async with await verifiers.open() as opened:
            assert (await asked(opened, "/broken"))[0] == 503
        assert await verifiers.ready() is None
        assert len(pack.events) == starts

    used(pack.verifiers(PROCESS, again_s=again_s), check)


_LOOKS = """
def looks(what):
    import urllib.request
    try:
        return what(urllib.request)
    except Exception as error:
        return type(error).__name__
"""


async def test_in_the_fence_the_packs_own_server_sees_its_folder_and_reaches_the_relay_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    (tmp_path / "private").write_text("of the user's")
    pack = Pack(tmp_path / "pack").with_files(server__py=_LOOKS + SERVER, data="of the pack's")

    fence = await find_fence(Granted("auto"))
    assert isinstance(fence, Fence)
    pack.fence = fence
    verifiers = pack.verifiers(PROCESS)
    async with Upstream(plain(body=b"the relay's")) as relay:
        port = OpenPort(int(relay.url.rpartition(":")[2]), relay.serve, relay)
        try:
            assert await verifiers.ready() is None
            async with await verifiers.open() as opened:
                assert "sk-secret" not in (await asked(opened, "/env"))[1]
                address = f"{relay.url}/"
                tries = {
                    f"open({str(pack.folder / 'data')!r}).read()": "of the pack's",
                    f"open({str(pack.folder / 'data')!r}, 'w')": "OSError",
                    f"open({str(tmp_path / 'private')!r})": "FileNotFoundError",
                    "u.urlopen(" + repr(address) + ", timeout=5).read().decode()": "URLError",
                    f"open('/proc/{os.getpid()}/environ', 'rb').read()": "FileNotFoundError",
                    "socket.create_connection(('192.0.2.1', 80), 1)": "OSError",
                }
                for tried, expected in tries.items():
                    assert await _looked(opened, tried) == expected, tried
                await verifiers.open_port(port)
                await verifiers.open_port(port)
                assert await _looked(opened, list(tries)[3]) == "the relay's"
        finally:
            await verifiers.close()
            await fence.close()


async def _looked(opened: OpenVerifiers, expression: str) -> str:
    status, said = await asked(opened, f"/eval/{f'looks(lambda u: {expression})'.encode().hex()}")
    assert status == 200, said
    return said
