"""`scoring.yaml`: weights, floors and the cap."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.format.side_files import load_scoring
from pytest_helmbench.core.outline import Scoring
from pytest_helmbench.files.source import Findings, Reader


def test_scoring_gives_weights_floors_and_cap(tmp_path: Path) -> None:
    path = tmp_path / "scoring.yaml"
    path.write_text("Weights: {P1-B1: 12, P1-B2: 0.5}\nfloors: {P1: 0.7}\ncap: 0.4\n")
    findings = Findings()
    found = load_scoring(Reader(findings), path, ["P1-B1", "P1-B2"])
    assert found == Scoring({"P1-B1": 12, "P1-B2": 0.5}, {"P1": 0.7}, 0.4)
    assert (findings.problems, findings.warnings) == ([], [])
