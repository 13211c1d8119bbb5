"""A stand-in of the Hugging Face hub in a thread: what `huggingface_hub` asks for a dataset, answered from memory."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["hub_with"]

_SHA = "0123456789" * 4


@contextmanager
def hub_with(repo: str, files: Mapping[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """Serve a public dataset, `OWNER/NAME` with its files; yield the address and the paths that were asked for."""
    asked: list[str] = []
    about = {"id": repo, "sha": _SHA, "siblings": [{"rfilename": name} for name in files]}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(path := self.path.partition("?")[0])
            found = files.get(path.removeprefix(f"/datasets/{repo}/resolve/main/"))
            if path.startswith(f"/api/datasets/{repo}"):
                found = json.dumps(about).encode()
            self.send_response(404 if found is None else 200)
            body = found or b""
            digest = hashlib.sha1(body).hexdigest()
            for header in {"Content-Length": len(body), "X-Repo-Commit": _SHA, "ETag": f'"{digest}"'}.items():
                self.send_header(header[0], str(header[1]))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
