"""Verifiers for tests: packs that need one, servers that are one, and an HTTP server whose every byte is scripted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    BenchPackManifest,
    VerifierDefault,
    VerifierSpec,
)
from pytest_helmbench.benchmarks.bench_packs.verifiers.running import Waits, parse_choices
from pytest_helmbench.benchmarks.bench_packs.verifiers.verifiers import OpenVerifiers, Verifiers
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.sandbox.fence import Fence
from pytest_helmbench.sandbox.images import ImageRights

__all__ = ["PROCESS", "SERVER", "Pack", "Seen", "Upstream", "asked", "free_port", "plain", "used"]

PROCESS = "process:python3 server.py"

SERVER = """\
import os, socket
port = int(os.environ.get("PORT", "4010"))
serving = socket.create_server((os.environ.get("HOST", "0.0.0.0"), port))
print("listening on", port, flush=True)
while True:
    client, _ = serving.accept()
    request = client.recv(65536).decode()
    method, path, _ = request.split(" ", 2)
    status, body = "200 OK", "well"
    if path == "/env":
        body = "\\n".join(f"{name}={value}" for name, value in sorted(os.environ.items()))
    elif path == "/broken":
        status, body = "503 Service Unavailable", "broken"
    elif path == "/end":
        os._exit(3)
    elif path.startswith("/eval/"):
        body = str(eval(bytes.fromhex(path.removeprefix("/eval/"))))
    head = f"HTTP/1.1 {status}\\r\\nContent-Length: {len(body)}\\r\\nConnection: close\\r\\n\\r\\n"
    client.sendall((head + body).encode())
    client.close()
"""
"""A verifier that needs no more of Python than its minimal packages have."""


@dataclass
class Pack:
    """A pack with one verifier, and the events while it is made ready.

    Args:
        root: Folder of the pack.
        spec: What differs from the usual verifier.
        events: In order.
        build: Whether its image may be built.
        fence: Around servers of its own.
    """

    root: Path
    spec: Mapping[str, Any] = field(default_factory=dict)
    events: list[Mapping[str, Any]] = field(default_factory=list)
    build: bool = True
    fence: Fence | None = None

    @property
    def folder(self) -> Path:
        """The verifier's folder; made when it is asked for."""
        folder = self.root / "verification"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def with_files(self, **files: str) -> Self:
        """Write files into the verifier's folder; `__` in a name is a dot."""
        for name, text in files.items():
            (self.folder / name.replace("__", ".")).write_text(text)
        return self

    def verifiers(self, *choices: str, **waits: float) -> Verifiers:
        """Return the pack's verifiers as a user wants them."""
        usual: dict[str, Any] = {"id": "verifier", "required": True, "default_mode": VerifierDefault.DOCKER}
        described = {"build_context": self.folder, "listen_port": 4010}
        manifest = BenchPackManifest(
            root=self.root,
            path=self.root / "benchlocal.pack.json",
            id="the-pack",
            name="The Pack",
            version="1.0.0",
            description="",
            entry=self.root / "index.js",
            sampling_defaults={},
            verifiers=(VerifierSpec(**{**usual, **described, **self.spec}),),
            obstacle=None,
            hash="",
        )
        return Verifiers(
            manifest,
            parse_choices(Granted(choices)),
            self.events.append,
            fence=self.fence,
            waits=Waits(**waits),
            rights=ImageRights(Granted("offline") if self.build else None, Granted(self.build)),
        )

    @property
    def phases(self) -> list[str]:
        """The phases of the events, in order."""
        return [event["phase"] for event in self.events]


@dataclass(frozen=True)
class Seen:
    """One request as it arrived.

    Args:
        line: The first.
        headers: Names in lower case.
        body: Behind them, as sent.
    """

    line: str
    headers: Mapping[str, str]
    body: bytes


def plain(status: str = "200 OK", body: bytes = b"well", *headers: str) -> bytes:
    """Return a whole answer."""
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", "")
    return "\r\n".join(lines).encode("latin-1") + body


class Upstream:
    """A server on the test's own loop that sends scripted bytes and closes.

    Args:
        answers: One piece after the other; a callable is waited for.
        port: To listen on; 0 for a free one.
    """

    def __init__(self, *answers: bytes | Callable[[], Any], port: int = 0) -> None:
        self.seen: list[Seen] = []
        self.answers = answers
        self._port = port
        self._serving: list[asyncio.Task[None]] = []
        self._server: asyncio.Server | None = None
        self._more: list[asyncio.Server] = []

    @property
    def url(self) -> str:
        """Without a trailing slash."""
        return f"http://127.0.0.1:{self._port}"

    async def serve(self, listening: socket.socket) -> None:
        """Answer at a further socket too."""
        self._more.append(await asyncio.start_server(self._serve, sock=listening))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        for server in (self._server, *self._more):
            server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the next turn of the loop

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.append(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *lines = head.split("\r\n")
            headers = {
                name.lower(): value for name, _, value in (one.partition(": ") for one in lines if one)
            }
            self.seen.append(Seen(line, headers, await self._body(reader, headers)))
            for answer in self.answers:
                if callable(answer):
                    await answer()
                else:
                    writer.write(answer)
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # who asked has gone
        finally:
            writer.close()

    async def _body(self, reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
        if "content-length" in headers:
            return await reader.readexactly(int(headers["content-length"]))
        body = b""
        if headers.get("transfer-encoding") == "chunked":
            while size := int(await reader.readline(), 16):
                body += (await reader.readexactly(size + 2))[:-2]
        return body


def free_port() -> int:
    """Return a port without a listener."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def used(
    verifiers: Verifiers, check: Callable[[Verifiers], Awaitable[None]], within_s: float = 280.0
) -> None:
    """Use the verifiers of a pack, and close them whatever comes of it."""

    async def run() -> None:
        async with asyncio.timeout(within_s):
            try:
                await check(verifiers)
            finally:
                await verifiers.close()

    asyncio.run(run())


async def asked(opened: OpenVerifiers, path: str = "/") -> tuple[int, str]:
    """Ask the first verifier that an item has; return status and body."""
    async with aiohttp.ClientSession() as client, client.get(f"{opened.endpoints[0]['url']}{path}") as got:
        return got.status, await got.text()
