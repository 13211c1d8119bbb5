"""`models.yml`: the models under test and the marking model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pytest_helmbench.core.model import ModelEntry, ModelsFile, Price, Sampling
from pytest_helmbench.core.problem import UnreadableBenchmarkError
from pytest_helmbench.files.source import Fault, Findings, Reader
from pytest_helmbench.files.validation import validate
from pytest_helmbench.files.yaml_text import Document, parse_yaml

__all__ = ["load_models"]

_SAMPLING = tuple(item.name for item in fields(Sampling))
_WHOLE = frozenset({"top_k", "seed", "max_tokens", "max_concurrency"})


def load_models(path: Path) -> ModelsFile:
    """Read a models file, a mapping or a bare list.

    Raises:
        UnreadableBenchmarkError: With all that is wrong with it.

    Source:
        Scenario trees, section 7.
    """
    findings = Findings()
    text = Reader(findings).text(path)
    document = parse_yaml(text) if text is not None else Document(None)
    findings.add(path, *validate(document, "models"))
    if not findings.problems:
        findings.add(path, *_twice(document))
    if findings.problems:
        raise UnreadableBenchmarkError(tuple(findings.problems))
    data = document.data if isinstance(document.data, dict) else {"models": document.data}
    marking = data.get("marking_model")
    return ModelsFile(
        models=tuple(_entry(item) for item in data.get("models") or ()),
        marking_model=ModelEntry(marking)
        if isinstance(marking, str)
        else _entry(marking)
        if marking
        else None,
    )


def _twice(document: Document) -> Iterator[Fault]:
    inside = isinstance(document.data, dict)
    seen: dict[str, int | None] = {}
    for index, item in enumerate((document.data.get("models") if inside else document.data) or ()):
        line = document.line("models", index, "id") if inside else document.line(index, "id")
        if item["id"] in seen:
            message = f"the model {item['id']!r} stands here twice (first in line {seen[item['id']]})"
            yield Fault(line, message, "keep one entry: a model is run and reported by its id")
        seen.setdefault(item["id"], line)


def _entry(item: Mapping[str, Any]) -> ModelEntry:
    values: dict[str, Any] = {key: int(value) if key in _WHOLE else value for key, value in item.items()}
    sampling = Sampling(**{key: values.pop(key) for key in _SAMPLING if key in values})
    price = values.pop("price", None)
    return ModelEntry(**values, sampling=sampling, price=Price(**price) if price is not None else None)
