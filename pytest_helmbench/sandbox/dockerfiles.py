"""Dockerfiles of somebody else: what in them reaches further than the folder that is built, and the network."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.workspace import SandboxError

__all__ = ["refuse_foreign_mounts", "refuse_links_out", "refuse_other_ways"]

_DIRECTIVE = re.compile(r"(?:#|//)\s*(?:escape|syntax)\s*=", re.IGNORECASE)
"""Comments that have the file read in another way; BuildKit takes `//`, too, and JSON at the very beginning."""
_INSTRUCTION = re.compile(r"\s*(?:ONBUILD\s+)*(ADD|RUN)\s+(.*)", re.IGNORECASE | re.DOTALL)
_FROM_ELSEWHERE = re.compile(r"://|\$|\bgit@", re.IGNORECASE)
_OWN_RIGHTS = re.compile(r"--(?:network|security)\b", re.IGNORECASE)
_FOREIGN_MOUNT = re.compile(r"--mount\b.*(?:\bfrom\s*=|\.\.|[$\"'\\])", re.IGNORECASE)


def refuse_links_out(folder: Path) -> None:
    """Refuse a folder with a link out of it: a mount of a build would follow it into this machine's files.

    Raises:
        SandboxError: There is one; nothing of its target is quoted.
    """
    root = folder.resolve()
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                raise SandboxError(
                    f"its {excerpt(str(path.relative_to(folder)), 120)} is a link out of its folder"
                )


def refuse_foreign_mounts(dockerfile: Path) -> None:
    """Refuse mounts of a build from other images, stages and folders above: engines have followed links in them.

    Raises:
        SandboxError: There is one (CVE-2024-1753, CVE-2024-9407, CVE-2024-9675).
    """
    for line, name, rest in _instructions(_lines(dockerfile)):
        if name == "RUN" and any(map(_FOREIGN_MOUNT.match, _flags(rest))):
            raise SandboxError(
                f"its Dockerfile mounts what is not in its folder: {excerpt(line.strip(), 120)}"
            )


def refuse_other_ways(dockerfile: Path) -> None:
    """Refuse instructions by which a build would reach the network though what it runs cannot.

    Raises:
        SandboxError: There is one.
    """
    lines = _lines(dockerfile)
    for number, line in enumerate(lines):
        if _DIRECTIVE.match(line.strip()) or (number == 0 and line.lstrip().startswith("{")):
            raise _elsewhere(line)
    for line, name, rest in _instructions(lines):
        if name == "ADD" and _FROM_ELSEWHERE.search(_as_read(rest)):
            raise _elsewhere(line)
        if name == "RUN" and any(map(_OWN_RIGHTS.match, _flags(rest))):
            raise _elsewhere(line)


def _lines(dockerfile: Path) -> list[str]:
    text = dockerfile.read_text(encoding="utf-8-sig", errors="replace")
    return [line for line in text.splitlines() if line.strip()]


def _instructions(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield line, name and rest of each instruction that reaches out, at its place and where lines are put together.

    What ends a text within a file (`<<`) may look like a line that goes on.
    """
    told = [line for line in lines if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", "", "\n".join(told)).splitlines()
    for line in dict.fromkeys((*joined, *told)):
        found = _INSTRUCTION.fullmatch(line)
        if found is not None:
            yield line, found[1].upper(), found[2]


def _flags(rest: str) -> Iterator[str]:
    return takewhile(lambda word: word.startswith("--"), rest.split())


def _as_read(rest: str) -> str:
    """Return the words of an instruction without quotes and escapes."""
    start = rest.find("[")
    if start >= 0:
        with suppress(ValueError, RecursionError):  # engines then read it as a shell would
            rest = f"{rest[:start]} {json.loads(rest[start:])}"
    return re.sub(r"[\\\"']", "", rest)


def _elsewhere(line: str) -> SandboxError:
    return SandboxError(
        f"its Dockerfile reaches for the network: {excerpt(line.strip(), 120)}; --helmbench-build-network lets it"
    )
