"""Builds of images from a pack's Dockerfile, with real podman: no network, bounded, and gone when they are stopped."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from secrets import token_hex

import pytest
from engines import IMAGE, Running

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.sandbox.containers import ContainerEngine
from pytest_helmbench.sandbox.images import ImageError, ImageRights, build, ready_image
from pytest_helmbench.sandbox.workspace import SandboxError


def _built(podman: Running, folder: Path, *lines: str, wall_s: float = 60.0, network: bool = False) -> str:
    """Build an image; return its file /said, or why there is none."""
    mark = token_hex(8)
    (folder / "Dockerfile").write_text("\n".join((f"FROM {IMAGE}", f"ENV MARK={mark}", *lines, "")))
    tag = f"localhost/helmbench-test:{mark}"
    assert isinstance(podman.engine, ContainerEngine)
    rights = ImageRights(Granted("online" if network else "offline"))
    try:
        podman.wait(build(podman.engine, folder, tag, rights, wall_s))
        run = ("podman", "run", "--rm", "--network=none", tag, "cat", "/said")
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout
    except SandboxError as error:
        return str(error)
    finally:
        subprocess.run(("podman", "rmi", "-f", tag), capture_output=True, check=False)


def test_what_a_dockerfile_runs_has_neither_network_nor_proxies_nor_memory_without_end(
    podman: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:word@proxy.example.com")
    (tmp_path / "own.txt").write_text("of the pack")
    said = _built(
        podman,
        tmp_path,
        "COPY own.txt /own.txt",
        "RUN cat /own.txt > /said; echo >> /said; env | grep -ic proxy >> /said || true",
        "RUN tail -n +3 /proc/net/dev | cut -d: -f1 >> /said",
        "RUN python3 -c 'bytearray(3 << 30)' || echo killed >> /said",
    )
    assert said.split() == ["of", "the", "pack", "0", "lo", "killed"]

    said = _built(podman, tmp_path, "RUN tail -n +3 /proc/net/dev | cut -d: -f1 > /said", network=True)
    assert len(said.split()) > 1


def test_a_build_that_is_stopped_ends_with_all_that_it_runs(podman: Running, tmp_path: Path) -> None:
    seconds = f"10{token_hex(2).translate(str.maketrans('abcdef', '123456'))}"
    said = _built(podman, tmp_path, f"RUN sleep {seconds}", wall_s=4.0)
    assert "podman could not build its image (no end within 4 s)" in said
    assert (
        subprocess.run(("pgrep", "-fx", f"sleep {seconds}"), capture_output=True, check=False).returncode == 1
    )


def test_podman_takes_the_dockerfile(podman: Running, tmp_path: Path) -> None:
    (tmp_path / "Containerfile").write_text(f"FROM {IMAGE}\nRUN echo another > /said\n")
    assert _built(podman, tmp_path, "RUN echo this > /said").strip() == "this"


def test_an_image_that_starts_from_one_that_is_not_here_names_the_option_and_leaves_no_file(
    podman: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(podman.engine, ContainerEngine)
    places = {name: tmp_path / name for name in ("pack", "temporary")}
    for place in places.values():
        place.mkdir()
    (places["pack"] / "Dockerfile").write_text("FROM localhost/helmbench-no-such-image\n")
    monkeypatch.setattr(tempfile, "tempdir", str(places["temporary"]))
    with pytest.raises(ImageError, match=r"image not known.*; --helmbench-pull fetches"):
        podman.wait(ready_image(podman.engine, places["pack"], ImageRights(Granted("offline"))))
    assert list(places["temporary"].glob("*-build-*")) == []
