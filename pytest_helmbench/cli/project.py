"""The project that a command runs in: root, pytest settings, benchmarks and results database.

pytest itself is not asked: it would import every plugin of the project first.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.places import (
    benchmark_folders,
    benchmark_root,
    benchmarks_below,
    unnamed_tables,
)
from pytest_helmbench.cli.output import CommandError, complain
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.options.declarations import OPTIONS, Options
from pytest_helmbench.options.option import Option, declared_in
from pytest_helmbench.options.settings import Settings, resolve_settings
from pytest_helmbench.options.trust import is_users_own

__all__ = ["Project"]

_DB = "helmbench.db"
_TABLES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "pytest.toml": (("pytest",),),
    ".pytest.toml": (("pytest",),),
    "pytest.ini": (("pytest",),),
    ".pytest.ini": (("pytest",),),
    "pyproject.toml": (("tool", "pytest", "ini_options"), ("tool", "pytest")),
    "tox.ini": (("pytest",),),
    "setup.cfg": (("tool:pytest",),),
}
_ALWAYS_A_CONFIG = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")  # even without a section
_MARKS = ("pyproject.toml", "setup.py", ".git")  # of a root without pytest settings: the first that is found
_OVERRIDE = re.compile(r"(?:-o|--override-ini)=?(.*)")
_TRUE = frozenset({"1", "true", "yes", "on", "t", "y"})
_DECLARED = declared_in(Options)


@dataclass(frozen=True, slots=True)
class Project:
    """The pytest project around a folder.

    Args:
        ini_file: Where `ini` was read; None where nothing was.
        marked: Whether anything marks the root as one; without that results may lie in any folder above.
        ini: Ini keys and their values; `-o` wins over the file.
        added: Options by ini key, from `addopts` and `PYTEST_ADDOPTS`.
    """

    start: Path
    root: Path
    ini_file: Path | None
    marked: bool
    ini: Mapping[str, object]
    added: Mapping[str, object]

    @classmethod
    def at(cls, start: Path, environ: Mapping[str, str] = os.environ) -> Project:
        """Find the project of a folder as pytest does.

        Raises:
            CommandError: Its configuration file cannot be read.
        """
        file, ini = _configuration(start)
        root = None if file is None else file.parent
        if file is not None and ini and not is_users_own(file, start, benchmark_folders()):
            complain(f"{file}: nothing in it counts, since it is inside a benchmark")
            ini = {}
        if root is None:
            folders = (start, *start.parents)
            root = next((folder for name in _MARKS for folder in folders if (folder / name).exists()), None)
        addopts = [*_words(ini.get("addopts")), *shlex.split(environ.get("PYTEST_ADDOPTS", ""))]
        ini = {**ini, **_overridden(addopts)}
        return cls(start, root or start, file, root is not None, ini, _added_options(addopts))

    def given(self, option: Option) -> object:
        """Return what the project says about an option, or None."""
        if option.key in self.added:
            return self.added[option.key]
        value = self.ini.get(option.key)
        if value is None or value == "":
            return None
        if option.type.ini == "bool":
            return str(value).strip().lower() in _TRUE
        if option.type.ini == "args":
            return _words(value)
        if option.type.ini == "linelist":
            return value if isinstance(value, list) else str(value).strip().splitlines()
        return str(value)

    def settings(self, **named: object) -> Settings:
        """Return the settings that a session here would have; of options by name with underscores, None is "not given".

        Raises:
            SettingsError: A value that cannot be used.
        """

        def given(option: Option) -> object:
            stated = named.get(option.name.replace("-", "_"))
            return stated if stated is not None else self.given(option)

        return resolve_settings(given, self.start, self.root, self.ini_file)

    def database(self, given: Path | None) -> Path:
        """Return the results file: the one given, the project's own, or the nearest one above."""
        stated = given or self.given(_DECLARED["db"])
        if stated is not None:
            return self.start / Path(str(stated)).expanduser()
        found = (folder / _DB for folder in self._folders() if (folder / _DB).is_file())
        return next(found, self.root / _DB)

    def benchmarks(self, given: Path | None) -> tuple[Path, ...]:
        """Return the folders of the benchmarks at or inside a path; without one, those that a session here would run.

        Raises:
            CommandError: There is none.
        """
        if given is not None:
            from pytest_helmbench.run.library import fetched  # imports much

            paths = [self.start / fetched(str(given))]
        elif benchmark_root(self.start) is not None:
            paths = [self.start]
        else:
            named = _words(self.given(_DECLARED["paths"])) or Options().paths
            paths = [self.root / path for path in named]
        roots = [
            root
            for path in paths
            for root in (benchmark_root(path), *benchmarks_below(path))
            if root is not None
        ]
        if not roots:
            from pytest_helmbench.run.library import (  # where none is found
                intended_folder,
                unreadable_benchmark_text,
            )

            meant = intended_folder(paths[0]) if given is not None else None
            if meant is not None:
                raise CommandError(unreadable_benchmark_text(str(given), meant, self.settings()))
            instead = unnamed_tables(paths[0], str(given), ()) if given is not None else ""
            if instead:
                raise CommandError(instead)
            raise CommandError(
                f"no benchmark at {given or ', '.join(map(str, paths))}\n"
                "  hint: a benchmark is a folder with scenarios/P1-B1-S1/…; `helmbench init PATH` makes one; a pack is"
                " a folder with manifest.yaml and tasks.jsonl, a Bench Pack one with benchlocal.pack.json, and a table"
                " is a .csv, .tsv, .jsonl, .json or .parquet file"
            )
        return tuple(dict.fromkeys(roots))

    def _folders(self) -> Iterator[Path]:
        for folder in (self.start, *self.start.parents):
            yield folder
            if self.marked and folder == self.root:
                return


class _IniFile(configparser.RawConfigParser):
    def optionxform(self, optionstr: str) -> str:
        """Return a key as written."""
        return optionstr


def _configuration(start: Path) -> tuple[Path | None, Mapping[str, object]]:
    """Return the ini file that pytest takes, and what it says."""
    for folder in (start, *start.parents):
        for name, tables in _TABLES.items():
            path = folder / name
            if not path.is_file():
                continue
            content = _read(path)
            for keys in tables:
                found = _inside(content, keys)
                if found is not None:
                    return path, found
            if name in _ALWAYS_A_CONFIG:
                return path, {}
    return None, {}


def _read(path: Path) -> Mapping[str, object]:
    try:
        if path.suffix == ".toml":
            return tomllib.loads(path.read_text(encoding="utf-8"))
        # As pytest reads them: a value is text, and its lines begin with spaces.
        parser = _IniFile(default_section="", allow_no_value=True)
        parser.read_string(path.read_text(encoding="utf-8-sig"))
        return {section: dict(parser.items(section)) for section in parser.sections()}
    except (OSError, ValueError, configparser.Error) as error:
        reason = " ".join(str(error).split())
        raise CommandError(
            f"{path}: cannot be read: {reason}\n  hint: pytest cannot read it either"
        ) from error


def _inside(content: Mapping[str, object], keys: Sequence[str]) -> Mapping[str, object] | None:
    found: object = content
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _words(value: object) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, list) else shlex.split(str(value))


def _overridden(words: Sequence[str]) -> Mapping[str, str]:
    """Return the ini keys that `-o KEY=VALUE` states among the words of a command line."""
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        option = _OVERRIDE.fullmatch(word)
        if option is not None:
            key, _, value = (option[1] or next(rest, "")).partition("=")
            found[key] = value
    return found


def _added_options(words: Sequence[str]) -> Mapping[str, object]:
    """Return our options among the words of a command line, the last of each; lists are gathered."""
    by_flag = {option.flag: option for option in OPTIONS if option.use != "ini"}
    found: dict[str, object] = {}
    lists: dict[str, list[object]] = {}
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        option = by_flag.get(flag)
        if option is None:
            continue
        stated = True if option.type.action == "store_true" else value if equals else next(rest, None)
        if option.type.action == "append":
            lists.setdefault(option.key, []).append(stated)
        else:
            found[option.key] = stated
    return found | lists
