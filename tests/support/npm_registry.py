"""A registry of npm packages on 127.0.0.1, for an npm that must not ask the real one."""

from __future__ import annotations

import io
import json
import tarfile
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha512
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from urllib.parse import unquote

__all__ = ["NpmRegistry", "write_package"]

_VERSION = "3.24.9"


class NpmRegistry:
    """Serves packages, each in one version, 3.24.9, while it is entered.

    Args:
        packages: The files of each by name, without `package.json`.
        scripts: Of every package.
    """

    def __init__(self, packages: Mapping[str, Mapping[str, str]], scripts: Mapping[str, str]) -> None:
        self.asked: list[str] = []
        self._archives = {name: _archive(name, files, scripts) for name, files in packages.items()}
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(unquote(self.path))
                body = registry._answer(unquote(self.path))
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(body or b"{}")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> NpmRegistry:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path: str) -> bytes | None:
        name, archive = path.removeprefix("/").removesuffix(".tgz"), path.endswith(".tgz")
        if name not in self._archives:
            return None
        packed = self._archives[name]
        if archive:
            return packed
        integrity = f"sha512-{b64encode(sha512(packed).digest()).decode()}"
        dist = {"tarball": f"{self.url}/{name}.tgz", "integrity": integrity}
        version = {"name": name, "version": _VERSION, "dist": dist}
        document = {"name": name, "dist-tags": {"latest": _VERSION}, "versions": {_VERSION: version}}
        return json.dumps(document).encode()


def write_package(folder: Path, name: str, *, says: str) -> Path:
    """Write a package that exports `says` to `require` and to `import`, and return its folder."""
    place = folder / "node_modules" / name
    place.mkdir(parents=True)
    for file, content in _files(name, {"index.js": f"exports.says = {says!r};"}, {}).items():
        (place / file).write_text(content, encoding="utf-8")
    return place


def _files(name: str, files: Mapping[str, str], scripts: Mapping[str, str]) -> Mapping[str, str]:
    manifest = {"name": name, "version": _VERSION, "main": "index.js", "scripts": scripts}
    return {"package.json": json.dumps(manifest), **files}


def _archive(name: str, files: Mapping[str, str], scripts: Mapping[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for file, content in _files(name, files, scripts).items():
            entry = tarfile.TarInfo(f"package/{file}")
            entry.size = len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))
    return packed.getvalue()
