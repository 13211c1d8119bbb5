"""Prompt templates: a text file, and who writes which value into it. Only public values come in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from string import Template

from pytest_helmbench.benchmarks.packs.task import ConfigError
from pytest_helmbench.core.json_types import JsonObject, JsonValue, as_text
from pytest_helmbench.core.light_dataclass import dataclass

Writer = Callable[[JsonObject], str]

_FILE = "prompt.v1.md"


@dataclass(frozen=True, slots=True, eq=False)
class PromptTemplate:
    """The template of a family's prompts.

    Args:
        package: Where the template stands, as `prompt.v1.md`. A template that is changed takes another number.
        values: What writes each value of the template, from the public values of a row.
        needed: Values that no prompt can do without.
    """

    package: str
    values: Mapping[str, Writer]
    needed: tuple[str, ...]

    def render(self, public: JsonObject, ending: str | None = None) -> str:
        """Return the prompt for public values.

        A paragraph of the template whose value is absent or blank is left out.

        Args:
            ending: What stands in place of the last paragraph, empty for nothing; None to keep it.

        Raises:
            ConfigError: A field that the prompt needs is missing.
        """
        values = {name: write(public) for name, write in self.values.items()}
        for name in self.needed:
            if not values[name].strip():
                raise ConfigError(f"input.{name}: the prompt needs it")
        paragraphs = [
            paragraph.safe_substitute(values)
            for names, paragraph in _paragraphs(self.package)
            if all(values[name].strip() for name in names)
        ]
        if ending is not None:
            paragraphs[-1:] = [ending] if ending else []
        return "\n\n".join(paragraphs)


def field_text(name: str) -> Writer:
    """Return what writes a field."""
    return lambda public: written(public.get(name))


def written(value: JsonValue) -> str:
    """Return a value as prompts show it: text as it stands, a mapping by its keys, a list by its entries."""
    if isinstance(value, dict):
        return "\n".join(f"{key}: {as_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "\n".join(f"- {as_text(item)}" for item in value)
    return "" if value is None else as_text(value).strip("\n")


@cache
def _paragraphs(package: str) -> tuple[tuple[tuple[str, ...], Template], ...]:
    text = files(package).joinpath(_FILE).read_text(encoding="utf-8").replace("\r\n", "\n")
    templates = [Template(part) for part in text.strip().split("\n\n")]
    return tuple((tuple(template.get_identifiers()), template) for template in templates)
