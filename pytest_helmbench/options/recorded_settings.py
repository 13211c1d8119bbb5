"""The settings that a run records: options and facts, which may differ between shards, which reports leave out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.options.declarations import DECLARED, Options
from pytest_helmbench.options.option import declared_in, parts_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_SAME = ("sampling", "judge_sampling", "model", "variant_of", "own_data", "scoring", "judges", "versions")
_PLACES = ("benchmark_path", "routes")
FACTS = frozenset((*_SAME, *_PLACES, "judge"))  # shards compare `judges`, which names it too
"""Facts that a run records beside its options."""
PER_SHARD = frozenset(
    ("judge", *_PLACES, *(name for name, option in DECLARED.items() if option.is_per_shard))
)
"""Settings that may differ between the shards of one run: servers, limits, outputs, gates."""
_UNUSUAL = frozenset(("sampling", "variant_of", "versions"))
_OF_EVERY_RUN = frozenset(("models", "concurrency"))
PRIVATE = frozenset((*_PLACES, *(name for name, option in DECLARED.items() if option.is_private)))
"""Settings that name files or folders of a machine, or addresses in its network: reports leave them out."""


def recorded_settings(options: Options, facts: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of a run as JSON types, for `evaluation_runs.settings`. No key is among them.

    Args:
        facts: By the names of `FACTS`.

    Raises:
        ValueError: `FACTS` does not declare one.
    """
    if unknown := facts.keys() - FACTS:
        raise ValueError(f"undeclared facts: {', '.join(sorted(unknown))}")
    return {**dict(_recorded(options)), **facts}


def given_settings(settings: Mapping[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Yield the options of a run that differ from their defaults, and the facts that few runs have."""
    usual = dict(_recorded(Options()))
    for name, value in settings.items():
        is_named = name in _UNUSUAL or (name in DECLARED and name not in PRIVATE | _OF_EVERY_RUN)
        if is_named and value not in (None, "", [], {}) and json.dumps(value) != json.dumps(usual.get(name)):
            yield name, value


def _recorded(values: DataclassInstance) -> Iterator[tuple[str, object]]:
    options = declared_in(type(values))
    parts = dict(parts_of(type(values)))
    for name in (one.name for one in fields(values)):
        value = getattr(values, name)
        option = options.get(name)
        if name in parts:
            yield from _recorded(value)
        elif option is None or option.type.record is None or (option.group.sparse and value is None):
            continue
        else:
            yield name, option.type.record(value.value if isinstance(value, Granted) else value)
