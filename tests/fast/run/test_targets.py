"""Where judges are asked, with whose key, and within which bounds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_helmbench.core.users_word import UsersWord
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.run.targets import resolve_targets

_KEYS = {"OPENAI_API_KEY": "of-openai", "MODEL_KEY": "of-the-server", "JUDGE_KEY": "of-the-judge"}
_SERVER = "http://10.0.0.7:8000/v1"
_OTHER = "http://10.0.0.8:8000/v1"
_BESIDE = {"base_url": _SERVER, "api_key_env": "MODEL_KEY"}


def _judge(
    root: Path, judge: str, given: Mapping[str, str], environ: Mapping[str, str] = _KEYS
) -> Endpoint | Unusable:
    words = {name: UsersWord(value) for name, value in given.items()}
    settings = Settings(
        models=UsersWord(("my-model", "acme/tested")), marking_models=UsersWord((judge,)), **words
    )
    return resolve_targets(root, settings, environ)[0].judges[0].endpoint


@pytest.mark.parametrize(
    ("judge", "given", "base_url", "key"),
    [
        ("openai/gpt-4o", _BESIDE, "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("openai/gpt-4o", {**_BESIDE, "marking_base_url": _OTHER}, _OTHER, None),
        (
            "openai/gpt-4o",
            {**_BESIDE, "marking_base_url": _OTHER, "marking_api_key_env": "JUDGE_KEY"},
            _OTHER,
            "JUDGE_KEY",
        ),
        ("a-judge", _BESIDE, _SERVER, "MODEL_KEY"),
        ("acme/tested", _BESIDE, _SERVER, "MODEL_KEY"),
        ("acme/tested", {**_BESIDE, "marking_api_key_env": "JUDGE_KEY"}, _SERVER, "JUDGE_KEY"),
        ("llamacpp/a-judge", _BESIDE, "http://localhost:8080/v1", None),
    ],
)
def test_a_judge_is_asked_at_its_own_provider_unless_its_name_says_otherwise(
    tmp_path: Path, judge: str, given: Mapping[str, str], base_url: str, key: str | None
) -> None:
    endpoint = _judge(tmp_path, judge, given)

    assert isinstance(endpoint, Endpoint)
    assert (endpoint.base_url, endpoint.key_env) == (base_url, key)


def test_the_key_of_the_models_server_is_no_key_of_another_vendor(tmp_path: Path) -> None:
    environ = {"MODEL_KEY": "of-the-server", "HELMBENCH_API_KEY": "of-any-server"}
    endpoint = _judge(tmp_path, "acme/judge", _BESIDE, environ)

    assert endpoint == Unusable("OPENROUTER_API_KEY is not set", "OPENROUTER_API_KEY")
