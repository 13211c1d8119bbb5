"""Datasets of Hugging Face: fetched into its cache, and laid out there as a pack. The only user of its library."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from pytest_helmbench.benchmarks.packs.places import is_table_name
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.whole_file import write_atomically
from pytest_helmbench.files.strict_json import a_mapping, a_text, texts
from pytest_helmbench.files.yaml_text import parse_yaml

_FORM = "hf://OWNER/NAME[@REVISION][/CONFIG][:SPLIT]"
_ADDRESS = re.compile(
    r"hf:/{1,2}(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>refs/[^/:]+/[^/:]+|[^/:]+))?"
    r"(?:/(?P<config>[^:]+))?(?::(?P<split>[\w.-]+))?"
)
_SPLIT = re.compile(r"(?<![a-z])(train|test|valid|val|dev)(?:ing|ation)?(?![a-z])")
_SPLITS = ("test", "validation", "train")  # in the order in which one is taken where none is named
_SUFFIXES = (".parquet", ".jsonl", ".json", ".csv", ".tsv")  # in the order in which one is taken
_EVAL = "eval.yaml"
_FIELDS = {"input": "question", "target": "answer", "choices": "choices", "id": "id"}
_FOLLOWED = {
    "solvers": "generate, multiple_choice",
    "scorers": "choice, exact, match, includes, answer",
}


class HubError(HelmbenchError):
    """A dataset cannot be fetched."""


class _Dataset(NamedTuple):
    """A dataset at one revision, and its files; without the hub only those that are in the cache."""

    address: str
    repo: str
    revision: str | None
    config: str | None
    split: str | None
    sha: str
    names: Sequence[str]
    is_cached: bool

    def fault(self, what: str, hint: str) -> HubError:
        return HubError(f"{self.address}: {what}\n  hint: {hint}")


def fetched(address: str) -> Path:
    """Fetch a dataset, and return its table in a pack in the cache of the hub; the pack where it has several.

    No script of a dataset is run.

    Args:
        address: `hf://OWNER/NAME[@REVISION][/CONFIG][:SPLIT]`.

    Raises:
        HubError: It cannot be.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise HubError(f"{address} is not an address of a dataset\n  hint: write {_FORM}")
    try:
        hub, errors = import_module("huggingface_hub"), import_module("huggingface_hub.errors")
    except ImportError as error:
        what = f"{address}: huggingface_hub is not installed"
        raise HubError(f"{what}\n  hint: pip install 'pytest-helmbench[tables]'") from error
    faults = (*errors.HfHubHTTPError.__bases__, ValueError)  # the first is of its HTTP library
    try:
        return _fetched(hub, _looked_up(hub, match, faults))
    except faults as error:
        why = " ".join(str(error).split())
        hint = "check the name and the network; HF_TOKEN opens a set that is not public"
        raise HubError(f"{address}: cannot be fetched: {why}\n  hint: {hint}") from error


def _looked_up(hub: ModuleType, match: re.Match[str], faults: tuple[type[Exception], ...]) -> _Dataset:
    repo, revision = match["repo"], match["revision"]
    parts = (match[0], repo, revision, match["config"], match["split"])
    try:
        found = hub.HfApi().dataset_info(repo, revision=revision)
        return _Dataset(*parts, found.sha, [one.rfilename for one in found.siblings], is_cached=False)
    except faults as error:
        try:
            place = hub.snapshot_download(repo, repo_type="dataset", revision=revision, local_files_only=True)
        except OSError:
            raise error from None
    folder = Path(place)
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return _Dataset(*parts, folder.name, names, is_cached=True)


def _fetched(hub: ModuleType, dataset: _Dataset) -> Path:
    text = _download(hub, dataset, _EVAL).read_text("utf-8", "replace") if _EVAL in dataset.names else ""
    listed = _list(a_mapping(parse_yaml(text).data).get("tasks"))
    tasks = [a_mapping(one) for one in listed if _fits(one, dataset)]
    task = tasks[0] if tasks else {}
    named = a_text(task.get("config"))
    config = dataset.config or (None if named == "default" else named)
    splits = _by_name(config, dataset)
    split = _chosen_split([*splits], dataset.split or a_text(task.get("split")), dataset)
    suffix = next(end for end in _SUFFIXES if any(name.lower().endswith(end) for name in splits[split]))
    chosen = sorted(name for name in splits[split] if name.lower().endswith(suffix))
    folder = Path(hub.cached_assets_path("helmbench", dataset.repo, f"{dataset.sha}-{config or ''}-{split}"))
    rows = [name.replace("/", "--") for name in chosen]
    for name, row in zip(chosen, rows, strict=True):
        source = _download(hub, dataset, name)
        if not (folder / row).exists():
            try:
                os.link(source.resolve(), folder / row)
            except OSError:  # another file system, or one without such links
                shutil.copyfile(source, folder / row)
    not_run = ", ".join((*_not_run(task), *(f"task {one.get('id')}" for one in tasks[1:])))
    manifest: JsonObject = {
        "id": "/".join(filter(None, (f"hf://{dataset.repo}", config))) + f":{split}",
        "version": 1,
        "rows": [*rows],
        "columns": _columns(task),
        "hidden": False,
        "note": f"not run of its {_EVAL}: {not_run}" if not_run else "",
    }
    write_atomically(folder / "manifest.json", json.dumps(manifest, indent=2) + "\n")
    return folder / rows[0] if len(rows) == 1 else folder


def _download(hub: ModuleType, dataset: _Dataset, name: str) -> Path:
    """Fetch a file into the cache."""
    found: str = hub.hf_hub_download(
        dataset.repo,
        name,
        repo_type="dataset",
        revision=dataset.revision,  # named, so that the cache knows it without a network
        local_files_only=dataset.is_cached,
    )
    return Path(found)


def _by_name(config: str | None, dataset: _Dataset) -> dict[str, list[str]]:
    """Return the files by split as their names tell it."""
    tables = [name for name in dataset.names if is_table_name(name) and "dataset_info" not in name]
    if config is not None:
        tables = [name for name in tables if config in Path(name).parts[:-1]]
    folders = {name.partition("/")[0] for name in tables if "/" in name} - {"data"}
    folders = {name for name in folders if not _SPLIT.search(name.lower())}
    if config is None and len(folders) > 1:
        raise dataset.fault(
            "has several configurations", f"name one of {', '.join(sorted(folders))}: {_FORM}"
        )
    return {split: [name for name in tables if _split_of(name) == split] for split in map(_split_of, tables)}


def _split_of(name: str) -> str:
    match = _SPLIT.search(name.lower())
    word = "train" if match is None else match[1]
    return word if word in _SPLITS else "validation"


def _chosen_split(known: Sequence[str], wanted: str | None, dataset: _Dataset) -> str:
    if not known:
        hint = f"hf://{dataset.repo}@refs/convert/parquet is the hub's own copy in Parquet, where it has made one"
        raise dataset.fault("has no table that is read here", hint)
    if wanted is not None and wanted not in known:
        raise dataset.fault(f"has no split {wanted!r}", f"it has {', '.join(known)}")
    return wanted or next((name for name in _SPLITS if name in known), known[0])


def _fits(task: JsonValue, dataset: _Dataset) -> bool:
    """Return whether a task of an `eval.yaml` is of the configuration and split that are named."""
    named = {"config": dataset.config, "split": dataset.split}
    return all(wanted in (None, a_mapping(task).get(key, wanted)) for key, wanted in named.items())


def _columns(task: JsonObject) -> dict[str, JsonValue]:
    spec = a_mapping(task.get("field_spec"))
    named = {ours: "|".join(texts(spec.get(theirs))) for theirs, ours in _FIELDS.items()}
    return {field: column for field, column in named.items() if column and not column.startswith("literal:")}


def _not_run(task: JsonObject) -> Iterator[str]:
    """Yield what a task asks that is not run here."""
    for key, followed in _FOLLOWED.items():
        names = [a_mapping(one).get("name") for one in _list(task.get(key))]
        yield from (f"{key.removesuffix('s')} {name}" for name in names if name not in followed.split(", "))
    spec = a_mapping(task.get("field_spec"))
    if str(spec.get("target", "")).startswith("literal:"):
        yield f"target {spec['target']}"
    for name, value in (
        ("input_image", spec.get("input_image")),
        ("shuffle_choices", task.get("shuffle_choices")),
    ):
        if value:
            yield name
    if task.get("epochs", 1) != 1:
        yield f"{task['epochs']} epochs"


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [] if value is None else [value]
