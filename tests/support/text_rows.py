"""Rows of the text families in tests: the verdict on a reply, and the replies by which a row proves itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_helmbench.benchmarks.packs.families.registry import family_named
from pytest_helmbench.benchmarks.packs.families.text.text_family import AnswerFinding, TextFamily

__all__ = ["evaluate_answer", "render", "self_check_replies", "text_family", "text_spec"]


def text_family(name: str) -> TextFamily:
    """Return a family that is judged by its text."""
    family = family_named(name)
    assert isinstance(family, TextFamily)
    return family


def evaluate_answer(
    family: str, given: Mapping[str, Any], wanted: Mapping[str, Any], reply: str, *, parity: bool
) -> AnswerFinding:
    """Hold a reply to a row."""
    return text_family(family).finding(given, wanted, reply, parity=parity)


def text_spec(family: str, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification of a row."""
    resources = {name: {"value": value, "visibility": "public"} for name, value in given.items()}
    resources |= {name: {"value": value, "visibility": "hidden"} for name, value in wanted.items()}
    return {"id": "t", "benchmark_id": "b", "task_type": family, "resources": resources}


def self_check_replies(
    family: str, given: Mapping[str, Any], wanted: Mapping[str, Any], prompt: str = ""
) -> tuple[tuple[str, str, bool], ...]:
    """Return label, reply and whether it must pass."""
    return text_family(family).proofs(given, wanted, prompt)


def render(family: str, public: Mapping[str, Any]) -> str:
    """Return the prompt for public values."""
    found = family_named(family)
    assert found is not None
    return found.template.render(public)
