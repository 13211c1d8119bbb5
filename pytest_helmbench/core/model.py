"""A model under test or a judge, as a `models.yml` entry or an option names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_helmbench.core.json_types import JsonObject, JsonValue

__all__ = ["NO_MODEL", "HttpTemplate", "ModelEntry", "ModelsFile", "Price", "Sampling"]

NO_MODEL = "no-model"
"""Stands for the model in the ids of a dry run that names none."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling options; None means "not sent"."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    extra_body: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class HttpTemplate:
    """How an address that is no OpenAI-compatible server is asked, as `models.yml` states it.

    Args:
        url: The whole address.
        request: JSON with places such as `{prompt}`; None for a chat completion.
        response: Dotted paths into the answer by name: `text`, `prompt_tokens`, `completion_tokens`, `cost`,
            `finish_reason`, `model`; empty for a chat completion.
    """

    url: str
    request: JsonValue = None
    response: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model with everything that was said about it.

    Args:
        id: `vendor/name`, `ollama/name`, `baseline/lexical`, …
        base_url: OpenAI-compatible server, up to and with `/v1`; None for the provider's own.
        api_key_env: Name of the environment variable that holds the key; None for the usual one.
        max_concurrency: Calls of this model in flight; None for the session's limit.
        budget_tokens: Bound of a completion that is sent where nobody states one, so that a budget can be held;
            None for none.
        http: How it is asked, where that is not as a chat completion; None for one.
        line: Where a file states the server or the variable, as an editor counts; None where none does.
    """

    id: str
    base_url: str | None = None
    api_key_env: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    max_concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price: Price | None = None
    budget_tokens: int | None = None
    http: HttpTemplate | None = field(default=None, hash=False)
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ModelsFile:
    """What `models.yml` says, in file order."""

    models: tuple[ModelEntry, ...] = ()
    marking_model: ModelEntry | None = None
