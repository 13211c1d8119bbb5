"""Ownership of ini files, conftest.py and models.yml: those of the user decide, those of a benchmark do not."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError

_CONFTEST = "conftest.py"
_NEVER_VISITED = frozenset({"node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class BenchmarkFolders:
    """Tells which folders are benchmarks.

    Args:
        root: Returns the benchmark that holds a path; None where no benchmark does.
        is_closed: Whether what lies below the folder of a benchmark is data.
        closed_signs: Names of files and folders, of which each benchmark that is closed holds one.
    """

    root: Callable[[Path], Path | None]
    is_closed: Callable[[Path], bool]
    closed_signs: frozenset[str]


class TrustError(HelmbenchError):
    """A file that is not the user's own would decide about the session."""


def is_users_own(file: Path, start: Path, benchmarks: BenchmarkFolders) -> bool:
    """Return whether a file stands at or above the folder where the session started, and not in a benchmark."""
    folder = file.parent.resolve()
    return start.resolve().is_relative_to(folder) and benchmarks.root(folder) is None


def results_folder(root: Path, start: Path, *, named: bool) -> Path:
    """Return the folder of the results: pytest's rootdir, unless a file in what it is to run has made it that.

    Args:
        named: Whether the user has named the rootdir, or an ini file.
    """
    return root if named or start.resolve().is_relative_to(root.resolve()) else start


def check_ini(ini: Path, start: Path, benchmarks: BenchmarkFolders) -> None:
    """Refuse the settings of an ini file that pytest has picked up, and that the user has not named.

    Raises:
        TrustError: It is not the user's own, and says something.
    """
    says_nothing = ini.name == "pyproject.toml" and _pytest_table(ini) is None  # it may mark a root alone
    if says_nothing or is_users_own(ini, start, benchmarks):
        return
    inside = benchmarks.root(ini.parent.resolve()) is not None
    place = "the benchmark that it is to run" if inside else "a folder that it was not started in"
    raise TrustError(
        f"{ini}: pytest would take its settings from {place}\n"
        f"  hint: name your own with -c FILE (`-c /dev/null` for none), or this one, where it is yours: -c {ini}"
    )


def trusted_roots(words: Iterable[str], ini: Path | None, start: Path) -> tuple[Path, ...]:
    """Return the benchmarks that `helmbench_trusted` lists, relative to the user's ini file, else to `start`."""
    base = start if ini is None else ini.parent
    return tuple(dict.fromkeys((base / Path(word).expanduser()).resolve() for word in words))


def trust_hint(root: Path, trusted: Iterable[str | Path], ini: Path | None) -> str:
    """Return how a benchmark is trusted: the two lines of the user's ini file, and the option for one session."""
    root, start = root.resolve(), Path.cwd()
    # Inside the benchmark a new file would not be the user's own.
    file = ini or (root.parent if start.is_relative_to(root) else start) / "pytest.ini"
    known = dict.fromkeys((*map(Path, trusted), root))

    def paths(base: Path) -> list[str]:
        base = base.resolve()
        return [str(one.relative_to(base) if one.is_relative_to(base) else one) for one in known]

    listed = json.dumps(paths(file.parent)) if file.suffix == ".toml" else _words(paths(file.parent))
    option = shlex.quote(f"helmbench_trusted={_words(paths(start if ini is None else ini.parent))}")
    return (
        f"{file}:\n    {_section(file)}\n    helmbench_trusted = {listed}\n  or, for one session, -o {option}"
    )


def _words(texts: Iterable[str]) -> str:
    return " ".join(json.dumps(text) if shlex.quote(text) != text else text for text in texts)


def check_conftests(
    paths: Iterable[Path],
    trusted: Collection[Path],
    benchmarks: BenchmarkFolders,
    *,
    below: bool,
    ini: Path | None = None,
) -> None:
    """Refuse a conftest.py inside a benchmark where pytest, starting from some paths, would run it.

    In closed benchmarks pytest visits the folder itself alone: what lies below is data.

    Args:
        below: Whether the session runs all that lies below.

    Raises:
        TrustError: There is one.
    """
    for folder in _visited(paths, benchmarks, below=below):
        if not (folder / _CONFTEST).is_file():
            continue
        root = benchmarks.root(folder)
        if root is None or root.resolve() in trusted or (benchmarks.is_closed(root) and root != folder):
            continue
        raise TrustError(
            f"{folder / _CONFTEST}: pytest would run code of the benchmark that it is to run\n"
            f"  hint: remove it, or trust the benchmark in {trust_hint(root, trusted, ini)}"
        )


def _visited(paths: Iterable[Path], benchmarks: BenchmarkFolders, *, below: bool) -> Iterator[Path]:
    """Yield the folders whose conftest.py pytest may run."""
    seen: set[tuple[int, int]] = set()
    for path in dict.fromkeys(Path(os.path.abspath(path)) for path in paths):  # noqa: PTH100 - keeps links
        yield from (path, *path.parents)
        if below:
            yield from _walk(path, benchmarks, seen)
        elif path.is_dir():
            yield from path.glob("test*")


def _walk(path: Path, benchmarks: BenchmarkFolders, seen: set[tuple[int, int]]) -> Iterator[Path]:
    """Yield the folders with a conftest.py below one, as pytest visits them: through links, each folder once."""
    for folder, folders, files in os.walk(path, followlinks=True):
        found = os.stat(folder)  # noqa: PTH116 - half the time of a walk is making paths
        if (found.st_dev, found.st_ino) in seen:
            folders.clear()
            continue
        seen.add((found.st_dev, found.st_ino))
        if _CONFTEST in files:
            yield Path(folder)
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _NEVER_VISITED]
        if not benchmarks.closed_signs.isdisjoint((*files, *folders)) and benchmarks.is_closed(Path(folder)):
            folders.clear()


def _section(ini: Path) -> str:
    """Return the head of the section of an ini file that has pytest's settings."""
    if ini.name == "pyproject.toml":
        table = _pytest_table(ini)
        return "[tool.pytest]" if table and "ini_options" not in table else "[tool.pytest.ini_options]"
    return "[tool:pytest]" if ini.name == "setup.cfg" else "[pytest]"


def _pytest_table(ini: Path) -> dict[str, object] | None:
    """Return what a pyproject.toml says to pytest; None for nothing, empty where it cannot be read."""
    import tomllib  # pytest has read the same file with it

    try:
        table: dict[str, object] | None = (
            tomllib.loads(ini.read_text(encoding="utf-8")).get("tool", {}).get("pytest")
        )
    except (OSError, ValueError):
        return {}
    return table
