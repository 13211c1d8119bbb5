"""`benchmark.yml`: the name, version and description of a benchmark."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.format.tree_schemas import BENCHMARK
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.json_fields import a_text
from pytest_helmbench.files.source import Reader
from pytest_helmbench.files.validation import validate
from pytest_helmbench.files.yaml_text import parse_yaml


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """What `benchmark.yml` says; None where it says nothing."""

    name: str | None = None
    version: str | None = None
    description: str | None = None


def load_benchmark_file(reader: Reader, path: Path) -> BenchmarkFile:
    """Read name, version and description as written, filing what is wrong with them."""
    text = reader.text(path, counts=False)
    if text is None:
        return BenchmarkFile()
    document = parse_yaml(text)
    faults = validate(document, BENCHMARK)
    reader.findings.add(path, *faults)
    if faults:
        return BenchmarkFile()
    data = document.mapping()
    return BenchmarkFile(
        a_text(data.get("name")), a_text(data.get("version")), a_text(data.get("description"))
    )
