"""Fields that requests of foreign code may hold: those that are known, and none that the provider would fetch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.relay.fetched_parts import (
    OUT_OF_REACH,
    Refusal,
    fetched_parts,
    fetched_schemas,
    names_of,
    plain_name,
    provider_tools,
)

__all__ = ["KnownFields", "refusals", "refusals_of_stated", "refusals_of_trusted"]

_OTHER_MODEL = "would have another model answer than the one under test"
_OTHER_PLACE = "would have the request answered elsewhere, or with another key"
_OTHER_PRICE = "would have the provider bill more than the price list says"
_UNKNOWN = "is no field that is known here"

_DECIDED = {
    plain_name(name): why
    for why, names in (
        (
            _OTHER_MODEL,
            "models route preset fallbacks context_window_fallbacks content_policy_fallbacks model_list mock_response",
        ),
        (
            _OTHER_PLACE,
            "api_base base_url api_key api_version api_type custom_llm_provider user_config litellm_credential_name"
            " litellm_params extra_body extra_headers extra_query default_headers headers organization",
        ),
    )
    for name in names_of(names)
}
"""Whatever code states them, they would change the address, the key or the model. Names as `plain_name` gives them."""

_BEYOND = {
    **dict.fromkeys(
        map(
            plain_name,
            names_of("plugins web_search_options search_parameters previous_response_id conversation prompt"),
        ),
        OUT_OF_REACH,
    ),
    **dict.fromkeys(map(plain_name, ("service_tier", "best_of")), _OTHER_PRICE),
}
_OF_STATED = {
    **_BEYOND,
    **_DECIDED,
    "model": _OTHER_MODEL,
    **dict.fromkeys(("messages", "input", "instructions"), "would have another prompt answered"),
    **dict.fromkeys(("tools", "background"), OUT_OF_REACH),
}


_SAMPLING = names_of("""
    temperature top_p top_k min_p top_a typical_p tfs_z top_n_sigma min_tokens repetition_penalty repeat_penalty
    repeat_last_n presence_penalty frequency_penalty length_penalty no_repeat_ngram_size penalize_nl seed stop
    stop_token_ids bad_words ignore_eos logit_bias logprobs top_logprobs n_probs use_beam_search mirostat
    mirostat_tau mirostat_eta mirostat_lr mirostat_ent dynatemp_range dynatemp_exponent smoothing_factor
    smoothing_curve dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers
    xtc_probability xtc_threshold samplers skip_special_tokens spaces_between_special_tokens
    include_stop_str_in_output echo
""")
_SHAPE = names_of("""
    response_format json_schema structured_outputs guided_json guided_regex guided_choice guided_grammar
    guided_decoding_backend guided_whitespace_pattern grammar format
""")
_THOUGHT = names_of("""
    reasoning reasoning_effort include_reasoning reasoning_format reasoning_split thinking thinking_budget
    enable_thinking think verbosity chat_template_kwargs chat_template_args
""")
_HOUSEKEEPING = names_of("""
    model stream stream_options usage user metadata store safety_identifier prompt_cache_key prompt_cache_retention
    cache_prompt timings_per_token return_progress keep_alive options num_ctx priority request_id parallel_tool_calls
    tools tool_choice prediction modalities transforms
""")
_CHAT = names_of("messages n max_tokens max_completion_tokens functions function_call")
_RESPONSES = names_of(
    "input instructions max_output_tokens max_tool_calls text include truncation background"
)
_EMBEDDINGS = names_of("input model dimensions encoding_format user input_type truncate task")
_KNOWN: Mapping[str, frozenset[str]] = {
    "chat/completions": _CHAT | _SAMPLING | _SHAPE | _THOUGHT | _HOUSEKEEPING,
    "responses": _RESPONSES | _SAMPLING | _SHAPE | _THOUGHT | _HOUSEKEEPING,
    "embeddings": _EMBEDDINGS,
}
_CONTENTS = ("messages", "input", "instructions", "prediction")
_SCHEMAS = (
    *("response_format", "text", "tools", "functions", "format"),
    *("json_schema", "structured_outputs", "guided_json"),
)


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
        plain = plain_name(name)
        why = _DECIDED.get(plain) or _BEYOND.get(plain)
        # Some servers take no notice of case: `Model` is then the model.
        if why is None and (name not in known.declared or _is_variant(name, path)):
            why = _UNKNOWN
        if why is not None:
            yield name, why
    if stated.get("background") not in (None, False) and "background" not in allowed:
        yield "background", "would have the reply fetched later"
    if "tools" not in allowed:
        yield from provider_tools(stated)
    for name in _CONTENTS:
        if name in stated:
            yield from fetched_parts(name, stated[name])
    for name in _SCHEMAS:
        if name in stated:
            yield from fetched_schemas(name, stated[name])


def _is_variant(name: str, path: str) -> bool:
    plain = plain_name(name)
    return any(plain == plain_name(known) for known in _KNOWN[path])


def refusals_of_trusted(stated: JsonObject, known: KnownFields) -> Iterator[Refusal]:
    """Yield what is refused in a request of the user's own code: what changes the address, the key or the model."""
    for name, value in stated.items():
        why = _DECIDED.get(plain_name(name))
        if value is not None and why is not None and name not in known.allowed:
            yield name, why


def refusals_of_stated(extra_body: JsonObject) -> Iterator[Refusal]:
    """Yield what a benchmark may not have merged into every request.

    That is what changes address, key, model, prompt or price, and what the provider would fetch.
    """
    for name in extra_body:
        why = _OF_STATED.get(plain_name(name))
        if why is not None:
            yield name, why
