"""A folder of task folders as a pack in memory: each one is a row, by its task.toml and a hash over all its files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.authoring import counted
from pytest_helmbench.benchmarks.packs.families.registry import FOLDER_FAMILY
from pytest_helmbench.benchmarks.packs.families.task_folder.check import (
    FILES,
    WORDS,
    FolderTask,
    check_task,
    folder_task,
)
from pytest_helmbench.benchmarks.packs.format.pack_files import exceeded, hash_tree
from pytest_helmbench.benchmarks.packs.format.row_files import HeldRows, ReadRow
from pytest_helmbench.benchmarks.packs.task import MaterializationError
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.files.field_values import RowFaults
from pytest_helmbench.files.source import Fault, Findings, Reader
from pytest_helmbench.files.strict_json import a_mapping, is_encodable
from pytest_helmbench.files.toml_text import TomlText

_CANARY = re.compile(r"<!--.*canary.*-->|#.*canary.*", re.IGNORECASE)
_DOWNLOAD = re.compile(
    r"^[^#]*?(?:\b(?:curl|wget)\b[^#]*?\bhttps?://(?!localhost|127\.|0\.0\.0\.0|\[::1\])"
    r"|\b(?:apt|apt-get|apk|yum|dnf)\b[^#|;&]*\s(?:update|install|add)\b"
    r"|\b(?:pip3?|uv|npm|pnpm|yarn|conda|gem|cargo|go)\b(?![^#|;&]*--(?:no-index|offline))"
    r"[^#|;&]*\s(?:install|add|sync|ci|get)\b|\b(?:uvx|npx)\s|\bgit\s+clone\b)"
)
_LARGEST_TEST = 2**20  # bytes of a file of tests that is looked through
_ALLOW = "--helmbench-network=task"
_LINK = "the folder is a symbolic link"


class TaskFolders(HeldRows):
    """The task folders of a pack, in the order of their names."""

    columns = None

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root
        self._asking = 0
        self._downloads: list[Problem] = []

    def understood(self, _groups: Sequence[str]) -> str:
        """Return nothing: a task folder is what it says."""
        return ""

    def rows(self, path: Path, digest: hashlib._Hash) -> Iterator[ReadRow]:
        """Yield the row of a task folder, and add all its files to a hash.

        Args:
            path: Of its task.toml, which may be missing.
        """
        folder = path.parent
        name = folder.resolve().name if folder == self._root else folder.name
        toml, faults = self._read(path)
        row = self._row(folder, name, toml, faults) if toml.data or not faults.errors else None
        digest.update(json.dumps([name, row], sort_keys=True).encode())
        if row is not None and not faults.errors:
            self._note_network(folder, folder_task(a_mapping(row["eval"])))
        raw = b"" if faults.errors or row is None else json.dumps(row, ensure_ascii=False).encode()
        yield ReadRow(self.hold(1, raw), row if raw else None, faults, name)

    def without_network(self) -> Iterator[Problem]:
        """Yield what its tasks lack where their boxes get no network."""
        if self._asking:
            ask, get = ("ask", "get") if self._asking > 1 else ("asks", "gets")
            what = f"{counted(self._asking, 'task')} {ask} for a network and {get} none ({_ALLOW})"
            yield Problem(self._root, None, what)
        yield from self._downloads

    def _note_network(self, folder: Path, task: FolderTask) -> None:
        self._asking += any(box.network for box in task.boxes)
        if task.downloads is not None and task.verifier.network:
            script = folder / "tests" / "test.sh"
            what = f"the verifier downloads; {_ALLOW} allows it"
            self._downloads.append(Problem(script, task.downloads, what))

    def _read(self, path: Path) -> tuple[TomlText, RowFaults]:
        """Return the task.toml of a folder with what is wrong in it."""
        folder, findings = path.parent, Findings()
        if folder.is_symlink():
            findings.add(path, Fault(None, _LINK, "copy the folder to its place"))
        elif not is_encodable(folder.name):
            findings.add(path, Fault(None, "the name of the folder is not UTF-8"))
        elif not path.exists():
            hint = "a task folder has task.toml, instruction.md, environment and tests"
            findings.add(path, Fault(None, "this is missing", hint))
        read = None if findings.problems else Reader(findings, self._root).text(path)
        toml = TomlText(read or "")
        found = [Fault(one.line, one.message, one.hint) for one in findings.problems]
        faults = RowFaults(1, toml.line, [*found, *filter(None, [toml.fault])])
        if not faults.errors:
            check_task(faults, toml.data)
        return toml, faults

    def _row(self, folder: Path, name: str, toml: TomlText, faults: RowFaults) -> dict[str, JsonValue]:
        """Return the row of a folder, and file what is wrong with its other files."""
        try:
            digest, files, size = hash_tree(folder)
            if fault := exceeded(files, size):
                faults.errors.append(Fault(None, f"the folder {fault}", "leave out what no box needs"))
        except (MaterializationError, OSError) as error:
            digest = ""
            hint = "a task folder holds files and folders that can be read"
            faults.errors.append(Fault(None, f"the folder {error}", hint))
        return {
            "id": name,
            "family": FOLDER_FAMILY,
            "input": {"instruction": self._instruction(folder, toml.data, faults)},
            "eval": {
                "folder": "." if folder == self._root else folder.name,
                "task": {key: value for key, value in toml.data.items() if key not in ("metadata", "task")},
                "digest": digest,
                "has": [one for one in FILES if (folder / one).exists()],
                "words": [*_words_of(folder / "tests")],
                "downloads": _download_of(folder / "tests" / "test.sh"),
            },
            "metadata": dict(a_mapping(toml.data.get("metadata"))),
        }

    def _instruction(self, folder: Path, task: JsonObject, faults: RowFaults) -> str:
        """Return what the agent is asked, without the lines at its head that mark it as test data."""
        if task.get("steps"):
            return "steps"  # they have one each, and are unknown here
        path = folder / "instruction.md"
        findings = Findings()
        text = (Reader(findings, self._root).text(path) or "") if path.exists() else ""
        lines = text.split("\n")
        while lines and _CANARY.fullmatch(lines[0].strip()):
            del lines[0]
        for one in findings.problems:
            faults.error(path.name, one.message, one.hint)
        if not findings.problems and not "".join(lines).strip():
            faults.error(path.name, "this is empty" if path.exists() else "this is missing")
        return "\n".join(lines).strip("\n")


def _words_of(tests: Path) -> Iterator[str]:
    """Yield the words that tests name and their task depends on."""
    files = (
        path for path in sorted(tests.rglob("*")) if path.is_file() and path.stat().st_size <= _LARGEST_TEST
    )
    found = b"\n".join(path.read_bytes() for path in files)
    yield from (word for word in WORDS if word.encode() in found)


def _download_of(script: Path) -> int | None:
    """Return the first line of a script that downloads; None where none does."""
    if not script.is_file() or script.stat().st_size > _LARGEST_TEST:
        return None
    lines = script.read_text("utf-8", "replace").split("\n")
    return next((number for number, line in enumerate(lines, start=1) if _DOWNLOAD.match(line)), None)
