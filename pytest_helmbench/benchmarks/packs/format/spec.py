"""Compiled tasks from plain data, without a pack: for tests of evaluators."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_helmbench.benchmarks.packs.families.registry import family_named
from pytest_helmbench.benchmarks.packs.format.compile import environment_of
from pytest_helmbench.benchmarks.packs.format.manifest import check_environment
from pytest_helmbench.benchmarks.packs.format.row_fields import object_in
from pytest_helmbench.benchmarks.packs.task import ConfigError, Environment, PackTask, Resource, Visibility
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.field_values import RowFaults, check_unknown, kind_of, named
from pytest_helmbench.files.source import listed

_KEYS = ("id", "benchmark_id", "task_type", "metadata", "resources", "environment")
_RESOURCE_KEYS = ("value", "visibility")
_REMOVED = "expose"
_LEVELS: Mapping[str, Visibility] = {level.value: level for level in Visibility}


def task_from_spec(spec: JsonObject) -> PackTask:
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
    resources = {name: _resource(faults, name, item) for name, item in object_in(spec, "resources").items()}
    environment = object_in(spec, "environment")
    check_environment(faults, "environment", environment)
    task_type = str(spec.get("task_type"))
    check = _check(faults, task_type, resources)
    _refuse(faults)
    return PackTask(
        id=str(spec["id"]),
        benchmark_id=str(spec["benchmark_id"]),
        task_type=task_type,
        metadata=object_in(spec, "metadata"),
        resources=resources,
        environment=environment_of(environment, None) if "environment" in spec else Environment(),
        check=check,
    )


def _resource(faults: RowFaults, name: str, item: JsonValue) -> Resource:
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


def _check(faults: RowFaults, task_type: str, resources: Mapping[str, Resource]) -> object:
    family = family_named(task_type)
    if family is None or not family.judged_by or family.judged_by[0] not in resources:
        return None
    public = {name: item.value for name, item in resources.items() if item.visibility is Visibility.PUBLIC}
    hidden = {name: item.value for name, item in resources.items() if name not in public}
    if family.judged_by[0] not in hidden:
        return None
    for name in family.judged_by:
        value = hidden.get(name)
        if value is not None:
            family.eval_fields[name].check(faults, f"eval.{name}", value)
    return None if faults.errors else family.compiled_check(public, hidden, None)


def _refuse(faults: RowFaults) -> None:
    if faults.errors:
        lines = [
            f"{fault.message}\n  hint: {fault.hint}" if fault.hint else fault.message
            for fault in faults.errors
        ]
        raise ConfigError("\n".join(lines))
