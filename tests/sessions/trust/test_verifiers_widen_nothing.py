"""Verifiers that a manifest declares: they take no fence off their Bench Pack, and are not built unasked."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from bench_pack_sessions import bench_pack_outcomes, model_reasons, run_packs, write_asking_pack
from inner_pytest import run_pytest
from provider import Provider
from trees import rows

from pytest_helmbench.cli.main import main

_ESCAPES = (
    "{ const { writeFileSync } = require('node:fs');"
    " try { writeFileSync(%s, 'taken'); } catch (error) { globalThis.kept = error.code; } }"
)
_STATES = "async () => { await ask('hello'); return result({ note: String(globalThis.kept) }); }"
_DOCKER = {"buildContext": "./verification", "listenPort": 4010, "healthcheckPath": "/health"}


def _write(folder: Path, verifier: dict[str, Any], head: str = "", run: str = _STATES) -> Path:
    stated = {"id": "exact", "transport": "http", **verifier}
    return write_asking_pack(folder / "pack", {"A": run}, manifest={"verifiers": [stated]}, head=head)


@pytest.mark.parametrize(
    ("required", "options"),
    [(False, ()), (True, ()), (False, ("--helmbench-verifier=process:true",))],
    ids=["optional", "required", "optional-and-chosen"],
)
def test_a_verifier_of_a_manifest_takes_no_fence_off(
    pytester: pytest.Pytester, provider: Provider, *, required: bool, options: tuple[str, ...]
) -> None:
    taken = pytester.path / "taken"
    verifier = {
        "required": required,
        "defaultMode": "custom_url",
        "customUrl": {"defaultUrl": "http://127.0.0.1:9"},
    }
    _write(pytester.path, verifier, _ESCAPES % json.dumps(str(taken)))

    run_packs(pytester, "--collect-only", *options)
    os.chdir(pytester.path)
    assert main(["check", "pack"]) == 0
    result = run_packs(pytester, *options, url=provider.url)

    assert not taken.exists()
    result.stdout.no_fnmatch_line("*with your rights*")
    if not required:
        [(note,)] = rows(pytester.path / "helmbench.db", "SELECT note FROM pack_results")
        assert note in ("undefined", "EROFS")  # written into a /tmp of its own, or refused elsewhere


@pytest.mark.parametrize(
    ("mode", "block", "choice"), [("custom_url", "customUrl", None), ("cloud", "cloud", "cloud")]
)
def test_a_pack_reaches_its_verifier_through_the_fence(
    pytester: pytest.Pytester, provider: Provider, mode: str, block: str, choice: str | None
) -> None:
    address = provider.url.removesuffix("/v1")
    run = (
        "async () => { await ask('hello'); const answer = await fetch(context.verifiers[0].url + '/nowhere');"
        " return result({ note: `${answer.status} ${context.verifiers[0].mode}` }); }"
    )
    _write(
        pytester.path,
        {"required": True, "defaultMode": mode, block: {"defaultUrl": address, "baseUrl": address}},
        run=run,
    )
    option = f"--helmbench-verifier=exact={choice or address}"

    # The manifest's word alone does not permit: no request goes to an address that only it names.
    alone = run_packs(pytester, "-rs", "--helmbench-allow-skipped", url=provider.url)
    alone.assert_outcomes(skipped=1)
    alone.stdout.fnmatch_lines([f"*is at {address}, an address that only the manifest names*", f"*{option}*"])
    assert provider.count == 0

    run_packs(pytester, option, url=provider.url).assert_outcomes(passed=1)

    [(note,)] = rows(pytester.path / "helmbench.db", "SELECT note FROM pack_results")
    status, told = note.split()
    assert (status.isdigit(), told) == (True, mode)


def test_a_dockerfile_is_not_built_unasked(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that records its arguments stands in for a real one."""
    told = pytester.path / "told.txt"
    programs = pytester.mkdir("programs")
    (programs / "podman").write_text(
        f'#!/bin/sh\necho "$@" >> {told}\ncase "$1" in info) echo true;; image) exit 1;; build) exit 1;; esac\n'
    )
    (programs / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:password@127.0.0.1:9")
    pack = _write(pytester.path, {"required": True, "defaultMode": "docker", "docker": _DOCKER})
    (pack / "verification").mkdir()
    (pack / "verification" / "Dockerfile").write_text("FROM scratch\n")

    result = run_packs(pytester, "--helmbench-verifier=podman", "-rs", url=provider.url)

    assert "build" not in [line.split()[0] for line in told.read_text().splitlines()]
    outcomes = model_reasons(bench_pack_outcomes(pytester.path / "helmbench.db"))
    assert outcomes == {"A": "skipped no_verifier"}
    result.stdout.fnmatch_lines(
        ["*needs an image that was not built*", "*--helmbench-build=offline builds it*"]
    )

    run_packs(pytester, "--helmbench-verifier=podman", "--helmbench-build=offline", url=provider.url)

    [build] = [line for line in told.read_text().splitlines() if line.startswith("build")]
    assert "--http-proxy=false" in build
    assert "password" not in told.read_text()
    assert provider.count == 0


def test_an_agent_a_node_and_a_build_are_no_words_of_a_manifest(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    verifier = {"required": False, "docker": {**_DOCKER, "build": True}}
    pack = _write(pytester.path, verifier, _ESCAPES % json.dumps(str(pytester.path / "taken")))
    manifest = json.loads((pack / "benchlocal.pack.json").read_text())
    program = pytester.path / "program"
    program.write_text(f"#!/bin/sh\ntouch {pytester.path}/taken\n")
    program.chmod(0o755)
    own = {key: str(program) for key in ("node", "agent", "helmbench_node", "helmbench_agent")}
    (pack / "benchlocal.pack.json").write_text(
        json.dumps({**manifest, **own, "sandbox": "none", "build": True})
    )
    (pack / "verification").mkdir()

    run_pytest(pytester, "pack", "--helmbench-model=test/good", f"--helmbench-base-url={provider.url}")

    assert not (pytester.path / "taken").exists()
