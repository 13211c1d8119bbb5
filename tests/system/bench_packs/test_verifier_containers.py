"""A pack's verifier in a container, held against real podman and docker."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from engines import IMAGE, Running
from paths import SUPPORT
from verifiers import SERVER, Pack, Upstream, asked, plain, used

from pytest_helmbench.benchmarks.bench_packs.verifiers.verifiers import OpenVerifiers, Verifiers
from pytest_helmbench.sandbox.images import content_tag
from pytest_helmbench.sandbox.owners import Owner, this_process

_DOCKERFILE = f'FROM {IMAGE}\nCOPY server.py /app/\nCMD ["python3", "/app/server.py"]\n'
_HINT = "--helmbench-verifier=process:COMMAND starts it on this machine, or give its URL"

each_engine = pytest.mark.parametrize("engine", ["podman", "docker"], indirect=True)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine that works here; podman unless a test says otherwise."""
    found = request.getfixturevalue(getattr(request, "param", "podman"))
    assert isinstance(found, Running)
    return found.engine.name


@pytest.fixture
def pack(tmp_path: Path, engine: str) -> Pack:
    """A pack whose verifier's image is the same in every test, so that it is built once."""
    return Pack(tmp_path).with_files(server__py=SERVER, Dockerfile=_DOCKERFILE)


@pytest.fixture
def fresh(tmp_path: Path, engine: str) -> Iterator[Pack]:
    """A pack whose verifier's image cannot be there yet; it is removed behind the test."""
    pack = Pack(tmp_path).with_files(server__py=SERVER, Dockerfile=_DOCKERFILE, mark=token_hex(8))
    yield pack
    subprocess.run([engine, "rmi", "-f", content_tag(pack.folder)], capture_output=True, check=False)


async def _inside(opened: OpenVerifiers, expression: str) -> str:
    """Evaluate an expression in the container."""
    status, said = await asked(opened, f"/eval/{expression.encode().hex()}")
    assert status == 200, said
    return said


def _ours(engine: str) -> list[str]:
    """Return the names of the verifiers' containers of this process."""
    label = "label=helmbench.task=verifier verifier"
    listed = _said(engine, "ps", "-a", "--filter", label, "--format", "{{.Names}}")
    return [name for name in listed.split() if this_process().mark in name]


def _networks(engine: str, mark: str) -> list[str]:
    listed = _said(engine, "network", "ls", "--filter", "label=helmbench.owner", "--format", "{{.Name}}")
    return [name for name in listed.split() if mark in name]


def _said(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@each_engine
def test_a_verifier_runs_in_a_container_with_no_rights_and_leads_nowhere(pack: Pack, engine: str) -> None:

    async def check(verifiers: Verifiers) -> None:
        assert await verifiers.ready() is None
        assert pack.phases[0] == "checking_docker"
        assert pack.phases[-2:] == ["starting_container", "waiting_for_healthcheck"]
        address = await verifiers.bridge_address()
        assert address
        async with await verifiers.open() as opened, Upstream(plain()) as relay:
            (endpoint,) = opened.endpoints
            assert (endpoint["id"], endpoint["mode"], endpoint["required"]) == ("verifier", "docker", True)
            assert endpoint["status"] == "running"
            status = "dict(line.split(':', 1) for line in open('/proc/self/status'))"
            rights = f"[{status}[name].strip() for name in ('CapEff', 'CapPrm', 'NoNewPrivs')]"
            assert await _inside(opened, rights) == f"['{'0' * 16}', '{'0' * 16}', '1']"
            homes = "[open(os.path.expanduser('~/x'), 'w').close(), open('/var/tmp/x', 'w').close()]"
            assert await _inside(opened, homes) == "[None, None]"
            assert await _inside(opened, "os.access('/app', os.W_OK)") == "False"
            reached = f"socket.socket().connect_ex(('{relay.url[7:16]}', {relay.url[17:]}))"
            assert await _inside(opened, reached) != "0"
            assert await _inside(opened, "socket.socket().connect_ex(('1.1.1.1', 53))") != "0"
        (name,) = _ours(engine)
        shown = json.loads(_said(engine, "inspect", name))[0]
        bounds = shown["HostConfig"]
        assert (bounds["Memory"], bounds["PidsLimit"]) == (2 * 2**30, 512)
        assert bounds["NanoCpus"] or bounds["CpuQuota"]
        assert bounds["ReadonlyRootfs"]
        assert not any((shown["NetworkSettings"]["Ports"] or {}).values())

    used(pack.verifiers(engine), check)
    assert not _ours(engine)
    assert not _networks(engine, this_process().mark)


def test_a_container_reaches_what_listens_at_the_bridge_by_address_and_by_name(pack: Pack) -> None:
    async def check(verifiers: Verifiers) -> None:
        assert await verifiers.ready() is None
        address = await verifiers.bridge_address()
        served = []

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            served.append(writer.get_extra_info("peername"))
            writer.close()

        async with await asyncio.start_server(serve, address, 0) as server, await verifiers.open() as opened:
            port = server.sockets[0].getsockname()[1]
            for host in (address, "host.docker.internal"):
                assert await _inside(opened, f"socket.socket().connect_ex(('{host}', {port}))") == "0"
        assert len(served) == 2

    used(pack.verifiers("podman"), check)


def test_a_container_that_ends_in_the_middle_of_an_item_is_its_fault_and_started_anew(pack: Pack) -> None:
    async def check(verifiers: Verifiers) -> None:
        assert await verifiers.ready() is None
        async with await verifiers.open() as opened:
            assert (await asked(opened, "/end"))[0] == 502
            assert (opened.fault or "").startswith("verifier 'verifier' gave no answer (")
        assert await verifiers.ready() is None
        async with await verifiers.open() as opened:
            assert await asked(opened) == (200, "well")
            assert opened.fault is None

    # Without a choice it is docker or podman, whichever answers.
    used(pack.verifiers(), check)


@pytest.mark.parametrize(
    ("files", "spec", "sentence"),
    [
        (
            {"server__py": "import sys\nprint('ready?')\nsys.exit('no module named flask')"},
            {},
            "verifier 'verifier' did not come up: its container ended with exit code 1: ready? | no module named flask",
        ),
        (
            {"server__py": SERVER.replace("200 OK", "500 Broken")},
            {},
            "verifier 'verifier' did not come up: it answered 500 at /health: listening on 4010",
        ),
        (
            {"Dockerfile": f"FROM {IMAGE}\nRUN exit 3\n"},
            {},
            "verifier 'verifier' cannot run: podman could not build its image (",
        ),
        ({}, {"build_context": Path("/nowhere")}, "verifier 'verifier' has no Dockerfile in /nowhere"),
        (
            {},
            {"listen_port": None},
            f"verifier 'verifier' has no container described in the manifest\n  hint: {_HINT}",
        ),
        (
            {},
            {"build_context": None, "image": "localhost/helmbench-no-such-image:1"},
            "verifier 'verifier' cannot run: podman could not pull its image localhost/helmbench-no-such-image:1 (",
        ),
    ],
)
def test_a_container_that_does_not_come_up_is_said_with_its_last_words_and_removed(
    fresh: Pack, files: dict[str, str], spec: dict[str, Any], sentence: str
) -> None:
    fresh.with_files(**files).spec = spec

    async def check(verifiers: Verifiers) -> None:
        said = await verifiers.ready() or ""
        assert said.startswith(sentence)
        assert said == sentence or sentence.endswith("(")
        assert not _ours("podman")
        async with await verifiers.open() as opened:
            assert opened.endpoints[0]["status"] == "failed"

    used(fresh.verifiers("podman", container_s=3.0), check)


def test_one_of_several_sessions_builds_an_image_and_the_others_use_it(fresh: Pack) -> None:
    lock = Path(
        tempfile.gettempdir(), f"helmbench-build-{os.getuid()}-{content_tag(fresh.folder).rpartition(':')[2]}"
    )
    lock.touch(mode=0o600)  # of a session that was killed while it built

    async def run() -> None:
        sessions = [fresh.verifiers("podman") for _ in range(3)]
        try:
            assert await asyncio.gather(*(session.ready() for session in sessions)) == [None] * 3
        finally:
            await asyncio.gather(*(session.close() for session in sessions))

    asyncio.run(run())
    assert fresh.phases.count("building_image") == 1
    assert not list(lock.parent.glob(f"{lock.name}*"))


def test_a_tag_is_the_content_of_the_folder(tmp_path: Path) -> None:
    tags = []
    for number in range(2):
        pack = Pack(tmp_path / str(number)).with_files(server__py=SERVER, Dockerfile=_DOCKERFILE)
        (pack.folder / "dangling").symlink_to("nowhere")
        tags.append(content_tag(pack.folder))
    assert tags[0] == tags[1]
    (pack.folder / "server.py").chmod(0o755)
    tags.append(content_tag(pack.folder))
    (pack.folder / "Dockerfile").rename(pack.folder / "Containerfile")
    tags.append(content_tag(pack.folder))
    (pack.folder / "empty").mkdir()
    tags.append(content_tag(pack.folder))
    assert len(set(tags)) == 4


_SESSION = """
import asyncio, sys
from pathlib import Path
from pytest_helmbench.sandbox.owners import this_process
from verifiers import Pack

async def main():
    said = await Pack(Path(sys.argv[1])).verifiers("podman").ready()
    print(said or this_process().mark, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_what_a_killed_session_leaves_is_removed_by_the_next(pack: Pack) -> None:
    session = subprocess.Popen(
        [sys.executable, "-c", _SESSION, str(pack.root)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
    )
    assert session.stdout is not None
    _ = pack.folder
    mark = session.stdout.readline().strip()
    assert Owner.read(mark) is not None, mark
    session.kill()
    session.wait()
    session.stdout.close()

    async def check(verifiers: Verifiers) -> None:
        assert await verifiers.ready() is None
        assert mark not in _said("podman", "ps", "-a", "--format", "{{.Names}}")
        assert not _networks("podman", mark)

    used(pack.verifiers("podman"), check)
