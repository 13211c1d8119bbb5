"""Where judges are asked, with whose key, and within which bounds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.machinery import PathFinder
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace

import pytest
from trees import category, write_tree

from pytest_helmbench.core.model import Sampling
from pytest_helmbench.core.problem import UnreadableBenchmarkError
from pytest_helmbench.engine.work import Route
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable
from pytest_helmbench.options.settings import resolve_settings
from pytest_helmbench.run.targets import resolve_targets, source_version

_KEYS = {"OPENAI_API_KEY": "of-openai", "MODEL_KEY": "of-the-server", "JUDGE_KEY": "of-the-judge"}
_SERVER = "http://10.0.0.7:8000/v1"
_OTHER = "http://10.0.0.8:8000/v1"
_BESIDE = {"base-url": _SERVER, "api-key-env": "MODEL_KEY"}
_ELSEWHERE = {**_BESIDE, "marking-base-url": _OTHER}
_APART = {**_BESIDE, "marking-base-url": _OTHER}
_WITH_KEY = {"marking-api-key-env": "JUDGE_KEY"}


def _judge(root: Path, judge: str, given: Mapping[str, str], environ: Mapping[str, str] = _KEYS) -> Route:
    words: dict[str, object] = {"model": ["my-model", "acme/tested"], "marking-model": [judge], **given}
    settings = resolve_settings(lambda option: words.get(option.name), root, root)
    return resolve_targets(root, settings, environ)[0].judges[0]


@pytest.mark.parametrize(
    ("judge", "given", "base_url", "key"),
    [
        ("openai/gpt-4o", _BESIDE, "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("openai/gpt-4o", _APART, _OTHER, None),
        ("openai/gpt-4o", {**_APART, **_WITH_KEY}, _OTHER, "JUDGE_KEY"),
        ("openai/gpt-4o", {**_BESIDE, "marking-base-url": _SERVER}, _SERVER, "MODEL_KEY"),
        ("a-judge", _BESIDE, _SERVER, "MODEL_KEY"),
        ("acme/tested", _BESIDE, _SERVER, "MODEL_KEY"),
        ("acme/tested", {**_BESIDE, **_WITH_KEY}, _SERVER, "JUDGE_KEY"),
        ("llamacpp/a-judge", _BESIDE, "http://localhost:8080/v1", None),
    ],
)
def test_a_judge_is_asked_at_its_own_provider_unless_its_name_says_otherwise(
    tmp_path: Path, judge: str, given: Mapping[str, str], base_url: str, key: str | None
) -> None:
    endpoint = _judge(tmp_path, judge, given).endpoint

    assert isinstance(endpoint, Endpoint)
    assert (endpoint.base_url, endpoint.key_env) == (base_url, key)


def test_the_key_of_the_models_server_is_no_key_of_another_vendor(tmp_path: Path) -> None:
    environ = {"MODEL_KEY": "of-the-server", "HELMBENCH_API_KEY": "of-any-server"}
    endpoint = _judge(tmp_path, "acme/judge", _BESIDE, environ).endpoint

    assert endpoint == Unusable("OPENROUTER_API_KEY is not set", "OPENROUTER_API_KEY")


@pytest.mark.parametrize(
    ("judge", "stated", "bound"),
    [
        ("acme/small", "", 1_024),
        ("acme/qwen3-8b", "", 8_192),
        ("acme/small", "reasoning_effort: high", 8_192),
        ("acme/small", "max_tokens: 50", 50),
        ("acme/small", "extra_body: {max_completion_tokens: 60}", None),
    ],
)
def test_the_reply_of_a_judge_is_bounded_unless_a_bound_is_stated(
    tmp_path: Path, judge: str, stated: str, bound: int | None
) -> None:
    entry = f"{{id: {judge}, {stated}}}"
    (tmp_path / "models.yml").write_text(f"marking_model: {entry}\n")

    assert _judge(tmp_path, judge, _BESIDE).entry.sampling.max_tokens == bound


def test_a_variant_lies_over_every_model_and_over_what_options_say(tmp_path: Path) -> None:
    entry = "{id: openai/gpt-4o, name: mine, temperature: 1, top_k: 2, api_key_env: MODEL_KEY}"
    (tmp_path / "models.yml").write_text(f"- {entry}\n")
    words: dict[str, object] = {"model": ["mine", "ollama/llama3.2:1b"], "top-p": "0.5"}
    words["variant"] = ["plain", f"there: top_p=0.1, base_url={_SERVER}?api-version=2"]
    settings = resolve_settings(lambda option: words.get(option.name), tmp_path, tmp_path)
    routes = [one.model for one in resolve_targets(tmp_path, settings, _KEYS)]

    # The key of the model is for its own server, not for the variant's.
    server = f"{_SERVER}?api-version=2"
    of_entry, of_endpoint = attrgetter("id", "model_id"), attrgetter("base_url", "wire_model", "key_env")
    assert [(*of_entry(one.entry), *of_endpoint(one.endpoint)) for one in routes] == [
        ("mine:plain", "openai/gpt-4o", "https://api.openai.com/v1", "gpt-4o", "MODEL_KEY"),
        ("mine:there", "openai/gpt-4o", server, "openai/gpt-4o", None),
        ("ollama/llama3.2:1b:plain", "ollama/llama3.2:1b", "http://localhost:11434/v1", "llama3.2:1b", None),
        ("ollama/llama3.2:1b:there", "ollama/llama3.2:1b", server, "llama3.2:1b", None),
    ]
    assert [one.entry.sampling for one in routes[:2]] == [
        Sampling(temperature=1, top_p=top_p, top_k=2) for top_p in (0.5, 0.1)
    ]


def test_a_name_in_a_benchmark_is_no_word_of_the_users_for_code(tmp_path: Path) -> None:
    write_tree(tmp_path, {"P1-B1-S1": category("RISK")})
    (tmp_path / "models.yml").write_text("- {id: 'python:os:getcwd', name: gpt}\n")
    words: dict[str, object] = {"model": ["gpt"]}
    settings = resolve_settings(lambda option: words.get(option.name), tmp_path, tmp_path)
    with pytest.raises(UnreadableBenchmarkError, match="python:os:getcwd is code"):
        resolve_targets(tmp_path, settings, _KEYS)


def test_the_version_of_a_package_is_that_of_its_files_wherever_a_finder_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editable = SimpleNamespace(find_spec=lambda name, *_: PathFinder.find_spec(name, [str(tmp_path)]))
    monkeypatch.setattr("sys.meta_path", [*sys.meta_path, editable])
    versions = [source_version("python:robot:answer")]
    for text in ("like", "hate"):
        (tmp_path / "robot.py").write_text(text)
        versions.append(source_version("python:robot:answer"))
    assert (versions[0], len(set(versions))) == (None, 3)
