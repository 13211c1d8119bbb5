"""Text as it is compared: no markup, no LaTeX, one way of writing each sign."""

from __future__ import annotations

import re
import unicodedata

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SIGN_TABLE = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–—−", "-"),
        **dict.fromkeys("‘’‚ʼ`´", "'"),
        **dict.fromkeys("“”„«»", '"'),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad"),
        **dict.fromkeys("×·⋅", "*"),
        **{"⁄": "/", "→": ",", "√": "sqrt ", "º": "°", "π": "pi"},
    }
)
_LATEX = tuple(
    (re.compile(pattern), by)
    for pattern, by in (
        (r"\\(?:text|textbf|mathbf|mathrm|mathit|operatorname|ce|bf|rm)\s*\{([^{}]*)\}", r"\1"),
        (r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"\1/\2"),
        (r"\\sqrt\s*\{([^{}]*)\}", r"sqrt \1"),
        (r"\\(?:times|cdot)(?![a-z])", "*"),
        (r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?![a-z])", "°"),
        (r"\\(?:approx|simeq)(?![a-z])", "≈"),
        (r"\\(?:left|right|displaystyle)(?![a-z])|\\[()\[\]]", ""),
        (r"\\(pi|alpha|beta|theta|infty)(?![a-z])", r"\1"),
        (r"\\[,;!: ]|~", " "),
        (r"\{,\}", ","),
        (r"\\([%$#&_{}])", r"\1"),
        (r"\^\{([^{}]*)\}", r"^\1"),
        (r"\$\$?([^$]+?)\$\$?", r"\1"),
    )
)
_SUBSCRIPT = re.compile(r"(?<=[A-Za-z)])_\{?(\d+)\}?")
_MARKUP = re.compile(
    r"\*\*|__|~~[^~]*~~|```\w*|`|^\s{0,3}(?:#{1,6}|>|[-*+•]|\d{1,2}[.)](?=\s+\D))\s+|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)",
    re.MULTILINE,
)
_PICTURES = re.compile("[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\u2600-\u27bf\ufe0f]")
_ARTICLES = re.compile(r"(?<!\w)(?:a|an|the)(?!\w)(?=\s+\w)")
_ASIDE = re.compile(r"\s*(?:[(\[][^()\[\]]*[)\]](?=\W|$)(?!\s*\w+\s*=)|【[^】]*】)")
_LABEL = re.compile(r"^[^\W\d][\w ]{0,24}\s*[:：]\s*(?=\S)")
_EDGES = " \t\r\n\"',;:!."
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!(?<!\w)[A-Za-z]\.)(?<!(?<!\w)(?:Dr|Mr|Ms|St)\.)\s+(?=[^\W_a-z]|[\d$(\"'])|\s*\n\s*"
)
"""Not behind a letter or a title: `B. Canberra` and `J. R. R. Tolkien` are one sentence each."""
_TAKES_BACK = (
    r"(?<!\w)(?:or|nor|but|not|no|neither|either|never|unlike|instead|rather|wait|actually|however|except|wrong|incorrect|"
    r"cannot|correction|sorry|oops)(?!\w)|n't(?!\w)|\?"
)
_RETRACTION = re.compile(_TAKES_BACK)
_SEVERAL = re.compile(
    rf"{_TAKES_BACK}|(?<!\w)(?:and|than|if)(?!\w)|[;<>]|,(?!\d{{3}}(?!\d))|(?<=\w)/(?=[^\W\d])|\w\s*-\s+\w"
)


def plain(text: str) -> str:
    """Return a text without markup and LaTeX, its signs in one way of writing; its case stays."""
    if "\\" in text or "$" in text:
        for _ in range(3):  # arguments nest
            for pattern, by in _LATEX:
                text = pattern.sub(by, text)
    text = re.sub(r"(?<=\w)\*\*(?=-?\d)", "^", _PICTURES.sub("", text))
    text = re.sub(r"[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda found: "^" + found[0].translate(_SUPERSCRIPTS), text)
    text = re.sub(r"(?<=\d)(?=[¼-¾⅐-⅞])", " ", text)
    text = _SUBSCRIPT.sub(r"\1", _MARKUP.sub("", text.translate(_SIGN_TABLE)))
    return unicodedata.normalize("NFKC", text).translate(_SIGN_TABLE).strip()


def folded(text: str) -> str:
    """Return a text as it is compared: case, accents, articles, spaces and marks at its ends do not count."""
    low = unicodedata.normalize("NFD", plain(text).casefold())
    low = "".join(char for char in low if not unicodedata.combining(char))
    low = re.sub(r"(?<=\d)(?=[a-z°])", " ", re.sub(r"(?<=\d)\s+%", "%", _ARTICLES.sub(" ", low)))
    low = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", re.sub(r"(?<=\d)\s*\*\s*(?=[a-z(])", "", low))
    return re.sub(
        r"^[\s\"',;:!]*\.?(?=[^\d.])|[\s\"',;:!]+$", "", " ".join(low.rstrip(_EDGES).split())
    ).strip()


def words_of(text: str) -> list[str]:
    """Return the words of a folded text, without the marks around them."""
    return [word for word in (piece.strip(_EDGES + "()[]?") for piece in text.split()) if word]


def without_label(text: str) -> str:
    """Return a plain text without asides in brackets and without a label, as in `Antwort: 42`."""
    bare = _LABEL.sub("", _ASIDE.sub("", text).strip(" .") or text)
    return bare or text


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a plain text."""
    return [part for part in _SENTENCE_END.split(text) if part.strip(" .*-_#|")]


def is_several(text: str) -> bool:
    """Return whether a folded text lists, compares, denies, doubts or asks: its words do not add up to one answer."""
    return _SEVERAL.search(text) is not None


def takes_back(text: str) -> bool:
    """Return whether a folded text may deny or doubt what was said before it."""
    return _RETRACTION.search(text) is not None
