"""The parts of a reply: its thoughts, its answer, and whether it came to its end."""

from __future__ import annotations

from typing import Any

import pytest
from replies import read_answer, reply_of

from pytest_helmbench.core.reply_text import THOUGHT_MARKS, split_reply
from pytest_helmbench.gateway.faults import Fault

SPELLINGS = [
    "<think>{}</think>",
    "<THINK>{}</THINK>",
    '<think effort="low">{}</think>',
    "<thinking>\n{}\n</thinking>",
    "<thought>{}</thought>",
    "<seed:think>{}</seed:think>",
    "<think>one <think>two</think> {}</think>",
    "<think>a `</think>` in code, {}</think>",
    "<think>\n```python\nhalf of {}\n</think>",
    "[THINK]{}[/THINK]",
    "◁think▷{}◁/think▷",
    "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>",
    "<|channel>thought\n{}<channel|>",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|start|>assistant<|channel|>analysis<|message|>{}<|end|>"
    "<|start|>assistant<|channel|>final <|constrain|>json<|message|>",
    "analysisThe user asks. {}assistantfinal",
    "Here is my thought process:\n{}\nHere is my response:\n",
]
"""Thoughts as models write them into their replies: one line per spelling."""

FIELDS: list[dict[str, Any]] = [
    {"reasoning_content": "Was it Lyon?"},
    {"reasoning": "Was it Lyon?"},
    {"thinking": "Was it Lyon?"},
    {"reasoning_details": [{"type": "reasoning.text", "text": "Was it Lyon?", "signature": "s"}]},
    {"thinking_blocks": [{"type": "thinking", "thinking": "Was it Lyon?"}]},
    {"content": [{"type": "thinking", "thinking": "Was it Lyon?"}, {"type": "text", "text": "Paris"}]},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Was it Lyon?"}]}, "Paris"]},
    {"content": [{"text": "Was it Lyon?", "thought": True}, {"text": "Paris"}]},
    {"content": [{"type": "reasoning", "summary": [{"text": "Was it Lyon?"}]}, {"text": "Paris"}]},
]
"""Messages whose provider keeps thoughts apart: one line per form."""

ENDS = {
    "complete": "stop STOP end_turn eos COMPLETE stop_sequence tool_calls FINISH_REASON_STOP",
    "truncated": "length max_tokens MAX_TOKENS maxTokens max-tokens model_length token_limit ERROR_LIMIT incomplete",
    "refusal": "refusal",
    "moderation": "content_filter SAFETY sensitive RECITATION guardrail_intervened content-filtered PROHIBITED_CONTENT",
    "provider_error": "error network_error abort insufficient_system_resource MALFORMED_FUNCTION_CALL OTHER timeout",
}
"""Providers' words for the end of a reply, by the outcome of a reply with a text."""


@pytest.mark.parametrize(
    "spelling", [*SPELLINGS, *(f"{before}{{}}{behind}" for before, behind in THOUGHT_MARKS)]
)
@pytest.mark.parametrize("answer", ["Paris", '{"city": "Paris"}', "```python\nx = '</think>'\n```"])
def test_thoughts_before_an_answer_are_kept_apart(spelling: str, answer: str) -> None:
    for between in ("", "\n\n"):
        found = split_reply(spelling.replace("{}", "Was it Lyon?").replace("…", "") + between + answer)
        assert (found.answer, found.inner) == (answer, 0)
        assert "Was it Lyon?" in found.thoughts


@pytest.mark.parametrize("message", FIELDS)
def test_thoughts_beside_an_answer_are_kept_apart(message: dict[str, Any]) -> None:
    found = reply_of(**{"content": "Paris", **message})
    assert (found.text, found.thoughts) == ("Paris", "Was it Lyon?")


@pytest.mark.parametrize(
    ("said", "thoughts", "answer", "inner"),
    [
        ("Was it Lyon?\n</think>\n\nParis", "Was it Lyon?", "Paris", 0),
        ("</think>\n\n    return 1", "", "    return 1", 0),
        ("```\nLyon?\n</think>\nParis", "```\nLyon?", "Paris", 0),
        ("```\nLyon?\n</think>\n```py\nParis\n```", "```\nLyon?", "```py\nParis\n```", 0),
        ("Lyon? [/THINK] Paris", "Lyon?", "Paris", 0),
        ("<think>Lyon?</think><reasoning>Nice?</reasoning> Paris", "Lyon?\n\nNice?", "Paris", 0),
        ("<think>It says </think>Lyon, but</think>Paris", "<think>It says </think>Lyon, but", "Paris", 0),
        ("<think>Was it Lyon?", "Was it Lyon?", "", 0),
        ("\ufeff \u200b<think>Was it Lyon?", "Was it Lyon?", "", 0),
        ("<|channel|>analysis<|message|>Lyon?", "Lyon?", "", 0),
        ("It is <think>Lyon?</think>Paris.", "Lyon?", "It is Paris.", 1),
        ("Paris <think>Lyon?</think> it <thought>Nice?</thought>is", "Lyon?\n\nNice?", "Paris  it is", 2),
        ('<think>{"a": 1}?</think>{"a": "<think>x</think>"}', '{"a": 1}?', '{"a": "<think>x</think>"}', 0),
        ("Paris<|im_end|>\n", "", "Paris", 0),
        ("<|channel|>final<|message|>Paris<|return|>", "", "Paris", 0),
    ],
)
def test_what_is_thought_depends_on_where_it_stands(
    said: str, thoughts: str, answer: str, inner: int
) -> None:
    assert split_reply(said) == (thoughts, answer, inner)


@pytest.mark.parametrize(
    "said",
    [
        "Paris. <think>Was it Lyon?",
        "Use `<think>` and `</think>`.",
        "```\n<think>x</think>\n```\nParis",
        "~~~\n<think>x</think>",
        "```\nx\n</think>\n```\nParis",
        "```py\nre.sub(r'</think>', '', x)",
        '{"a": "<think>x</think> y", "b": 1}',
        'So: {"a": ["</think>"]}',
        'def bare(text):\n    return text.replace("<think>", "").replace("</think>", "")',
        "mark = '<think>'\nend = '</think>'",
        "Analysis shows Paris. Here is my response: Paris",
        "<thinker>x</thinker> a < b",
    ],
)
def test_marks_in_code_in_json_and_without_a_partner_are_text(said: str) -> None:
    assert split_reply(said) == ("", said, 0)


def test_a_reply_that_is_all_thought_says_how_much_it_thought() -> None:
    for found in (reply_of("<think>Was it Lyon?"), reply_of(None, reasoning_content="Was it Lyon?")):
        assert (found.form_fault, found.form_fault_text("empty")) == (
            "empty",
            "(empty: 12 characters of thought)",
        )
    assert reply_of("").form_fault_text("empty") == "(empty)"


@pytest.mark.parametrize(
    ("end", "word"), [(end, word) for end, words in ENDS.items() for word in words.split()]
)
def test_the_words_of_providers_say_whether_a_reply_is_whole(end: str, word: str) -> None:
    found = read_answer("Par", word)
    if isinstance(found, Fault):
        assert (found.reason, found.finish_reason) == (end, word)
        assert f"(finish reason {word})" in found.message
    else:
        assert (found.form_fault or "complete", found.finish_reason) == (end, word)


def test_an_unknown_word_is_no_proof_of_a_whole_reply() -> None:
    found = reply_of("Paris", "ran_dry")
    assert (found.form_fault, found.finish_reason) == (None, "ran_dry")
    assert reply_of("Paris", {"type": "dry"}).finish_reason == "{'type': 'dry'}"
    assert reply_of(None, "ran_dry", tool_calls=[{"id": "1"}]).text == ""
    for said in ("", "<think>Lyon?"):
        fault = read_answer(said, "ran_dry")
        assert isinstance(fault, Fault)
        assert (fault.reason, fault.finish_reason) == ("unknown_finish", "ran_dry")
        assert "without text, and with the finish reason ran_dry, which is not known" in fault.message


@pytest.mark.parametrize("bound", [(500, 500), (17, 17), (16, 16), (500, 499), (500, 501), (None, 500)])
def test_a_reply_of_exactly_its_bound_is_cut(bound: tuple[int | None, int]) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": bound[1]}
    found = reply_of("Paris", "stop", usage=usage, most_tokens=bound[0])
    assert found.is_cut is (bound in ((500, 500), (17, 17)))
