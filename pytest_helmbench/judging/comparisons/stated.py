"""The answer that a reply states: its last `Answer: …`, box, tag or JSON key, or else its only sentence."""

from __future__ import annotations

import json
import re

from pytest_helmbench.core.json_types import is_deeper, without_twins
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.judging.comparisons.plain import folded, is_several, plain, sentences, words_of

_MOST_CHARACTERS = 20_000
"""Characters that are read from the end of a reply, where answers stand."""
_MOST_BOXES = 10
_LONGEST_TAIL = 1_000
_TOKENS = re.compile(r"<\|(?:im_end|endoftext|eot_id|end|return)\|>.*|<\|[\w▁ ]{1,30}\|>|</s>", re.DOTALL)
_SOURCE = re.compile(r"\s*(?:[-*]\s+)?(?:\[\^?\d{1,3}\]|\d{1,3}\.):?\s.*https?:.*|\s*https?:\S*\s*|\s*")
_SOURCES_HEAD = re.compile(r"[\s*_#]*(?:sources?|references?|citations?)[\s*_:]*", re.IGNORECASE)
_KIND = r"(?:(?:final|correct|right|best)\s)*answer(?:\s(?:to|of)\s[\w ']{1,30}?)?"
_CUE = re.compile(
    rf"(?:(?:^[ \t*_#>`|-]*+|(?<=[.,;:!?*])\s)(?:the\s|my\s)?{_KIND}[*_`]*(?:\s*[:：][*_`]*|[*_`#]*\s*\n)"
    rf"|(?<!\w)(?:the|my)\s{_KIND}\s+is\b[*_`]*\s*:?)"
    r"\s*(?P<answer>[^\n]+)",
    re.IGNORECASE | re.MULTILINE,
)
_EMPTY_CUE = re.compile(rf"(?:the\s|my\s)?{_KIND}\s*[:：]", re.IGNORECASE)
_CUE_BEHIND = re.compile(
    r"^(?!\W*+(?:(?:so|thus|hence|the|my|final|correct|right|best)\W++)*answer)"
    r"(?P<answer>[^\n]{1,300}?)[ \t]+(?:final )?answer[*_`]*[ \t]*[:：][ \t*_`]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A cue at the end of its own line states what stands before it: `404 Answer:`."""
_CUE_BETWEEN = re.compile(
    r"^(?P<before>[^\n]{1,60}?)[ \t]+(?:final )?answer[*_`]*[ \t]*[:：][*_`]*[ \t]*(?P<answer>[^\n]+)$",
    re.IGNORECASE | re.MULTILINE,
)
"""A cue between an answer and the same answer: `404 Answer: 404`, `404 Answer: The page shows 404.`."""
_RETRACTION = re.compile(
    r"(?<!\w)(?:wait|actually|correction|oops|sorry|scratch that|let me re\w+)(?!\w)", re.IGNORECASE
)
_TAG = re.compile(r"<answer>\s*(?P<answer>.*?)\s*</answer>", re.DOTALL | re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_FENCED = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Stated:
    """The answer that a reply states, without markup and in its own words.

    Args:
        text: Empty for silence and where nothing is stated.
        marked: It stands where answers stand: behind `Answer:`, in a box, a tag or JSON.
        parts: Its sentences and lines; none where nothing is stated.
        tail: All that follows where it begins, for answers of several lines; empty where there is no more.
    """

    text: str
    marked: bool
    parts: tuple[str, ...]
    tail: str = ""


def stated_answer(reply: str) -> Stated:
    """Return the last answer that a reply states; a reply of one sentence states itself, any other states none."""
    text = end_of(reply)
    value = _json_answer(text)
    start = -1
    if value is None:
        start, value = _marked(text)
    if value is not None:
        said = plain(value)
        tail = plain(text[start : start + _LONGEST_TAIL]) if start >= 0 else ""
        return Stated(said, True, tuple(sentences(said)) or (said,), tail)
    said = plain(_without_sources(text))
    parts = sentences(said)
    states_itself = len(parts) == 1 and _EMPTY_CUE.fullmatch(said) is None
    return Stated(said, False, tuple(parts)) if states_itself else Stated("", False, ())


def end_of(reply: str) -> str:
    """Return the end of a reply, 20,000 characters at most, without the tokens of chat templates."""
    return _TOKENS.sub("", reply).strip()[-_MOST_CHARACTERS:]


def _without_sources(text: str) -> str:
    """Return a text without the list of what it cites, at its end."""
    lines = text.splitlines()
    kept = len(lines)
    while kept and _SOURCE.fullmatch(lines[kept - 1]):
        kept -= 1
    if 0 < kept < len(lines) and _SOURCES_HEAD.fullmatch(lines[kept - 1]):
        kept -= 1
    return "\n".join(lines[:kept]) if kept else text


def _marked(text: str) -> tuple[int, str | None]:
    """Return where the last marked answer begins, and the answer; None for none.

    Two boxes in a line are one answer, the line; an empty cue does not count.
    """
    found = [
        (match.start("answer"), match["answer"])
        for pattern in (_CUE, _CUE_BEHIND, _TAG)
        for match in pattern.finditer(text)
    ]
    known = {start for start, _ in found}
    found += [
        (match.start("answer"), match["before"])
        for match in _CUE_BETWEEN.finditer(text)
        if match.start("answer") not in known and _says_again(match["before"], match["answer"])
    ]
    while found and (again := _CUE.match(found[-1][1])) is not None:
        found[-1] = (found[-1][0] + again.start("answer"), again["answer"])
    boxes = {match.start(): _braced(text, match.end()) for match in [*_BOX.finditer(text)][-_MOST_BOXES:]}
    found = [*(each for each in found if each[1].strip("*_`#$.: ")), *boxes.items()]
    if not found:
        return -1, None
    start, answer = max(found)
    if _RETRACTION.search(text, start + len(answer)) is not None:
        return -1, None
    line = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0]
    inner = [_braced(line, match.end()) for match in [*_BOX.finditer(line)][-_MOST_BOXES:]]
    if len(set(inner)) > 1:
        return start, _BOX.sub("{", line)
    return start, inner[0] if inner and _BOX.search(answer) else answer


def _says_again(answer: str, text: str) -> bool:
    """Return whether a text says an answer once more, and no other."""
    wanted, said = words_of(folded(plain(answer))), words_of(folded(plain(text)))
    places = range(len(said) - len(wanted) + 1)
    holds = any(said[at : at + len(wanted)] == wanted for at in places)
    return bool(wanted) and holds and (said == wanted or not is_several(folded(text)))


def _json_answer(text: str) -> str | None:
    """Return the value of `answer` of a JSON object that a reply is, or ends with; None for no such object."""
    fenced = _FENCED.search(text)
    body = fenced[1] if fenced is not None else text[text.find("{") :] if text.endswith("}") else ""
    try:
        found = json.loads(body, object_pairs_hook=without_twins) if body else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or is_deeper(found):
        return None
    value = found.get("answer", next(iter(found.values())) if len(found) == 1 else None)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return None if value is None or isinstance(value, dict) else str(value)


def _braced(text: str, start: int) -> str:
    """Return what stands between braces, of which the first is open before `start`."""
    depth = 1
    for end in range(start, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return text[start:end]
    return text[start:]
