"""Whatever a model writes is read in time that grows with its length, by every parser that takes replies."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from pytest_helmbench.benchmarks.packs.families.code_completion.blocks import code_blocks, without_thoughts
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import MalformedPatchError, read_patch
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.gateway.error_answers import read_error_body
from pytest_helmbench.gateway.relay.refusals import BadRequestError, read_request
from pytest_helmbench.gateway.replies import parse_reply, whole_body
from pytest_helmbench.judging.json_replies import enclosed_json, read_reply
from pytest_helmbench.reports.tables import code_span, fenced

_LENGTH = 60_000  # what grows with the square of it takes seconds
_LIMIT_S = 1.0  # of CPU time; measured: up to 0.1
_PIECES = (
    *("`", "~", "```", "~~~", "{", "}", "[", "]", "{[", "[{", "[[", '"', "'", "\\", '\\"', "<", ">", "</"),
    *(
        "<think>",
        "</think>",
        "<reasoning>",
        "*",
        "**",
        "_",
        "|",
        "#",
        "-",
        "+",
        "=",
        "1",
        "1,",
        "1.",
        "a",
        "A)",
    ),
    *(".", "!", "?"),
)
_LINES = (
    "```\n",
    "``` x\n",
    "> ```\n",
    "\t",
    " ",
    "\n",
    "\r\n",
    '{"a":',
    '{"a": 1} ',
    "{ ",
    "diff --git a/a b/a\n",
    "--- a/a\n+++ b/a\n",
    "@@ -1 +1 @@\n",
    "\\123",
    "data: {}\n\n",
    "data: ",
    "sorry, I can't ",
    "\x1b[",
    "\u2028",
    "\ud800",
)
_STARTS = ("", "```", "~~~x", "<think>", "--- a/a\n+++ b/a\n@@ -1 +1 @@\n", '{"')


def _json(text: str) -> None:
    read_reply(text, None, None, None, strict=False)
    enclosed_json(text)


def _blocks(text: str) -> None:
    code_blocks(without_thoughts(text))


def _patch(text: str) -> None:
    with suppress(MalformedPatchError):
        read_patch(text)


def _answers(text: str) -> None:
    body = text.encode("utf-8", "replace")
    parse_reply(200, body)
    parse_reply(400, body)
    read_error_body(body)


def _stream(text: str) -> None:
    """A stream with one event per character: some clients of local models see no other."""
    chunk = [{"index": 0, "delta": {"content": "{}", "tool_calls": [{"function": {"arguments": "{}"}}]}}]
    event = f"data: {json.dumps({'choices': chunk})}\n\n".encode()
    whole_body(event * min(4_000, len(text)) + b"data: [DONE]\n\n")


def _relay(text: str) -> None:
    with suppress(BadRequestError):
        read_request(text.encode("utf-8", "replace"))


def _shown(text: str) -> None:
    scrub(text)
    code_span(text)
    fenced(text, 2_000_000)


_PARSERS = (_json, _blocks, _patch, _answers, _relay, _shown)


def _texts() -> Iterator[str]:
    for start in _STARTS:
        for piece in (*_PIECES, *_LINES):
            yield f"{start}{piece * (_LENGTH // len(piece))}x"
    yield "```" + " " * _LENGTH + "x"


@pytest.mark.parametrize("parser", _PARSERS, ids=lambda parser: parser.__name__.strip("_"))
def test_a_reply_costs_no_more_than_its_length(parser: Callable[[str], None]) -> None:
    slow = [(text[:20], text[-20:]) for text in _texts() if _cost_s(parser, text) > _LIMIT_S]
    assert slow == []


def test_a_stream_of_many_pieces_costs_no_more_than_its_length() -> None:
    assert _cost_s(_stream, "x" * _LENGTH) < _LIMIT_S


@pytest.mark.parametrize(
    "text", ["[" * 10_000_000, '{"a":' * 2_000_000, "[" * 900 + "]" * 900, "1" * 10_000_000]
)
def test_ten_megabytes_of_brackets_are_no_json(text: str) -> None:
    assert _cost_s(_json, text) < 2.0


def _cost_s(parser: Callable[[str], object], text: str) -> float:
    start = time.thread_time()
    parser(text)
    return time.thread_time() - start
