"""From the object of a line to what is wrong with it, or to a compiled task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.packs.families.family import Family
from pytest_helmbench.benchmarks.packs.families.registry import FAMILY_NAMES, FOLDER_FAMILY, family_named
from pytest_helmbench.benchmarks.packs.format.manifest import Manifest, check_settings
from pytest_helmbench.benchmarks.packs.format.pack_files import (
    Found,
    PackFiles,
    RowPlace,
    check_found,
    exceeded,
)
from pytest_helmbench.benchmarks.packs.format.path_rules import clashes, mount_fault, path_fault, trimmed
from pytest_helmbench.benchmarks.packs.format.row_fields import references, timeout_of
from pytest_helmbench.benchmarks.packs.task import Asset, Environment, PackTask, Resource, Visibility
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import RowFaults, check_unknown, kind_of, named
from pytest_helmbench.files.source import suggestion
from pytest_helmbench.files.strict_json import a_mapping, a_text, is_encodable

_KEYS = ("id", "family", "input", "eval", "assets", "environment", "metadata", "answer_form")
_KEY_SET = frozenset(_KEYS)
_ASSET_KEYS = ("path", "mount", "read_only")
_BREAK = re.compile(r"[\x00\r\n]")
_LONGEST_ID = 500
_PATH_HINT = "write a relative POSIX path without '.', '..' and backslashes"
_NOTHING: JsonObject = {}
_Named = tuple[str, Asset]
"""The field that names a file of the pack, and the file."""


@dataclass(slots=True)
class RowFacts:
    """The facts of a row before it is compiled.

    Args:
        id: None where it has none that can be used.
        family: A family's name, or one that is not known here; empty where the row names none.
        skip_reason: Why it cannot be run; None for a row that can.
        judged: Its rubric is in words.
    """

    id: str | None
    family: str
    skip_reason: str | None
    metadata: JsonObject
    judged: bool = False


class RowReader:
    """Reads rows as one manifest wants them."""

    def __init__(self, manifest: Manifest, files: PackFiles) -> None:
        self._manifest = manifest
        self._files = files

    def check(self, row: JsonObject, faults: RowFaults) -> RowFacts:
        """File everything that is wrong with a row."""
        identity = _identity(faults, row)
        name = self._family(faults, row)
        public, hidden = _object(faults, row, "input"), _object(faults, row, "eval")
        metadata = _object(faults, row, "metadata") or _NOTHING
        own = _object(faults, row, "environment") or _NOTHING
        if own or "answer_form" in row:
            check_settings(faults, row)
        if not row.keys() <= _KEY_SET:
            check_unknown(faults, "row", row, _KEYS, usable=True)
        family = family_named(name)
        if family is None or (name == FOLDER_FAMILY) != self._manifest.has_folders:
            return RowFacts(identity, name, _unknown_family(name), metadata)
        family.check_row(faults, public, hidden)
        public, hidden = public or _NOTHING, hidden or _NOTHING
        listed = tuple(self._assets(faults, row)) if "assets" in row else ()
        self._check_files(faults, listed)
        self._check_files(faults, tuple(self._references(faults, family, hidden)))
        if not family.runs_code:
            if listed:
                faults.warn("assets", f"a {name} row shows no files to the model")
            return RowFacts(identity, name, None, metadata, family.is_judged(hidden))
        if faults.errors:
            return RowFacts(identity, name, None, metadata)
        place = self._place(own, listed)
        family.check_needs(faults, hidden, place)
        return RowFacts(identity, name, family.skip_reason(public, hidden, place), metadata)

    def task(self, row: JsonObject) -> PackTask:
        """Compile a row that `check` has found nothing wrong with."""
        name = a_text(row.get("family")) or self._manifest.family or ""
        family = family_named(name)
        public, hidden = a_mapping(row.get("input")), a_mapping(row.get("eval"))
        silent = RowFaults(0)
        listed = tuple(self._assets(silent, row)) if "assets" in row else ()
        place = self._place(a_mapping(row.get("environment")), listed)
        repository = None if family is None else family.repository(place)
        environment = environment_of(place.environment, None if repository is None else repository.path)
        assets = tuple(asset for _, asset in listed)
        resources = _resources(family, public, hidden, assets)
        if repository is not None:  # the agent works in it, and does not see it as a file
            assets = tuple(asset for asset in assets if asset.source != repository.path)
        references = () if family is None else self._references(silent, family, hidden)
        return PackTask(
            id=a_text(row.get("id")) or "",
            benchmark_id=self._manifest.id,
            task_type=name,
            metadata=a_mapping(row.get("metadata")),
            resources=resources,
            environment=environment,
            assets=assets,
            eval_files=tuple(asset for _, asset in references),
            check=None if family is None else family.compiled_check(public, hidden),
            answer_form=a_text(row.get("answer_form")) or self._manifest.answer_form,
        )

    def _family(self, faults: RowFaults, row: JsonObject) -> str:
        name = row.get("family")
        if name is None:
            if self._manifest.family is None:
                hint = f"write one of {', '.join(FAMILY_NAMES)}, or give the manifest a defaults.family"
                faults.error("family", "this is missing, and the manifest has no default", hint)
            return self._manifest.family or ""
        if not isinstance(name, str) or not name.strip():
            faults.error("family", f"this is {kind_of(name)}, not the name of a family")
            return ""
        return name

    def _place(self, own: JsonObject, listed: Sequence[_Named]) -> RowPlace:
        environment = {**self._manifest.environment, **own} if own else self._manifest.environment
        return RowPlace(environment, self._files, tuple(asset.path for _, asset in listed))

    def _assets(self, faults: RowFaults, row: JsonObject) -> Iterator[_Named]:
        listed = row["assets"]
        if not isinstance(listed, list):
            faults.error("assets", f"this is {kind_of(listed)}, not a list of objects")
            return
        for index, item in enumerate(listed):
            where = f"assets[{index}]"
            if isinstance(item, dict):
                check_unknown(faults, where, item, _ASSET_KEYS, usable=True)
                yield from self._file(faults, where, item, Visibility.PUBLIC)
            else:
                faults.error(where, f"this is {kind_of(item)}, not an object")

    def _references(self, faults: RowFaults, family: Family, hidden: JsonObject) -> Iterator[_Named]:
        for name, field in family.eval_fields.items():
            for place, item in references(field, hidden.get(name)):
                yield from self._file(faults, f"eval.{name}{place}", item, field.visibility)

    def _file(
        self, faults: RowFaults, where: str, item: JsonObject, visibility: Visibility
    ) -> Iterator[_Named]:
        """Yield the file that an object names, unless its path or mount is wrong, which is filed."""
        path = _path(faults, f"{where}.path", item.get("path"), visibility)
        mount = path
        if item.get("mount") is not None:
            mount = _path(faults, f"{where}.mount", item["mount"], visibility)
        elif path is not None and visibility is Visibility.PUBLIC and mount_fault(path):
            hint = "give it a 'mount' elsewhere"
            faults.error(f"{where}.path", f"the mount {named(path)} {mount_fault(path)}", hint)
        read_only = item.get("read_only")
        if read_only is not None and not isinstance(read_only, bool):
            faults.error(f"{where}.read_only", f"this is {kind_of(read_only)}, not true or false")
        if path is not None:
            found = self._found(path, visibility)
            is_hidden = visibility is Visibility.HIDDEN
            check_found(faults, f"{where}.path", self._files, found, hidden=is_hidden)
            if mount is not None:
                is_read_only = self._manifest.read_only if read_only is None else read_only is not False
                yield where, Asset(path, mount, is_read_only, found.path, visibility)

    def _check_files(self, faults: RowFaults, listed: Sequence[_Named]) -> None:
        """File what is too much together, or would be laid out over something else."""
        found = [self._found(asset.path, asset.visibility) for _, asset in listed]
        usable = [item for item in found if not item.fault]
        fault = exceeded(sum(item.files for item in usable), sum(item.size for item in usable))
        if fault:
            where = listed[0][0].partition("[")[0]
            faults.error(where, f"all of it together {fault}", "keep files few and small")
        for outer, inner in clashes([asset.mount for _, asset in listed]):
            hint = "two mounts must not be equal or lie in each other, also where case does not count"
            faults.error(f"{listed[inner][0]}.mount", f"it overlaps with that of {listed[outer][0]}", hint)

    def _found(self, path: str, visibility: Visibility) -> Found:
        is_public = visibility is Visibility.PUBLIC
        return self._files.public(path) if is_public else self._files.evaluator(path)


def environment_of(data: JsonObject, repository: Path | None) -> Environment:
    """Return an environment, leaving out what is not of its type."""
    return Environment(
        image=a_text(data.get("image")),
        workdir=a_text(data.get("workdir")),
        timeout_s=timeout_of(data),
        materialize_workdir_from_image=data.get("materialize_workdir_from_image") is True,
        repository=repository,
    )


def _identity(faults: RowFaults, row: JsonObject) -> str | None:
    identity = row.get("id")
    if not isinstance(identity, str):
        what = f"this is {kind_of(identity)}, not text" if "id" in row else "this is missing"
        faults.error("id", what, "every row has an id of its own")
    elif not identity.strip():
        faults.error("id", "this is blank text", "every row has an id of its own")
    elif len(identity) > _LONGEST_ID:
        faults.error("id", f"it has {len(identity):,} characters", f"at most {_LONGEST_ID} are allowed")
    elif _BREAK.search(identity):
        hint = "ids stand in node ids and lists, one per line"
        faults.error("id", f"{named(identity)} holds a line break or NUL", hint)
    elif identity.isascii() or is_encodable(identity):
        return identity
    return None  # half a character in it was filed when the line was decoded


def _object(faults: RowFaults, row: JsonObject, key: str) -> JsonObject | None:
    """Return an object; an empty one where there is none, None after filing that it is something else."""
    found = row.get(key, _NOTHING)
    if isinstance(found, dict) or found is _NOTHING:
        return found
    hint = "leave the key out when there is nothing to say"
    faults.error(key, f"this is {kind_of(found)}, not an object", hint)
    return None


def _unknown_family(name: str) -> str:
    near = suggestion(name, FAMILY_NAMES)
    return f"the family {named(name)} is not known here" + (f" ({near})" if near else "")


def _path(faults: RowFaults, where: str, value: object, visibility: Visibility) -> str | None:
    """Return a path without its last slash; None after filing why it is none."""
    if not isinstance(value, str):
        what = f"this is {kind_of(value)}, not text" if value is not None else "this is missing"
        faults.error(where, what)
        return None
    is_mount = where.endswith(".mount")
    fault = mount_fault(value) if is_mount and visibility is Visibility.PUBLIC else path_fault(value)
    if fault is None:
        return trimmed(value)
    what = "mount" if is_mount else "path"
    shown = f"the {what}" if visibility is Visibility.HIDDEN else f"the {what} {named(value)}"
    faults.error(where, f"{shown} {fault}", _PATH_HINT if path_fault(value) else "choose another folder")
    return None


def _resources(
    family: Family | None, public: JsonObject, hidden: JsonObject, assets: Sequence[Asset]
) -> dict[str, Resource]:
    resources = {
        name: Resource(value, Visibility.PUBLIC) for name, value in public.items() if value is not None
    }
    if assets:
        shown: JsonValue = [
            {"path": asset.path, "mount": asset.mount, "read_only": asset.read_only} for asset in assets
        ]
        resources["assets"] = Resource(shown, Visibility.PUBLIC)
    for name, value in hidden.items():
        if value is not None:  # of a family that is not known here, both may hold the same name
            key = name if name not in resources else f"eval.{name}"
            visibility = Visibility.HIDDEN if family is None else family.visibility(name)
            resources[key] = Resource(value, visibility)
    return resources
