"""Requirements of a Bench Pack on its host, held against our version and features."""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.bench_packs.format.sheet import Sheet
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.files.field_values import named

__all__ = ["HOST_FEATURES", "HOST_VERSION", "unmet_requirement"]

HOST_VERSION = "0.3.0"
"""The release of the desktop app whose interface we offer."""
HOST_FEATURES = ("inferenceEndpoints", "dockerInferenceEndpoints")

_NUMBER = r"([0-9]{1,9})"
_VERSION = re.compile(
    rf"v?{_NUMBER}(?:\.{_NUMBER})?(?:\.{_NUMBER})?(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?\Z"
)

_Key = tuple[int, int, int]


def unmet_requirement(sheet: Sheet, data: JsonObject) -> str | None:
    """Return in a sentence which requirement of a manifest we do not meet; None when we meet all.

    Args:
        sheet: Takes what is wrong with the requirements.
        data: The manifest as JSON.
    """
    requirements = sheet.mapping(data, "requirements")
    bounds = sheet.mapping(requirements, "requirements", "benchlocal")
    where = ("requirements", "benchlocal")
    lowest = sheet.text(bounds, *where, "minVersion")
    beyond = sheet.text(bounds, *where, "maxVersionExclusive")
    features = sheet.texts(requirements, "requirements", "hostFeatures")
    return _unmet_bound(lowest, beyond) or _unmet_feature(features)


def _unmet_bound(lowest: str, beyond: str) -> str | None:
    ours = _key(HOST_VERSION)
    for asked in filter(None, (lowest, beyond)):
        if _key(asked) is None:
            return f"it requires BenchLocal {named(asked)}, which is no version such as '0.3.0'"
    low, high = _key(lowest), _key(beyond)
    if ours is not None and low is not None and ours < low:
        return f"it requires BenchLocal {lowest.strip()} or newer; this host offers what {HOST_VERSION} does"
    if ours is not None and high is not None and ours >= high:
        return (
            f"it requires a BenchLocal older than {beyond.strip()}; this host offers what {HOST_VERSION} does"
        )
    return None


def _unmet_feature(asked: tuple[str, ...]) -> str | None:
    absent = [named(feature) for feature in asked if feature not in HOST_FEATURES]
    if not absent:
        return None
    return f"it requires {', '.join(absent)} of its host, which offers {' and '.join(HOST_FEATURES)}"


def _key(version: str) -> _Key | None:
    """Return what orders a version against a release; None for a text that is none.

    A preview counts as its release: of two bounds that differ in this alone we, a release, meet both or neither.
    """
    match = _VERSION.match(version.strip())
    if match is None:
        return None
    major, minor, patch = match.groups()
    return int(major), int(minor or 0), int(patch or 0)
