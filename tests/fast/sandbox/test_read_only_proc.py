"""Settings of podman with which `/proc` of a container can be read-only: this machine's, but for default sysctls."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from pytest_helmbench.sandbox.containers import ReadOnlyProc


def test_settings_are_kept_but_for_default_sysctls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.conf"
    own.write_text(
        '[containers]\ndefault_sysctls = ["net.ipv4.ping_group_range=0 0"]\npids_limit = 7\n'
        '[engine]\nruntime = "runc"\n[engine.runtimes]\n"my-run" = ["/bin/a \\"b\\"", "ü"]\n'
    )
    monkeypatch.setenv("CONTAINERS_CONF", str(own))
    proc = ReadOnlyProc(("--flag",), tmp_path)

    written = tomllib.loads(Path(proc.environment["CONTAINERS_CONF"]).read_text(encoding="utf-8"))
    assert written == {
        "containers": {"default_sysctls": [], "pids_limit": 7},
        "engine": {"runtime": "runc", "runtimes": {"my-run": ['/bin/a "b"', "ü"]}},
    }


def test_broken_and_missing_settings_count_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("[[[", None):
        file = tmp_path / "own.conf"
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)
        monkeypatch.setenv("CONTAINERS_CONF", str(file))
        ReadOnlyProc(("--flag",), tmp_path)
        assert tomllib.loads((tmp_path / "containers.conf").read_text(encoding="utf-8")) == {
            "containers": {"default_sysctls": []}
        }
