"""Manifests of Bench Packs on disk: a healthy one, and others that differ from it in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from pytest_helmbench.benchmarks.bench_packs.format.manifest import load_manifest
from pytest_helmbench.core.problem import UnreadableBenchmarkError

__all__ = [
    "CAPABILITIES",
    "GONE",
    "HEAD",
    "PUBLISHED",
    "changed",
    "healthy_manifest",
    "problems_of",
    "write_bench_pack",
]

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
HEAD = {"schemaVersion": 1, "protocolVersion": 1, "author": "a.n.other", "version": "1.0.0"}
CAPABILITIES = {"tools": False, "multiTurn": True, "streamingProgress": True, "verification": False}

# The shapes that published packs have, in words of our own.
PUBLISHED: dict[str, dict[str, Any]] = {
    "no verifier": {
        **HEAD,
        "id": "calls-15",
        "name": "Calls-15",
        "samplingDefaults": {"temperature": 0},
        "theme": {"accent": "#336699"},
        "capabilities": {**CAPABILITIES, "tools": True, "standaloneWebApp": True},
    },
    "sampling keys that we do not know": {
        **HEAD,
        "id": "swift-15",
        "name": "Swift-15",
        "samplingDefaults": {
            "temperature": 0,
            "stream": True,
            "request_timeout_seconds": 600,
            "maxTokens": 8,
        },
        "capabilities": CAPABILITIES,
        "repository": {"type": "git", "url": "https://example.org/swift-15.git"},
    },
    "requirements that we meet": {
        **HEAD,
        "id": "runner-38",
        "name": "Runner-38",
        "requirements": {"benchlocal": {"minVersion": "0.2.0"}, "hostFeatures": ["inferenceEndpoints"]},
        "capabilities": {**CAPABILITIES, "verification": True},
        "verifiers": [
            {
                "id": "runner",
                "transport": "http",
                "required": True,
                "defaultMode": "docker",
                "docker": {
                    "buildContext": "./verification",
                    "listenPort": 4010,
                    "healthcheckPath": "/health",
                },
            }
        ],
    },
    "names of the first months": {
        **HEAD,
        "id": "hunt-15",
        "name": "Hunt-15",
        "capabilities": {"tools": False, "sidecars": True},
        "sidecars": [
            {
                "id": "verifier",
                "transport": "http",
                "required": True,
                "defaultMode": "docker",
                "docker": {
                    "buildContext": "./verification",
                    "containerPort": 4010,
                    "healthcheckPath": "/health",
                },
                "customUrl": {"defaultUrl": "http://127.0.0.1:4010", "healthcheckPath": "/health"},
                "cloud": {},
            }
        ],
    },
    "a page on the web": {
        **HEAD,
        "id": "talk-arena",
        "name": "Talk Arena",
        "type": "web",
        "entry": "http://127.0.0.1:5177/",
        "requirements": {"benchlocal": {"minVersion": "0.3.0"}},
        "web": {
            "bridgeVersion": 1,
            "allowedOrigins": ["http://127.0.0.1:5177"],
            "permissions": ["runs:write"],
        },
        "capabilities": CAPABILITIES,
    },
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


def problems_of(root: Path) -> list[str]:
    """Return the problems of a manifest as people read them, without the file's name."""
    with pytest.raises(UnreadableBenchmarkError) as caught:
        load_manifest(root)
    return [problem.text(root).removeprefix("benchlocal.pack.json:") for problem in caught.value.problems]
