"""task_folder: the keys of a task.toml with their types, and the task that they make.

Source:
    Harbor 0.26.0, task.toml, schema 1.4.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.packs.format.row_fields import Field, Fields, anything
from pytest_helmbench.core.json_types import JsonObject, JsonValue, json_objects
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import RowFaults, check_text, kind_of, named
from pytest_helmbench.files.source import Fault, suggestion
from pytest_helmbench.files.strict_json import a_mapping, a_number, a_text, a_whole_number, texts
from pytest_helmbench.files.validation import shipped_schema, type_words, validator

_SCHEMA = shipped_schema("task", __name__)
COMPOSE = tuple(
    f"{folder}/{name}.{suffix}"
    for folder in ("environment", "tests")
    for name in ("docker-compose", "compose")
    for suffix in ("yaml", "yml")
)
FILES = (
    "environment",
    "environment/Dockerfile",
    "tests/Dockerfile",
    "tests/test.sh",
    "solution/solve.sh",
    *COMPOSE,
)
"""The files of a task folder that its task depends on, whatever they hold."""
ARTIFACTS = "/logs/artifacts"
TRAJECTORY = "trajectory.json"
WORDS = (ARTIFACTS, TRAJECTORY)
"""Words in the tests that a task depends on."""

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)([GMK])\s*", re.IGNORECASE)
_IN_MB = {"G": 1024.0, "M": 1.0, "K": 1 / 1024}
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def check_task(faults: RowFaults, data: JsonObject) -> None:
    """File what is wrong with a task.toml: wrong types are errors, keys that resemble a known one warnings."""
    wrong: set[str] = set()
    for error in validator(_SCHEMA).iter_errors(data):
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
        where, wanted = "".join(steps).lstrip("."), error.validator_value
        inside = f"{where}." if where else ""
        if error.validator == "additionalProperties":
            known = error.schema["properties"].keys()
            for key in error.instance.keys() - known:
                if near := suggestion(key, known).replace("'", ""):
                    line = faults.line_of(f"{inside}{key}") if faults.line_of else None
                    message = f"{inside}{key} is no key: {near}"
                    faults.warnings.append(Fault(line or faults.line, message, usable=True))
        elif error.validator == "required":
            for key in {*wanted} - error.instance.keys():
                faults.error(f"{inside}{key}", "this is missing")
        elif error.validator == "type":
            words = type_words([wanted] if isinstance(wanted, str) else wanted)
            is_odd = error.instance in ("NaN", "Infinity", "-Infinity")
            faults.error(
                where, f"this is {error.instance if is_odd else kind_of(error.instance)}, not {words}"
            )
            wrong.add(where)
        elif where not in wrong:
            meant = error.schema.get("title") or " or ".join(wanted)
            faults.error(where, f"{named(error.instance)} is not {meant}")
    verifier = a_mapping(data.get("verifier"))
    if verifier.get("environment") and verifier.get("environment_mode") == "shared":
        faults.error("verifier.environment_mode", "there is a verifier.environment, which is not shared")
    for found in (faults.errors, faults.warnings):
        found.sort(key=lambda one: one.line or 0)


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A command that tells whether a box is ready: exit 0 is healthy. Names and defaults are those of its file."""

    command: str
    interval_sec: float = 5.0
    timeout_sec: float = 30.0
    start_period_sec: float = 0.0
    start_interval_sec: float = 5.0
    retries: int = 3

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> HealthCheck | None:
        """Return what a table without faults says; None for an empty one."""
        return cls(**{name: table[name] for name in cls.__slots__ if name in table}) if table else None


@dataclass(frozen=True, slots=True)
class BoxNeeds:
    """A box as its task asks for it.

    Args:
        image: Its container image; None where one is built.
        build: The folder with the Dockerfile of its image, below the task folder; None where none is built.
        loose: The folder whose files are copied into the working folder, as nothing is built; None for none.
        brings_tests: The tests stand in its image, and none are copied.
        asked_cpus: None where the task leaves it open, as `asked_memory_mb`; `cpus` and `memory_mb` are given.
        workdir: None for the image's own.
        env: Variables as written; see `filled_env`.
        network: It asks for a network.
        health: None where it is ready at once.
    """

    image: str | None
    build: str | None = None
    loose: str | None = None
    brings_tests: bool = False
    build_timeout_s: float = 600.0
    asked_cpus: float | None = None
    asked_memory_mb: int | None = None
    workdir: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    network: bool = True
    health: HealthCheck | None = None

    def source(self, folder: Path) -> str | Path:
        """Return the name of its image, or the folder that it is built from, in a task folder."""
        return self.image or folder / (self.build or ".")

    @property
    def cpus(self) -> float:
        """The CPUs that it gets."""
        return min(self.asked_cpus or 2.0, float(os.cpu_count() or 1))

    @property
    def memory_mb(self) -> int:
        """The memory that it gets."""
        return self.asked_memory_mb or 4096


@dataclass(frozen=True, slots=True)
class Artifact:
    """A path of the agent's box, relative to the working folder where it is not absolute, without excluded names."""

    source: str
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Collect:
    """A command that runs in the agent's box after the agent, before anything is taken out."""

    command: str
    timeout_s: float
    user: str | None


@dataclass(frozen=True, slots=True)
class FolderTask:
    """A task folder, compiled. Users are None for the image's own, times None for no limit.

    Args:
        folder: Where it stands, relative to the pack, POSIX; `.` for the pack itself.
        digest: Over names, modes and contents of all files in it, when it was read.
        agent: The agent's box.
        verifier: The box that judges; where it is not separate, the agent's.
        separate: Artifacts alone are judged, in a box that the agent never saw.
        artifacts: As declared, in order; `collect` likewise.
        names_artifacts: The tests name `/logs/artifacts`.
        verifier_env: Variables as written, and so of `solution_env`; see `filled_env`.
        solution: The script that solves it, below the task folder; None for none.
        downloads: The first line of tests/test.sh that downloads; None for none.
    """

    folder: str
    digest: str
    agent: BoxNeeds
    verifier: BoxNeeds
    separate: bool
    artifacts: tuple[Artifact, ...] = ()
    names_artifacts: bool = False
    collect: tuple[Collect, ...] = ()
    agent_user: str | None = None
    verifier_user: str | None = None
    agent_timeout_s: float | None = None
    verifier_timeout_s: float = 600.0
    verifier_env: tuple[tuple[str, str], ...] = ()
    solution_env: tuple[tuple[str, str], ...] = ()
    solution: str | None = None
    downloads: int | None = None

    @property
    def boxes(self) -> tuple[BoxNeeds, ...]:
        """The boxes that it needs."""
        return (self.agent, self.verifier) if self.separate else (self.agent,)

    def lost_variables(self, known: Mapping[str, str]) -> list[str]:
        """Return the names of the variables that it needs from the host and does not get."""
        env = [text for box in self.boxes for _, text in box.env] + [text for _, text in self.verifier_env]
        found = (match for text in env for match in _VARIABLE.finditer(text))
        return [*dict.fromkeys(one[1] for one in found if one[2] is None and one[1] not in known)]


def filled_env(env: Iterable[tuple[str, str]], known: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return variables with `${VAR}` and `${VAR:-default}` replaced in their values."""
    fill = partial(_VARIABLE.sub, lambda found: known.get(found[1], found[2] or ""))
    return tuple((name, fill(text)) for name, text in env)


def folder_task(hidden: JsonObject) -> FolderTask:
    """Return the task of a row without faults."""
    data, has = a_mapping(hidden.get("task")), texts(hidden.get("has"))
    agent, verifier = a_mapping(data.get("agent")), a_mapping(data.get("verifier"))
    environment, own = a_mapping(data.get("environment")), a_mapping(verifier.get("environment"))
    separate = verifier.get("environment_mode", "separate" if own else "shared") == "separate"
    box = judging = _box(environment, agent, "environment", has)
    if separate and (own.get("docker_image") or "tests/Dockerfile" in has):
        judging = _box(own or {**environment, "docker_image": None}, verifier, "tests", has)
    elif separate:
        judging = _box({**environment, **own}, verifier, "environment", has)
    return FolderTask(
        folder=str(hidden.get("folder")),
        digest=str(hidden.get("digest")),
        agent=box,
        verifier=judging,
        separate=separate,
        artifacts=tuple(_artifacts(data.get("artifacts"))),
        names_artifacts=ARTIFACTS in texts(hidden.get("words")),
        collect=tuple(
            Collect(str(one["command"]), a_number(one.get("timeout_sec")) or 60.0, _user_of(one))
            for one in json_objects(verifier.get("collect"))
        ),
        agent_user=_user_of(agent),
        verifier_user=_user_of(verifier),
        agent_timeout_s=a_number(agent.get("timeout_sec")),
        verifier_timeout_s=a_number(verifier.get("timeout_sec")) or 600.0,
        verifier_env=_env(verifier),
        solution_env=_env(a_mapping(data.get("solution"))),
        solution="solution/solve.sh" if "solution/solve.sh" in has else None,
        downloads=a_whole_number(hidden.get("downloads")),
    )


def _box(data: JsonObject, phase: JsonObject, folder: str, has: Iterable[str]) -> BoxNeeds:
    """Return a box of an environment.

    Args:
        phase: Its network keys go before those of the environment.
        folder: Where its Dockerfile stands.
    """
    image = a_text(data.get("docker_image"))
    mode = phase.get("network_mode") or data.get("network_mode")
    size = _SIZE.fullmatch(str(data.get("memory")))
    return BoxNeeds(
        image=image,
        build=folder if image is None else None,
        loose=folder if image is not None and folder == "environment" and folder in has else None,
        brings_tests=folder == "tests",
        build_timeout_s=a_number(data.get("build_timeout_sec")) or 600.0,
        asked_cpus=a_number(data.get("cpus")),
        asked_memory_mb=a_whole_number(data.get("memory_mb"))
        or (None if size is None else int(float(size[1]) * _IN_MB[size[2].upper()])),
        workdir=a_text(data.get("workdir")),
        env=_env(data),
        network=mode == "public" if mode else data.get("allow_internet") is not False,
        health=HealthCheck.read(a_mapping(data.get("healthcheck"))),
    )


def _artifacts(listed: JsonValue) -> Iterator[Artifact]:
    for item in listed if isinstance(listed, list) else ():
        table = a_mapping(item)
        yield Artifact(str(table.get("source", item)), texts(table.get("exclude")))


def _user_of(data: JsonObject) -> str | None:
    return None if data.get("user") is None else str(data["user"])


def _env(data: JsonObject) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(text)) for name, text in a_mapping(data.get("env")).items())


def unknown_needs(hidden: JsonObject) -> list[str]:
    """Return what a task without faults needs and is unknown here, as its file names it."""
    data, has = a_mapping(hidden.get("task")), texts(hidden.get("has"))
    verifier = a_mapping(data.get("verifier"))
    boxes = [a_mapping(data.get("environment")), a_mapping(verifier.get("environment"))]
    phases = [*boxes, a_mapping(data.get("agent")), verifier]
    parts = json_objects(verifier.get("collect")) + json_objects(data.get("artifacts"))
    wanted = {
        "steps": data.get("steps"),
        "compose": {*COMPOSE} & {*has},
        "mcp_servers": any(box.get("mcp_servers") for box in boxes),
        "skills_dir": any(box.get("skills_dir") for box in boxes),
        TRAJECTORY: TRAJECTORY in texts(hidden.get("words")),
        "Windows": any(str(box.get("os", "linux")).lower() != "linux" for box in boxes),
        "GPUs": any(box.get(key) for box in boxes for key in ("gpus", "gpu_types", "tpu")),
        "allowlist": any(phase.get("network_mode") == "allowlist" for phase in phases),
        "other services": any(part.get("service", "main") != "main" for part in parts),
    }
    return [name for name, is_wanted in wanted.items() if is_wanted]


def check_files(faults: RowFaults, hidden: JsonObject) -> None:
    """File what a task whose needs are all known cannot do without."""
    task, has = folder_task(hidden), texts(hidden.get("has"))
    if any(box.build == "environment" for box in task.boxes) and "environment/Dockerfile" not in has:
        faults.error("environment.docker_image", "there is neither an image nor environment/Dockerfile")
    if not task.verifier.brings_tests and "tests/test.sh" not in has:
        faults.error("tests/test.sh", "this is missing")


INPUT_FIELDS: Fields = {"instruction": Field(check_text, required=True)}
EVAL_FIELDS: Fields = {
    name: Field(anything) for name in ("folder", "task", "digest", "has", "words", "downloads")
}
"""Written by the reader of task folders, which has checked them."""
