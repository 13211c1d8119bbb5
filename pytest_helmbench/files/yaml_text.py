"""YAML as this package reads it: safe, without duplicate keys, with lines, and some values as written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field

import yaml
from yaml.constructor import SafeConstructor

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault
from pytest_helmbench.files.strict_json import NotJSONError, StrictJSON, a_mapping

Place = tuple[str | int, ...]
"""Keys and list positions (from 0) that lead to a value."""

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_AS_WRITTEN = frozenset(
    {
        "category",
        "description",
        "expected",
        "forbidden",
        "name",
        "options",
        "pass_values",
        "reasoning_effort",
        "required",
        "version",
    }
)
_KEYS_AS_WRITTEN = frozenset({"arguments", "cases", "credit", "extra_body", "floors", "weights"})
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?\Z")
_DEEPEST = 100
_MOST_VALUES = 1_000_000
_SHORT = 1000  # characters; what is shorter cannot nest deeply enough to do harm
_TAB_HINT = "indent with spaces: YAML takes no tab"
_QUOTES_HINT = "put a text with ': ', '#', '*' or a bracket between single quotes"
_TAG = "tag:yaml.org,2002:"
_TYPED = frozenset(_TAG + name for name in ("null", "bool", "int", "float"))
_TEXT = frozenset(_TAG + name for name in ("str", "timestamp"))
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML text in JSON types.

    Args:
        data: Keys are lower-case, save below `arguments`, `cases`, `credit`, `weights`, `floors` and `extra_body`.
            The values of `expected`, `required`, `forbidden`, `options`, `pass_values` and `category` are text as
            written: `NO` stays `NO`. None for an empty text or one that is not YAML.
        lines: 1-based line of each key and list entry.
        faults: Why it is not YAML, duplicate keys, and numbers that are none.
        numbers: Places of texts as written that stand there as JSON numbers, without quotes.
    """

    data: JsonValue
    lines: Mapping[Place, int] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    numbers: frozenset[Place] = frozenset()

    def line(self, *place: str | int) -> int | None:
        """Return the line of a value, or of the nearest thing around it; None when there is nothing."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)

    def names(self) -> tuple[str, ...]:
        """Return the top-level keys, lower-case; empty when this is not a mapping."""
        return tuple(self.mapping())

    def mapping(self) -> JsonObject:
        """Return the data where it is a mapping; else an empty one."""
        return a_mapping(self.data)

    def entries(self, key: str) -> list[tuple[Place, JsonObject]]:
        """Return the mappings of a list with their places; the list is the document, or stands below a key of it."""
        above: Place = (key,) if isinstance(self.data, dict) else ()
        found = self.mapping().get(key) if above else self.data
        listed = found if isinstance(found, list) else []
        return [((*above, index), a_mapping(item)) for index, item in enumerate(listed)]


def label(place: Iterable[str | int]) -> str:
    """Name a place: `evaluation.type`, `models entry 2`."""
    words = ""
    for step in place:
        words += f" entry {step + 1}" if isinstance(step, int) else f".{step}" if words else step
    return words.strip() or "the file"


def parse_yaml(text: str, first_line: int = 1, *, keep_keys: bool = False) -> Document:
    """Read one YAML document.

    Args:
        first_line: Line of its first line in the file.
        keep_keys: Leave all keys and values as YAML has them: nothing is lower-cased or taken as written.
    """
    builder = _Builder(first_line)
    try:
        _check_depth(text)
        node = yaml.compose(text, Loader=_LOADER)
        if node is not None and "*" in text:
            _check_aliases(node)
        data = None if node is None else builder.value(node, (), as_written=False, keep_keys=keep_keys)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + mark.line if mark is not None else first_line
        hint = error.note or (_TAB_HINT if _is_indented_by_tab(text, mark) else _QUOTES_HINT)
        return Document(None, {}, (Fault(line, f"this is not valid YAML: {error.problem or error}", hint),))
    except yaml.reader.ReaderError as error:
        line = first_line + text.count("\n", 0, error.position)
        return Document(
            None, {}, (Fault(line, "this is not valid YAML: it holds a control character", "remove it"),)
        )
    except (RecursionError, ValueError) as error:
        return Document(
            None, {}, (Fault(first_line, f"this is not valid YAML: {error}", "write less into one document"),)
        )
    return Document(data, builder.lines, tuple(builder.faults), frozenset(builder.numbers))


def _is_indented_by_tab(text: str, mark: yaml.Mark | None) -> bool:
    lines = text.splitlines()
    line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    return "\t" in line[: len(line) - len(line.lstrip())]


def _check_depth(text: str) -> None:
    """Refuse nesting that would overflow the C stack of the YAML composer."""
    if len(text) <= _SHORT:
        return
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")


def _check_aliases(root: yaml.Node) -> None:
    """Refuse a value that holds itself, and aliases of aliases that represent too many values."""
    sizes: dict[int, int] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        parts = _parts(node)
        if id(node) not in sizes:
            sizes[id(node)] = 0  # until all that it holds is counted
            if any(sizes.get(id(part)) == 0 for part in parts):
                raise yaml.composer.ComposerError(
                    None, None, "an alias points at itself", node.start_mark, "write the value out"
                )
            waiting.extend(part for part in parts if id(part) not in sizes)
            continue
        waiting.pop()
        sizes[id(node)] = 1 + sum(sizes[id(part)] for part in parts)
        if sizes[id(node)] > _MOST_VALUES:
            raise ValueError(f"its aliases represent more than {_MOST_VALUES:,} values")


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


class _Builder:
    """Turns YAML nodes into JSON types while it notes lines and faults."""

    def __init__(self, first_line: int) -> None:
        self.lines: dict[Place, int] = {}
        self.faults: list[Fault] = []
        self.numbers: set[Place] = set()
        self._first_line = first_line
        self._constructor = SafeConstructor()
        self._built: dict[tuple[int, bool, bool], JsonValue] = {}

    def value(self, node: yaml.Node, place: Place, *, as_written: bool, keep_keys: bool) -> JsonValue:
        """Return what a node says."""
        self.lines.setdefault(place, self._line(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place, as_written=as_written)
        memo = (id(node), as_written, keep_keys)
        if memo in self._built:  # an alias: building it anew each time could take for ever
            return self._built[memo]
        if isinstance(node, yaml.MappingNode):
            self._built[memo] = self._mapping(node, place, keep_keys=keep_keys)
        else:
            self._built[memo] = [
                self.value(item, (*place, index), as_written=as_written, keep_keys=keep_keys)
                for index, item in enumerate(node.value)
            ]
        return self._built[memo]

    def _mapping(self, node: yaml.MappingNode, place: Place, *, keep_keys: bool) -> dict[str, JsonValue]:
        self._check_keys(node, keep_keys=keep_keys)
        self._constructor.flatten_mapping(node)
        found: dict[str, JsonValue] = {}
        for key_node, value_node in node.value:
            key = _key(key_node, keep_keys=keep_keys)
            here = (*place, key)
            self.lines[here] = self._line(key_node)
            found[key] = self.value(
                value_node,
                here,
                as_written=not keep_keys and key in _AS_WRITTEN,
                keep_keys=keep_keys or key in _KEYS_AS_WRITTEN,
            )
        return found

    def _check_keys(self, node: yaml.MappingNode, *, keep_keys: bool) -> None:
        seen: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            key = _key(key_node, keep_keys=keep_keys)
            if key in seen and key_node.tag != _TAG + "merge":
                message = f"the key {key!r} stands here twice (first in line {seen[key]})"
                self.faults.append(Fault(self._line(key_node), message, "keep one of them"))
            seen.setdefault(key, self._line(key_node))

    def _scalar(self, node: yaml.ScalarNode, place: Place, *, as_written: bool) -> JsonValue:
        if as_written or node.tag in _TEXT:
            empty = node.tag == _TAG + "null" and not node.value
            if not node.style and _JSON_NUMBER.match(node.value):
                self.numbers.add(place)
            return None if empty else str(node.value)
        if node.tag not in _TYPED:
            problem = f"the tag {node.tag!r} is not allowed"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark, "remove the tag")
        if node.tag == _TAG + "int" and _DECIMAL.match(node.value) is None:
            return str(node.value)  # YAML 1.1 would read 010 as 8 and 1:30 as 90
        found: JsonValue = self._constructor.construct_object(node)
        if isinstance(found, float) and not math.isfinite(found):
            message = f"{label(place)} is {node.value}, no finite number"
            self.faults.append(Fault(self._line(node), message, "write a number, or remove the key"))
        return found

    def _line(self, node: yaml.Node) -> int:
        return int(self._first_line + node.start_mark.line)


def _key(node: yaml.Node, *, keep_keys: bool) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise yaml.constructor.ConstructorError(None, None, "a key is not a text", node.start_mark)
    text = str(node.value)
    return text if keep_keys else text.lower()


def parse_json(text: str) -> Document:
    """Read one JSON document, with all that is wrong inside as its faults."""
    try:
        data, flaws = StrictJSON().decode(text)
    except NotJSONError as error:
        return Document(None, {}, (Fault(error.line, f"this is not valid JSON: {error}"),))
    document = Document(data, json_lines(text))
    faults = (
        Fault(document.line(*flaw.place), f"{label(flaw.place)}: {flaw.message}", flaw.hint) for flaw in flaws
    )
    return Document(data, document.lines, tuple(faults))


def json_lines(text: str) -> Mapping[Place, int]:
    """Return the 1-based line of each value of a valid JSON text; of a key where it has one."""
    lines: dict[Place, int] = {}
    place: list[str | int] = []
    objects: list[bool] = []
    key_line: int | None = None
    wants_key = False
    line, counted = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", counted, token.start())
        counted = token.start()
        mark = token[0]
        if wants_key and mark.startswith('"'):
            place[-1] = json.loads(mark)
            key_line = line
            wants_key = False
        elif mark in "}]":
            place.pop()
            objects.pop()
            wants_key = False
        elif mark == ",":
            if objects[-1]:
                wants_key = True
            else:
                place[-1] = int(place[-1]) + 1
        elif mark != ":":
            lines.setdefault(tuple(place), line if key_line is None else key_line)
            key_line = None
            if mark in "{[":
                objects.append(mark == "{")
                place.append("" if mark == "{" else 0)
                wants_key = mark == "{"
    return lines
