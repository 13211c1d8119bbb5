"""`models.yml`: the models under test and the marking model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.model import ModelEntry, ModelsFile, Price, Sampling
from pytest_helmbench.core.problem import UnreadableBenchmarkError
from pytest_helmbench.files.format_schema import shipped_schema
from pytest_helmbench.files.json_fields import (
    a_mapping,
    a_number,
    a_text,
    a_whole_number,
    numbers,
)
from pytest_helmbench.files.source import Fault, Findings, Reader
from pytest_helmbench.files.validation import validate
from pytest_helmbench.files.yaml_text import Document, parse_yaml

__all__ = ["MODELS_SCHEMA", "load_models"]

MODELS_SCHEMA = shipped_schema("models", __name__)


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
    findings.add(path, *validate(document, MODELS_SCHEMA))
    if not findings.problems:
        findings.add(path, *_twice(document))
    if findings.problems:
        raise UnreadableBenchmarkError(tuple(findings.problems))
    data: JsonObject = document.mapping() or {"models": document.data}
    above = ("models",) if document.mapping() else ()
    return ModelsFile(
        models=tuple(
            _entry(item, _line(document, item, *above, index))
            for index, item in enumerate(_items(data.get("models")))
        ),
        marking_model=_marking_model(data.get("marking_model"), document),
    )


def _line(document: Document, item: JsonObject, *place: str | int) -> int | None:
    """Return the line that states a server, else a variable."""
    stated = next((key for key in ("base_url", "api_key_env") if key in item), None)
    return None if stated is None else document.line(*place, stated)


def _items(value: JsonValue) -> list[JsonObject]:
    return [a_mapping(item) for item in value] if isinstance(value, list) else []


def _marking_model(value: JsonValue, document: Document) -> ModelEntry | None:
    if isinstance(value, str):
        return ModelEntry(value)
    if not value:
        return None
    item = a_mapping(value)
    return _entry(item, _line(document, item, "marking_model"))


def _twice(document: Document) -> Iterator[Fault]:
    inside = isinstance(document.data, dict)
    seen: dict[str, int | None] = {}
    for index, item in enumerate(_items(document.mapping().get("models") if inside else document.data)):
        line = document.line("models", index, "id") if inside else document.line(index, "id")
        name = str(item["id"])
        if name in seen:
            message = f"the model {name!r} stands here twice (first in line {seen[name]})"
            yield Fault(line, message, "keep one entry: a model is run and reported by its id")
        seen.setdefault(name, line)


def _entry(item: JsonObject, line: int | None) -> ModelEntry:
    price = numbers(item.get("price"))
    return ModelEntry(
        id=str(item["id"]),
        base_url=a_text(item.get("base_url")),
        api_key_env=a_text(item.get("api_key_env")),
        sampling=_sampling(item),
        max_concurrency=a_whole_number(item.get("max_concurrency")),
        requests_per_minute=a_number(item.get("requests_per_minute")),
        tokens_per_minute=a_number(item.get("tokens_per_minute")),
        price=Price(**price) if price else None,
        line=line,
    )


def _sampling(item: JsonObject) -> Sampling:
    extra = item.get("extra_body")
    return Sampling(
        temperature=a_number(item.get("temperature")),
        top_p=a_number(item.get("top_p")),
        top_k=a_whole_number(item.get("top_k")),
        min_p=a_number(item.get("min_p")),
        repetition_penalty=a_number(item.get("repetition_penalty")),
        seed=a_whole_number(item.get("seed")),
        max_tokens=a_whole_number(item.get("max_tokens")),
        reasoning_effort=a_text(item.get("reasoning_effort")),
        extra_body=extra if isinstance(extra, dict) else None,
    )
