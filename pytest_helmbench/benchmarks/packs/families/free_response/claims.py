"""Clauses of free replies and entries, and what they claim: their words, each said or denied, and how much that counts.

A clause that only reports (`many believe that …`, `the story that …`), that a sentence calls false, or that it
concedes (`although …`) is not the speaker's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pytest_helmbench.benchmarks.packs.families.free_response.tokens import Unit, is_numeric, tokens, unit
from pytest_helmbench.benchmarks.packs.families.text.denial import keeps_distance
from pytest_helmbench.benchmarks.packs.families.text.meanings import meaning, root
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import FUNCTION_WORDS
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Claim", "Word", "calls_false", "claims", "refuted"]

_CLAUSE_END = re.compile(
    r"[,;:()]\s?|\s-\s|\.\s|\s(?=so that\s)"
    r"|\s(?:but|while|whereas|although|though|however|yet|since|so(?! that)|and)\s"
    r"|(?<!\Anot)(?<![,;:] not)(?<!is not)(?<!are not)(?<!was not)\sbecause\s"
)
_FALSE = any_of(
    "myth myths legend legends misconception misconceptions debunked disproved disproven refuted false untrue faked",
    "not_true trope wrong incorrect exaggerated exaggeration fiction nonsense unfounded hoax superstition outdated",
    "fraudulent retracted pseudoscience folklore apocryphal fabricated embellishment baseless",
    "mistaken inaccurate discredited misattributed misquoted overstated oversimplification",
    "modern_invention later_invention century_invention later_addition later_embellishment later_fabrication",
    "hollywood_invention victorian_invention modern_myth invention_of",
)
_CALLED_FALSE = re.compile(
    rf"(?<!\w)(?:is|are|was|were|been|has|have|'s)\s(?:(?!not\s)\w+\s){{0,3}}?{_FALSE}(?!\w)"
    r"|(?<!\w)(?:is|are|would be)\s(?:the\sworst|a\sbad\sidea|a\smistake|bad\sadvice|no\sgood\sidea)(?!\w)"
    r"|(?<!\w)(?:do|does|did)\snot\s(?:really\s|actually\s)?(?:exist|hold up|stand up)(?!\w)"
    r"|(?<!\w)has(?:\s\w+)?\sno\s(?:\w+\s)?(?:basis|foundation|support|evidence)(?!\w)"
)
_REPORTED = re.compile(
    r"(?<!\w)(?:often|usually|commonly|popularly|sometimes|frequently|generally|traditionally|wrongly|falsely)\s"
    r"(?:\w+\s)?(?:credited|attributed|told|given|quoted|cited|mentioned|listed|heard|repeated|depicted|portrayed|"
    r"assumed|supposed|believed|held|list|hear|assume|repeat|quote)(?!\w)"
    r"|(?:\A\s*|(?<!\w)(?:the|this|that)\s)(?:\w+\s){0,4}?(?:story|tale|rumor|rumour|proverb|saying|notion|idea|claim|belief)"
    r"\s(?:that|was|is|has|comes|came|goes|dates)(?!\w)"
    r"|(?<!\w)(?:despite|in spite of|contrary to|whatever)\s"
    r"|(?<!\w)(?:it|that|there|this|they) used to(?!\w)"
    r"|(?<!\w)(?:people|they|some|many) (?:often |always |still |sometimes )?(?:say|claim|assume|repeat)(?!\w)"
    r"|(?<!\w)(?:was|were) (?:once |long )?(?:believed|thought|assumed|supposed)(?!\w)"
    r"|(?<!\w)(?:seem|seems|appear|appears|look|looks|feel|feels)\s(?:like|as if|as though|so|that)(?!\w)"
)
_CONCEDED = re.compile(r"\s*(?:although|though|while|whilst|whereas|even (?:though|if)|granted|admittedly)\s")
_OWN_SENSE = re.compile(
    r"^\s*(?:but|however|yet|so|although|though|while|whereas|which|who|where|that)(?!\w)"
    r"|(?<!\w)(?:is|are|was|were|has|have|had|does|did|can|could|will|would|should|may|might|must|made|makes|it|they)"
    r"(?!\w)"
)
"""What begins a claim of its own: a clause without it may be a member of a list that is denied."""
_PREVENTED = re.compile(r"\s*(?:lest|with not)(?!\w)")
"""What does not come about, or is not there, beside what a sentence says."""
_ASIDE = re.compile(r"\s*(?:so that|in order|lest|if|unless|whether|in case|to (?:prevent|avoid|stop))(?!\w)")
SMALL = FUNCTION_WORDS | word_set(
    "his her hers them us me my our their its one ones such some any much just also",
    "very really actually simply usually generally often sometimes always quite rather even still too well there here",
    "get gets got getting make makes made making cause causes caused causing go goes going thing things something",
    "anything people person someone somebody anyone need say time length volume mass speed percent up out off per",
    "itself themselves yourself ever but however yet although though whereas whilst",
)
"""Words that any sentence may have, and kinds of units: those of two entries say nothing of what they share."""

_AGAINST_BELIEF = re.compile(
    r"(?<!\w)(?:contrary to|despite|in spite of|notwithstanding)\s(?:[\w']+\s){0,3}?"
    r"(?:beliefs?|legends?|myths?|opinion|sayings?|proverb|story|stories|claims?|rumou?rs?|assumptions?|wisdom|"
    r"reputation|tradition|name|misconceptions?|idea|intuition|lore)(?!\w)(?!\sthat\s)"
)
"""`Contrary to popular belief`, which says of nothing in particular that it is false."""
_CONCLUDES = re.compile(r"[,;:]\s(?:and |but )?(?:so|thus|hence|therefore|which means|meaning|but)\s|\sbut\s")
_THE_CLAIM = re.compile(
    r"\W*(?:(?:so|and|but|which means|because|since|thus)\s)?(?:the|this|that|such an?|it)?\s?(?:\w+\s)?"
    r"(?:claim|idea|story|notion|belief|rumor|saying|it|that|this|proverb|legend|theory|concept)?\s?"
)
_PHRASES = tuple(
    (re.compile(rf"(?<!\w){pattern}(?!\w)"), word)
    for pattern, word in (
        (r"(?:go|goes|went|going|gone) up", "increase"),
        (r"(?:go|goes|went|going|gone|come|comes|came) down", "decrease"),
        (r"shut(?:s|ting)? down", "close"),
        (
            r"(?:bring|brings|brought|bringing) (?:on|about)|(?:give|gives|gave) rise to|result(?:s|ed)? in",
            "trigger",
        ),
        (r"(?:get|gets|got|getting) rid of", "remove"),
        (r"a (?:large |great )?number of|a (?:lot|bunch) of|lots of|plenty of", "numerous"),
        (r"at once|right away|straight away|as soon as", "immediately"),
        (r"(?:pass|passes|passed) away", "died"),
        (r"by (?:him|her|it)self|on (?:his|her|its) own|single-?handed(?:ly)?|all alone", "alone"),
        (r"anything but|far from|by no means|in no way|(?:fail|fails|failed|failing) to", "not"),
        (r"not until", "only after"),
        (r"nobody", "not"),
        (
            r"(?P<ceased>\w+) (?:stops|stopped|ceases|ceased)(?=\s*(?:[.,;:]|$)|\s(?:after|at|once|when|as|upon) )",
            r"not \g<ceased>",
        ),
        (
            r"(?:(?:go|goes|going|went|carry|carries|carried) on|keep|keeps|kept|keeping)(?= (?!being)\w{2,}ing(?!\w))"
            r"|(?:keep|keeps|kept) on",
            "continue",
        ),
        (r"(?:hold|holds|held|holding|pin|pins|pinned) (?P<held>(?:\w+ ){1,4}?)down", r"restrain \g<held>"),
        (r"look(?:s|ed|ing)? after|(?:take|takes|took|taking) care of", "care"),
        (r"(?:stop|stops|stopped|cease|ceases|ceased|quit|quits)(?= \w{2,}ing(?!\w))", "not"),
        (
            r"(?:stop|stops|stopped|stopping|prevent|prevents|prevented|preventing|keep|keeps|kept|keeping) "
            r"(?P<kept>(?:\w+ ){1,4}?)from(?= \w+ing(?!\w))",
            r"\g<kept>, lest",
        ),
        (r"without(?! (?:a |any )?(?:doubt|question))|with no", ", with not"),
        (r"rather than|instead of|as opposed to", ", not"),
        (r"(?:make|makes|made|making) out", "see"),
        (r"a third", "1/3"),
        (r"a (?:quarter|fourth)|one (?:quarter|fourth)", "25 percent"),
        (r"a tenth|one tenth", "10 percent"),
        (r"half of", "50 percent of"),
    )
)
_ANY_PHRASE = re.compile("|".join(re.sub(r"\?P<\w+>", "?:", pattern.pattern) for pattern, _ in _PHRASES))
_PART_ENDS = (";", ":", " - ")
_FEWEST_WORDS = 2
_MOST_CLAUSES = 400
_LONGEST_MEMBER = 2
_CONCEDED_SHARE = 0.3
_ASIDE_SHARE = 0.7


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a clause.

    Args:
        root: Its own root.
        meaning: What it shares with words of the same meaning.
        sign: 1 when its meaning is said, -1 when it is denied.
    """

    root: str
    meaning: str
    sign: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A clause.

    Args:
        words: Those that count.
        sentence: All of its sentence as tokens.
        unit: Its own tokens.
        is_denied: What it is about is not so: it holds a negation, or is far, and not both.
        is_far: It is only reported, or called false.
        share: How much it counts, from 0 to 1.
    """

    words: frozenset[Word]
    sentence: Unit
    unit: Unit
    is_denied: bool
    is_far: bool
    share: float


def claims(sentences: Sequence[str]) -> Iterator[Claim]:
    """Yield what the clauses of some folded sentences claim."""
    left = _MOST_CLAUSES
    for sentence in map(_with_one_verb, sentences):
        false, sentence_unit = refuted(sentence), unit(sentence)
        before = 1
        for start, clause in _clauses(sentence):
            left -= 1
            if left < 0:
                return
            text = _AGAINST_BELIEF.sub(" ", _CALLED_FALSE.sub(" ", clause))
            own = unit(text)
            is_far = keeps_distance(text)
            denied = own.denials - is_far + text.startswith(" lest ")
            is_far = is_far or false[0] <= start < false[1] or _REPORTED.search(text) is not None
            named = _words(own.order)
            is_new = len(named) > _LONGEST_MEMBER or denied or is_far or _OWN_SENSE.search(text) is not None
            if is_new:  # else a member: `do not stop, drop and roll`
                before = 1 if (denied + is_far) % 2 == 0 else -1
            share = 1.0
            if _ASIDE.match(text) is not None:
                share = 0.0 if denied else _ASIDE_SHARE
            elif _CONCEDED.match(text) is not None:
                share = _CONCEDED_SHARE
            words = frozenset(Word(word.root, word.meaning, word.sign * before) for word in named)
            is_denied = (denied + is_far) % 2 == 1 and _PREVENTED.match(text) is None
            yield Claim(words, sentence_unit, own, is_denied, is_far, share)


def calls_false(sentences: Sequence[str], prompt: str) -> bool:
    """Return whether a reply calls false what a prompt asks about: `The ten percent claim is a myth.`

    Args:
        sentences: Of the reply, folded.
        prompt: Folded.
    """
    asked = {root(token) for token in tokens(prompt)}
    for sentence in sentences:
        start, end = refuted(sentence)
        shared = asked & {root(token) for token in tokens(sentence[start:end])}
        if len(shared) >= _FEWEST_WORDS or any(map(is_numeric, shared)):
            return True
    return False


def refuted(sentence: str) -> tuple[int, int]:
    """Return which part of a sentence is called false in it."""
    found = _CALLED_FALSE.search(sentence)
    if found is None:
        return 0, 0
    clause = max((end.end() for end in _CLAUSE_END.finditer(sentence, 0, found.start())), default=0)
    if _THE_CLAIM.fullmatch(sentence, clause, found.start()) is not None:
        return clause, found.end()
    begins = [sentence.rfind(end, 0, found.start()) + 1 for end in _PART_ENDS]
    begins += [end.end() for end in _CONCLUDES.finditer(sentence, 0, found.start())]
    return max(begins), found.end()


def _clauses(sentence: str) -> Iterator[tuple[int, str]]:
    """Yield where each clause begins, and the clause, with the word that opens it."""
    start = 0
    for found in _CLAUSE_END.finditer(sentence):
        if sentence[start : found.start()].strip():
            yield start, sentence[start : found.start()]
            start = found.start() if found[0].strip().isalpha() else found.end()
        else:
            start = found.end() if not found[0].strip().isalpha() else start
    if sentence[start:].strip():
        yield start, sentence[start:]


def _with_one_verb(sentence: str) -> str:
    """Return a sentence with one word for verbs of several, and for phrases that mean one word."""
    if _ANY_PHRASE.search(sentence) is None:
        return sentence
    for pattern, word in _PHRASES:
        sentence = pattern.sub(word, sentence)
    return sentence


@lru_cache(maxsize=4096)
def _word(token: str) -> Word:
    name, sign = meaning(token)
    return Word(root(token), name, sign)


def _words(order: Sequence[str]) -> list[Word]:
    """Return the words that count."""
    return [
        _word(token)
        for token in {*order}
        if token != "not" and token not in SMALL and (len(token) > 1 or token.isdigit())
    ]
