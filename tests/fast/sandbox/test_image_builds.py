"""Dockerfiles that would reach the network though what they run cannot: refused, with the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_helmbench.sandbox.dockerfiles import refuse_foreign_mounts, refuse_links_out, refuse_other_ways
from pytest_helmbench.sandbox.workspace import SandboxError


@pytest.mark.parametrize(
    "line",
    [
        "ADD https://example.com/x /x",
        "add --chown=1 http://169.254.169.254/latest/meta-data /x",
        "ADD git@github.com:a/b.git /x",
        "ARG WHERE=https://example.com\nADD $WHERE /x",
        "AD\\\nD https://example.com/x /x",
        "ADD \\\n# a word between\n\n  https://example.com/x /x",
        'ADD ["https://example.com/x", "/x"]',
        "ONBUILD ADD https://example.com/x /x",
        "RUN --network=host true",
        "RUN --mount=type=cache,target=/c --network=host true",
        "RUN --security=insecure true",
        "# escape=`\nRUN true",
        "# syntax=example.com/dockerfile\nFROM x",
        "\ufeff# syntax=example.com/dockerfile",
        "// syntax=example.com/dockerfile",
        '{"syntax": "example.com/dockerfile"}',
        'ADD ["https:\\u002f\\u002fexample.com/x", "/x"]',
        "ADD https:\\//example.com/x /x",
        'ADD https:"//"example.com/x /x',
        "ADD 'git'@github.com:a/b.git /x",
        "RUN <<'A\\'\ntrue\nA\\\nADD https://example.com/x /x",
    ],
)
def test_a_way_around_the_closed_network_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "Dockerfile").write_text(
        f"{line}\nCMD true\n" if line[0] in "#/{\ufeff" else f"FROM x\n{line}\n"
    )
    with pytest.raises(
        SandboxError, match=r"its Dockerfile reaches for the network: .*; --helmbench-build-network"
    ):
        refuse_other_ways(tmp_path / "Dockerfile")


def test_an_honest_dockerfile_is_none(tmp_path: Path) -> None:
    text = """# What it needs: https://example.com/
FROM python:3.12-slim AS first
ARG PORT=4010
ENV HOME=/tmp URL=https://example.com
COPY --from=first $HOME/x /x
ADD server.py data.tar.gz /app/
RUN --mount=type=cache,target=/root/.cache echo https://example.com --network \\
    && echo "$PORT"
RUN <<EOF
#!/bin/sh
{ echo one; }
EOF
HEALTHCHECK CMD wget http://localhost:$PORT/health
CMD ["python3", "/app/server.py"]
"""
    (tmp_path / "Dockerfile").write_text(text)
    (tmp_path / "inner").symlink_to("Dockerfile")
    refuse_other_ways(tmp_path / "Dockerfile")
    refuse_foreign_mounts(tmp_path / "Dockerfile")
    refuse_links_out(tmp_path)


@pytest.mark.parametrize(
    "mount",
    [
        "--mount=type=bind,from=first,source=/link,target=/m,rw",
        "--mount=from=first,target=/m",
        "--mount=type=cache,id=../../..,target=/m",
        "--mount=type=bind,source=../..,target=/m",
        "--mount=type=bind,source=$UP,target=/m",
        '--mount=type=bind,"from=first",target=/m',
        "--mount=type=cache,target=/c --mount=type=bind,FROM=first,target=/m",
    ],
)
def test_a_mount_from_elsewhere_is_refused(tmp_path: Path, mount: str) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM x AS first\nFROM first\nRUN \\\n {mount} true\n")
    with pytest.raises(SandboxError, match="its Dockerfile mounts what is not in its folder"):
        refuse_foreign_mounts(tmp_path / "Dockerfile")


@pytest.mark.parametrize("name", ["Dockerfile", "deep/link", ".dockerignore"])
@pytest.mark.parametrize("target", ["/etc", "../../outside", "nowhere/../../../x"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, name: str, target: str) -> None:
    folder = tmp_path / "pack"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(target)
    with pytest.raises(SandboxError, match=f"its {name} is a link out of its folder"):
        refuse_links_out(folder)
