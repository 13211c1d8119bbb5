"""The choice of Node.js, and the message where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.bench_packs.node.command import Node, find_node
from pytest_helmbench.core.granted import Granted

_HINT = (
    "\n  hint: install Node.js 20 or newer from https://nodejs.org or your system's packages, "
    "or name one with --helmbench-node or HELMBENCH_NODE"
)


def _program(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_option_goes_before_the_variable_and_the_variable_before_the_path(tmp_path: Path) -> None:
    stated = _program(tmp_path / "a" / "mine", "echo v20.1.2")
    named = _program(tmp_path / "b" / "other", "echo v22.3.4")
    _program(tmp_path / "c" / "node", "echo v24.5.6")
    environ = {"HELMBENCH_NODE": named, "PATH": str(tmp_path / "c")}

    assert find_node(Granted(Path(stated)), environ) == Node(stated)
    assert find_node(None, environ) == Node(named)
    assert find_node(None, environ | {"HELMBENCH_NODE": ""}) == Node(str(tmp_path / "c" / "node"))


def test_without_node_it_is_said_what_to_install(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path)}

    missing = "Bench Packs need Node.js 20 or newer: "
    assert find_node(None, environ) == f"{missing}there is no `node` on PATH{_HINT}"
    assert find_node(Granted(Path("nod\x1b")), environ) == (
        f"{missing}--helmbench-node: there is no program 'nod\\\\x1b'{_HINT}"
    )
    assert find_node(None, environ | {"HELMBENCH_NODE": "/no/node"}) == (
        f"{missing}HELMBENCH_NODE: there is no program '/no/node'{_HINT}"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo v18.20.1", " is 18.20.1"),
        ("echo hello", ": it is not Node.js; asked for its version, it said 'hello'"),
        ("echo v22.0.0; exit 3", ": it is not Node.js; asked for its version, it said 'v22.0.0'"),
    ],
)
def test_what_is_no_new_node_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = _program(tmp_path / "node", text)
    assert find_node(Granted(Path(path)), {}) == f"Bench Packs need Node.js 20 or newer: {path}{why}{_HINT}"
