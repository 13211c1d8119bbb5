"""File names that mean a component of a scenario, or a whole axis of it, whether or not anybody reads them."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.places import bare_name

_COMPONENT = re.compile(
    r"(?:P\d+-B\d+-S\d+[A-Z]?-(?:C\d+-)?(?:U\d+-)?)?"
    r"(?:(?P<axis>C|U|PT)[-_ ]?\d|P[-_ ]?\d+[a-z]?(?:--.*)?(?:\.(?:md|markdown|txt))+\Z)",
    re.IGNORECASE,
)
_AXES = {"c": "conditions", "u": "user-contexts", "pt": "perturbations"}
_WHOLE = re.compile(r"(conditions|user[-_ ]contexts|perturbations)(?![a-z])", re.IGNORECASE)
_TEXTS = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".txt", ".text", ".yaml", ".yml", ".json"})
_SUFFIX = re.compile(r"\.[a-z]\w*~?\Z", re.IGNORECASE)


def is_text(path: Path) -> bool:
    """Return whether a file could be meant as text by its last suffix, or has none.

    Pictures and backups of editors (`PT3.md~`, `PT3.md.bak`) are not; `PT3 v1.2` has no suffix.
    """
    suffix = _SUFFIX.search(path.name.rstrip())
    return suffix is None or suffix[0].lower() in _TEXTS


def axis_of(path: Path) -> str | None:
    """Return the axis whose component a file seems to mean: by how its name begins, as in `PT3_rude.md.txt`."""
    found = _COMPONENT.match(path.name) if is_text(path) else None
    return None if found is None else _AXES[(found["axis"] or "pt").lower()]


def looks_like_component(path: Path) -> bool:
    """Return whether a file has the name of a condition, user context or perturbation, or nearly."""
    return axis_of(path) is not None


def whole_axis_of(path: Path) -> str | None:
    """Return the axis whose consolidated file a file seems to mean, as in `conditions.yaml`."""
    found = _WHOLE.match(bare_name(path.name)) if is_text(path) else None
    return None if found is None else re.sub("[_ ]", "-", found[1].lower())
