"""Prompts of rows: the messages that a model or an agent gets."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.registry import family_of
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackTask
from pytest_helmbench.core.case import Message


def prompt_of(task: PackTask, form: str | None = None) -> str:
    """Return the prompt of a row: the user message, or the task message of an agent.

    Args:
        task: The row.
        form: Of its answer, as `Family.answer_form` says; None for what the row says.

    Raises:
        ConfigError: The family is not known here, or a field that its prompt needs is missing.
    """
    family = family_of(task)
    if family is None:
        raise ConfigError(f"{task.id}: there is no prompt for the family {task.task_type!r}")
    return family.prompt(task, form)


def messages_of(task: PackTask, system_prompt: str | None, form: str | None = None) -> tuple[Message, ...]:
    """Return what a row's model is asked: a system message of the user's, if there is one, and the prompt.

    Raises:
        ConfigError: See `prompt_of`.
    """
    user = Message("user", prompt_of(task, form))
    return (user,) if system_prompt is None else (Message("system", system_prompt), user)
