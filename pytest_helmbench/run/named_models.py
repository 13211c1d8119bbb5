"""The models of a benchmark as somebody has named them: the user, his own models.yml, or that of the benchmark.

In a file that a benchmark brings, where prompts and keys go is data. It becomes the user's word here, and only where he
has said the same, has named the file, or trusts the benchmark.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.places import benchmark_root
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import ModelEntry, ModelsFile, StatedModel
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.core.users_word import UsersWord
from pytest_helmbench.files.models_file import load_models
from pytest_helmbench.gateway.providers.application import FUNCTION_PREFIX
from pytest_helmbench.gateway.providers.endpoints import (
    normalise_address,
    normalise_base_url,
    replay_endpoint,
    resolve_endpoint,
)
from pytest_helmbench.gateway.providers.servers import is_embedded, provider_of
from pytest_helmbench.gateway.relay.refusals import refusals_of_stated
from pytest_helmbench.options.settings import Settings

__all__ = ["NamedModels", "judge_options", "named_models", "odd_models"]

_FLOOR_JUDGE = "baseline/first"
Word = UsersWord[str] | None


@dataclass(frozen=True, slots=True)
class NamedModels:
    """The models that a benchmark is run on.

    Args:
        entries: Under test, in order.
        judges: In order; empty where nobody names one.
    """

    entries: tuple[ModelEntry, ...]
    judges: tuple[ModelEntry, ...]


def named_models(root: Path, settings: Settings) -> NamedModels:
    """Return the models that a benchmark is run on, with what the user has said of where they are.

    Args:
        root: Folder of the benchmark.
        settings: Of the session.

    Raises:
        UnreadableBenchmarkError: models.yml is broken, or states addresses or variables that the user has not.
    """
    file = _models_file(root, settings)
    is_users = file is not None and _is_trusted(file, settings)
    stated = (
        ModelsFile() if file is None else load_models(file, None if is_users else benchmark_root(file.parent))
    )
    known = {model.entry.id: model for model in stated.models}
    wanted = [_stated(name, known) for name in settings.models.value or known]
    judges = _judges(stated, wanted, settings)
    if file is None or is_users:
        return NamedModels(tuple(map(_as_stated, wanted)), tuple(map(_as_stated, judges)))
    options = [(one, settings.base_url, settings.api_key_env) for one in wanted]
    options += [(judge, *judge_options(settings)) for judge in judges]
    if problems := tuple(dict.fromkeys(_refused(file, options, settings))):
        raise UnreadableBenchmarkError(problems)
    granted = [_as_far_as_said(*one, settings) for one in options]
    return NamedModels(tuple(granted[: len(wanted)]), tuple(granted[len(wanted) :]))


def odd_models(file: Path) -> Iterator[Problem]:
    """Yield what cannot be used in a models.yml unless options say more. Nothing is sent, and no key looked up.

    Raises:
        UnreadableBenchmarkError: It is broken.
    """
    stated = load_models(file, benchmark_root(file.parent))
    for model in (*stated.models, *stated.marking_models):
        try:
            resolve_endpoint(_as_stated(model), default_base_url=None, default_key_env=None, environ={})
        except HelmbenchError as error:
            message, _, hint = str(error).partition("\n  hint: ")
            yield Problem(file, None, message, hint)


def judge_options(settings: Settings) -> tuple[Word, Word]:
    """Return the judge's server and the variable of its key, as options state them."""
    # The key of the models under test belongs to their server, not to one that was split off.
    shared_key_env = None if settings.marking_base_url else settings.api_key_env
    return settings.marking_base_url or settings.base_url, settings.marking_api_key_env or shared_key_env


def _models_file(root: Path, settings: Settings) -> Path | None:
    if settings.models_file is not None:
        return settings.models_file.value
    around = benchmark_root(root.parent)  # a pack inside of a benchmark runs on its models
    for folder in (root, *([around] if around is not None else [])):
        for name in ("models.yml", "models.yaml"):
            if (folder / name).is_file():
                return folder / name
    return None


def _stated(name: str, known: dict[str, StatedModel]) -> StatedModel:
    return known.get(name) or StatedModel(ModelEntry(name))


def _judges(stated: ModelsFile, wanted: list[StatedModel], settings: Settings) -> tuple[StatedModel, ...]:
    if settings.marking_models:
        known = {model.entry.id: model for model in (*stated.models, *stated.marking_models)}
        return tuple(_stated(name, known) for name in settings.marking_models.value)
    if wanted and all(is_embedded(model.entry.id) for model in wanted):
        return (StatedModel(ModelEntry(_FLOOR_JUDGE)),)
    return stated.marking_models


def _is_trusted(file: Path, settings: Settings) -> bool:
    """Return whether a models file may say where prompts and keys go: named by the user, trusted, or his project's."""
    named = settings.models_file is not None and file == settings.models_file.value
    root = benchmark_root(file.parent)
    return named or root is None or str(root.resolve()) in settings.trusted.value


def _as_stated(stated: StatedModel) -> ModelEntry:
    """Return a model of a file that the user stands for."""
    return replace(
        stated.entry,
        base_url=None if stated.base_url is None else UsersWord(stated.base_url),
        api_key_env=None if stated.api_key_env is None else UsersWord(stated.api_key_env),
        http=None if stated.http is None else UsersWord(stated.http),
        function=_code(stated.entry.id),
    )


def _as_far_as_said(stated: StatedModel, base_url: Word, key_env: Word, settings: Settings) -> ModelEntry:
    """Return a model of a benchmark's file with what the user has said of it; the rest has been refused."""
    entry = replace(stated.entry, function=_named_code(stated.entry.id, settings))
    if entry.price is not None:
        entry = replace(entry, price=replace(entry.price, only_raises=True))
    if stated.base_url is None:
        return replace(entry, api_key_env=None if stated.api_key_env is None else key_env)
    # Who names the address stands for the variable beside it.
    key = key_env if stated.api_key_env is None else UsersWord(stated.api_key_env)
    return entry if is_embedded(entry.id) else replace(entry, base_url=base_url, api_key_env=key)


def _code(model: str) -> Word:
    return UsersWord(model) if model.startswith(FUNCTION_PREFIX) else None


def _named_code(model: str, settings: Settings) -> Word:
    """Return code that an option names."""
    named = (*settings.models.value, *settings.marking_models.value)
    return _code(model) if model in named else None


def _refused(
    file: Path, options: list[tuple[StatedModel, Word, Word]], settings: Settings
) -> Iterator[Problem]:
    """Yield addresses and names of variables that a benchmark states, and the user has not."""
    allows = (
        f"if you want that, --helmbench-models-file={shlex.quote(str(file))} allows it,"
        " or helmbench_trusted of your own ini file"
    )
    for stated, base_url, key_env in options:
        for name, why in refusals_of_stated(stated.entry.sampling.extra_body or {}):
            message = (
                f"a benchmark does not decide who answers what: extra_body.{name} of {stated.entry.id} {why}"
            )
            yield Problem(file, stated.line, message, allows)
        if settings.max_cost_usd is not None and _claims_free(stated, base_url, settings):
            server = stated.entry.id.partition("/")[0]
            yield Problem(
                file,
                stated.line,
                f"a benchmark does not decide what is free: {stated.entry.id} at {_address(stated, base_url)}"
                f" would be a server of your own, as {server!r} says",
                f"--helmbench-model={stated.entry.id} allows it under --helmbench-max-cost; {allows}",
            )
        if not _is_users(stated, base_url, key_env, settings):
            yield Problem(
                file,
                stated.line,
                f"a benchmark does not decide where prompts and keys go: {_statement(stated, base_url)}",
                allows,
            )


def _claims_free(stated: StatedModel, base_url: Word, settings: Settings) -> bool:
    """Return whether a benchmark's name of a model (`vllm/…`) alone makes what answers at a user's address free."""
    provider = provider_of(stated.entry.id)
    named = (*settings.models.value, *settings.marking_models.value)
    if base_url is None or provider is None or not provider.local or stated.entry.id in named:
        return False
    return normalise_base_url(base_url.value) != provider.base_url


def _is_users(stated: StatedModel, base_url: Word, key_env: Word, settings: Settings) -> bool:
    """Return whether the user has said where an entry of a benchmark's file leads: to code, an address, a server."""
    model = stated.entry.id
    if model.startswith(FUNCTION_PREFIX):
        return _named_code(model, settings) is not None
    if stated.http is not None:
        return False
    if is_embedded(model):
        return True
    if stated.base_url is not None:
        return base_url is not None and normalise_base_url(stated.base_url) == normalise_base_url(
            base_url.value
        )
    return stated.api_key_env in (None, key_env and key_env.value)


def _statement(stated: StatedModel, base_url: Word) -> str:
    model = stated.entry.id
    if model.startswith(FUNCTION_PREFIX):
        return f"{model} is code"
    if stated.http is not None:
        return f"{model} at {normalise_address(stated.http.url)}"
    key = f" with the key in {stated.api_key_env}" if stated.api_key_env else ""
    return f"{model} at {_address(stated, base_url)}{key}"


def _address(stated: StatedModel, base_url: Word) -> str:
    named = stated.base_url or (base_url and base_url.value)
    return normalise_base_url(named or replay_endpoint(stated.entry.id).base_url)
