"""The start command of the server in a verifier's folder: from `package.json`, Dockerfile or file names."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["ServerCommand", "find_command"]

_USUAL_NAMES = ("server.mjs", "server.js", "server.cjs", "index.mjs", "index.js", "server.py")
_LANGUAGES = {".mjs": "node", ".js": "node", ".cjs": "node", ".py": "python"}
_INTERPRETERS = re.compile(r"(node)(?:js)?|(python)[\d.]*")
_SETTING = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_FOR_A_SHELL = re.compile(r"[&|;<>$`\n]")
_NO_FILE_FOLLOWS = ("-m", "-c", "-e", "-p", "-", "--eval", "--print", "--test")
_INSTRUCTION = re.compile(r"\s*(FROM|ENTRYPOINT|CMD)\s+(.*)", re.IGNORECASE | re.DOTALL)
_LARGEST = 2**20


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """A server of a pack.

    Args:
        language: `node` or `python`.
        arguments: For the interpreter; the file among them is absolute.
        stated_in: Name of the file that says so.
    """

    language: str
    arguments: tuple[str, ...]
    stated_in: str

    def argv(self, node: str) -> tuple[str, ...]:
        """Return program and arguments; Python is the one that runs us, so that packages beside us are found."""
        return (node if self.language == "node" else sys.executable, *self.arguments)


def find_command(folder: Path) -> ServerCommand | None:
    """Return how the server in a folder is started: as `package.json` says, else as the Dockerfile does, else by name.

    Args:
        folder: With the server in it.

    Returns:
        None when nothing names a file here that Node or Python can run.
    """
    for stated_in, words in _stated(folder):
        found = _as_command(folder, words, stated_in)
        if found is not None:
            return found
    for name in _USUAL_NAMES:
        path = folder / name
        if path.is_file():
            return ServerCommand(_LANGUAGES[path.suffix], (str(path.resolve()),), name)
    return None


def _stated(folder: Path) -> Iterator[tuple[str, Sequence[str]]]:
    manifest = _json(_text(folder / "package.json"))
    scripts = manifest.get("scripts") if isinstance(manifest, dict) else None
    start = scripts.get("start") if isinstance(scripts, dict) else None
    if isinstance(start, str):
        yield "package.json", _words(start)
    yield "Dockerfile", _container_command(_text(folder / "Dockerfile"))


def _container_command(text: str) -> Sequence[str]:
    """Return what the last stage of a Dockerfile starts; empty for nothing that can be read."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    said: dict[str, Sequence[str]] = {}
    for line in re.sub(r"\\[ \t]*\n", " ", "\n".join(lines)).splitlines():
        found = _INSTRUCTION.fullmatch(line)
        if found is None:
            continue
        name, value = found[1].upper(), found[2].strip()
        if name == "FROM":
            said.clear()
            continue
        stated = _json(value)
        words = [word for word in stated if isinstance(word, str)] if isinstance(stated, list) else []
        said[name] = words if words == stated else _words(value)
    return (*said.get("ENTRYPOINT", ()), *said.get("CMD", ()))


def _as_command(folder: Path, words: Sequence[str], stated_in: str) -> ServerCommand | None:
    """Return the command that words are; None when they are none that we can start here."""
    left = list(words)
    while left and (_SETTING.fullmatch(left[0]) or left[0] in ("env", "exec")):
        left.pop(0)  # the port among such settings is ours to say
    interpreter = _INTERPRETERS.fullmatch(PurePosixPath(left[0]).name) if left else None
    if interpreter is None:
        return None
    for place, word in enumerate(left[1:], start=1):
        if word in _NO_FILE_FOLLOWS:
            return None
        if not word.startswith("-"):
            file = _file_here(folder, word)
            arguments = (*left[1:place], str(file), *left[place + 1 :])
            return ServerCommand(interpreter[1] or interpreter[2], arguments, stated_in) if file else None
    return None


def _file_here(folder: Path, named: str) -> Path | None:
    """Return the file that a path in an image most likely is a copy of."""
    parts = [part for part in PurePosixPath(named).parts if part not in ("/", ".")]
    root = folder.resolve()
    for first in range(len(parts)):
        path = root.joinpath(*parts[first:]).resolve()
        if path.is_relative_to(root) and path.is_file():
            return path
    return None


def _words(line: str) -> Sequence[str]:
    if _FOR_A_SHELL.search(line):
        return ()
    try:
        return shlex.split(line)
    except ValueError:
        return ()


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST)
    except OSError:
        return ""


def _json(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value
