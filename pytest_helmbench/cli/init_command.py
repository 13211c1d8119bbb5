"""`helmbench init`: a small working benchmark to begin with."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from pytest_helmbench.benchmarks.registry import all_places
from pytest_helmbench.cli.output import (
    CommandError,
    no_db_option,
    say,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.whole_file import put_in_place

__all__ = ["command"]


_IGNORED = "helmbench.db*"


@click.command("init")
@click.argument("path", type=click.Path(path_type=Path))
@no_db_option
def command(path: Path) -> None:
    """Make a small working benchmark at PATH, and let git ignore results. Nothing is overwritten."""
    kind = next(places for places in all_places() if places.starter)
    package = kind.module.rpartition(".")[0]
    found = _starter(files(package).joinpath(kind.starter), Path())
    contents = {name: _at(path, content) for name, content in found}
    taken = next((path / name for name in contents if (path / name).exists()), None)
    if taken is None and path.exists() and not path.is_dir():
        taken = path
    if taken is not None:
        raise CommandError(f"{taken} exists already; nothing was written\n  hint: name another folder")
    try:
        for name, content in contents.items():
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(content)
        ignore = _ignore_results(path)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: cannot be written: {error}\n  hint: name another folder") from error
    say(
        f"{len(contents)} files in {path}; {_IGNORED} in {ignore}",
        "next:",
        f"  helmbench check {shlex.quote(str(path))}",
        f"  pytest {shlex.quote(str(path))} --helmbench-model=baseline/lexical",
        "  helmbench runs",
    )


def _at(path: Path, content: str) -> str:
    """Return a file of the starter with the commands in it for the folder that it is written to."""
    place = shlex.quote(str(path))
    for command in ("pytest", "helmbench check"):
        content = content.replace(f"{command} benchmark", f"{command} {place}")
    return content


def _starter(folder: Traversable, place: Path) -> Iterator[tuple[Path, str]]:
    for item in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if item.name == "__pycache__":
            continue
        if item.is_dir():
            yield from _starter(item, place / item.name)
        else:
            yield place / item.name, item.read_text(encoding="utf-8")


def _ignore_results(path: Path) -> Path:
    """Add the line to the repository's `.gitignore`, else to the project's; return that file."""
    place = path.absolute()
    repository = next((folder for folder in (place, *place.parents) if (folder / ".git").exists()), None)
    ignore = (repository or Project.at(Path.cwd()).root) / ".gitignore"
    text = ignore.read_text(encoding="utf-8") if ignore.is_file() else ""
    if _IGNORED not in text.split():
        text += "" if not text or text.endswith("\n") else "\n"
        put_in_place(ignore, f"{text}{_IGNORED}\n")
    return ignore
