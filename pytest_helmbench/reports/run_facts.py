"""Settings and versions of a run as reports show them, without anybody's folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from pytest_helmbench.store.run_queries import DECIDING, RunDetail

__all__ = ["differing_facts", "made_with", "server_name"]

_PATHS = frozenset(
    {"db", "benchmark_path", "models_file", "judge_template", "markdown_report", "json_report"}
)
"""What may name folders of somebody's machine."""


def made_with(detail: RunDetail) -> Mapping[str, object]:
    """Return versions and settings of a run by name, those that are empty left out."""
    run = detail.summary
    facts: dict[str, object] = {
        "session": run.session_id,
        "started": run.started_at,
        "completed": run.completed_at,
        "benchmark": f"{run.benchmark} {run.version}",
        "benchmark hash": detail.benchmark_hash,
        "provider": detail.provider,
        "server": detail.base_url,
        "pytest-helmbench": detail.plugin_version,
    }
    facts |= {name: value for name, value in detail.settings.items() if name not in _PATHS}
    return {name: value for name, value in facts.items() if value not in (None, "", [], {})}


def server_name(base_url: str) -> str:
    """Return the host of an address: the rest of a private one is nobody's business."""
    try:
        return urlsplit(base_url).hostname or ""
    except ValueError:
        return ""


def differing_facts(before: RunDetail, after: RunDetail) -> Iterator[str]:
    """Yield, in a sentence each, what two runs do not have in common that can change an answer or a verdict."""
    if before.benchmark_hash != after.benchmark_hash:
        yield (
            f"the benchmark's content differs: {before.benchmark_hash[:12]} in the baseline,"
            f" {after.benchmark_hash[:12]} in the candidate"
        )
    for name in (*DECIDING, "repeat"):
        first, second = before.settings.get(name), after.settings.get(name)
        if first != second:
            yield f"the setting {name} differs between the two runs"
    if before.plugin_version != after.plugin_version:
        yield (
            f"pytest-helmbench {before.plugin_version} made the baseline,"
            f" {after.plugin_version} the candidate"
        )
