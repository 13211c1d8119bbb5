"""The files of a row on another host: what is listed, what is fetched, and what is never sent."""

from __future__ import annotations

import asyncio
import pickle
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.packs.format.file_plans import plan_assets
from pytest_helmbench.benchmarks.packs.format.pack_files import PackFiles
from pytest_helmbench.benchmarks.packs.row_material import Material, MaterialSource, MaterialStore, piece
from pytest_helmbench.benchmarks.packs.task import Asset, Environment, PackTask, Visibility
from pytest_helmbench.sandbox.workspace import SandboxError, remove_tree


def _pack(root: Path) -> tuple[PackFiles, PackTask]:
    assets = root / "assets"
    (assets / "data" / "empty").mkdir(parents=True)
    (assets / "data" / "one.txt").write_text("one")
    (assets / "data" / "nothing").touch()
    program = assets / "run.sh"
    program.write_bytes(b"#!/bin/sh\n" * 1_000_000)
    program.chmod(0o755)
    git = assets / "clone" / ".git"
    (git / "objects").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (assets / "clone" / "tree.txt").write_text("of the working tree")
    (root / "secret.txt").write_text("the answer")
    named = [Asset(name, name, False, assets / name, Visibility.PUBLIC) for name in ("data", "run.sh")]
    environment = Environment(repository=assets / "clone")
    return PackFiles(root, "assets", "eval"), PackTask(
        "t", "p", "repo_patch", environment=environment, assets=tuple(named)
    )


def _laid_out(
    store: MaterialStore, material: Material, places: Mapping[str, Path], fetched: list[str]
) -> Path:
    async def fetch(digest: str, offset: int) -> bytes:
        fetched.append(digest)
        return await asyncio.to_thread(piece, places[digest], offset)

    return asyncio.run(store.laid_out(pickle.loads(pickle.dumps(material)), fetch))


def test_a_row_finds_its_files_as_they_are_in_its_pack_and_nothing_else(tmp_path: Path) -> None:
    files, task = _pack(tmp_path)
    material, places = MaterialSource().material(files, task, plan_assets(files, task))
    store, fetched = MaterialStore(), list[str]()
    root = _laid_out(store, material, places, fetched)
    try:
        there = {path.relative_to(root).as_posix(): path for path in root.rglob("*")}
        wanted = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
        assert set(there) == wanted - {"secret.txt", "assets/clone/tree.txt"}
        for name, path in there.items():
            assert path.stat().st_mode == (tmp_path / name).stat().st_mode or name == "assets", name
            assert path.is_dir() or path.read_bytes() == (tmp_path / name).read_bytes()
        moved = material.task_at(root, task)
        assert moved.environment.repository == root / "assets" / "clone"
        planned = plan_assets(material.files_at(root), moved)
        assert [item.target for item in planned] == [item.target for item in plan_assets(files, task)]
        before = len(fetched)
        assert before == len(set(fetched)) + 2, "a large file comes in pieces"
        remove_tree(_laid_out(store, material, places, fetched))
        assert len(fetched) == before, "nothing is fetched twice"
    finally:
        remove_tree(root)


def test_what_was_kept_goes_with_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, task = _pack(tmp_path / "pack")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    material, places = MaterialSource().material(files, task, plan_assets(files, task))
    store = MaterialStore()
    remove_tree(_laid_out(store, material, places, []))
    assert list((tmp_path / "tmp").iterdir())
    del store
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("now", [b"", b"two", b"another one"])
def test_a_file_that_has_changed_is_an_error(tmp_path: Path, now: bytes) -> None:
    files, task = _pack(tmp_path)
    material, places = MaterialSource().material(files, task, plan_assets(files, task))
    (tmp_path / "assets" / "data" / "one.txt").write_bytes(now)
    with pytest.raises(SandboxError, match="has changed"):
        _laid_out(MaterialStore(), material, places, [])
