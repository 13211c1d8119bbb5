"""Manifests of Bench Packs on disk: a healthy one, and others that differ from it in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

__all__ = ["GONE", "changed", "healthy_manifest", "write_bench_pack"]

GONE = object()
"""As a changed value: take the key away."""

_HEALTHY: Mapping[str, Any] = {
    "schemaVersion": 1,
    "protocolVersion": 1,
    "id": "tide-tables",
    "name": "Tide tables",
    "version": "2.1.0",
    "entry": "./dist/benchlocal/index.js",
    "capabilities": {"verification": True},
    "verifiers": [
        {
            "id": "gauge",
            "transport": "http",
            "required": True,
            "defaultMode": "docker",
            "docker": {"buildContext": "./verification", "listenPort": 4010, "healthcheckPath": "/health"},
        }
    ],
}


def healthy_manifest() -> dict[str, Any]:
    """Return a manifest that nothing is wrong with, one line per key once it is written."""
    return deepcopy(dict(_HEALTHY))


def changed(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the healthy manifest with values replaced at paths such as `verifiers.0.docker.image`."""
    manifest = healthy_manifest()
    for path, value in changes.items():
        *outer, last = path.split(".")
        holder: Any = manifest
        for part in outer:
            holder = holder[int(part)] if isinstance(holder, list) else holder.setdefault(part, {})
        if value is GONE:
            del holder[last]
        elif isinstance(holder, list):
            holder.insert(int(last), value)
        else:
            holder[last] = value
    return manifest


def write_bench_pack(root: Path, manifest: Mapping[str, Any] | str | bytes | None = None) -> Path:
    """Write a pack folder with a manifest, an entry and a verifier's folder; return it."""
    for path, text in {
        "dist/benchlocal/index.js": "module.exports = {};\n",
        "verification/Dockerfile": "",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    document = healthy_manifest() if manifest is None else manifest
    if isinstance(document, Mapping):
        document = json.dumps(document, indent=1)
    raw = document.encode() if isinstance(document, str) else document
    (root / "benchlocal.pack.json").write_bytes(raw)
    return root
