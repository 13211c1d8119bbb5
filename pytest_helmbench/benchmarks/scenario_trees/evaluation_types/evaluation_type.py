"""An evaluation type, a value of `evaluation.type`: what it reads from frontmatter, and what it makes of that."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import field

from pytest_helmbench.benchmarks.scenario_trees.format.folders import ScenarioFiles
from pytest_helmbench.benchmarks.scenario_trees.format.schema_fields import holds_text_alone
from pytest_helmbench.benchmarks.scenario_trees.tree import Rule
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault, Reader
from pytest_helmbench.files.strict_json import a_mapping, a_text, texts
from pytest_helmbench.files.yaml_text import Document, Place

OF_TURNS = ("turns", "each")
"""Keys below `evaluation` for rules of single replies in a conversation, beside the keys of its type."""
_VALUE: list[JsonValue] = ["string", "number", "boolean"]
VALUES: JsonObject = {"type": [*_VALUE, "array"], "items": {"type": _VALUE}, "minItems": 1}
"""A value as it is written, or a list of them."""
FIELD: JsonObject = {
    "description": "name the key of the reply, or a dotted path",
    "type": "string",
    "minLength": 1,
}
EXPECTED: JsonObject = {
    "description": "write the value, or for tag_threshold the list of tags, that the reply must have",
    **VALUES,
}
REQUIRED: JsonObject = {"description": "list what there must be"}
COUNT: JsonObject = {"type": "integer", "minimum": 0}
TURN: JsonObject = {"type": "integer", "minimum": 1}


@dataclass(frozen=True, slots=True)
class RuleSource:
    """The files of a healthy prompt, as far as they say the rule for replies.

    Args:
        reader: Reads the other files, and files what is wrong.
        document: Frontmatter of the prompt file; without data where there is none.
        schema: Bare response schema; None where there is none, or none that can be read.
        perturbations: The turns at which the model is asked, by the code of the scenario's perturbation; None where
            not all can be read.
        tools: Names of the tools that the model may call; None where they cannot be read.
        place: Of the rule in the frontmatter: `evaluation`, or one rule of several below it.
    """

    reader: Reader
    files: ScenarioFiles
    document: Document
    schema: JsonObject | None
    perturbations: Mapping[str, tuple[int, ...]] | None = None
    tools: tuple[str, ...] | None = None
    place: Place = ("evaluation",)

    @property
    def values(self) -> JsonObject:
        """The mapping of the rule; empty where there is none."""
        return a_mapping(self._at(self.place))

    @property
    def by_severity(self) -> bool:
        """`polarity: by_severity`, the only polarity that there is."""
        return "polarity" in self.values

    def text(self, key: str) -> str | None:
        """Return the text of a key; None where there is none."""
        return a_text(self.values.get(key))

    def texts(self, key: str = "expected") -> tuple[str, ...]:
        """Return the text or texts of a key, as written."""
        return texts(self.values.get(key))

    def has_only(self, *keys: str) -> bool:
        """Return whether the rule has no other keys, of which one may be meant for one of these."""
        return self.values.keys() <= {"type", "polarity", *OF_TURNS, *keys}

    def typed(self, place: Place, parts: Collection[JsonObject]) -> tuple[str | float, ...]:
        """Return the text or texts at a place of the frontmatter as the schema's type.

        Args:
            place: Keys that lead to them.
            parts: What the schema says of values that they are compared with; none where it leaves that open, so that
                a number without quotes is one.
        """
        written, numbers = texts(self._at(place)), self.document.numbers
        if parts and all(holds_text_alone(part) for part in parts):
            return written
        return tuple(
            json.loads(text) if {place, (*place, index)} & numbers else text
            for index, text in enumerate(written)
        )

    def _at(self, place: Place) -> JsonValue:
        found: JsonValue = dict(self.document.mapping())
        for step in place:
            if isinstance(found, list) and isinstance(step, int):
                found = found[step]
            else:
                found = a_mapping(found).get(str(step))
        return found

    def fault(self, message: str, hint: str, *keys: str | int) -> None:
        """File what is wrong with a value of the rule, or with all of it, in the prompt file."""
        self.reader.findings.add(self.files.prompt, Fault(self.line(*keys) or 1, message, hint))

    def warn_once(self, message: str, hint: str, *keys: str | int) -> None:
        """File what is odd about all rules of a kind at the first of them."""
        findings = self.reader.findings
        if all(one.message != message for one in findings.warnings):
            findings.add(self.files.prompt, Fault(self.line(*keys) or 1, message, hint, usable=True))

    def check_asked(self, turn: int, *keys: str | int) -> None:
        """File a turn at which the model is not asked, since it is not there or its reply is scripted."""
        asked = self.perturbations or {}
        without = [code for code, turns in asked.items() if turn not in turns]
        if without:
            more = f" (and {len(without) - 1} more)" if len(without) > 1 else ""
            message = f"there is a rule for turn {turn}, at which {without[0]}{more} does not ask the model"
            hint = f"the model replies there at turn {', '.join(map(str, asked[without[0]]))}"
            self.fault(message, f"{hint}; 'each' is a rule for every reply", *keys)

    def check_turn(self) -> None:
        """File what is wrong with the key `turn`."""
        turn = self.values.get("turn")
        if turn is not None and not {*OF_TURNS}.isdisjoint(self.place):
            self.fault("'turn' means nothing in a rule for single replies", "remove the key", "turn")
        elif isinstance(turn, int):
            self.check_asked(turn, "turn")

    def line(self, *keys: str | int) -> int | None:
        """Return the line of a value of the rule, or of what is around it."""
        return self.document.line(*self.place, *keys)


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationType:
    """A row of the table of types.

    Args:
        name: Value of `evaluation.type`, and `Scenario.family`.
        keys: Its keys below `evaluation`, beside `type` and `polarity`, with the JSON Schema of each. Types that share
            a key share its schema.
        read: Returns the rule for replies, for frontmatter that fits its schema; None where another file is wrong.
        check: Files what is wrong with the rule beyond the schemas of its keys. It is asked of any rule whose type is
            known; it passes over values that the schemas refuse.
        needed: Those of its keys that must be there.
        narrowed: What it asks of a shared key beyond the key's own schema.
        is_judged: A marking model judges.
        reads_rubric: `criteria.md` belongs to it.
        asks_for_polarity: A base severity below 0 without `polarity: by_severity` looks like a mistake.
    """

    name: str
    keys: Mapping[str, JsonObject]
    read: Callable[[RuleSource], Rule | None]
    check: Callable[[RuleSource], None] = lambda _source: None
    needed: tuple[str, ...] = ()
    narrowed: Mapping[str, JsonObject] = field(default_factory=dict)
    is_judged: bool = False
    reads_rubric: bool = False
    asks_for_polarity: bool = False
