"""The base class of evaluation types: all that a value of `evaluation.type` means, in one object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.format.folders import ScenarioFiles
from pytest_helmbench.benchmarks.scenario_trees.tree import Rule, Scenario
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.files.json_fields import a_mapping
from pytest_helmbench.files.source import Fault, Reader
from pytest_helmbench.files.yaml_text import Document, Place

__all__ = ["EvaluationType", "RuleSource"]


@dataclass(frozen=True, slots=True)
class RuleSource:
    """The files of a healthy prompt, as far as they say what replies are held to.

    Args:
        reader: Reads the other files, and files what is wrong.
        files: Of the scenario.
        document: Frontmatter of the prompt file; without data where there is none.
        schema: Bare response schema; None where there is none, or none that can be read.
        perturbations: Codes of the scenario's perturbations; None where not all can be read.
        place: Of the rule in the frontmatter: `evaluation`, or one rule of several below it.
    """

    reader: Reader
    files: ScenarioFiles
    document: Document
    schema: JsonObject | None
    perturbations: tuple[str, ...] | None = None
    place: Place = ("evaluation",)

    @property
    def values(self) -> JsonObject:
        """The mapping of the rule; empty where there is none."""
        found: JsonValue = dict(self.document.mapping())
        for step in self.place:
            if isinstance(found, list) and isinstance(step, int):
                found = found[step]
            else:
                found = a_mapping(found).get(str(step))
        return a_mapping(found)

    @property
    def by_severity(self) -> bool:
        """`polarity: by_severity`, the only polarity that there is."""
        return "polarity" in self.values

    def fault(self, message: str, hint: str, *keys: str | int) -> None:
        """File what is wrong with a value of the rule, or with all of it, in the prompt file."""
        self.reader.findings.add(self.files.prompt, Fault(self.line(*keys) or 1, message, hint))

    def line(self, *keys: str | int) -> int | None:
        """Return the line of a value of the rule, or of what is around it."""
        return self.document.line(*self.place, *keys)


class EvaluationType(ABC):
    """One way to evaluate the replies to a scenario, as its frontmatter names it.

    Its rules say how a reply is judged, how that is told, and what the record keeps: see `ReplyRule`, `JudgeRule`.
    """

    name: ClassVar[str]
    """Value of `evaluation.type`, and `Scenario.family`."""

    keys: ClassVar[Mapping[str, JsonObject]] = {}
    """Its keys below `evaluation`, beside `type` and `polarity`, with the JSON Schema of each.

    Types that share a key share its schema.
    """

    needed: ClassVar[tuple[str, ...]] = ()
    """Those of its keys that must be there."""

    narrowed: ClassVar[Mapping[str, JsonObject]] = {}
    """What it asks of a shared key beyond the key's own schema."""

    reads_rubric: ClassVar[bool] = False
    """Whether `criteria.md` belongs to it."""

    is_judged: ClassVar[bool] = False
    """Whether a marking model judges."""

    asks_for_polarity: ClassVar[bool] = False
    """Whether a base severity below 0 without `polarity: by_severity` looks like a mistake."""

    def check(self, source: RuleSource) -> None:
        """File what is wrong with the rule beyond the schemas of its keys.

        It is asked of any rule whose type is known. What its keys' schemas refuse is told already and passed over.
        """
        del source

    @abstractmethod
    def rule(self, source: RuleSource) -> Rule | None:
        """Return what replies are held to, for frontmatter that fits its schema; None where another file is wrong."""

    def warnings(self, _scenario: Scenario) -> Iterable[Problem]:
        """Return what is odd about the rule of a healthy scenario, beyond what its values tell."""
        return ()
