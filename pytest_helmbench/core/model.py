"""A model under test or a judge, as a `models.yml` entry or an option names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass

NO_MODEL = "no-model"
"""Represents the model in the ids of a dry run that names none."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens.

    Args:
        only_raises: It is a benchmark's own word, and counts where it is above the list's.
        cache_read: Of tokens of the prompt that come from the provider's cache; None for what others cost.
        cache_write: Likewise of those that it puts there.
    """

    input: float
    output: float
    only_raises: bool = False
    cache_read: float | None = None
    cache_write: float | None = None

    def usd(self, prompt: float, completion: float, read: int = 0, written: int = 0) -> float:
        """Return what tokens cost, of the prompt `read` from a cache and `written` to it."""
        saved = 0.0 if self.cache_read is None else read * (self.input - self.cache_read)
        added = 0.0 if self.cache_write is None else written * (self.cache_write - self.input)
        return (self.input * prompt + self.output * completion - saved + added) / 1e6

    def most_usd(self, prompt: int, completion: int) -> float:
        """Return what tokens cost at most, all of the prompt put into a cache where that is dearer."""
        return max(self.usd(prompt, completion), self.usd(prompt, completion, written=prompt))


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
    """How an address that is not an OpenAI-compatible server is asked, as `models.yml` states it.

    Args:
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
        id: `vendor/name`, `ollama/name`, `baseline/lexical`, …, or the name of a variant: what items, runs and reports
            call it.
        max_concurrency: Calls of this model in flight; None for the session's limit.
        budget_tokens: Bound of a completion that is sent where none is stated, so that a budget can be held;
            None for none.
        base_url: OpenAI-compatible server, up to and with `/v1`; None for the provider's own.
        api_key_env: Name of the environment variable that holds the key; None for the usual one.
        http: How it is asked, where that is not as a chat completion; None for one.
        headers: Further ones of every request, `${VARIABLE}` for values of the environment; None for none.
        function: The id of one that is code of the user's (`python:…`); None for any other.
        version: Of an application (`function`, `http`); None for none.
        messages: `user` for an application that gets its messages without the task; None for all of them.
        system_prompt: Text of a system message before the user message; None for none.
        batch: The form of the batches that its server takes, `openai`, or `no`; None for what is known of the server.
        variant_of: The id of the model that is asked, where `id` is the name of a variant; None where it is not.
        stated_at: File and line of a judge, `models.yml:1`, for messages; empty for any other.
    """

    id: str
    sampling: Sampling = field(default_factory=Sampling)
    max_concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price: Price | None = None
    budget_tokens: int | None = None
    base_url: Granted[str] | None = None
    api_key_env: Granted[str] | None = None
    http: Granted[HttpTemplate] | None = field(default=None, hash=False)
    headers: Granted[Mapping[str, str]] | None = field(default=None, hash=False)
    function: Granted[str] | None = None
    version: str | None = None
    messages: str | None = None
    system_prompt: str | None = None
    batch: str | None = None
    variant_of: str | None = None
    stated_at: str = field(default="", compare=False)

    @property
    def model_id(self) -> str:
        """The id of the model that is asked: it says who serves it, what it costs, and what the request names."""
        return self.variant_of or self.id


@dataclass(frozen=True, slots=True)
class StatedModel:
    """One model as a file states it. Where it leads is the file's word: `run/targets.py` knows whose that is.

    Args:
        entry: What is data: name, sampling, limits, price.
        line: Where the file states one of them, as an editor counts; None where it does not.
    """

    entry: ModelEntry
    base_url: str | None = None
    api_key_env: str | None = None
    http: HttpTemplate | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ModelsFile:
    """The entries of `models.yml`, in file order; `marking_models` holds the judges, at most three."""

    models: tuple[StatedModel, ...] = ()
    marking_models: tuple[StatedModel, ...] = ()
