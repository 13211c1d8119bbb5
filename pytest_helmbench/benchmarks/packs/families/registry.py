"""The families that are known here, by name. A family is imported when the first of its rows is met."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib import import_module

from pytest_helmbench.benchmarks.packs.families.family import Family
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackTask
from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import json_objects

FAMILY_NAMES = (
    "multiple_choice",
    "short_answer",
    "free_response",
    "code_completion",
    "repo_patch",
    "terminal_task",
)
"""Each is a package here, whose module `family` has the object as `FAMILY`."""
FOLDER_FAMILY = "task_folder"
"""Another one, of rows that are folders: no line of a row file is of it."""


@cache
def family_named(name: str) -> Family | None:
    """Return a family; None for one that is not known here."""
    if name not in (*FAMILY_NAMES, FOLDER_FAMILY):
        return None
    family: Family = import_module(f"{__package__}.{name}.family").FAMILY
    return family


def table_family(fields: Collection[str]) -> str:
    """Return the name of the family of the rows of a table, by the fields that it has columns for."""
    if "choices" in fields:
        return "multiple_choice"
    return "short_answer" if "answer" in fields else "free_response"


def family_of(task: PackTask) -> Family | None:
    """Return the family of a row; None for one that is not known here."""
    return family_named(task.task_type)


def messages_of(task: PackTask, system_prompt: str | None, form: str | None = None) -> tuple[Message, ...]:
    """Return what a row's model is asked: a system message of the user's, earlier messages of the row, and the prompt.

    Args:
        system_prompt: The user's; None for none.
        form: Of its answer, as `Family.answer_form` says; None for what the row says.

    Raises:
        ConfigError: The family is not known here, or a field that its prompt needs is missing.
    """
    family = family_of(task)
    if family is None:
        raise ConfigError(f"{task.id}: there is no prompt for the family {task.task_type!r}")
    before = [
        Message(str(one["role"]), str(one["content"])) for one in json_objects(task.input_value("messages"))
    ]
    system = [] if system_prompt is None else [system_prompt]
    while before and before[0].role == "system":  # servers take one system message, at the start
        system.append(before.pop(0).content)
    first = [Message("system", "\n\n".join(system))] if system else []
    return (*first, *before, Message("user", family.prompt(task, form)))
