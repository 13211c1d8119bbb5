"""Links in a Bench Pack, and the hash of its files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from bench_pack_manifests import changed, healthy_manifest, problems_of, write_bench_pack

from pytest_helmbench.benchmarks.bench_packs.format.manifest import load_manifest
from pytest_helmbench.core.problem import UnreadableBenchmarkError


@pytest.mark.parametrize("path", ["entry", "verifiers.0.docker.buildContext"])
def test_a_link_must_not_lead_out_of_the_pack(tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside"
    (outside / "in").mkdir(parents=True)
    (outside / "in" / "index.js").touch()
    root = tmp_path / "pack"
    manifest = changed({path: "link/in/index.js" if path == "entry" else "link/in"})
    write_bench_pack(root, manifest)
    (root / "link").symlink_to(outside)

    (problem,) = problems_of(root)
    assert (
        f"the path '{manifest['entry'] if path == 'entry' else 'link/in'}' leads out of the pack by a link"
        in problem
    )

    (root / "link").unlink()
    (outside / "in").rename(root / "kept")
    (root / "link").mkdir()
    (root / "link" / "in").symlink_to(root / "kept")  # a link that stays inside is fine
    assert load_manifest(root).obstacle is None


def test_the_hash_is_that_of_names_and_contents(tmp_path: Path) -> None:
    root = write_bench_pack(tmp_path / "pack")
    first = load_manifest(root).hash
    assert len(first) == 64
    copy = shutil.copytree(root, tmp_path / "copy")
    assert load_manifest(copy).hash == first

    for folder in (
        ".git",
        "node_modules/left-pad",
        "verification/node_modules",
        "verification/__pycache__",
        ".helmbench",
    ):
        (copy / folder).mkdir(parents=True)
        (copy / folder / "file").write_text("not of the pack")
    for name in ("helmbench.db", "helmbench.db-wal"):
        (copy / name).write_text("results of a run in the pack")
    (copy / "empty").mkdir()
    (copy / "dist" / "benchlocal" / "index.js").chmod(0o755)
    assert load_manifest(copy).hash == first

    seen = {first}
    (copy / "verification" / "Dockerfile").write_text("FROM scratch\n")
    seen.add(load_manifest(copy).hash)
    (copy / "verification" / "Dockerfile").rename(copy / "verification" / "Dockerfile.old")
    seen.add(load_manifest(copy).hash)
    (copy / "verification" / ".hidden").touch()
    seen.add(load_manifest(copy).hash)
    (copy / "data").symlink_to("verification")
    seen.add(load_manifest(copy).hash)
    (copy / "data").unlink()
    (copy / "data").symlink_to("dist")
    seen.add(load_manifest(copy).hash)
    os.mkfifo(copy / "pipe")  # is not waited for
    seen.add(load_manifest(copy).hash)
    assert len(seen) == 7


@pytest.mark.parametrize("declares", [False, True])
def test_a_link_out_of_a_pack_is_refused(tmp_path: Path, *, declares: bool) -> None:
    manifest = healthy_manifest() if declares else {**healthy_manifest(), "verifiers": []}
    root = write_bench_pack(tmp_path / "pack", manifest)
    (root / "inside").symlink_to("dist")
    load_manifest(root)
    (root / "node_modules").mkdir()
    (root / "node_modules" / "everything").symlink_to("/")
    with pytest.raises(UnreadableBenchmarkError) as caught:
        load_manifest(root)
    assert str(caught.value) == (
        f"{root}/node_modules/everything: a link that leads out of the Bench Pack, which may read its own folder alone"
        "\n  hint: put the file itself there"
    )
