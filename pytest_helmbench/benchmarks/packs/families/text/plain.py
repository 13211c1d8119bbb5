"""Replies without their clothes: reasoning, chat tokens, markup, LaTeX and odd characters taken off.

What is left is plain lines. Places that a model marks as its answer (`\\boxed{}`, `<answer>`, the answer key of a
JSON object) stand between `MARK` and `MARK_END`. Every step reads the text a bounded number of times.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Mapping

from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.core.json_types import JsonValue

__all__ = ["MARK", "MARK_END", "plain", "spoken"]

MARK, MARK_END = "\x02", "\x03"

_REASONING_TAG = re.compile(
    r"<(?P<close>/?)(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis)\s*>"
    r"|◁(?P<close2>/?)think▷|\[(?P<close3>/?)THINK\]",
    re.IGNORECASE,
)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s*final[^<]{0,40}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>")
_END_OF_TURN = re.compile(r"(?:<\|(?:im_end|eot_id|endoftext|end|return|end_of_text)\|>|</s>|<end_of_turn>)")
_CHAT_TOKEN = re.compile(r"<\|[a-z_]{1,30}\|>")

_ODD = {
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f", ""),
    **dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", ""),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-"),
    **dict.fromkeys("\u2014\u2015", " - "),
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2028\u2029\u0085", "\n"),
    "\u2044": "/",
    "\u2022": "-",
    "\U0001f170": "A",
    "\U0001f171": "B",
    "\U0001f17e": "O",
}
_ODD_CHARACTER = re.compile(f"[{''.join(_ODD)}]")
_WIDE_DASH = re.compile(r"(?<=[^\s-])(?: {2}- {1,2}| - {2})(?=[^\s-])")
_CONTROL = re.compile(r"[\x00\x02\x03\x0b\x0c]|\r\n?")
_SUPERSCRIPTS = re.compile(r"[⁺⁻]?[⁰¹²³⁴-⁹]+")
_SUPERSCRIPT_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_VULGAR = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")

_MARKUP = re.compile(r"[\\<{}`*_#~|&\[$>•]|[-+][ \t]")
_ANSWER_TAG = re.compile(
    r"<(?P<close>/?)(?:final[_ -]?)?(?:answer|choice|antwort|respuesta|r[ée]ponse)\s*>", re.IGNORECASE
)
_BREAK_TAG = re.compile(r"<(?:br|hr)\s*/?>|</(?:p|div|li|tr|h[1-6])\s*>", re.IGNORECASE)
_HTML_TAG = re.compile(
    r"</?(?:b|strong|i|em|u|p|div|span|sub|code|pre|mark|small|big|font|center|blockquote|ul|ol|li|table|tr|td|th|"
    r"thead|tbody|h[1-6]|response|output|result|solution|final|explanation|details|summary|root|xml)"
    r"\b[^<>\n]{0,200}>",
    re.IGNORECASE,
)
_SUPERSCRIPT_TAG = re.compile(r"<sup\s*>([^<>]{0,20})</sup\s*>", re.IGNORECASE)
_STRUCK = re.compile(r"~~[^~\n]{1,400}~~|<(?P<tag>s|del|strike)>[^<\n]{1,400}</(?P=tag)>", re.IGNORECASE)

_BOX_OR_BRACE = re.compile(r"\\(?:boxed|fbox)\s*+\{|\\[{}]|[{}]")
_BARE_BOX = re.compile(r"\\boxed\s*+(\w)")
_FRACTION = re.compile(r"(\d?)\\[dtc]?frac\s*+(?:\{([^{}]{1,80})\}|(\d))\s*+(?:\{([^{}]{1,80})\}|(\d))")
_COMMAND = re.compile(r"\\(?:([A-Za-z]+)\*?|(.)|\Z)", re.DOTALL)
_DEGREES = re.compile(r"\s?\^\s?\{?\s?\\(?:circ|degree)(?![A-Za-z])\s?\}?")
_BLANKS = re.compile(r"(?<=[^ ]) {2,4}(?=[^ ])")
"""Of `78 \\text{ km/h}`."""
_COMMANDS = {
    **dict.fromkeys(
        word_set(
            "text textbf textit textrm textsf texttt textnormal mathrm mathbf mathit mathsf mathbb mathcal mbox emph",
            "bm underline operatorname left right displaystyle boldsymbol rm bf begin end ensuremath bigl bigr big",
            "Big hbox ce pu unit SI",
        ),
        "",
    ),
    "times": "×",
    "cdot": "·",
    "div": "÷",
    "pm": "±",
    "approx": "≈",
    "leq": "≤",
    "le": "≤",
    "geq": "≥",
    "ge": "≥",
    "neq": "≠",
    "ne": "≠",
    "circ": "°",
    "degree": "°",
    "infty": "∞",
    "quad": " ",
    "qquad": " ",
    "to": "→",
    "rightarrow": "→",
    "Rightarrow": "→",
    "implies": "→",
    "therefore": "therefore",
    "checkmark": "✓",
    "boxed": "\\boxed",
    "fbox": "\\fbox",
}
_GREEK = {
    name.capitalize() if size == "CAPITAL" else name: unicodedata.lookup(
        f"GREEK {size} LETTER {name.upper()}"
    )
    for size in ("CAPITAL", "SMALL")
    for name in word_set("alpha beta gamma delta epsilon theta lamda mu nu rho sigma tau phi chi psi omega")
} | {"lambda": "λ", "Lambda": "Λ"}
_SYMBOLS = {
    "{": "\\{",
    "}": "\\}",
    ",": " ",
    ";": " ",
    ":": " ",
    "!": "",
    " ": " ",
    "\\": "\n",
    "(": "",
    ")": "",
    "[": "\n",
    "]": "\n",
}

_FENCE = re.compile(r"^[ \t]*(?:`{3,}[^`\n]*|~{3,}[^~\n]*)$", re.MULTILINE)
_TABLE_RULE = re.compile(r"^[ \t]*\|?(?:[ \t]*:?-{2,}:?[ \t]*\|)+[ \t]*(?::?-{2,}:?[ \t]*)?$", re.MULTILINE)
_LINE_START = re.compile(r"\n[ \t]*+(?:(?:#{1,6}(?=[ \t])|>|[-*+•](?=[ \t])|\|)[ \t]*+)+")
_TICKED = re.compile(r"^\[[xX✓✔]\][ \t]*", re.MULTILINE)
_UNTICKED = re.compile(r"^\[ \][ \t]*", re.MULTILINE)
_TABLE_END = re.compile(r"(?<![ \t])[ \t]*\|[ \t]*$", re.MULTILINE)
# Stars that are no power and no product. The star comes first, so that the search finds it fast.
_STARS = re.compile(
    r"\*\*++(?:(?<!\d\*\*)|(?![(-]?\d))|\*(?:(?<![\w*)\]]\*)(?=[^\s*])|(?<=[^\s*]\*)(?![\w*(]))"
)
_UNDERSCORES = re.compile(r"(?<!\w)_{1,3}(?=[^\s_])|(?<=[^\s_])_{1,3}(?!\w)")
_LINK = re.compile(r"!?\[([^\[\]\n]{1,200})\]\([^()\n]{0,400}\)")

_ANSWER_KEYS = (
    "final_answer",
    "answer",
    "correct_answer",
    "correct_option",
    "correct_choice",
    "answer_letter",
    "answer_choice",
    "selected_answer",
    "selected_option",
    "selected",
    "choice",
    "option",
    "letter",
    "label",
    "prediction",
    "antwort",
    "respuesta",
    "réponse",
    "答案",
    "solution",
    "result",
    "response",
    "output",
    "value",
)
_MOST_OBJECTS = 20
"""JSON objects that are tried per reply: each that does not parse may cost a look at the whole text."""

_OBJECT_START = re.compile(r'\{\s*"')
_DECODER = json.JSONDecoder()


def spoken(reply: str) -> str:
    """Return what the model says to the reader: no reasoning blocks, chat tokens or run-on turns.

    Reasoning that never closes is all reasoning; a closing tag alone ends reasoning that the chat template opened.
    """
    if "<" not in reply and "◁" not in reply and "[" not in reply:
        return reply
    kept: list[str] = []
    depth = position = 0
    for tag in _REASONING_TAG.finditer(reply):
        if tag["close"] or tag["close2"] or tag["close3"]:
            if depth == 0:
                kept.clear()
            depth = max(0, depth - 1)
            position = tag.end()
        else:
            if depth == 0:
                kept.append(reply[position : tag.start()])
            depth += 1
            position = tag.end()
    if depth == 0:
        kept.append(reply[position:])
    text = "".join(kept)
    return _one_turn(text) if "<" in text else text


def _one_turn(text: str) -> str:
    channel = _FINAL_CHANNEL.search(text)
    if channel is not None:
        text = text[channel.end() :]
    end = _END_OF_TURN.search(text)
    if end is not None and text[: end.start()].strip():
        text = text[: end.start()]
    return _CHAT_TOKEN.sub("", text) if "<|" in text else text


def plain(text: str) -> str:
    """Return the text as plain lines, answers that are marked as such between marks."""
    if not text.isascii():
        text = _one_alphabet(text)
    if _CONTROL.search(text) is not None:
        text = _CONTROL.sub(lambda found: "\n" if found[0] in "\r\n\x0b\x0c" else "", text)
    if _MARKUP.search(text) is None:
        return text
    if "{" in text and '"' in text:
        text = _without_json(text)
    if "<" in text:
        text = _without_tags(text)
    if "&" in text and ";" in text:
        text = html.unescape(text).replace("\xa0", " ")
    if "\\" in text:
        text = _without_latex(text)
    return _without_markdown(text)


def _one_alphabet(text: str) -> str:
    """Return the text in one form of each character: full-width, bold, raised and fraction characters too."""
    text = _SUPERSCRIPTS.sub(lambda found: "^" + found[0].translate(_SUPERSCRIPT_DIGITS), text)
    text = _WIDE_DASH.sub(" - ", _ODD_CHARACTER.sub(lambda found: _ODD[found[0]], text))
    if unicodedata.is_normalized("NFKC", text):
        return text
    text = unicodedata.normalize("NFKC", _VULGAR.sub(" ", text))
    return text.replace("\u2044", "/").replace(MARK, "").replace(MARK_END, "")


def _without_json(text: str) -> str:
    """Return the text with each JSON object that has an answer key replaced by the marked answer."""
    parts: list[str] = []
    position = tried = 0
    while tried < _MOST_OBJECTS and (start := _OBJECT_START.search(text, position)) is not None:
        tried += 1
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):  # ValueError: also a number of thousands of digits
            parts.append(text[position : start.end()])
            position = start.end()
            continue
        answer = _answer_of(value)
        parts.append(text[position : start.start()])
        parts.append(text[start.start() : end] if answer is None else f"\n{MARK}{answer}{MARK_END}\n")
        position = end
    return "".join(parts) + text[position:]


def _answer_of(value: JsonValue, depth: int = 0) -> str | None:
    """Return what a JSON object gives as its answer; empty for a null, None when it has no answer key."""
    if not isinstance(value, Mapping):
        return None
    by_key = {
        key.strip().lower().replace(" ", "_").replace("-", "_").replace("finala", "final_a"): found
        for key, found in value.items()
    }
    for name in _ANSWER_KEYS:
        if name in by_key:
            found = by_key[name]
            if isinstance(found, Mapping):
                return _answer_of(found, depth + 1) if depth < 3 else None
            return _written(found)
    return None


def _written(value: JsonValue) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(_written(item) for item in value if not isinstance(item, list | dict))
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).replace(MARK, "").replace(MARK_END, "")


def _without_tags(text: str) -> str:
    text = _STRUCK.sub("", text)
    text = _ANSWER_TAG.sub(lambda tag: MARK_END if tag["close"] else "\n" + MARK, text)
    text = _SUPERSCRIPT_TAG.sub(r"^\1", text)
    return _HTML_TAG.sub("", _BREAK_TAG.sub("\n", text))


def _without_latex(text: str) -> str:
    text = _BARE_BOX.sub(rf"{MARK}\1{MARK_END}", text.replace("{,}", ","))
    for _ in range(3):  # a fraction of fractions of fractions
        shorter = _FRACTION.sub(_fraction, text)
        if shorter == text:
            break
        text = shorter
    text = _COMMAND.sub(_command, _DEGREES.sub("°", text))
    parts: list[str] = []
    boxes: list[bool] = []
    position = 0
    for token in _BOX_OR_BRACE.finditer(text):
        parts.append(text[position : token.start()])
        position = token.end()
        if len(token[0]) > 2:
            boxes.append(True)
            parts.append(MARK)
        elif token[0] == "{":
            boxes.append(False)
        elif token[0] == "}":
            parts.append(MARK_END if boxes and boxes.pop() else "")
        else:
            parts.append(token[0][1])
    parts.append(text[position:])
    return _BLANKS.sub(" ", "".join(parts))


def _fraction(found: re.Match[str]) -> str:
    above, below = found[2] or found[3], found[4] or found[5]
    lead = f"{found[1]} " if found[1] else ""
    return f"{lead}{above.strip()}/{below.strip()}"


def _command(found: re.Match[str]) -> str:
    name, symbol = found[1], found[2]
    if name is not None:
        return _COMMANDS.get(name, _GREEK.get(name, name))
    return _SYMBOLS.get(symbol, symbol) if symbol is not None else ""


def _without_markdown(text: str) -> str:
    if "```" in text or "~~~" in text:
        text = _FENCE.sub("", text)
    if "~~" in text:
        text = _STRUCK.sub("", text)
    if "|" in text:
        text = _TABLE_END.sub("", _TABLE_RULE.sub("", text))
    text = _LINE_START.sub("\n", "\n" + text)[1:]
    if "[" in text:
        text = _LINK.sub(r"\1", _UNTICKED.sub("", _TICKED.sub("✓ ", text)))
    if "*" in text:
        text = _STARS.sub("", text).replace("**", "^")
    if "_" in text:
        text = _UNDERSCORES.sub("", text)
    if "`" in text:
        text = text.replace("`", "")
    return text.replace("$", "") if "$" in text else text
