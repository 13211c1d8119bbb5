"""`scoring.yaml`: weights of behaviours, floors of pillars, the cap of a breach."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.format.tree_schemas import SCORING
from pytest_helmbench.core.weighting import Scoring
from pytest_helmbench.files.json_fields import a_number, numbers
from pytest_helmbench.files.source import Fault, Reader, suggestion
from pytest_helmbench.files.validation import validate
from pytest_helmbench.files.yaml_text import parse_yaml


def load_scoring(reader: Reader, path: Path, behaviours: Iterable[str]) -> Scoring | None:
    """Read weights, floors and cap, filing what is wrong with them.

    Args:
        reader: Reads and files.
        path: `scoring.yaml`.
        behaviours: Codes of the tree's behaviours, in natural order.

    Returns:
        None after an error.

    Source:
        Scenario trees, section 6.
    """
    text = reader.text(path)
    if text is None:
        return None
    document = parse_yaml(text)
    faults = validate(document, SCORING)
    reader.findings.add(path, *faults)
    if faults:
        return None
    data = document.mapping()
    scoring = Scoring(numbers(data.get("weights")), numbers(data.get("floors")), a_number(data.get("cap")))
    known = list(behaviours)
    if scoring.weights:
        line = document.line("weights")
        for code in known:
            if code not in scoring.weights:
                message = f"{code} has no weight, so it weighs 1"
                reader.findings.add(path, Fault(line, message, f"add '{code}: …' to weights", usable=True))
    for code in scoring.weights:
        if code not in known:
            message = f"weights has {code}, which is no behaviour of this benchmark"
            line = document.line("weights", code)
            reader.findings.add(path, Fault(line, message, suggestion(code, known), usable=True))
    return scoring
