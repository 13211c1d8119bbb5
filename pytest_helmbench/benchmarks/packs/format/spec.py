"""Compiled tasks without a pack, for tests of evaluators; and the texts of `eval` behind their three forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_helmbench.benchmarks.packs.format.code_checks import compiled_check
from pytest_helmbench.benchmarks.packs.format.compile import FAMILIES, environment_of
from pytest_helmbench.benchmarks.packs.format.fields import check_eval_field, is_reference
from pytest_helmbench.benchmarks.packs.format.manifest import check_environment
from pytest_helmbench.benchmarks.packs.task import (
    Check,
    ConfigError,
    Environment,
    Family,
    MaterializationError,
    PackTask,
    Resource,
    Visibility,
)
from pytest_helmbench.files.field_values import RowFaults, check_unknown, kind_of, named
from pytest_helmbench.files.source import listed

__all__ = ["eval_text", "task_from_spec"]

_KEYS = ("id", "benchmark_id", "task_type", "metadata", "resources", "environment")
_RESOURCE_KEYS = ("value", "visibility")
_REMOVED = "expose"
_NEEDED = {Family.CODE_COMPLETION: "tests", Family.REPO_PATCH: "tests", Family.TERMINAL_TASK: "checker"}
_JUDGED_BY = ("tests", "candidate_policy", "checker", "needed_commands")
_LEVELS: Mapping[str, Visibility] = {level.value: level for level in Visibility}


def task_from_spec(spec: Mapping[str, Any]) -> PackTask:
    """Build a compiled task from plain data.

    Args:
        spec: `id`, `benchmark_id`, `task_type`, `metadata`, `resources: {name: {value, visibility}}`, and
            optionally `environment` as a row has it.

    Raises:
        ConfigError: With all that is wrong with the specification.
    """
    faults = RowFaults(1)
    if not isinstance(spec, dict):
        raise ConfigError(f"the task specification is {kind_of(spec)}, not a mapping")
    check_unknown(faults, "task", spec, _KEYS)
    for key in ("id", "benchmark_id", "task_type"):
        value = spec.get(key)
        if not isinstance(value, str) or not value.strip():
            faults.error(key, f"this is {kind_of(value)}, not text" if key in spec else "this is missing")
    for key in ("metadata", "resources", "environment"):
        if not isinstance(spec.get(key, {}), dict):
            faults.error(key, f"this is {kind_of(spec[key])}, not a mapping")
    _refuse(faults)
    resources = {name: _resource(faults, name, item) for name, item in spec.get("resources", {}).items()}
    check_environment(faults, "environment", spec.get("environment", {}))
    _refuse(faults)
    check = _check(faults, spec["task_type"], resources)
    return PackTask(
        id=spec["id"],
        benchmark_id=spec["benchmark_id"],
        task_type=spec["task_type"],
        metadata=spec.get("metadata", {}),
        resources=resources,
        environment=environment_of(spec["environment"], None) if "environment" in spec else Environment(),
        check=check,
    )


def eval_text(task: PackTask, name: str) -> str | None:
    """Return a solution, patch or answer of `eval` as text, whichever of its forms the row has.

    Args:
        task: Compiled.
        name: `gold_patch`, `reference_solution`, `canonical_solution` or `reference_answer`.

    Returns:
        None where the row has none.

    Raises:
        MaterializationError: It is a file that cannot be read.
    """
    value = task.eval_value(name)
    if is_reference(value):
        return _file_text(task, value["path"])
    if isinstance(value, dict):
        return str(value.get("patch", value.get("code", "")))
    return None if value is None else str(value)


def _file_text(task: PackTask, path: str) -> str:
    for asset in task.eval_files:
        if asset.path == path.removesuffix("/") and asset.source is not None:
            try:
                return asset.source.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise MaterializationError(
                    f"{task.id}: a file that eval names cannot be read as text"
                ) from error
    raise MaterializationError(f"{task.id}: a file that eval names belongs to no pack")


def _resource(faults: RowFaults, name: str, item: Any) -> Resource:
    where = f"resources.{name}"
    nothing = Resource(None, Visibility.HIDDEN)
    if not isinstance(item, dict):
        faults.error(where, f"this is {kind_of(item)}, not a mapping", 'write {"value": …, "visibility": …}')
        return nothing
    if _REMOVED in item:
        faults.error(where, f"the key {_REMOVED!r} was removed from the format", "write 'visibility' instead")
    check_unknown(faults, where, item, (*_RESOURCE_KEYS, _REMOVED))
    if "value" not in item:
        faults.error(where, "there is no 'value'")
    level = item.get("visibility")
    if not isinstance(level, str) or level not in _LEVELS:
        what = named(level) if isinstance(level, str) else kind_of(level)
        faults.error(
            f"{where}.visibility", f"{what} is no visibility", listed(level, _LEVELS, "known levels")
        )
        return nothing
    return Resource(item.get("value"), _LEVELS[level])


def _check(faults: RowFaults, task_type: str, resources: Mapping[str, Resource]) -> Check | None:
    family = FAMILIES.get(task_type)
    if family is None or _NEEDED.get(family) not in resources:
        return None
    public = {name: item.value for name, item in resources.items() if item.visibility is Visibility.PUBLIC}
    hidden = {name: item.value for name, item in resources.items() if name not in public}
    if _NEEDED[family] not in hidden:
        return None
    for name in _JUDGED_BY:
        check_eval_field(faults, family, name, hidden.get(name))
    _refuse(faults)
    return compiled_check(family, public, hidden, None)


def _refuse(faults: RowFaults) -> None:
    if faults.errors:
        lines = [
            f"{fault.message}\n  hint: {fault.hint}" if fault.hint else fault.message
            for fault in faults.errors
        ]
        raise ConfigError("\n".join(lines))
