"""Whatever a model writes is read in time that grows with its length, by every parser that takes replies."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from growth import grows_in_proportion

from pytest_helmbench.benchmarks.packs.families.code_completion.blocks import code_blocks
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import MalformedPatchError, read_patch
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.reply_text import split_reply
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.gateway.error_answers import read_error_body
from pytest_helmbench.gateway.relay.refusals import BadRequestError, read_request
from pytest_helmbench.gateway.replies import parse_reply, whole_body
from pytest_helmbench.judging.json_replies import enclosed_json, read_reply
from pytest_helmbench.reports.markup import code_span, fenced

_LENGTH = 40_000  # what grows with the square of it takes seconds
_PIECES = (
    r"`¦~¦```¦~~~¦{¦}¦[¦]¦{[¦[{¦[[¦'¦\\¦<¦>¦</¦<think>¦</think>¦<reasoning>¦*¦**¦_¦|¦#¦-¦+¦=¦1¦1,¦1.¦a¦A)¦.¦!¦?"
    r'¦"¦\"¦\¦\123¦{"a":'
)
_LINES = (
    *("```\n", "``` x\n", "> ```\n", "\t", " ", "\n", "\r\n", '{"a": 1} ', "{ ", "diff --git a/a b/a\n"),
    *("--- a/a\n+++ b/a\n", "@@ -1 +1 @@\n", "data: {}\n\n", "data: ", "sorry, I can't ", "\x1b["),
    *("\u2028", "\ud800"),
)
_STARTS = ("", "```", "~~~x", "<think>", "--- a/a\n+++ b/a\n@@ -1 +1 @@\n", '{"')


def _json(text: str) -> None:
    read_reply(Reply(text, None, None, Usage(), 0.0, None, ""), None, strict=False)
    enclosed_json(text)


def _blocks(text: str) -> None:
    code_blocks(split_reply(text).answer)


def _patch(text: str) -> None:
    with suppress(MalformedPatchError):
        read_patch(text)


def _answers(text: str) -> None:
    body = text.encode("utf-8", "replace")
    parse_reply(200, body)
    parse_reply(400, body)
    read_error_body(body, 0.0)


def _stream(events: int) -> None:
    """A stream with one event per character: some clients of local models see no other."""
    named = {"index": 0, "function": {"name": "f", "arguments": "}"}}
    calls = [named, {"index": 1, "function": {"arguments": "{}"}}]
    chunk = [{"index": 0, "delta": {"content": "{}", "tool_calls": calls}}]
    event = f"data: {json.dumps({'choices': chunk})}\n\n".encode()
    whole_body(event * events + b"data: [DONE]\n\n")


def _relay(text: str) -> None:
    with suppress(BadRequestError):
        read_request(text.encode("utf-8", "replace"))


def _shown(text: str) -> None:
    scrub(text)
    code_span(text)
    fenced(text, 2_000_000)


_PARSERS: dict[Callable[[str], None], tuple[str, ...]] = {
    _json: _STARTS,
    _blocks: _STARTS,
    _patch: _STARTS,
    _answers: ("", '{"'),
    _relay: ("", '{"'),
    _shown: ("",),
}


def _text(start: str, piece: str, length: int) -> str:
    return f"{start}{piece * (length // len(piece))}x"


@pytest.mark.parametrize("parser", _PARSERS, ids=lambda parser: parser.__name__.strip("_"))
def test_a_reply_costs_no_more_than_its_length(parser: Callable[[str], None]) -> None:
    pieces = (*_PIECES.split("¦"), *_LINES)
    texts = [partial(_text, start, piece) for start in _PARSERS[parser] for piece in pieces]
    assert [text.args for text in texts if not grows_in_proportion(parser, text, _LENGTH)] == []


def test_a_stream_of_many_pieces_costs_no_more_than_its_length() -> None:
    assert grows_in_proportion(_stream, lambda events: events, 4_000)


@pytest.mark.parametrize("piece", ["[", '{"a":', "1"])
def test_ten_megabytes_of_brackets_are_no_json(piece: str) -> None:
    assert grows_in_proportion(_json, partial(_text, "", piece), 10_000_000)


def test_brackets_as_deep_as_python_reads_are_read() -> None:
    _json("[" * 900 + "]" * 900)
