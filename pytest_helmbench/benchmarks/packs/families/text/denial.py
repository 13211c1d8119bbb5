"""Negation and distance in a reply: whether a phrase is denied or only reported, as far as its clause reaches."""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of

__all__ = ["denials", "is_denied", "is_denied_answer", "keeps_distance"]

_REACH = 80
"""Characters before a phrase in which a negation still concerns it."""

# Words that deny a statement, and words that set something apart from it.
_NOT = any_of(
    "not no never none nothing_to_do cannot neither nor hardly nicht kein keine keinen keiner nie pas ni jamais",
    "nunca не нет нельзя",
)
_AWAY = any_of(
    "except excluding besides without against wrong wrongly incorrect incorrectly false falsely mistaken mistakenly",
    "eliminate eliminates eliminated eliminating rule_out rules_out ruled_out ruling_out instead rather_than",
    "other_than anything_but anyone_but anybody_but all_but everything_but unlike whether unsure statt sauf excepto",
    "кроме",
)
_NOT_GLUED = r"n't(?!\w)|不|没|沒|非|ではない"
_NOT_AT_ALL = re.compile(rf"(?<!\w){_NOT}(?!\w)|{_NOT_GLUED}")
_NEGATION = re.compile(rf"(?<!\w)(?:{_NOT}|{_AWAY})(?!\w)|{_NOT_GLUED}")
_NO_NEGATION_AT_ALL = any_of(
    "no_doubt no_question no_wonder not_only not_just not_surprisingly not_least without_doubt without_a_doubt",
    "without_any_doubt nothing_but none_other_than not_sure_but",
)
_NO_NEGATION = re.compile(rf"(?<!\w){_NO_NEGATION_AT_ALL}(?!\w)|不仅|不只")
_ASIDE = re.compile(r"\([^()]*\)")
_CLAUSE_START = re.compile(
    r"[,;:!?\n，。；]|\s-\s|\.(?=\s|$)"
    r"|(?<!anything)(?<!anyone)(?<!anybody)(?<!everything)(?<!nothing)(?<!all)\sbut\s(?:rather\s)?"
    r"|\s(?:sondern|sino|mais|а|но)\s|而是"
)
_AUXILIARY = any_of(
    "is are was were seems would would_be can can_be could looks did do does has have had will ist est es"
)
_SOFTENER = any_of("definitely clearly certainly simply also just a an the common popular typical tempting")
_WRONG = any_of(
    "not never cannot wrong incorrect false untrue ruled_out eliminated excluded myth nicht falsch pas faux не"
)
_WRONG_AFTER = re.compile(
    rf"[)\]\"']*\s*(?:{_AUXILIARY}\s)?\s*(?:{_SOFTENER}\s)*"
    rf"(?:{_WRONG}|kein\w*|\w+n't|n't)(?!\w)(?!\s(?:only|just)\b)|是错|不对|不是"
)
# Words by which a sentence reports what it does not say itself.
_DISTANCE = re.compile(
    r"(?<!\w)(?:"
    + any_of(
        "myth myths misconception misconceptions misbelief contrary_to popular_belief old_wives legend debunked",
        "superstition superstitions untrue folklore hoax misquoted misquotes trope tropes theories speculation saying",
        "sayings old_tale old_wives'_tale stereotype supposedly allegedly falsely so-called rumour rumours rumor",
        "claim_that claims_that idea_that belief_that notion_that false_that untrue_that incorrect_that wrong_that",
        "mythos mythe mito миф",
    )
    + r"|(?:many|some|most|a lot of)(?: people)? (?:still )?(?:believe|think|say|claim|assume|argue)"
    r"|(?:people|they) (?:often |sometimes |commonly )?(?:believe|think|claim)"
    r"|(?:often|commonly|widely|popularly|sometimes|frequently) (?:believed|thought|said|claimed|assumed)"
    r")(?!\w)|迷信|谣言|误解"
)
_CONTRAST = re.compile(
    rf"(?<!\w){any_of('but however in_fact actually in_reality instead the_truth_is yet')}(?!\w)|,"
)
_MYTH = any_of(
    "myth misconception legend not_true untrue false wrong incorrect superstition hoax debunked fiction nonsense trope"
)
_CALLED_A_MYTH = re.compile(
    r"[^.;]{0,80}?(?:'s|\sis|\sare|\swas|\sbeen)\s(?:just |only |actually |simply |merely |largely )*(?:a |an |the )?"
    rf"(?:popular |common |old |tv |movie )?{_MYTH}(?!\w)"
    r"|[^.;]{0,40}?for which there(?:'s|\sis|\swas) (?:no|little)(?!\w)"
)


_NOR = re.compile(r"(?<!\w)(neither\s[^.;:]{1,80}?\s)nor(?!\w)")
_CALLED_WRONG = re.compile(rf"(?<!\w){any_of('wrong incorrect false untrue not_true not_correct')}(?!\w)")


def is_denied(low: str, start: int, end: int) -> bool:
    """Return whether what stands between two places is denied in its clause: `not X`, `X is wrong`.

    Args:
        low: Text in lower case.
        start: Where the phrase begins.
        end: Where the phrase ends.
    """
    lead = _CLAUSE_START.split(_ASIDE.sub(" ", low[max(0, start - _REACH) : start]))[-1]
    if _NEGATION.search(lead) is not None and _NEGATION.search(_NO_NEGATION.sub(" ", lead)) is not None:
        return True
    return _WRONG_AFTER.match(low, end) is not None


def is_denied_answer(low: str, start: int, end: int, *, wrong_wanted: bool) -> bool:
    """Return whether a choice is denied; where the question asks for a false one, `X is false` denies nothing."""
    if not wrong_wanted:
        return is_denied(low, start, end)
    begin = max(0, start - _REACH)
    near = _CALLED_WRONG.sub(lambda found: "_" * len(found[0]), low[begin : end + _REACH])
    return is_denied(near, start - begin, end - begin)


def denials(low: str) -> int:
    """Return how many negations a sentence in lower case holds; `neither X nor Y` is one."""
    low = _NOR.sub(r"\1", low) if "neither" in low else low
    if _NOT_AT_ALL.search(low) is None:
        return 0
    return len(_NOT_AT_ALL.findall(_NO_NEGATION.sub(" ", low)))


def keeps_distance(before: str, after: str = "") -> bool:
    """Return whether a sentence in lower case only reports what stands between two parts of it.

    `contrary to the myth that X`, `many believe X`, `X is a myth`; not `many believe Y, but X`.
    """
    ends = [found.end() for found in _DISTANCE.finditer(before)]
    if ends and _CONTRAST.search(before, ends[-1]) is None:
        return True
    return after != "" and _CALLED_A_MYTH.match(after) is not None
