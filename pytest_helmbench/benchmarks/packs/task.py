"""A row of a question pack, compiled: what the model sees, what the evaluator reads, what stays hidden."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pytest_helmbench.core.case import CaseRule
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.core.scrub import REDACTED


class ConfigError(HelmbenchError, ValueError):
    """A manifest, a row or a task specification breaks the format; a `ValueError`, as the format says."""


class UnreadablePackError(ConfigError, UnreadableBenchmarkError):
    """A pack of which nothing can be used.

    Args:
        problems: All that is wrong with it, in file order.
    """


class MaterializationError(HelmbenchError, ValueError):
    """Files of a pack cannot be laid out as the row says; a `ValueError`, as the format says."""


class PathPolicyError(MaterializationError):
    """A path of a pack or of a patch leads where it must not."""


class Visibility(StrEnum):
    """Who may see a value: the model, the evaluator's sandbox, the evaluator alone."""

    PUBLIC = "public"
    EVALUATION_INPUTS = "evaluation_inputs"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class Resource:
    """One value of a row with who may see it. Its repr shows public values only."""

    value: JsonValue
    visibility: Visibility

    def __repr__(self) -> str:
        shown = repr(self.value) if self.visibility is Visibility.PUBLIC else REDACTED
        return f"Resource({shown}, {self.visibility.value})"


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a row's code runs: the manifest's environment with the row's laid over it.

    Args:
        image: Container image, or None.
        workdir: Folder in the container; None for the image's own.
        timeout_s: Above 0, or None where none is stated. Text families: of a request.
        materialize_workdir_from_image: Copy the image's workdir into the workspace first.
        repository: Clone or bundle inside the pack that holds the repository of a patch task; None when
            it comes from the image.
    """

    image: str | None = None
    workdir: str | None = None
    timeout_s: float | None = None
    materialize_workdir_from_image: bool = False
    repository: Path | None = None


@dataclass(frozen=True, slots=True)
class BoxRoom:
    """The room that boxes take while they live, or that a machine has for them."""

    cpus: float
    memory_mb: int


@dataclass(frozen=True, slots=True)
class Asset:
    """A file or folder of the pack that is laid out for a row.

    Args:
        path: Below its asset root, POSIX.
        mount: Where it goes, relative to the workspace (to the evaluator's folder for files of `eval`).
        read_only: Whether its user may not change it.
        source: The file or folder itself.
        visibility: Public for `assets`; that of the field for file references in `eval`.
    """

    path: str
    mount: str
    read_only: bool
    source: Path
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class CommandCheck:
    """A command whose exit 0 passes.

    Args:
        command: What is run; a command written as one string is `("sh", "-lc", text)`.
        workdir: Where; None for the environment's.
        timeout_s: Above 0; None for the environment's.
    """

    command: tuple[str, ...]
    workdir: str | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class FileCheck:
    """A checker that is a file or folder of the pack.

    Args:
        source: `pytest` for test functions, `script` for something to execute.
        path: Below the eval root, POSIX.
        timeout_s: Above 0; None for the environment's.
    """

    source: Literal["pytest", "script"]
    path: str
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PackTask:
    """One row, compiled.

    Args:
        benchmark_id: The manifest's `id`.
        task_type: A family's name, or one that is not known here.
        metadata: The row's own; never shown to a model.
        resources: Every field of `input` and `eval` by its name, and `assets` where the row has some, as
            written.
        check: How the row is judged, compiled by its family and read by it alone; None for text families.
        answer_form: `line`, `json` or `text`, as the row or the manifest asks for its answer; None where neither does.
    """

    id: str
    benchmark_id: str
    task_type: str
    metadata: JsonObject = field(default_factory=dict)
    resources: Mapping[str, Resource] = field(default_factory=dict)
    environment: Environment = Environment()
    assets: tuple[Asset, ...] = ()
    eval_files: tuple[Asset, ...] = ()
    check: object = field(default=None, repr=False)
    answer_form: str | None = None

    def public(self) -> dict[str, JsonValue]:
        """Return what the model or agent may see, by name."""
        return {
            name: resource.value
            for name, resource in self.resources.items()
            if resource.visibility is Visibility.PUBLIC
        }

    def evaluation(self) -> dict[str, JsonValue]:
        """Return the fields of `eval` by name, hidden ones included."""
        return {
            name: resource.value
            for name, resource in self.resources.items()
            if resource.visibility is not Visibility.PUBLIC
        }

    def input_value(self, name: str, default: JsonValue = None) -> JsonValue:
        """Return a public value; the default where there is none or it is not public."""
        found = self.resources.get(name)
        return found.value if found is not None and found.visibility is Visibility.PUBLIC else default

    def eval_value(self, name: str, default: JsonValue = None) -> JsonValue:
        """Return a value of `eval`; the default where there is none."""
        found = self.resources.get(name)
        return found.value if found is not None and found.visibility is not Visibility.PUBLIC else default

    def redacted(self) -> dict[str, JsonValue]:
        """Return all values by name, hidden ones as `<redacted>`: fit to leave the evaluator."""
        return {
            name: REDACTED if resource.visibility is Visibility.HIDDEN else resource.value
            for name, resource in self.resources.items()
        }


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """A row that cannot be used: an item that errors.

    Args:
        name: Its id, or `line-N` where it has none of its own. Unique in the pack, healthy rows included.
        line: 1-based; blank lines count.
        problems: All that is wrong with it.
    """

    name: str
    path: Path
    line: int
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file or folder that is going to be laid out.

    Args:
        target: Where to, relative and POSIX; `.` for the whole place.
        mode: Permission bits.
        size: Bytes; 0 for a folder.
        is_folder: Whether it is a folder; its contents are planned on their own.
        read_only: Whether its user may not change it.
    """

    source: Path
    target: str
    mode: int
    size: int
    is_folder: bool
    read_only: bool


@dataclass(frozen=True, slots=True)
class PackRule(CaseRule):
    """A row as its reply or its workspace is judged by it.

    Args:
        parity: By the published rules instead of those made for what models really write.
        form: `line`, `json` or `text`: how the answer was asked for.
        judge: Id of the marking model that reads replies whose words alone do not say enough; empty for none.
    """

    task: PackTask = field(repr=False)
    parity: bool = False
    form: str = "text"
    judge: str = ""
