"""The embedded models: what they choose, and that they answer any schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.baselines.baseline import baseline_reply
from pytest_helmbench.gateway.baselines.schema_answer import BASELINE_IDS

LEXICAL, LOOKUP, RANDOM, FIRST = BASELINE_IDS


def body(text: str = "Hi", schema: Any = None, **more: Any) -> dict[str, Any]:
    request = {"model": "x", "messages": [{"role": "user", "content": text}], **more}
    if schema is not None:
        request["response_format"] = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    return request


def completion(model_id: str, request: dict[str, Any]) -> Any:
    return baseline_reply(model_id, request)


def content(model_id: str, request: dict[str, Any]) -> str:
    text: str = completion(model_id, request)["choices"][0]["message"]["content"]
    return text


def answer(model_id: str, schema: Any, text: str = "Hi", **more: Any) -> Any:
    return json.loads(content(model_id, body(text, schema, **more)))


LABELS = {"enum": ["CONTINUE", "HANDOFF_TO_HUMAN", "WEATHER"]}


# Choices


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("How is the weather?", "WEATHER"),
        ("May I speak to a human? Hand me off.", "HANDOFF_TO_HUMAN"),
        ("Humans continued.", "CONTINUE"),  # one each: the first
        ("Nothing of the kind.", "CONTINUE"),
        ("<job>\nweather\n</job>\n\n<user_input>\nsome human\n</user_input>", "HANDOFF_TO_HUMAN"),
        ("<user_input>\nsome <b>human</b>\n</user_input>\n\nweather", "HANDOFF_TO_HUMAN"),
        ("", "CONTINUE"),
    ],
)
def test_lexical_takes_the_option_that_shares_most_stems_with_the_last_section(text: str, label: str) -> None:
    assert answer(LEXICAL, LABELS, text) == label


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("weather for humans", ["HANDOFF_TO_HUMAN", "WEATHER"]),
        ("weather", ["WEATHER"]),
        ("none", ["CONTINUE"]),
    ],
)
def test_lexical_puts_every_tag_that_shares_a_word_into_a_list(text: str, tags: list[str]) -> None:
    assert answer(LEXICAL, {"type": "array", "items": LABELS}, text) == tags


@pytest.mark.parametrize(
    "job", ["- CONTINUE: rain and snow", "| `CONTINUE` | rain and snow |", "* **CONTINUE**: rain"]
)
def test_lookup_also_counts_the_words_that_explain_an_option_in_the_prompt(job: str) -> None:
    text = f"{job}\n- WEATHER: anything else\n\n<user_input>\nIt rained, and the roof leaks.\n</user_input>"
    labels = {"enum": ["WEATHER", "CONTINUE"]}
    assert answer(LOOKUP, labels, text) == "CONTINUE"
    assert answer(LEXICAL, labels, text) == "WEATHER"
    assert answer(LOOKUP, labels, text.replace("rained", "is dry")) == "WEATHER"  # "and" counts for nothing
    assert answer(LOOKUP, {"type": "array", "items": labels}, text) == ["CONTINUE"]


def test_random_is_drawn_from_model_seed_and_messages_and_nothing_else() -> None:
    schema = {"enum": list(range(1_000))}
    drawn = answer(RANDOM, schema, seed=1)
    assert answer(RANDOM, schema, seed=1, temperature=1.0) == drawn
    assert len({answer(RANDOM, schema, seed=seed) for seed in range(50)}) > 40
    assert len({answer(RANDOM, schema, text) for text in map(str, range(50))}) > 40


def test_a_judge_that_is_the_first_baseline_takes_the_first_option() -> None:
    schema = {
        "type": "object",
        "properties": {
            "evidence": {"type": "array", "items": {"type": "string"}},
            "justification": {"type": "string"},
            "judgment": {"type": "string", "enum": ["SAFE", "UNSAFE"]},
        },
        "required": ["evidence", "justification", "judgment"],
        "additionalProperties": False,
    }
    assert answer(FIRST, schema) == {"evidence": ["ok"], "justification": "ok", "judgment": "SAFE"}


# Conversations and tools

TOOLS = [
    {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
    for name, description, parameters in (
        (
            "order_status",
            "Look up an order.",
            {"properties": {"order": {"type": "string"}}, "required": ["order"]},
        ),
        (
            "book_room",
            "Reserve a room.",
            {
                "properties": {"hour": {"type": "integer"}, "floor": {"enum": ["north", "south"]}},
                "required": ["hour"],
            },
        ),
    )
]


@pytest.mark.parametrize(
    ("model_id", "text", "called"),
    [
        (LOOKUP, "Where is my order 1001?", ("order_status", {"order": "1001"})),
        (LEXICAL, 'My order is called "big kettle".', ("order_status", {"order": "big kettle"})),
        (LEXICAL, "A room in the North at 9, please", ("book_room", {"hour": 9, "floor": "north"})),
        (LEXICAL, "A room at 3A or 1.5?", None),
        (LOOKUP, "Where is my order?", None),
        (LOOKUP, "What a fine day, the 7th!", None),
        (FIRST, "Where is my order 1001?", None),
        (RANDOM, "Where is my order 1001?", None),
    ],
)
def test_models_that_compare_words_call_the_nearest_tool_and_quote_its_answer(
    model_id: str, text: str, called: tuple[str, Any] | None
) -> None:
    request = body(tools=TOOLS)
    before = [
        {"role": "user", "content": "My order is 7"},
        {"role": "tool", "content": "lost", "tool_call_id": "a"},
    ]
    request["messages"] = [*before, {"role": "user", "content": text}]

    choice = completion(model_id, request)["choices"][0]

    assert choice["finish_reason"] == ("stop" if called is None else "tool_calls")
    if called is None:
        assert choice["message"]["content"]
        return
    call = choice["message"]["tool_calls"][0]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == called
    request["messages"] += [
        choice["message"],
        {"role": "tool", "content": "shipped", "tool_call_id": call["id"]},
    ]
    assert content(model_id, request) == "The answer is: shipped"
    labels = {"response_format": body(schema={"enum": ["LOST", "SHIPPED"]})["response_format"]}
    assert content(model_id, {**request, **labels}) == '"SHIPPED"'


# The wire


@pytest.mark.parametrize("model_id", BASELINE_IDS)
def test_the_reply_is_a_chat_completion_that_costs_nothing(model_id: str) -> None:
    request = body("x" * 400, LABELS)
    before = json.dumps(request)
    reply = completion(model_id, request)
    assert reply["object"] == "chat.completion"
    assert reply["model"] == model_id
    assert reply["choices"][0]["finish_reason"] == "stop"
    assert reply["usage"]["prompt_tokens"] == 100
    assert reply["usage"]["completion_tokens"] == len(reply["choices"][0]["message"]["content"]) // 4
    assert reply["usage"]["cost"] == 0.0
    assert baseline_reply(model_id, request) == reply
    assert json.dumps(request) == before


@pytest.mark.parametrize("schema", [None, {"type": "string"}])
def test_a_reply_can_always_be_encoded(schema: Any) -> None:
    json.dumps(baseline_reply(LEXICAL, body("half \ud83d", schema)), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("model_id", "hint"),
    [("baseline/lexicle", "did you mean 'baseline/lexical'? known"), ("qwertz", "known")],
)
def test_an_unknown_baseline_names_the_nearest(model_id: str, hint: str) -> None:
    with pytest.raises(HelmbenchError) as error:
        baseline_reply(model_id, body())
    assert str(error.value) == (
        f"{model_id}: there is no such baseline\n"
        f"  hint: {hint} baselines: baseline/lexical, baseline/lookup, baseline/random, baseline/first"
    )


def _unread(keyword: str) -> str:
    return f"the response schema uses {keyword!r}, which embedded models do not read"


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "array", "items": False, "minItems": 1}, "the response schema allows no value"),
        (
            {
                "$ref": "#/$defs/n",
                "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}},
            },
            "the response schema allows no value that ends",
        ),
        ({"properties": {"a": {"pattern": "^a"}}}, _unread("pattern")),
        ({"anyOf": [{"oneOf": []}]}, _unread("oneOf")),
        ({"type": "array", "items": {"allOf": []}}, _unread("allOf")),
        (
            {"type": "array", "items": {"enum": ["a"]}, "minItems": 2, "uniqueItems": True},
            "the response schema uses 'uniqueItems' with more items than embedded models find",
        ),
        (
            {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
            "the response schema allows no number between its bounds",
        ),
        ({"$ref": "#"}, "the response schema refers to itself without an end"),
        ({"$ref": "#/$defs/x"}, "the response schema refers to '#/$defs/x', which is not there"),
        (
            {"$ref": "https://example.org/x"},
            "the response schema refers to 'https://example.org/x', which is not part of it",
        ),
    ],
)
def test_a_schema_that_nothing_fits_is_an_error(schema: Any, problem: str) -> None:
    with pytest.raises(HelmbenchError) as error:
        baseline_reply(FIRST, body(schema=schema))
    assert str(error.value) == (
        f"baseline/first: {problem}\n"
        "  hint: use what strict structured outputs allow, or leave the baselines out for this scenario"
    )


# Any schema that strict structured outputs allow

TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "left": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                "right": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "parent": {"$ref": "#/$defs/node"},
            },
            "required": ["value", "left", "right", "children"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}
SCHEMAS = {
    "object without types": {"properties": {"a": {}}, "required": ["a", "b"]},
    "optional and impossible": {"properties": {"a": False, "b": {"type": "string"}}},
    "unique tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 2, "uniqueItems": True},
    "bounds with a point": {"type": "array", "minItems": 2.0, "maxItems": 3.0},
    "long text": {"type": "string", "minLength": 500},
    "negative": {"type": "number", "maximum": -7.5},
    "between": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "whole steps": {"type": "integer", "minimum": 1, "multipleOf": 2.5},
    "nullable": {"type": ["null", "string"], "minLength": 3},
    "anyOf": {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "string"}]},
    "reference with siblings": {"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "minLength": 9},
    "tree": TREE,
    "whole as part": {
        "properties": {"name": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name", "parts"],
    },
}


@pytest.mark.parametrize("model_id", BASELINE_IDS)
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_the_answer_fits_the_schema(schema: Any, model_id: str) -> None:
    for seed in range(8):
        Draft202012Validator(schema).validate(answer(model_id, schema, "Hi b. There!", seed=seed))


def test_lettered_choices_are_options_where_there_is_no_schema() -> None:
    choices = "A) helium\nB) the gas that plants take in\nC) neon"
    question = f"Which gas do plants take in?\n\n{choices}\n\nEnd with `Answer: LETTER`."
    body = {"messages": [{"role": "user", "content": question}]}

    def said(model: str, seed: int | None = None) -> str:
        return content(model, {**body, "seed": seed})

    assert said("baseline/first") == "Answer: A"
    assert said("baseline/lexical") == "Answer: B"
    assert {said("baseline/random", seed) for seed in range(40)} == {"Answer: A", "Answer: B", "Answer: C"}
