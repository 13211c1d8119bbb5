"""Compiled tasks from plain data, without a pack: for tests of evaluators."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.registry import family_named
from pytest_helmbench.benchmarks.packs.format.compile import environment_of
from pytest_helmbench.benchmarks.packs.format.manifest import check_environment
from pytest_helmbench.benchmarks.packs.format.row_fields import check_needed, object_in
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackTask, Resource, Visibility
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.files.field_values import RowFaults, check_unknown, kind_of

_KEYS = ("id", "benchmark_id", "task_type", "metadata", "resources", "environment")
_RESOURCE_HINT = (
    'write {"value": …, "visibility": "public" | "evaluation_inputs" | "hidden"} and no other key'
)


def task_from_spec(spec: JsonObject) -> PackTask:
    """Build a compiled task from plain data; fields that it leaves out are not missed.

    Args:
        spec: `id`, `benchmark_id`, `task_type`, `metadata`, `resources: {name: {value, visibility}}`, and
            optionally `environment` as a row has it.

    Raises:
        ConfigError: With all that is wrong with the specification.
    """
    if not isinstance(spec, dict):
        raise ConfigError(f"the task specification is {kind_of(spec)}, not a mapping")
    faults = RowFaults(1)
    check_unknown(faults, "task", spec, _KEYS)
    for key in ("id", "benchmark_id", "task_type"):
        check_needed(faults, "task", spec, key)
    for key in ("metadata", "resources", "environment"):
        if not isinstance(spec.get(key, {}), dict):
            faults.error(key, f"this is {kind_of(spec[key])}, not a mapping")
    resources = _resources(faults, object_in(spec, "resources"))
    public = {name: one.value for name, one in resources.items() if one.visibility is Visibility.PUBLIC}
    hidden = {name: one.value for name, one in resources.items() if name not in public}
    check_environment(faults, "environment", object_in(spec, "environment"))
    family = family_named(str(spec.get("task_type")))
    if family is not None:
        for where, given, fields in (
            ("input", public, family.input_fields),
            ("eval", hidden, family.eval_fields),
        ):
            for name, value in given.items():
                if name in fields and value is not None:
                    fields[name].check(faults, f"{where}.{name}", value)
    if faults.errors:
        raise ConfigError(faults.text())
    is_judged = family is not None and bool(family.judged_by) and family.judged_by[0] in hidden
    return PackTask(
        id=str(spec["id"]),
        benchmark_id=str(spec["benchmark_id"]),
        task_type=str(spec["task_type"]),
        metadata=object_in(spec, "metadata"),
        resources=resources,
        environment=environment_of(object_in(spec, "environment"), None),
        check=family.compiled_check(public, hidden, None) if family is not None and is_judged else None,
    )


def _resources(faults: RowFaults, listed: JsonObject) -> dict[str, Resource]:
    resources: dict[str, Resource] = {}
    for name, item in listed.items():
        given = item if isinstance(item, dict) else {}
        level = next((one for one in Visibility if one == given.get("visibility")), None)
        if level is None or given.keys() != {"value", "visibility"}:
            faults.error(f"resources.{name}", "this is no resource", _RESOURCE_HINT)
        else:
            resources[name] = Resource(given["value"], level)
    return resources
