"""Where models are called and which key goes where."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from rights import granted

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.providers.endpoints import (
    Endpoint,
    Unusable,
    normalise_base_url,
    resolve_endpoint,
)
from pytest_helmbench.gateway.providers.provider import Provider

ALL_KEYS = {
    "OPENROUTER_API_KEY": "router-key",
    "OPENAI_API_KEY": "openai-key",
    "HELMBENCH_API_KEY": "any-key",
    "MY_KEY": "my-key",
}
LOOPBACK = "http://127.0.0.1:9000/v1"
ELSEWHERE = "https://llm.example.com/v1"


def resolve(
    model: str | ModelEntry,
    environ: dict[str, str],
    *,
    base_url: str | None = None,
    key_env: str | None = None,
) -> Endpoint | Unusable:
    entry = model if isinstance(model, ModelEntry) else ModelEntry(model)
    return resolve_endpoint(
        entry, default_base_url=granted(base_url), default_key_env=granted(key_env), environ=environ
    )


def endpoint(
    model: str | ModelEntry,
    environ: dict[str, str],
    *,
    base_url: str | None = None,
    key_env: str | None = None,
) -> Endpoint:
    found = resolve(model, environ, base_url=base_url, key_env=key_env)
    assert isinstance(found, Endpoint)
    return found


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.0.9", "[::1]", "[::ffff:127.0.0.2]", "localhost")),
        *((host, True) for host in ("LocalHost", "llm.localhost")),
        *((host, False) for host in ("10.0.0.1", "128.0.0.1", "localhost.example.com", "[::ffff:10.0.0.1]")),
    ],
)
def test_a_server_at_any_loopback_address_is_the_users_own(host: str, is_own: bool) -> None:
    assert endpoint("m", {}, base_url=f"http://{host}:8000/v1").own_server == (
        "localhost:8000" if is_own else ""
    )


@pytest.mark.parametrize(
    ("model", "environ", "provider", "wire_model", "base_url", "key"),
    [
        ("baseline/lexical", {}, "baseline", "baseline/lexical", "", None),
        ("ollama/llama3:8b", ALL_KEYS, "ollama", "llama3:8b", "http://localhost:11434/v1", None),
        ("vendor/m", ALL_KEYS, "openrouter", "vendor/m", "https://openrouter.ai/api/v1", "router-key"),
        ("openai/m", ALL_KEYS, "openrouter", "openai/m", "https://openrouter.ai/api/v1", "router-key"),
        (
            "openai/m",
            {"OPENAI_API_KEY": "openai-key", "OPENROUTER_API_KEY": " "},
            "openai",
            "m",
            "https://api.openai.com/v1",
            "openai-key",
        ),
    ],
)
def test_an_id_leads_to_its_server(
    model: str, environ: dict[str, str], provider: str, wire_model: str, base_url: str, key: str | None
) -> None:
    found = endpoint(model, environ)
    assert (found.provider, found.wire_model, found.base_url, found.key) == (
        provider,
        wire_model,
        base_url,
        key,
    )
    assert found.server.local == (provider in ("ollama", "lmstudio", "vllm", "llamacpp"))
    assert (found.max_tokens_key == "max_completion_tokens") == (provider == "openai")


@pytest.mark.parametrize(
    ("base_url", "model", "wire_model"),
    [
        (LOOPBACK, "test/good", "test/good"),
        (LOOPBACK, "openai/gpt-4o-mini", "openai/gpt-4o-mini"),
        (LOOPBACK, "ollama/m", "m"),
        ("https://api.openai.com/v1", "openai/gpt-4o-mini", "gpt-4o-mini"),
    ],
)
def test_a_base_url_takes_the_id_as_given(base_url: str, model: str, wire_model: str) -> None:
    found = endpoint(model, {}, base_url=base_url)
    assert (found.wire_model, found.base_url) == (wire_model, base_url)
    assert (found.key, found.key_env) == (None, None)


@pytest.mark.parametrize(
    ("model", "base_url", "key_env", "without", "variable"),
    [
        ("a/b", None, "MY_KEY", (), "MY_KEY"),
        ("a/b", LOOPBACK, "MY_KEY", (), "MY_KEY"),
        ("a/b", LOOPBACK, None, (), "HELMBENCH_API_KEY"),
        ("a/b", LOOPBACK, None, ("HELMBENCH_API_KEY",), None),
        ("openai/m", LOOPBACK, None, ("HELMBENCH_API_KEY", "OPENROUTER_API_KEY"), None),
        ("a/b", LOOPBACK, "OPENROUTER_API_KEY", (), "OPENROUTER_API_KEY"),
        ("ollama/m", LOOPBACK, None, ("HELMBENCH_API_KEY",), None),
        ("a/b", ELSEWHERE, None, ("HELMBENCH_API_KEY",), None),
        ("openai/m", "https://api.openai.com/v1", None, ("HELMBENCH_API_KEY",), "OPENAI_API_KEY"),
        ("a/b", "https://openrouter.ai/api/v1", None, ("HELMBENCH_API_KEY",), "OPENROUTER_API_KEY"),
        # Not in the clear, and not to a host that only looks alike.
        ("a/b", "http://openrouter.ai/api/v1", None, ("HELMBENCH_API_KEY",), None),
        ("a/b", "https://openrouter.ai.evil.com/v1", None, ("HELMBENCH_API_KEY",), None),
        ("a/b", "http://127.0.0.1.evil.com/v1", None, ("HELMBENCH_API_KEY",), None),
        # A variable that is named stands alone, even when it is empty.
        ("a/b", LOOPBACK, "MY_KEY", ("MY_KEY",), None),
    ],
)
def test_a_key_goes_only_where_it_belongs(
    model: str, base_url: str | None, key_env: str | None, without: tuple[str, ...], variable: str | None
) -> None:
    environ = {name: value for name, value in ALL_KEYS.items() if name not in without}
    found = endpoint(model, environ, base_url=base_url, key_env=key_env)
    assert found.key_env == variable
    assert found.key == (environ[variable] if variable else None)


@pytest.mark.parametrize(
    ("model", "environ", "key_env", "reason", "variable"),
    [
        ("a/b", {}, None, "OPENROUTER_API_KEY is not set", "OPENROUTER_API_KEY"),
        ("a/b", {"OPENROUTER_API_KEY": " "}, None, "OPENROUTER_API_KEY is empty", "OPENROUTER_API_KEY"),
        ("a/b", ALL_KEYS, "OTHER", "OTHER is not set", "OTHER"),
        ("openai/m", {}, None, "neither OPENROUTER_API_KEY nor OPENAI_API_KEY is set", "OPENAI_API_KEY"),
    ],
)
def test_a_model_without_a_key_says_which_variable_was_empty(
    model: str, environ: dict[str, str], key_env: str | None, reason: str, variable: str
) -> None:
    assert resolve(model, environ, key_env=key_env) == Unusable(reason, variable)


def test_a_key_is_never_shown() -> None:
    assert "router-key" not in repr(endpoint("a/b", ALL_KEYS))


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("abc\ndef", "the key holds a character that no HTTP header can carry\n  hint: copy it again"),
        ("Bearer abcdef", "the key holds a character that no HTTP header can carry\n  hint: copy it again"),
        ('"abcdef"', "the key begins or ends with a quotation mark"),
        (" 'abcdef' ", "the key begins or ends with a quotation mark"),
        ('abcdef"', "the key begins or ends with a quotation mark"),
    ],
)
def test_a_key_that_no_header_can_carry_is_named_but_not_shown(key: str, sentence: str) -> None:
    with pytest.raises(HelmbenchError) as caught:
        resolve("a/b", {"OPENROUTER_API_KEY": key})
    assert str(caught.value).startswith(f"OPENROUTER_API_KEY: {sentence}")
    assert "abc" not in str(caught.value)


@pytest.mark.parametrize("model", ["gpt-4o", ""])
def test_an_id_without_a_vendor_says_how_to_write_it(model: str) -> None:
    with pytest.raises(HelmbenchError) as caught:
        resolve(model, ALL_KEYS)
    assert str(caught.value) == (
        f"model id {model!r} is not of the form vendor/name\n"
        "  hint: write openai/gpt-4o-mini, for example, or name its server: --helmbench-base-url,"
        " in commands --base-url"
    )


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://h:1/v1/", "http://h:1/v1"),
        (" https://h/api/v1/chat/completions/ ", "https://h/api/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        (
            "https://H.example/openai/deployments/m/chat/completions?api-version=2024-10-21",
            "https://h.example/openai/deployments/m?api-version=2024-10-21",
        ),
    ],
)
def test_a_base_url_is_normalised(given: str, used: str) -> None:
    assert normalise_base_url(given) == used


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://h/v1", "http://h:99999/v1", "http://a b/v1"])
def test_what_is_no_address_is_named_with_an_example(url: str) -> None:
    with pytest.raises(HelmbenchError) as caught:
        normalise_base_url(url)
    assert str(caught.value) == (
        f"base URL {url!r} is not an http:// or https:// address\n"
        "  hint: for example https://api.example.com/v1 or http://localhost:8000/v1"
    )


@pytest.mark.parametrize("url", ["https://me:secret@h/v1", "https://me:secret@h:99999/v1"])
def test_a_password_in_a_base_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(HelmbenchError) as caught:
        normalise_base_url(url)
    assert "secret" not in str(caught.value)


def test_a_query_stays_behind_the_path() -> None:
    found = endpoint("m", {}, base_url="https://h.example/v1/?api-version=2&tier=a")
    assert found.url == "https://h.example/v1/chat/completions?api-version=2&tier=a"


@pytest.mark.parametrize(
    "query", ["?key=abc123", "?api-version=1&subscription-key=", "?sig=x", "?v=sk-abcdefgh1234", "#part"]
)
def test_a_query_with_a_key_is_refused_and_not_repeated(query: str) -> None:
    with pytest.raises(HelmbenchError) as caught:
        normalise_base_url(f"https://h.example/v1{query}")
    assert query[1:] not in str(caught.value)


def _with_headers(**headers: str) -> ModelEntry:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ModelEntry("a/b", base_url=granted(ELSEWHERE), headers=Granted(named))


def test_extra_headers_go_over_the_usual_ones_and_take_keys_from_the_environment() -> None:
    environ = {"PASS": "hidden-pass-0123", "MY_KEY": "my-key"}
    found = endpoint(_with_headers(X_Team="t1", X_Pass="Basic ${PASS}"), environ, key_env="MY_KEY")
    assert found.headers == {
        "Authorization": "Bearer my-key",
        "X-Team": "t1",
        "X-Pass": "Basic hidden-pass-0123",
    }
    assert found.redacted("no: hidden-pass-0123, t1") == "no: [key], t1"
    assert "hidden-pass" not in repr(found)
    router = endpoint(replace(_with_headers(x_title="mine"), base_url=None), {"OPENROUTER_API_KEY": "k"})
    assert {name.lower(): value for name, value in router.headers.items()}["x-title"] == "mine"


def test_a_header_without_its_variable_makes_a_model_unusable() -> None:
    assert resolve(_with_headers(X_Pass="${PASS}"), {}) == Unusable("PASS is not set", "PASS")


def test_azure_takes_a_key_in_a_header_of_its_own_and_a_token_in_the_usual_one() -> None:
    url = "https://team.openai.azure.com/openai/deployments/m?api-version=2024-10-21"
    for key, header in (("0123abcd", "api-key"), ("eyJhbGciOi", "Authorization")):
        found = endpoint("m", {"MY_KEY": key}, base_url=url, key_env="MY_KEY")
        assert list(found.headers) == [header]
        assert found.secrets == (key,)


@dataclass(frozen=True, slots=True)
class _Acme(Provider):
    """A provider that wants its key in a header of its own, written in another way."""

    def auth_headers(self, key: str) -> Mapping[str, str]:
        return {"X-Acme-Key": f"Basic {b64encode(key.encode()).decode()}"}


def test_a_key_is_redacted_in_whatever_form_its_provider_sends_it() -> None:
    """Nothing but the provider says how its key goes out, and so what must not be shown."""
    sent = b64encode(b"a plain secret").decode()
    acme = Endpoint("acme/m", "m", _Acme("acme"), ELSEWHERE, "ACME_KEY", "a plain secret", "max_tokens")
    assert acme.headers == {"X-Acme-Key": f"Basic {sent}"}
    assert acme.redacted(f"no access with {sent} ('a plain secret')") == "no access with [key] ('[key]')"
    assert "a plain secret" not in repr(acme)
    assert sent not in repr(acme)
