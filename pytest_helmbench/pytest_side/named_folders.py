"""The folders that the command line names: links in them that lead back, and whether each gave something to run."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.places import absolute, benchmark_root, benchmarks_below
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.run.library import Library


class NamedFolders:
    """Takes note of which folders of the command line gave items.

    Args:
        config: pytest's.
        library: The benchmarks of the session.
    """

    def __init__(self, config: pytest.Config, library: Library) -> None:
        self._root = config.rootpath
        self._library = library
        self._tests = tuple(config.getini("python_files"))
        named = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
        start = config.invocation_params.dir
        places = {argument: absolute(start / argument) for argument in named}
        self._waiting = {argument: place for argument, place in places.items() if place.is_dir()}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out a link that leads back to a folder it lies in: its benchmarks would come again, 40 levels deep."""
        is_link = collection_path.is_symlink() and collection_path.is_dir()
        leads_back = is_link and collection_path.parent.resolve().is_relative_to(collection_path.resolve())
        return True if leads_back else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Take note of all items, before some are deselected."""
        self._met({item.path for item in items})

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Take note of what a worker has to run."""
        self._met({self._root / node_id.partition("::")[0] for node_id in ids})

    def gave_nothing(self) -> list[str]:
        """Return the folders, as they were named, that neither gave an item nor hold a case or a file of tests."""
        return [argument for argument, place in self._waiting.items() if not self._holds_something(place)]

    def _met(self, paths: set[Path]) -> None:
        if not self._waiting:
            return
        folders = {folder.resolve() for folder in {path.parent for path in paths}}
        self._waiting = {
            argument: place
            for argument, place in self._waiting.items()
            if not any(folder.is_relative_to(place.resolve()) for folder in folders)
            and not any(path.is_relative_to(place) for path in paths)
        }

    def _holds_something(self, place: Path) -> bool:
        inside = benchmark_root(place)
        roots = [*([inside] if inside is not None else []), *benchmarks_below(place)]
        return any(map(self._has_cases, roots)) or any(
            fnmatch(file.name, pattern) for file in place.rglob("*.py") for pattern in self._tests
        )

    def _has_cases(self, root: Path) -> bool:
        try:
            loaded = self._library.load(root)
        except HelmbenchError:
            return True  # its own item errs
        return bool(loaded.count() or loaded.broken)


FOLDERS: pytest.StashKey[NamedFolders] = pytest.StashKey()
