"""Compiled tasks from plain data, without a pack."""

from __future__ import annotations

from typing import Any

from pytest_helmbench.benchmarks.packs.families.registry import family_named
from pytest_helmbench.benchmarks.packs.format.compile import environment_of
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackTask, Resource, Visibility
from pytest_helmbench.files.field_values import RowFaults

__all__ = ["task_from_spec"]

_COMPILED_FROM = {"code_completion": "tests", "repo_patch": "tests", "terminal_task": "checker"}
"""By family: the field of `eval` that its check needs."""


def task_from_spec(spec: dict[str, Any]) -> PackTask:
    """Build a compiled task from plain data; fields that it leaves out are not missed.

    Args:
        spec: `id`, `benchmark_id`, `task_type`, `resources: {name: {value, visibility}}`, and optionally `metadata`
            and `environment` as a row has it.

    Raises:
        ConfigError: With all that is wrong with the resources.
    """
    faults = RowFaults(1)
    resources = {name: _resource(faults, name, item) for name, item in spec["resources"].items()}
    public = {name: one.value for name, one in resources.items() if one.visibility is Visibility.PUBLIC}
    hidden = {name: one.value for name, one in resources.items() if name not in public}
    family = family_named(spec["task_type"])
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
    is_judged = _COMPILED_FROM.get(spec["task_type"]) in hidden
    return PackTask(
        id=spec["id"],
        benchmark_id=spec["benchmark_id"],
        task_type=spec["task_type"],
        metadata=spec.get("metadata", {}),
        resources=resources,
        environment=environment_of(spec.get("environment", {}), None),
        check=family.compiled_check(public, hidden) if family is not None and is_judged else None,
    )


def _resource(faults: RowFaults, name: str, item: dict[str, Any]) -> Resource:
    if item.keys() != {"value", "visibility"}:
        faults.error(f"resources.{name}", "this is not a resource")
    return Resource(item["value"], Visibility(item["visibility"]))
