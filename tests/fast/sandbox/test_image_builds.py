"""Dockerfiles that would reach the network though what they run cannot: refused, with the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_helmbench.sandbox.image_builds import refuse_other_ways
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
    ],
)
def test_a_way_around_the_closed_network_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "Dockerfile").write_text(
        f"{line}\nCMD true\n" if line.startswith("#") else f"FROM x\n{line}\n"
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
HEALTHCHECK CMD wget http://localhost:$PORT/health
CMD ["python3", "/app/server.py"]
"""
    (tmp_path / "Dockerfile").write_text(text)
    refuse_other_ways(tmp_path / "Dockerfile")
