"""`models.yml`: the models under test and the marking models."""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.model import HttpTemplate, ModelEntry, ModelsFile, Price, Sampling, StatedModel
from pytest_helmbench.core.problem import UnreadableBenchmarkError
from pytest_helmbench.core.request_template import places
from pytest_helmbench.files.source import Fault, Findings, Reader
from pytest_helmbench.files.source import listed as listed_names
from pytest_helmbench.files.strict_json import a_mapping, a_number, a_text, a_whole_number, numbers
from pytest_helmbench.files.validation import FormatSchema, shipped_schema, validate
from pytest_helmbench.files.yaml_text import Document, Place, parse_yaml

_TEMPLATE_VALUES = (
    *("prompt", "system", "messages", "model", "response_format", "temperature", "top_p", "top_k", "min_p"),
    *("repetition_penalty", "seed", "max_tokens", "max_completion_tokens", "reasoning_effort"),
)
"""The names that a place of a request may have."""
_PROMPT_VALUES = ("prompt", "messages")
"""Those that differ from case to case."""

_OUR_HEADERS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "expect", "authorization"}
)
_SECRET_NAME = re.compile(r"key|token|secret|auth|password|cookie", re.IGNORECASE)
_MOST_JUDGES = 2
MODELS_SCHEMA = shipped_schema("models", __name__)
_OF_MODELS_ALONE = ("id", "name", "url", "request", "response", "version", "messages")
"""Keys that a variant cannot change: they say which model it is of."""
_VARIANT_NAME = re.compile(r"[A-Za-z0-9._-]+")
_FLOW_PAIR = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')|([{,]\s*[^\s,:={}\[\]"']+)\s*=\s*""")


def load_models(path: Path, root: Path | None = None) -> ModelsFile:
    """Read a models file, a mapping or a bare list.

    Args:
        root: The folder of the benchmark that brings it; None for a file of the user's.

    Raises:
        UnreadableBenchmarkError: With all that is wrong with it.

    Source:
        Scenario trees, section 7.
    """
    findings = Findings()
    reader = Reader(findings, root)
    text = reader.text(path)
    document = parse_yaml(text) if text is not None else Document(None)
    findings.add(path, *validate(document, MODELS_SCHEMA))
    findings.add(path, *_judge_faults(document), *_model_faults(document))
    findings.problems.sort(key=lambda problem: problem.line or 0)
    _raise_if_broken(findings)
    models = tuple(
        _entry(item, _line(document, item, *place), _system_prompt(item, reader, path.parent))
        for place, item in document.entries("models")
    )
    _raise_if_broken(findings)
    judges = tuple(
        _stated_at(
            _named(value, models)
            if isinstance(value, str)
            else _entry(a_mapping(value), _line(document, a_mapping(value), *place), None),
            path,
            document.line(*place),
        )
        for place, value in _judges(document.mapping())
    )
    prices = {one.entry.id: one.entry.price for one in (*judges, *models) if one.entry.price is not None}
    return ModelsFile(_priced(models, prices), _priced(judges, prices))


def load_variants(texts: Iterable[str], folder: Path) -> tuple[StatedModel, ...]:
    """Read variants, each `NAME` or `NAME: KEY=VALUE, KEY: VALUE, …`: a YAML flow mapping, with or without braces.

    Args:
        folder: What paths in them are relative to.

    Returns:
        One entry per variant, in order: its name as id, and what it states.

    Raises:
        UnreadableBenchmarkError: With all that is wrong with them.
    """
    findings = Findings()
    found: list[StatedModel] = []
    names: set[str] = set()
    for text in texts:
        name, _, values = (part.strip() for part in text.partition(":"))
        mapping = values if values.startswith("{") else f"{{{values}}}"
        document = parse_yaml(_FLOW_PAIR.sub(_as_yaml, mapping))
        item = document.mapping()
        read = Findings()
        prompt = _system_prompt(item, Reader(read), folder)
        faults = [
            *validate(document, _VARIANT_SCHEMA),
            *(Fault(None, f"{problem.path}: {problem.message}", problem.hint) for problem in read.problems),
            *_name_faults(name, names),
        ]
        faults += [] if faults else [Fault(None, said, hint) for _, said, hint in _faults_of_template(item)]
        option = Path(f"--helmbench-variant={shlex.quote(name)}")  # the rest may hold a secret
        findings.add(option, *(replace(fault, line=None) for fault in faults))
        names.add(name)
        if not faults:
            found.append(_entry({**item, "id": name}, None, prompt))
    _raise_if_broken(findings)
    return tuple(found)


def _name_faults(name: str, taken: Container[str]) -> Iterator[Fault]:
    if not _VARIANT_NAME.fullmatch(name):
        hint = "write NAME or 'NAME: KEY=VALUE, …'; a name has letters, digits, '.', '_' and '-'"
        yield Fault(None, f"the name {name!r} has the wrong form", hint)
    elif name in taken:
        yield Fault(None, f"the name {name!r} is given twice", "give each variant its own")


def _as_yaml(found: re.Match[str]) -> str:
    """Return a quoted text as it is, and the beginning of `key=value` as that of `key: value`."""
    return found[1] or f"{found[2]}: "


def _variant_schema() -> dict[str, JsonValue]:
    whole = MODELS_SCHEMA.document()
    stated = a_mapping(a_mapping(a_mapping(whole["$defs"])["model"])["properties"])
    properties = {name: stated[name] for name in stated if name not in _OF_MODELS_ALONE}
    return {"type": "object", "properties": properties, "additionalProperties": False}


_VARIANT_SCHEMA = FormatSchema("variant", _variant_schema)


def _raise_if_broken(findings: Findings) -> None:
    if findings.problems:
        raise UnreadableBenchmarkError(tuple(findings.problems))


def _system_prompt(item: JsonObject, reader: Reader, folder: Path) -> str | None:
    """Return the text that an entry names as its system prompt; None where it names none, or it cannot be read."""
    named = a_text(item.get("system_prompt"))
    text = None if named is None else reader.text(folder / Path(named).expanduser())
    return None if text is None else text.strip("\n")


def _stated_at(judge: StatedModel, path: Path, line: int | None) -> StatedModel:
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    entry = replace(judge.entry, stated_at=f"{shown}:{judge.line or line}")
    return replace(judge, entry=entry, line=judge.line or line)


def _named(judge: str, models: tuple[StatedModel, ...]) -> StatedModel:
    """Return the entry of that id, else the only one of that name behind a vendor; else a model of that id."""
    for of_id in ((one.entry.id for one in models), (one.entry.id.partition("/")[2] for one in models)):
        found = [one for one, name in zip(models, of_id, strict=True) if name == judge]
        if len(found) == 1:
            return found[0]
    return StatedModel(ModelEntry(judge))


def _priced(stated: tuple[StatedModel, ...], prices: Mapping[str, Price]) -> tuple[StatedModel, ...]:
    """Return entries with prices: a model that is tested and judges too costs the same as either."""
    return tuple(
        replace(one, entry=replace(one.entry, price=one.entry.price or prices.get(one.entry.id)))
        for one in stated
    )


def _line(document: Document, item: JsonObject, *place: str | int) -> int | None:
    """Return the line that states a server, else a variable."""
    stated = next(
        (key for key in ("base_url", "url", "api_key_env", "extra_headers", "id") if key in item), None
    )
    return None if stated is None else document.line(*place, stated)


def _judges(data: JsonObject) -> list[tuple[Place, JsonValue]]:
    """Return the judges, ids or mappings, with the places where they stand."""
    one, several = data.get("marking_model"), data.get("marking_models")
    found: list[tuple[Place, JsonValue]] = [(("marking_model",), one)] if one else []
    listed = several if isinstance(several, list) else []
    return [*found, *((("marking_models", index), item) for index, item in enumerate(listed))]


def _judge_faults(document: Document) -> Iterator[Fault]:
    data = document.mapping()
    if data.get("marking_model") and data.get("marking_models"):
        hint = "keep the list: the verdict of its first judge counts"
        yield Fault(document.line("marking_models"), "'marking_models' beside 'marking_model'", hint)
    seen: set[str] = set()
    for number, (place, item) in enumerate(_judges(data)):
        name = a_text(item) or _identity(a_mapping(item))
        if "system_prompt" in a_mapping(item):
            line = document.line(*place, "system_prompt")
            yield Fault(line, "'system_prompt' of a judge", "write its words with --helmbench-judge-template")
        if number >= _MOST_JUDGES:
            yield Fault(
                document.line(*place), f"{_MOST_JUDGES + 1} judges or more", "a judge, and a second opinion"
            )
        if name and name in seen:
            message = f"the judge {name!r} stands here twice"
            yield Fault(document.line(*place), message, "a second opinion is another model's")
        seen.add(name or "")


def _identity(item: JsonObject) -> str | None:
    """Return what an entry is called."""
    return a_text(item.get("name")) or a_text(item.get("id"))


def _model_faults(document: Document) -> Iterator[Fault]:
    """Yield what is called alike, and what is wrong with the templates of all applications."""
    entries = document.entries("models")
    seen: dict[str, int | None] = {}
    for place, item in entries:
        name, line = _identity(item), document.line(*place, "name" if "name" in item else "id")
        if name and name in seen:
            message = f"the model {name!r} stands here twice (first in line {seen[name]})"
            yield Fault(line, message, "give each entry a name of its own, such as 'name: careful'")
        seen.setdefault(name or "", line)
    judges = [(place, item) for place, item in _judges(document.mapping()) if isinstance(item, dict)]
    for place, item in judges:
        if "name" in item and _identity(item) in seen:
            message = f"the judge {item['name']!r} is called like a model (line {seen[str(item['name'])]})"
            yield Fault(document.line(*place, "name"), message, "give it a name of its own")
    entries += judges
    for place, item in entries:
        for key, message, hint in _faults_of_template(item):
            yield Fault(document.line(*place, key), message, hint)


def _faults_of_template(item: JsonObject) -> Iterator[tuple[str, str, str]]:
    """Yield key, message and hint: headers that are not free, templates and addresses that do not fit, empty places."""
    for name, value in a_mapping(item.get("extra_headers")).items():
        if name.lower() in _OUR_HEADERS:
            yield (
                "extra_headers",
                f"the header {name!r} is made here",
                "leave it out; a key is named by 'api_key_env'",
            )
        elif _SECRET_NAME.search(name) and "${" not in str(value):
            hint = "put it into a variable and write ${VARIABLE} in its place"
            yield "extra_headers", f"the header {name!r} holds what looks like a key", hint
    for key in ("request", "response"):
        if key in item and "url" not in item:
            yield key, f"{key!r} without 'url'", "write the application's address as 'url'"
    if "url" in item and "base_url" in item:
        yield "url", "'url' beside 'base_url'", "keep the one that answers"
    is_function = str(item.get("id")).startswith("python:")
    for key in ("version", "messages"):
        if key in item and not ("url" in item or is_function):
            hint = "only an application has it: 'url', or an id python:package.module:function"
            yield key, f"{key!r} of a model that is not an application", hint
    if item.get("version") == "source" and not is_function:
        message = "'version: source' is the hash of a package's files, and this model is not python: function"
        yield "version", message, "write its version as a text, such as 1.4.2"
    request = item.get("request")
    named = dict.fromkeys(places(request))
    for name in named:
        if name not in _TEMPLATE_VALUES:
            message = f"the request has a place {{{name}}}, which no value fills"
            hint = listed_names(name, _TEMPLATE_VALUES, "values")
            yield "request", message, f"{hint}; {{{{{name}}}}} is sent as {{{name}}}"
    if isinstance(request, dict | list) and not any(name in named for name in _PROMPT_VALUES):
        message = "the request has no place for the prompt, so that all cases would send the same"
        shown = ", ".join(f"{{{name}}}" for name in _TEMPLATE_VALUES)
        yield "request", message, f"write {{prompt}} or {{messages}} in it; all places: {shown}"


def _template(item: JsonObject) -> HttpTemplate | None:
    url = a_text(item.get("url"))
    if url is None:
        return None
    stated = item.get("response")
    paths = {"text": stated} if isinstance(stated, str) else a_mapping(stated)
    return HttpTemplate(url, item.get("request"), {name: str(path) for name, path in paths.items()})


def _entry(item: JsonObject, line: int | None, system_prompt: str | None) -> StatedModel:
    entry = ModelEntry(
        id=_identity(item) or "",
        variant_of=str(item["id"]) if "name" in item else None,
        sampling=_sampling(item),
        max_concurrency=a_whole_number(item.get("max_concurrency")),
        requests_per_minute=a_number(item.get("requests_per_minute")),
        tokens_per_minute=a_number(item.get("tokens_per_minute")),
        price=_price(numbers(item.get("price"))),
        version=a_text(item.get("version")),
        messages=a_text(item.get("messages")),
        system_prompt=system_prompt,
        batch="no" if item.get("batch") is False else a_text(item.get("batch")),  # YAML reads no as false
    )
    headers = {name: str(value) for name, value in a_mapping(item.get("extra_headers")).items()}
    return StatedModel(
        entry, a_text(item.get("base_url")), a_text(item.get("api_key_env")), _template(item), headers, line
    )


def _price(stated: Mapping[str, float]) -> Price | None:
    if not stated:
        return None
    read, write = stated.get("cache_read"), stated.get("cache_write")
    return Price(stated["input"], stated["output"], cache_read=read, cache_write=write)


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
