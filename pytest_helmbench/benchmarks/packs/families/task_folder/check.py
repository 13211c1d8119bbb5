"""task_folder: the keys of a task.toml with their types, and the task that they make.

Source:
    Harbor 0.26.0, task.toml, schema 1.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial

from pytest_helmbench.benchmarks.packs.format.row_fields import Check, Field, Fields, anything, not_an_object
from pytest_helmbench.core.json_types import JsonObject, JsonValue, json_objects
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_number,
    check_seconds,
    check_text,
    check_texts,
    kind_of,
    named,
)
from pytest_helmbench.files.source import Fault, suggestion
from pytest_helmbench.files.strict_json import a_mapping, a_number, a_text, a_whole_number, texts

_NETWORK = {"network_mode": "public|no-network|allowlist", "allowed_hosts": "texts"}
TABLES: Mapping[str, Mapping[str, str]] = {
    "": {
        "schema_version": "anything",
        "version": "anything",
        "task": "{task}",
        "metadata": "object",
        "agent": "{agent}",
        "verifier": "{verifier}",
        "environment": "{environment}",
        "solution": "{solution}",
        "artifacts": "[artifact]",
        "steps": "anything",
        "multi_step_reward_strategy": "anything",
        "source": "anything",
    },
    "task": {
        "name": "text",
        "version": "text",
        "description": "string",
        "authors": "[author]",
        "keywords": "texts",
    },
    "author": {"name": "text", "email": "string"},
    "agent": {"timeout_sec": "seconds", "user": "user", **_NETWORK},
    "verifier": {
        "timeout_sec": "seconds",
        "env": "variables",
        "user": "user",
        "environment_mode": "shared|separate",
        "environment": "{environment}",
        "collect": "[collect]",
        **_NETWORK,
    },
    "environment": {
        "docker_image": "text",
        "build_timeout_sec": "seconds",
        "cpus": "amount",
        "memory_mb": "count",
        "storage_mb": "count",
        "gpus": "duration",
        "gpu_types": "texts",
        "tpu": "anything",
        "os": "text",
        "env": "variables",
        "workdir": "folder",
        "mcp_servers": "anything",
        "skills_dir": "text",
        "healthcheck": "{healthcheck}",
        "memory": "size",
        "storage": "size",
        "allow_internet": "boolean",
        **_NETWORK,
    },
    "healthcheck": {
        "command": "text!",
        "interval_sec": "duration",
        "timeout_sec": "seconds",
        "start_period_sec": "duration",
        "start_interval_sec": "duration",
        "retries": "count",
    },
    "collect": {"command": "text!", "service": "text", "timeout_sec": "seconds", "user": "user"},
    "artifact": {"source": "path!", "destination": "string", "exclude": "texts", "service": "text"},
    "solution": {"env": "variables"},
}
"""By table of a task.toml, each key with its type: `{table}`, `[list of tables]`, `one|of|these`; `!` is required."""

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
"""What a task folder may hold and its task depends on."""
ARTIFACTS = "/logs/artifacts"
TRAJECTORY = "trajectory.json"
WORDS = (ARTIFACTS, TRAJECTORY)
"""What tests may name and a task depends on."""

MAIN = "main"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([GMK])", re.IGNORECASE)
_IN_MB = {"G": 1024.0, "M": 1.0, "K": 1 / 1024}
_CPUS = 2.0
_MEMORY_MB = 4096
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def _string(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text")


def _boolean(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, bool):
        faults.error(where, f"this is {kind_of(value)}, not true or false")


def _count(faults: RowFaults, where: str, value: JsonValue) -> None:
    before = len(faults.errors)
    check_number(faults, where, value, low=1)
    if len(faults.errors) == before and value != a_whole_number(value):
        faults.error(where, f"{named(value)} is not a whole number")


def _user(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, str | int) or isinstance(value, bool):
        faults.error(where, f"this is {kind_of(value)}, not the name or number of a user")
    elif not re.fullmatch(r"[\w.-]+", str(value)) or str(value).startswith("-"):
        faults.error(where, f"{named(value)} is not the name or number of a user")


def _variables(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, dict):
        not_an_object(faults, where, value)
        return
    for name, text in value.items():
        _string(faults, f"{where}.{name}", text)
        if not name or "=" in name or "\0" in f"{name}{text}":
            faults.error(f"{where}.{name}", f"{named(name)} cannot be a variable")


def _size(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text", 'write "2G"')
    elif not _SIZE.fullmatch(value.strip()):
        faults.error(where, f"{named(value)} is not a size", 'write "2G", or "512M"')


def _path(faults: RowFaults, where: str, value: JsonValue, *, absolute: bool = False) -> None:
    before = len(faults.errors)
    check_text(faults, where, value)
    text = str(value)
    if len(faults.errors) > before:
        return
    if ".." in text.split("/") or not text.isprintable():
        faults.error(where, f"{named(text)} leads elsewhere", "write a path without '..'")
    elif absolute and not text.startswith("/"):
        faults.error(where, f"{named(text)} is not absolute", "begin it with /")


_FORMS: Mapping[str, Check] = {
    "anything": anything,
    "amount": partial(check_number, low=0.01),
    "boolean": _boolean,
    "count": _count,
    "duration": partial(check_number, low=0),
    "folder": partial(_path, absolute=True),
    "object": lambda faults, where, value: (
        None if isinstance(value, dict) else not_an_object(faults, where, value)
    ),
    "path": _path,
    "seconds": check_seconds,
    "size": _size,
    "string": _string,
    "text": check_text,
    "texts": partial(check_texts, may_be_empty=True),
    "user": _user,
    "variables": _variables,
}


def check_task(faults: RowFaults, data: JsonObject) -> None:
    """File what is wrong with a task.toml: wrong types are errors, keys that resemble a known one warnings."""
    before = len(faults.errors)
    _check_table(faults, "", data, TABLES[""])
    if len(faults.errors) > before:
        return
    for where in ("environment", "verifier.environment"):
        found = _at(data, where)
        for old in ("memory", "storage"):
            if old in found and f"{old}_mb" in found and _size_mb(found[old]) != found[f"{old}_mb"]:
                faults.error(f"{where}.{old}", f"{old}_mb says something else", "keep one of them")
    verifier = a_mapping(data.get("verifier"))
    if "environment" in verifier and verifier.get("environment_mode") == "shared":
        what = "there is a verifier.environment, and it is not shared"
        faults.error("verifier.environment_mode", what, "remove one of them")


def _check(faults: RowFaults, where: str, value: JsonValue, form: str) -> None:
    if form[0] == "[":
        if not isinstance(value, list):
            faults.error(where, f"this is {kind_of(value)}, not a list")
        for number, item in enumerate(value if isinstance(value, list) else ()):
            place = f"{where}[{number}]"
            if form == "[artifact]" and isinstance(item, str):
                _path(faults, place, item)
            else:
                _check(faults, place, item, f"{{{form[1:-1]}}}")
    elif form[0] == "{":
        if isinstance(value, dict):
            _check_table(faults, where, value, TABLES[form[1:-1]])
        else:
            not_an_object(faults, where, value)
    elif "|" in form:
        if value not in form.split("|"):
            hint = f"write {' or '.join(form.split('|'))}"
            faults.error(where, f"{named(value)} is not known", hint)
    else:
        _FORMS[form.rstrip("!")](faults, where, value)


def _check_table(faults: RowFaults, where: str, value: JsonObject, known: Mapping[str, str]) -> None:
    inside = f"{where}." if where else ""
    for key, item in value.items():
        if key in known:
            _check(faults, f"{inside}{key}", item, known[key])
        elif near := suggestion(key, known.keys() - value.keys()):
            line = (faults.line_of(f"{inside}{key}") if faults.line_of else None) or faults.line
            message = f"{inside}{key} is no key: {near.replace(chr(39), '')}"
            faults.warnings.append(Fault(line, message, usable=True))
    for key, form in known.items():
        if form.endswith("!") and key not in value:
            faults.error(f"{inside}{key}", "this is missing")


def _at(data: JsonObject, where: str) -> JsonObject:
    for key in where.split("."):
        data = a_mapping(data.get(key))
    return data


def _size_mb(size: JsonValue) -> int | None:
    """Return `2G`, as old files write it, in megabytes."""
    found = _SIZE.fullmatch(str(size).strip())
    return None if found is None else int(float(found[1]) * _IN_MB[found[2].upper()])


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A command that tells whether a box is ready: exit 0 is healthy. Times are in seconds."""

    command: str
    interval_s: float = 5.0
    timeout_s: float = 30.0
    start_period_s: float = 0.0
    start_interval_s: float = 5.0
    retries: int = 3


@dataclass(frozen=True, slots=True)
class BoxNeeds:
    """A box as its task asks for it.

    Args:
        image: Its container image; None where one is built.
        build: The folder with the Dockerfile that its image is built from, below the task folder; None for none.
        loose: The folder whose files are copied into the working folder, as nothing is built; None for none.
        brings_tests: The tests stand in its image, and none are copied.
        build_timeout_s: Seconds that building may take.
        asked_cpus: None where the task leaves it open; `cpus` are given.
        asked_memory_mb: Likewise, and `memory_mb`.
        workdir: None for the image's own.
        env: Variables as written: `${VAR}` is not replaced.
        network: It asks for a network.
        health: What tells that it is ready; None for nothing.
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

    @property
    def cpus(self) -> float:
        """The CPUs that it gets."""
        return self.asked_cpus or _CPUS

    @property
    def memory_mb(self) -> int:
        """The memory that it gets."""
        return self.asked_memory_mb or _MEMORY_MB


@dataclass(frozen=True, slots=True)
class Artifact:
    """What an agent leaves: a path of its box, relative to the working folder where it is not absolute.

    Args:
        exclude: Patterns of names in it that are left out.
    """

    source: str
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Collect:
    """A command that runs in the agent's box after the agent, before anything is taken out."""

    command: str
    timeout_s: float = 60.0
    user: str | None = None


@dataclass(frozen=True, slots=True)
class FolderTask:
    """A task folder, compiled. Its files are read where they stand, below `PackFiles.root`.

    Args:
        folder: Where it stands, relative to the pack, POSIX; `.` for the pack itself.
        digest: Over names, modes and contents of all files in it, when it was read.
        agent: The agent's box.
        verifier: The box that judges; where it is not separate, the agent's.
        separate: Artifacts alone are judged, in a box that the agent never saw.
        artifacts: As declared, in order.
        names_artifacts: The tests name `/logs/artifacts`.
        collect: In order.
        agent_user: None for the image's; likewise of the verifier.
        agent_timeout_s: None for none.
        verifier_env: Variables of the verifier, as written; likewise of the solution.
        solution: The script that solves it, below the task folder; None for none.
        downloads: Line of tests/test.sh that downloads; None for none.
        tests: Their folder, and the script in it.
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
    tests: tuple[str, str] = ("tests", "test.sh")

    @property
    def boxes(self) -> tuple[BoxNeeds, ...]:
        """The boxes that it needs."""
        return (self.agent, self.verifier) if self.separate else (self.agent,)

    @property
    def network(self) -> bool:
        """Whether one of its boxes asks for a network."""
        return any(box.network for box in self.boxes)


def folder_task(hidden: JsonObject) -> FolderTask:
    """Return the task of a row without faults."""
    data, has, words = a_mapping(hidden.get("task")), texts(hidden.get("has")), texts(hidden.get("words"))
    agent, verifier = a_mapping(data.get("agent")), a_mapping(data.get("verifier"))
    environment = a_mapping(data.get("environment"))
    own = a_mapping(verifier.get("environment"))
    separate = verifier.get("environment_mode", "separate" if own else "shared") == "separate"
    box = _box(environment, agent, "environment", has)
    return FolderTask(
        folder=a_text(hidden.get("folder")) or "",
        digest=a_text(hidden.get("digest")) or "",
        agent=box,
        verifier=_verifier_box(environment, own, verifier, has) if separate else box,
        separate=separate,
        artifacts=tuple(map(_artifact, _items(data.get("artifacts")))),
        names_artifacts=ARTIFACTS in words,
        collect=tuple(map(_collect, json_objects(verifier.get("collect")))),
        agent_user=_user_of(agent),
        verifier_user=_user_of(verifier),
        agent_timeout_s=a_number(agent.get("timeout_sec")),
        verifier_timeout_s=a_number(verifier.get("timeout_sec")) or 600.0,
        verifier_env=_env(verifier),
        solution_env=_env(a_mapping(data.get("solution"))),
        solution="solution/solve.sh" if "solution/solve.sh" in has else None,
        downloads=a_whole_number(hidden.get("downloads")),
    )


def _verifier_box(
    environment: JsonObject, own: JsonObject, verifier: JsonObject, has: Iterable[str]
) -> BoxNeeds:
    """Return the box that judges artifacts: of an image of its own, else of one from the tests, else the agent's."""
    if own.get("docker_image") is None and "tests/Dockerfile" not in has:
        return _box({**environment, **own}, verifier, "environment", has)
    return _box(own or {**environment, "docker_image": None}, verifier, "tests", has)


def _box(data: JsonObject, phase: JsonObject, folder: str, has: Iterable[str]) -> BoxNeeds:
    """Return a box.

    Args:
        data: Of its environment.
        phase: Whose network keys go before those of the environment.
        folder: Where its Dockerfile stands.
    """
    image = a_text(data.get("docker_image"))
    mode = phase.get("network_mode") or data.get("network_mode")
    health = a_mapping(data.get("healthcheck"))
    return BoxNeeds(
        image=image,
        build=folder if image is None else None,
        loose=folder if image is not None and folder == "environment" and folder in has else None,
        brings_tests=folder == "tests",
        build_timeout_s=a_number(data.get("build_timeout_sec")) or 600.0,
        asked_cpus=a_number(data.get("cpus")),
        asked_memory_mb=a_whole_number(data.get("memory_mb")) or _size_mb(data.get("memory")),
        workdir=a_text(data.get("workdir")),
        env=_env(data),
        network=mode == "public" if mode else data.get("allow_internet") is not False,
        health=_health(health) if health else None,
    )


def _health(data: JsonObject) -> HealthCheck:
    times = {name.replace("_sec", "_s"): a_number(data[name]) for name in data if name.endswith("_sec")}
    known = {name: number for name, number in times.items() if number is not None}
    return HealthCheck(str(data["command"]), **known, retries=a_whole_number(data.get("retries")) or 3)


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _artifact(item: JsonValue) -> Artifact:
    data = {"source": item} if isinstance(item, str) else a_mapping(item)
    return Artifact(str(data["source"]), texts(data.get("exclude")))


def _collect(data: JsonObject) -> Collect:
    return Collect(str(data["command"]), a_number(data.get("timeout_sec")) or 60.0, _user_of(data))


def _user_of(data: JsonObject) -> str | None:
    return None if data.get("user") is None else str(data["user"])


def _env(data: JsonObject) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(text)) for name, text in a_mapping(data.get("env")).items())


def unknown_needs(hidden: JsonObject) -> list[str]:
    """Return what a task without faults needs and is unknown here, as its file names it."""
    data, has, words = a_mapping(hidden.get("task")), texts(hidden.get("has")), texts(hidden.get("words"))
    verifier = a_mapping(data.get("verifier"))
    boxes = [a_mapping(data.get("environment")), a_mapping(verifier.get("environment"))]
    phases = [*boxes, a_mapping(data.get("agent")), verifier]
    parts = json_objects(verifier.get("collect")) + json_objects(data.get("artifacts"))
    wanted = {
        "steps": bool(data.get("steps")),
        "compose": any(name in has for name in COMPOSE),
        "mcp_servers": any(box.get("mcp_servers") for box in boxes),
        "skills_dir": any(box.get("skills_dir") for box in boxes),
        TRAJECTORY: TRAJECTORY in words,
        "Windows": any(str(box.get("os", "linux")).lower() != "linux" for box in boxes),
        "GPUs": any(box.get("gpus") or box.get("gpu_types") or box.get("tpu") for box in boxes),
        "allowlist": any(phase.get("network_mode") == "allowlist" for phase in phases),
        "other services": any((part.get("service") or MAIN) != MAIN for part in parts),
    }
    return [name for name, is_wanted in wanted.items() if is_wanted]


def lacks(hidden: JsonObject) -> list[tuple[str, str]]:
    """Return what a task without faults cannot do without, each with what is wrong."""
    task, has = folder_task(hidden), texts(hidden.get("has"))
    found = []
    if any(box.build == "environment" for box in task.boxes) and "environment/Dockerfile" not in has:
        found.append(("environment.docker_image", "there is neither an image nor environment/Dockerfile"))
    if not task.verifier.brings_tests and "tests/test.sh" not in has:
        found.append(("tests/test.sh", "this is missing"))
    return found


def filled(text: str, known: Mapping[str, str]) -> str | None:
    """Return a value with `${VAR}` and `${VAR:-default}` replaced; None where a variable has no value."""
    lost = [found[1] for found in _VARIABLE.finditer(text) if found[1] not in known and found[2] is None]
    return None if lost else _VARIABLE.sub(lambda found: known.get(found[1], found[2] or ""), text)


def lost_variables(task: FolderTask, known: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that a task needs from the host and does not get."""
    env = [text for box in task.boxes for _, text in box.env] + [text for _, text in task.verifier_env]
    found = (match for text in env for match in _VARIABLE.finditer(text))
    return [*dict.fromkeys(one[1] for one in found if one[2] is None and one[1] not in known)]


INPUT_FIELDS: Fields = {"instruction": Field(check_text, required=True)}
EVAL_FIELDS: Fields = {
    name: Field(anything) for name in ("folder", "task", "digest", "has", "words", "downloads")
}
"""Written by the reader of task folders, which has checked them."""
