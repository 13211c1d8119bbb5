"""The relay over HTTP: what a client sends, what it gets, and what stands on record afterwards."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from gateways import endpoint_from
from provider import Answer, Provider
from relays import TOOLS, RelayFixture, RelayResponse, body, client_of, error_of, open_relay, with_sampling
from rights import granted

from pytest_helmbench.core.model import ModelEntry, Price, Sampling
from pytest_helmbench.core.outcome import AttemptRecord, Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.permits import (
    ModelLimits,
    ModelStoppedError,
    NotStoredError,
    RefusedError,
    SessionLimits,
)
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint
from pytest_helmbench.gateway.relay.refusals import BadRequestError, failure_of
from pytest_helmbench.gateway.relay.relay import RelayAddress
from pytest_helmbench.gateway.relay.server import RelayBounds
from pytest_helmbench.gateway.requests import forwarded_body
from pytest_helmbench.gateway.retries import CallFailedError, RetryPolicy

_Wanted = str | bytes | Mapping[str, Any]
_MIB = 2**20
_PATH = "/v1/chat/completions"
_REWIND = "|"
_PATHS = [
    prefix + path
    for prefix in ("", "/v1")
    for path in ("/chat/completions", "/chat/completions/", "/v1/chat/completions", "//chat/completions")
]
_PRICED = ModelEntry("test/good", price=Price(0.0, 1e6))
_FIRST, _LEXICAL = ModelEntry("baseline/first"), ModelEntry("baseline/lexical")
_THOUGHTS = [{"type": "thinking", "thinking": "Lyon?"}, {"text": "Paris"}]
_RAW = b'{ "choices": [{"finish_reason": "stop", "message": {"content": "ok \\ud800"}, "x": 1}],\n "mine": 1e5}\n'
_NO_PATH = "there is no /completions here; there is POST /chat/completions and GET /models,"
_TOO_LARGE = "the request body is larger than 8 MiB"
_A = {"type": "object", "properties": {"a": {"enum": ["x", "list"]}}, "required": ["a"]}
_GZIP = {"Content-Encoding": "gzip"}
_LARGE = b" " * 9 * _MIB
_LIST_FILES = [
    {"role": "developer", "content": "Be brief"},
    {"role": "user", "content": [{"type": "text", "text": "Please list all files."}]},
]


@dataclass(frozen=True)
class _Row:
    """One item: its requests, the answers to them, and the record.

    Args:
        requests: What is sent (a question, fields of the body, or options of aiohttp with `path` or `data`), the
            status, and a part of the answer; bytes are the whole answer, a mapping is its JSON. `_REWIND`: its code
            starts over.
        answers: Of the provider, before its usual ones.
        record: Status of each call on record, with a letter for its hash.
        faults: Kinds of those that are open at the end.
        recalled: Replies that were given again.
        passed: Fields of the last request that the provider got.
        usage: Of the item; None for the sum of its calls' prompt tokens.
        read: Text and thoughts on record of the first call; None where they are not what matters.
        entry: The model.
        limits: Of the session.
    """

    requests: Sequence[str | tuple[Any, int, _Wanted]]
    answers: Sequence[Answer] = ()
    record: Sequence[str] = ()
    faults: Sequence[type[HelmbenchError]] = ()
    recalled: int = 0
    passed: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage | None = None
    read: tuple[str, str] | None = None
    entry: ModelEntry = field(default_factory=lambda: ModelEntry("test/good"))
    limits: SessionLimits = SessionLimits(8, longest_pause_s=30.0)


def _fault(answer: Answer, status: int, code: str) -> _Row:
    """Return a fault of the provider, as the client gets it."""
    return _Row([("x", status, f"{code}: ")], [answer], [f"{answer.status} A"], [HelmbenchError])


def _thinking(content: Any) -> _Row:
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": content}, "x": 1}
    read = {**choice, "message": {"reasoning_content": "Lyon?", "content": "Paris"}}
    usage = {"prompt_tokens": 5}
    answers = [Answer(body={"choices": [choice], "usage": usage})]
    wanted = {"choices": [read], "usage": usage}
    return _Row([("France?", 200, wanted)], answers, ["200 A"], read=("Paris", "Lyon?"))


def _schema(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}


def _get(path: str) -> dict[str, Any]:
    return {"path": path, "method": "GET", "json": None}


def _message(content: str) -> bytes:
    return f'{{"messages": [{{"role": "user", "content": {content}}}]}}'.encode()


async def _chunks() -> AsyncIterator[bytes]:
    for _ in range(9):
        yield b" " * _MIB


_ROWS = {
    "body": _Row(
        [({"temperature": 0.5}, 200, _RAW)],
        [Answer(body=_RAW, headers={"X-Secret": "of-the-provider"})],
        ["200 A"],
        passed={"temperature": 0.5},
    ),
    "thoughts": _thinking("<think>Lyon?</think>\n\nParis"),
    "parts": _thinking(_THOUGHTS),
    "paths": _Row(
        [({"path": path}, 200, "ok") for path in _PATHS], record=[f"200 {one}" for one in "ABCDEFGH"]
    ),
    "models": _Row([(_get(f"/v1/models{end}"), 200, "test/good") for end in ("", "/")]),
    "no endpoint": _Row(
        [
            ({"path": "/v1/completions"}, 404, f"not_found: {_NO_PATH}"),
            (_get(_PATH), 405, "GET is not answered here: use POST"),
            ({"path": "/models"}, 405, "POST is not answered here: use GET"),
        ],
        faults=[HelmbenchError] * 2,
    ),
    "400": _fault(Answer(status=400), 400, "rejected"),
    "404": _fault(
        Answer(status=404, body={"error": {"message": "No endpoints found that support tool use"}}),
        400,
        "unsupported_parameters",
    ),
    "500": _fault(Answer(status=500), 500, "provider_error"),
    "429": _fault(Answer(status=429, retry_after=60), 503, "model_stopped"),
    "html": _fault(Answer(body=b"<html>"), 502, "not_json"),
    "filter": _fault(Answer(finish_reason="content_filter"), 400, "moderation"),
    "401": _fault(Answer(status=401), 503, "model_stopped"),
    "no request": _Row(
        [
            (b'{"messages": [}', 400, "body is not JSON: Expecting value: line 1 column 15 (char 14)"),
            (b"[]", 400, "bad_request: the request body is not a JSON object"),
            (b'"\xff"', 400, "bad_request: the request body is not UTF-8"),
            (b'{"seed": NaN}', 400, "the request body is not JSON: NaN is not a number of JSON"),
            (b'{"seed": -1e999}', 400, "the request body is not JSON: -1e999 is not a number of JSON"),
            (b'{"a":' * 100_000, 400, "bad_request: the request body is nested too deeply"),
            (_message("[" * 2_000 + "]" * 2_000), 400, "bad_request: the request body is nested too deeply"),
            (b"[" + b"[]," * 2_000_001, 400, "bad_request: the request body has more than 4,000,000 parts"),
            ({"data": b"no gzip", "headers": _GZIP}, 400, "bad_request: the request body is damaged"),
            ({"data": gzip.compress(_LARGE), "headers": _GZIP}, 413, _TOO_LARGE),
            ({"data": partial(io.BytesIO, _LARGE)}, 413, _TOO_LARGE),
            ({"data": _chunks}, 413, _TOO_LARGE),
        ],
        faults=[BadRequestError] * 12,
    ),
    "refused": _Row(
        [
            ({"n": 2}, 400, "bad_request: n: one choice per request is answered here; ask again for another"),
            ({"messages": []}, 400, "bad_request: messages: a list with at least one message is wanted"),
            ({"messages": [{"content": "x"}]}, 400, "messages[0]: an object with a role is wanted"),
            ({"models": ["a"]}, 400, "since it would have another model answer than the one under test"),
            ({"web_search_options": {}}, 400, "web_search_options: refused, since it would let the provider"),
            ({"tools": [{"type": "web_search"}]}, 400, "tools[0]: refused, since it is not a tool that"),
        ],
        faults=[BadRequestError] * 6,
    ),
    "allowed": _Row(
        [({"plugins": []}, 200, "ok")],
        record=["200 A"],
        passed={"plugins": [{"id": "web"}]},
        entry=with_sampling(extra_body={"plugins": [{"id": "web"}]}),
    ),
    "gzip": _Row(
        [
            ({"data": gzip.compress(json.dumps(body()).encode()), "headers": _GZIP}, 200, "ok"),
            ({"path": _PATH, "expect100": True}, 200, "ok"),
        ],
        record=["200 A", "200 B"],
    ),
    "unanswered": _Row(
        [("a", 400, "rejected"), ("b", 400, "rejected"), ("b", 200, "ok")],
        [Answer(status=400)] * 2,
        ["400 A", "400 B", "200 B"],
        [CallFailedError],
    ),
    "answered": _Row(
        [("a", 400, "rejected"), ("a", 200, "ok"), ({"n": 2}, 400, "n: one choice"), ("a", 200, "ok")],
        [Answer(status=400)],
        ["400 A", "200 A", "200 B"],
        [BadRequestError],
    ),
    "again": _Row(
        [
            one if one == _REWIND else (one[0], 200, one[1])
            for one in ("a0", "b1", "a2", _REWIND, "a0", "a2", "b1", "a3", "c4", _REWIND, "c4", "a0")
        ],
        [Answer(f"reply {number}") for number in range(5)],
        [f"200 {letter}" for letter in "ABCDE"],
        recalled=5,
    ),
    "usage": _Row(
        [("a", 200, "ok"), ("b", 200, "ok")],
        [
            Answer(usage={"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5}),
            Answer(usage={"prompt_tokens": 5, "cost": 0.25}, finish_reason="length"),
        ],
        ["200 A", "200 B"],
        usage=Usage(prompt_tokens=15, completion_tokens=None, cost_usd=0.75),
    ),
    "budget": _Row(
        [({"max_completion_tokens": 10}, 200, "ok"), ({"max_tokens": 11}, 402, "budget_spent")],
        [Answer(usage={"prompt_tokens": 1, "completion_tokens": 1})],
        ["200 A"],
        [HelmbenchError],
        passed={"max_completion_tokens": 10},
        entry=_PRICED,
        limits=SessionLimits(8, max_cost_usd=10.0),
    ),
    "baseline": _Row(
        [
            ({"messages": _LIST_FILES, "tools": TOOLS}, 200, "Please list all files."),
            ({"messages": _LIST_FILES, **_schema(_A)}, 200, r"{\"a\": \"list\"}"),
        ],
        record=["200 A", "200 B"],
        entry=_LEXICAL,
    ),
    "unreadable schema": _Row(
        [
            (_schema({"type": 5}), 400, "no_answer: "),
            (_schema({"$ref": "elsewhere"}), 400, "refers to 'elsewhere', which is not part of it"),
            (_schema({"minItems": 10**9}), 400, "minItems is 1e+09: it answers up to 1000"),
            (_schema([[]] * 6_000), 400, "have more than 5000 parts"),
        ],
        record=[f"None {letter}" for letter in "ABCD"],
        faults=[CallFailedError] * 4,
        entry=_FIRST,
    ),
}


async def _send(relay: RelayFixture, address: RelayAddress, sent: Any) -> RelayResponse:
    match sent:
        case str():
            options: dict[str, Any] = {"json": body(sent)}
        case bytes():
            options = {"data": io.BytesIO(sent)}
        case {"path": _}:
            options = {"json": body(), **sent}
        case {"data": data}:
            options = {**sent, "data": data() if callable(data) else data}
        case _:
            options = {"json": body(**sent)}
    path = options.pop("path", _PATH)
    return await relay.send(address, path, url=address.base_url.removesuffix("/v1"), **options)


def _check(sent: Any, answered: RelayResponse, wanted: _Wanted) -> None:
    raw = answered.body
    assert answered.headers["Content-Type"].startswith("application/json")
    assert "X-Secret" not in answered.headers
    if answered.status == 200:
        read = {bytes: raw, dict: json.loads(raw)}
        assert wanted in raw.decode() if isinstance(wanted, str) else read[type(wanted)] == wanted
        return
    error = error_of(answered)
    assert isinstance(wanted, str)
    assert wanted in f"{error['code']}: {error['message']}"
    assert b"127.0.0.1" not in raw
    assert answered.headers["x-should-retry"] == "false"  # the `openai` package reads it
    if error["code"] == "bad_request" and not isinstance(sent, bytes) and "data" not in sent:
        assert (error["type"], error["param"]) == ("invalid_request_error", next(iter(sent)))


@pytest.mark.parametrize("row", _ROWS.values(), ids=_ROWS)
async def test_requests_answers_and_record(provider: Provider, row: _Row) -> None:
    for answer in row.answers:
        provider.answers(times=1, **{one.name: getattr(answer, one.name) for one in fields(answer)})
    limits = [ModelLimits(row.entry.id, 8, price=row.entry.price, free=row.entry in (_FIRST, _LEXICAL))]
    bounds, retry_policy = RelayBounds(body_bytes=8 * _MIB), RetryPolicy(max_retries=0)
    async with open_relay(
        provider.url, limits, bounds, retry_policy=retry_policy, limits=row.limits
    ) as relay:
        item, address = await relay.item(entry=row.entry)
        for step in row.requests:
            if isinstance(step, str):
                item.rewind()
                continue
            sent, status, wanted = step
            answered = await _send(relay, address, sent)
            assert answered.status == status, answered.body
            _check(sent, answered, wanted)
        totals, attempts = item.totals, relay.coordinator.attempts
    hashes = list(dict.fromkeys(one.request_hash for one in attempts))
    assert [f"{one.status_code} {'ABCDEFGH'[hashes.index(one.request_hash)]}" for one in attempts] == list(
        row.record
    )
    assert [one.sequence for one in attempts] == list(range(1, len(attempts) + 1))
    assert {(one.code, one.purpose) for one in attempts} <= {("ROW-1", "pack")}
    assert all(
        one.response_body == answer.body
        for one, answer in zip(attempts, row.answers, strict=False)
        if answer.body is _RAW
    )
    assert provider.count == (0 if limits[0].free else len(attempts))
    assert len(totals.open_faults) == len(row.faults)
    assert all(map(isinstance, totals.open_faults, row.faults))
    replies = [one for one in attempts if one.reply_key is not None]
    assert (totals.recalled, totals.answered) == (row.recalled, len(replies))
    if row.usage is not None:
        assert totals.usage == row.usage
    else:
        assert (totals.usage.prompt_tokens or 0) == sum(one.usage.prompt_tokens or 0 for one in attempts)
    if limits[0].free:
        assert totals.usage.cost_usd == (0.0 if replies else None)
    if row.read is not None:
        assert (attempts[0].text, attempts[0].thoughts) == row.read
    assert totals.latency_ms == (
        pytest.approx(sum(one.latency_ms or 0.0 for one in replies)) if replies else None
    )
    if row.passed:
        sent_body = dict(provider.requests[-1].body)
        assert sent_body == {**body(), "model": "test/good", **row.passed}


@pytest.mark.parametrize(
    ("status", "error"), [(400, openai.BadRequestError), (401, openai.InternalServerError)]
)
async def test_the_openai_package_raises_its_own_errors_and_does_not_retry(
    provider: Provider, status: int, error: type[openai.APIStatusError]
) -> None:
    provider.answers(status=status)
    async with open_relay(provider.url) as relay:
        item, address = await relay.item()
        async with client_of(address) as client:
            assert [model.id async for model in client.models.list()] == ["test/good"]
            with pytest.raises(error):
                await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        assert item.totals.requests == 1


_LOCAL, _ROUTER = endpoint_from("ollama/m"), endpoint_from("vendor/m", OPENROUTER_API_KEY="key-of-router")
_OPENAI = endpoint_from("openai/gpt", OPENAI_API_KEY="key-of-openai")
_STREAM = {"stream": True, "stream_options": {"mine": 1}}
_EXTRA = {"extra_body": {"top_a": 1, "stream": True, "provider": {"only": ["b"]}}}


@pytest.mark.parametrize(
    ("endpoint", "sampling", "stated", "sent"),
    [
        (_LOCAL, {}, {"seed": 1, "mine": [1]}, {"seed": 1, "mine": [1]}),
        (_LOCAL, {"seed": 7}, {"seed": 1}, {"seed": 8}),
        (_LOCAL, {}, _STREAM, {"stream": True, "stream_options": {"mine": 1, "include_usage": True}}),
        (_LOCAL, {"max_tokens": 9}, {"max_tokens": 99, "max_completion_tokens": 999}, {"max_tokens": 9}),
        (_OPENAI, {"max_tokens": 9}, {"max_tokens": 99}, {"max_completion_tokens": 9}),
        (_LOCAL, {"reasoning_effort": "low"}, {"reasoning": {"effort": "high"}}, {"reasoning_effort": "low"}),
        (
            _ROUTER,
            {},
            {"response_format": {"type": "json_schema"}, "provider": {"order": ["a"]}},
            {
                "response_format": {"type": "json_schema"},
                "provider": {"require_parameters": True, "order": ["a"]},
                "usage": {"include": True},
            },
        ),
        (
            _LOCAL,
            _EXTRA,
            {"top_a": 2, "provider": {"order": ["a"]}},
            {"top_a": 1, "provider": {"order": ["a"], "only": ["b"]}},
        ),
    ],
)
def test_what_the_user_has_set_wins_and_the_rest_passes(
    endpoint: Endpoint, sampling: Mapping[str, Any], stated: Mapping[str, Any], sent: Mapping[str, Any]
) -> None:
    found = forwarded_body(endpoint, Sampling(**sampling), body(**stated), repetition=2)
    assert found == {"model": endpoint.wire_model, "messages": body()["messages"], **sent}


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotStoredError("the disk at /home/me is full"), 503, "session_ending"),
        (RefusedError("--helmbench-max-cost cannot be held"), 503, "session_ending"),
        (ModelStoppedError("check the key in MY_KEY"), 503, "model_stopped"),
        (Fault(FaultKind.REJECTED, None, "record_unreadable", "x"), 500, "record_unreadable"),
        (Fault(FaultKind.REJECTED, 307, "redirected", "x"), 400, "redirected"),
        (Fault(FaultKind.TRANSIENT, 409, "provider_error", "x"), 503, "provider_error"),
        (HelmbenchError("MY_KEY"), 500, "internal_error"),
    ],
)
def test_every_error_has_a_status_and_says_nothing_of_the_session(
    error: HelmbenchError | Fault, status: int, code: str
) -> None:
    found, told = failure_of(CallFailedError(error, 1) if isinstance(error, Fault) else error, _LOCAL)
    assert (found, json.loads(told)["error"]["code"]) == (status, code)
    assert not any(word in told for word in (b"/home/me", b"MY_KEY", b"--helmbench"))


def test_no_address_body_token_or_key_is_shown_or_logged(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    host = urlsplit(provider.url).netloc
    said = f"no: a-key-that-is-secret at {provider.url} or {host.upper()}"
    provider.answers(times=1, status=400, body={"error": {"message": said, "param": "messages"}})
    endpoint = resolve_endpoint(
        ModelEntry("test/good"),
        default_base_url=granted(provider.url),
        default_key_env=granted("MY_KEY"),
        environ={"MY_KEY": "a-key-that-is-secret"},
    )

    assert isinstance(endpoint, Endpoint)

    async def check() -> None:
        async with open_relay(provider.url) as relay:
            item, address = await relay.item()
            item.line = replace(item.line, endpoint=endpoint)
            refused = await relay.send(address, json=body("a-secret-prompt"))
            assert "[address]" in error_of(refused)["message"]
            assert error_of(refused)["param"] == "messages"
            answers = [
                refused,
                await relay.send(address, json=body("a-secret-prompt", stream=True)),
                await relay.send(address, "/models", method="GET"),
                await relay.send(address, data=b"a-secret-prompt"),
                await relay.send(address, headers={"X": "a-secret-prompt" * 1000}),
            ]
            assert [answer.status for answer in answers] == [400, 200, 200, 400, 400]
            assert provider.requests[0].headers["authorization"] == "Bearer a-key-that-is-secret"
            logged = "\n".join(f"{record.getMessage()} {record.exc_info}" for record in caplog.records)
            told = "".join(f"{answer.headers} {answer.body!r}" for answer in answers)
            for secret in (address.token, urlsplit(address.base_url).path.split("/")[1], "a-secret-prompt"):
                assert secret not in logged
            for secret in ("a-key-that-is-secret", "MY_KEY", "127.0.0.1", host):
                assert secret not in told + logged

    with caplog.at_level(logging.DEBUG):
        asyncio.run(check())
    assert {record.levelno for record in caplog.records} <= {logging.DEBUG, logging.INFO}


async def test_an_error_of_our_own_reaches_item_and_client_and_no_log(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_record: AttemptRecord) -> None:
        raise MemoryError("no room for the record")

    with caplog.at_level(logging.DEBUG):
        async with open_relay(provider.url) as relay:
            relay.coordinator.backend.record_attempt = broken
            item, address = await relay.item()
            answered = await relay.send(address, json=body())
            assert (answered.status, error_of(answered)["code"]) == (500, "internal_error")
            with pytest.raises(MemoryError, match="no room for the record"):
                await item.end()
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


async def test_items_in_parallel_never_mix_and_share_the_sessions_limits(provider: Provider) -> None:
    provider.latency_s = 0.01

    async def work(relay: RelayFixture, code: str) -> float | None:
        item, address = await relay.item(code, entry=with_sampling(seed=len(code)))
        texts = [f"{code} {number}" for number in range(20)]
        requests = [body(f"ANSWER: {text}", stream=text.endswith(("0", "2", "4"))) for text in texts]
        answers = await asyncio.gather(*(relay.send(address, json=one) for one in requests))
        assert all(text.encode() in answer.body for text, answer in zip(texts, answers, strict=True))
        assert item.totals.answered == 20
        return item.totals.usage.cost_usd

    async with open_relay(provider.url, [ModelLimits("test/good", 6)]) as relay:
        costs = await asyncio.gather(*(work(relay, f"ROW-{number}") for number in range(10)))
        attempts = relay.coordinator.attempts
    assert len(attempts) == 200
    assert all(f"ANSWER: {record.code} ".encode() in record.request_body for record in attempts)
    assert costs == [pytest.approx(0.02)] * 10
    assert provider.max_in_flight == 6


def test_the_server_is_loaded_only_when_an_address_is_asked_for() -> None:
    code = "import pytest_helmbench.gateway.relay.relay, sys; print('aiohttp.web' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
