"""Fields that requests of foreign code may hold: those that are known, and none that the provider would fetch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_helmbench.core.json_types import JsonObject, JsonValue

__all__ = ["Refusal", "refusals", "refusals_of_stated", "refusals_of_trusted"]

Refusal = tuple[str, str]
"""A field, and why it is not passed on."""

_OTHER_MODEL = "would have another model answer than the one under test"
_OTHER_PLACE = "would have the request answered elsewhere, or with another key"
_OUT_OF_REACH = "would let the provider fetch what the request does not hold"
_UNKNOWN = "is no field that is known here"

_DECIDED = {
    **dict.fromkeys(("models", "route", "preset", "fallbacks"), _OTHER_MODEL),
    **dict.fromkeys(("context_window_fallbacks", "content_policy_fallbacks"), _OTHER_MODEL),
    **dict.fromkeys(("api_base", "base_url", "api_key", "api_version", "api_type"), _OTHER_PLACE),
    **dict.fromkeys(("custom_llm_provider", "user_config", "litellm_credential_name"), _OTHER_PLACE),
}
"""Whatever code states them, they would change the address, the key or the model."""

_FETCHED = dict.fromkeys(
    ("plugins", "web_search_options", "search_parameters", "previous_response_id", "conversation", "prompt"),
    _OUT_OF_REACH,
)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SAMPLING = _names("""
    temperature top_p top_k min_p top_a typical_p tfs_z top_n_sigma min_tokens repetition_penalty repeat_penalty
    repeat_last_n presence_penalty frequency_penalty length_penalty no_repeat_ngram_size penalize_nl seed stop
    stop_token_ids bad_words ignore_eos logit_bias logprobs top_logprobs n_probs best_of use_beam_search mirostat
    mirostat_tau mirostat_eta mirostat_lr mirostat_ent dynatemp_range dynatemp_exponent smoothing_factor
    smoothing_curve dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers
    xtc_probability xtc_threshold samplers skip_special_tokens spaces_between_special_tokens
    include_stop_str_in_output echo
""")
_SHAPE = _names("""
    response_format json_schema structured_outputs guided_json guided_regex guided_choice guided_grammar
    guided_decoding_backend guided_whitespace_pattern grammar format
""")
_THOUGHT = _names("""
    reasoning reasoning_effort include_reasoning reasoning_format reasoning_split thinking thinking_budget
    enable_thinking think verbosity chat_template_kwargs chat_template_args
""")
_HOUSEKEEPING = _names("""
    model stream stream_options usage user metadata store safety_identifier prompt_cache_key prompt_cache_retention
    cache_prompt timings_per_token return_progress keep_alive options num_ctx priority request_id parallel_tool_calls
    tools tool_choice prediction modalities transforms
""")
_CHAT = _names("messages n max_tokens max_completion_tokens functions function_call")
_RESPONSES = _names("input instructions max_output_tokens max_tool_calls text include truncation background")
_EMBEDDINGS = _names("input model dimensions encoding_format user input_type truncate task")
_KNOWN: Mapping[str, frozenset[str]] = {
    "chat/completions": _CHAT | _SAMPLING | _SHAPE | _THOUGHT | _HOUSEKEEPING,
    "responses": _RESPONSES | _SAMPLING | _SHAPE | _THOUGHT | _HOUSEKEEPING,
    "embeddings": _EMBEDDINGS,
}
_CONTENTS: Mapping[str, str] = {"chat/completions": "messages", "responses": "input", "embeddings": ""}
_ADDRESSES = ("image_url", "video_url", "audio_url", "file_url", "url", "uri")
_STORED = ("file_id", "image_id", "video_id")
_SAID = frozenset(
    ("annotations", "tool_calls", "function_call", "arguments", "reasoning_details", "logprobs")
)
"""What a model has said before, which no provider reads as an address."""
_CLIENT_TOOLS = ("function", "custom")


@dataclass(frozen=True, slots=True)
class KnownFields:
    """Fields that pass though they are not in our list.

    Args:
        allowed: Set by the user for this model, whatever the client states.
        declared: Declared by the benchmark as its sampling options.
    """

    allowed: frozenset[str] = frozenset()
    declared: frozenset[str] = frozenset()


def refusals(path: str, stated: JsonObject, known: KnownFields) -> Iterator[Refusal]:
    """Yield what is refused in a request of a pack or an agent.

    Args:
        path: `chat/completions`, `responses` or `embeddings`.
        stated: Decoded body.
        known: What passes besides.
    """
    allowed = known.allowed
    for name, value in stated.items():
        if value is None or name in allowed or name in _KNOWN[path]:
            continue
        why = _DECIDED.get(name) or _FETCHED.get(name)
        if why is not None or name not in known.declared:
            yield name, why or _UNKNOWN
    if stated.get("background") is True and "background" not in allowed:
        yield "background", "would have the reply fetched later"
    tools = stated.get("tools")
    for number, tool in enumerate(tools if isinstance(tools, list) and "tools" not in allowed else ()):
        kind = tool.get("type", "function") if isinstance(tool, dict) else None
        if kind not in _CLIENT_TOOLS:
            yield f"tools[{number}]", "is no tool that the client runs (type function or custom)"
    contents = _CONTENTS[path]
    if contents:
        yield from _fetched_parts(contents, stated.get(contents))


def refusals_of_trusted(stated: JsonObject, known: KnownFields) -> Iterator[Refusal]:
    """Yield what is refused in a request of the user's own code: what changes the address, the key or the model."""
    for name, why in _DECIDED.items():
        if stated.get(name) is not None and name not in known.allowed:
            yield name, why


def refusals_of_stated(extra_body: JsonObject) -> Iterator[Refusal]:
    """Yield what a benchmark may not have merged into every request: what changes address, key, model or prompt."""
    decided = {**_DECIDED, "model": _OTHER_MODEL, "messages": "would have another prompt answered"}
    for name in extra_body:
        if name in decided:
            yield name, decided[name]


def _fetched_parts(name: str, contents: JsonValue) -> Iterator[Refusal]:
    """Yield the parts of messages that name what the provider would have to fetch; what is in the request passes."""
    waiting: list[tuple[str, JsonValue]] = [(name, contents)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, list):
            waiting.extend((f"{place}[{number}]", part) for number, part in enumerate(value))
        elif isinstance(value, dict):
            for key, part in value.items():
                if key in _ADDRESSES and isinstance(part, str) and not part.lower().startswith("data:"):
                    yield f"{place}.{key}", f"{_OUT_OF_REACH}: send it as data:"
                elif key in _STORED and part is not None:
                    yield f"{place}.{key}", _OUT_OF_REACH
                elif value.get("type") == "item_reference":
                    yield place, _OUT_OF_REACH
                    break
                elif isinstance(part, list | dict) and key not in _SAID:
                    waiting.append((f"{place}.{key}", part))
