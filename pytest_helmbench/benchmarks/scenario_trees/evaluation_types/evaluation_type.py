"""The base class of evaluation types: all that a value of `evaluation.type` means, in one object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.format.folders import ScenarioFiles
from pytest_helmbench.benchmarks.scenario_trees.tree import Rule, Scenario
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.files.json_fields import a_mapping
from pytest_helmbench.files.source import Reader
from pytest_helmbench.files.yaml_text import Document

__all__ = ["EvaluationType", "RuleSource"]


@dataclass(frozen=True, slots=True)
class RuleSource:
    """The files of a healthy prompt, as far as they say what replies are held to.

    Args:
        reader: Reads the other files, and files what is wrong.
        files: Of the scenario.
        document: Frontmatter of the prompt file; without data where there is none.
        schema: Bare response schema; None where there is none, or none that can be read.
        part: The mapping of one rule of several; None for `evaluation` itself.
    """

    reader: Reader
    files: ScenarioFiles
    document: Document
    schema: JsonObject | None
    part: JsonObject | None = None

    @property
    def values(self) -> JsonObject:
        """The `evaluation` mapping, or the rule of it that is read; empty where there is none."""
        if self.part is not None:
            return self.part
        return a_mapping(self.document.mapping().get("evaluation"))

    @property
    def by_severity(self) -> bool:
        """`polarity: by_severity`, the only polarity that there is."""
        return "polarity" in self.values


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

    asks_for_polarity: ClassVar[bool] = False
    """Whether a base severity below 0 without `polarity: by_severity` looks like a mistake."""

    @abstractmethod
    def rule(self, source: RuleSource) -> Rule | None:
        """Return what replies are held to, filing what is wrong; None where nothing can be made of it."""

    def problems(self, _scenario: Scenario) -> Iterable[Problem]:
        """Return what is wrong with the rule of a scenario beside its other parts."""
        return ()

    def warnings(self, _scenario: Scenario) -> Iterable[Problem]:
        """Return what is odd about the rule of a healthy scenario, beyond what its values tell."""
        return ()
