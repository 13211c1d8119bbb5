"""short_answer, default rule: whether the final statement of a reply is an accepted answer.

The final statement is what the last announcement (`Final answer:`, `The answer is`, `\\boxed{}`, JSON) announces; else
the last line; else the whole reply when it is short. Around that, where the specification is silent:

* Polite closings are no last line. The only bold words of a reply, or a first line that is nothing but a value, are
  read too. Lines that are all bare values are a list, and so are two announcements side by side.
* A reply that is an accepted answer word for word passes, whatever else could be said about it.
* Numbers: the last one of the statement, but neither what stands in brackets behind it, nor what follows `because`,
  `since`, `out of` and the like, nor a number that the question gives (`14 pens`). Equal is equal in value (`3/4`,
  `0.75`, `75 %`); `50 %` is 50 or 0.5. `1.5 million` is 1,500,000, or 1.5 where the question speaks of millions. A
  range, or a number joined to another by `and`, `or`, is a list. Number words (`twelve`) count
  where there are no digits, at the end, and before what the question counts; a number that a statement begins with
  counts where only a description follows a comma. A subordinate clause that begins a sentence explains no number.
* Units that are known (lengths, areas, weights, times, volumes, speeds, cents) are converted to the one that the answer
  has, or the question asks for: `0.33 km` is `330 m`, `250 kg` is no answer to how many grams. Currencies and
  temperatures are not.
* Dates, times of day, multiples of π, names with the family name first, and lists joined by `and` are compared as such.
  So are ranges, ratios and sets of numbers (`several_numbers`).
* An accepted answer that is a number is compared as a number, never as a piece of text, so 42 is not 42.5. One with a
  unit (`12 km`) wants its unit unless the row has a tolerance; a unit behind the reply's number never hurts.
* A value beside the accepted one is harmless when it is accepted too, when it is of another kind (a year, words in
  small letters behind a name, the larger place around a place), is named by the question, or begins with `a` or `an`.
* A person may be named with other given names or by the family name alone, a thing without the kind that the question
  asks for, a body by its initials: `people`, `short_forms`. Lists count in lines and sentences, in any order.
* A number that only rounds to the accepted one, or is it rounded to three digits, meets it as a guess. A number without
  unit has the one that the reply gives it elsewhere. Sentences behind a number that a reply begins with tell of it.
* A date meets its month and year. A question that the reply makes up behind its answer is not read.
* `yes` and `no` (`not at all`, `of course`) count only as first or last word; whatever follows explains it.
* Of several clauses, the one that shares most words with the question speaks of it, unless the statement works its
  way to a conclusion (`so`, `=`). Dates are no numbers where none is asked for. Where another clause says of another
  name what is asked (`but the capital is Sydney`), or the answer comes second (`followed by`), it is not the answer.
* Of a score who has won by how many counts, in whatever words. A comparison (`like X,`), what was replaced, the date of
  another event, and the other one of two that the question offers are not the answer.
* Whether a verdict is certain, a guess or not even that says `certainty`.
* What a reply asks (`Canberra? No, Sydney.`) or takes back (`Wait, no`) is not said.
* A statement quoted from the context counts while it is not much longer than the answer (20 words).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.short_answer.accepted import Accepted, prepared
from pytest_helmbench.benchmarks.packs.families.short_answer.certainty import (
    is_in_other_prefix,
    sureness,
    sureness_of_same,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.equivalents import said_otherwise, same_names
from pytest_helmbench.benchmarks.packs.families.short_answer.final_number import last_number
from pytest_helmbench.benchmarks.packs.families.short_answer.final_statement import (
    candidates,
    last_word,
    listed_items,
    own_words,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.listed import said_as_list, without_asides
from pytest_helmbench.benchmarks.packs.families.short_answer.listed_answers import (
    has_people,
    is_part_of_list,
    outer_sentences,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.named_values import (
    answer_places,
    asks_for_order,
    holds_all,
    holds_parts,
    members,
    names_several,
    same_members,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.number_bases import with_bare_digits
from pytest_helmbench.benchmarks.packs.families.short_answer.number_found import NumberFound
from pytest_helmbench.benchmarks.packs.families.short_answer.number_match import (
    ROUNDED,
    in_unit_said,
    is_in_asked_form,
    number_met,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.offered_values import (
    compared_number,
    concludes_with_other,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.opposites import is_said_of_opposite
from pytest_helmbench.benchmarks.packs.families.short_answer.part_of_name import is_beside
from pytest_helmbench.benchmarks.packs.families.short_answer.people import (
    is_other_of_family,
    said_name,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.polarity import polarity
from pytest_helmbench.benchmarks.packs.families.short_answer.repeated import is_repeated
from pytest_helmbench.benchmarks.packs.families.short_answer.rivals import (
    comes_second,
    dates_another_event,
    opens_with_rival,
    rival_is_asserted,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.row import ShortRow
from pytest_helmbench.benchmarks.packs.families.short_answer.scores import says_score
from pytest_helmbench.benchmarks.packs.families.short_answer.several_numbers import same_numbers
from pytest_helmbench.benchmarks.packs.families.short_answer.short_forms import may_be_said, said_in_short
from pytest_helmbench.benchmarks.packs.families.short_answer.written_forms import (
    continues_formula,
    is_expression,
    is_other_half,
    is_turned_name,
    last_pi,
    written_alike,
)
from pytest_helmbench.benchmarks.packs.families.text.denial import is_denied, keeps_distance
from pytest_helmbench.benchmarks.packs.families.text.echo import (
    is_dump,
    without_next_question,
    without_passage,
)
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, Sureness, shown
from pytest_helmbench.benchmarks.packs.families.text.plain import plain, spoken
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import (
    comma_free,
    folded,
    is_within,
    unmarked,
    whole_places,
    words,
)
from pytest_helmbench.benchmarks.packs.families.text.yes_no import leading_yes_or_no

__all__ = ["judge_short"]

_MOST_PLACES = 50
_QUESTIONED = re.compile(
    r"(?:^|(?<=[.!?]\s))[^.!?]{1,200}+\?(?=\s+(?!yes|yep|correct|right|indeed|exactly)\S)"
)
"""A question that the reply asks and then goes on, not to affirm it."""
_PICTURES = re.compile("[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff]")
_YES_AND_NO = word_set("yes no ja nein oui non sí si não sim да нет")
_OTHER_WORDS = {
    "nope": "no",
    "nah": "no",
    "yep": "yes",
    "yeah": "yes",
    "absolutely": "yes",
    "definitely": "yes",
    "true": "yes",
    "false": "no",
}
_CONCLUDED = re.compile(
    r"(?:^|[.;,]\s)(?:so|therefore|thus|hence|in short|in conclusion|conclusion:),?\s"
    r"(?:the answer is,?\s|it is a\s)?(?P<word>yes|no)(?=[.,;:!]|$)"
)
"""`So no`: what a reply comes to, whatever it began with."""


def judge_short(row: ShortRow, reply: str) -> AnswerFinding:
    """Judge a short_answer reply by the default rule."""
    reply = with_bare_digits(_PICTURES.sub("", reply), row.question)
    text = spoken(reply)
    if not text.strip():
        return AnswerFinding(passed=False, reason="empty")
    if is_in_other_prefix(text, map(str, row.accepted)):
        return AnswerFinding(passed=False, statement=shown(text), sureness=Sureness.UNSURE)
    same = next((at for at, one in enumerate(row.accepted) if str(one).strip() == reply.strip()), None)
    if same is not None:
        return AnswerFinding(passed=True, strategy="normalized_exact", matched=same, statement=shown(text))
    alike = written_alike(map(str, row.accepted))
    accepted = prepared(row, alike)
    whole = folded(alike(text)) if len(text) <= 4 * max(len(answer.text) for answer in accepted) + 200 else ""
    for answer in accepted:
        if whole and answer.text and comma_free(whole) == comma_free(answer.text):
            return AnswerFinding(
                passed=True,
                strategy="normalized_exact",
                matched=answer.index,
                statement=shown(text),
                sureness=sureness_of_same(text, str(row.accepted[answer.index]), row.question),
            )
    own = without_next_question(reply, row.question)
    for passage in row.given:
        own = without_passage(own, passage)
    own = spoken(own)
    if not own.strip() or is_dump(text, row.context):
        return AnswerFinding(passed=False, statement=shown(text), reason="echo")
    as_said, own = own, alike(own)
    numeric = all(any(map(str.isdigit, answer.written)) for answer in accepted)
    finding = _judged(row, accepted, own, numeric=numeric)
    said, core = unmarked(plain(own)).strip(), last_word(own)
    texts = [answer.text for answer in accepted]
    sure = sureness(row, finding, texts, core, own=said)
    if own != as_said:
        finding = replace(finding, statement=own_words(finding.statement, as_said, alike, numeric=numeric))
    return replace(finding, sureness=sure)


def _judged(row: ShortRow, accepted: Sequence[Accepted], own: str, *, numeric: bool) -> AnswerFinding:
    statements = candidates(own, numeric=numeric)
    items = ", ".join(listed_items(own))
    listed = members(items, row.question, bare=True) if "," in items else ()
    for answer in accepted if listed else ():
        if same_members(listed, answer.members) or same_numbers(items, answer.written, row.question, 0.0):
            return AnswerFinding(
                passed=True, strategy="same_list", matched=answer.index, statement=shown(items)
            )
    reason = None if statements else "no_statement"
    for statement in statements:
        if is_repeated(statement.text, row, accepted):
            reason = "echo"
        else:
            number = last_number(statement.text, row.question)
            met = _met(statement.text, number, row, accepted)
            if met is None and (with_unit := in_unit_said(number, own)) is not None:
                met = _met(statement.text, with_unit, row, accepted)
            if met is not None and met[1] != "several":
                return AnswerFinding(
                    passed=True, strategy=met[1], matched=met[0], statement=shown(statement.text)
                )
            if met is not None or number.several:
                reason = "several"
        if statement.alone:
            break
    first = statements[0].text if statements else own
    return AnswerFinding(passed=False, statement=shown(first), reason=reason)


def _met(
    statement: str, number: NumberFound, row: ShortRow, accepted: Sequence[Accepted]
) -> tuple[int, str] | None:
    """Return the accepted answer that a statement meets and how; `several` when it meets it among others."""
    text = folded(statement)
    listed = [members(part, row.question, bare=True) for part in outer_sentences(statement)]
    several: int | None = None
    offered = _met_of_offered(statement, row, accepted)
    if offered is not None:
        return offered[0]
    for answer in accepted:
        if comma_free(text) == comma_free(answer.text) or is_turned_name(text, answer.text):
            return answer.index, "normalized_exact"
        if has_people(statement, answer, row):
            return answer.index, "same_list"
        if answer.members and (
            any(same_members(part, answer.members) for part in listed)
            or any(
                holds_all(without_asides(part, answer.text), answer.members, row.question)
                for part in outer_sentences(statement)
            )
            or _lists(statement, answer, accepted, row)
        ):
            return answer.index, "same_list"
        if holds_parts(statement, answer.written, row.question):
            return answer.index, "same_parts"
        if same_numbers(statement, answer.written, row.question, row.tolerance or 0.0):
            return answer.index, "same_numbers"
        if answer.pi is not None and answer.pi == last_pi(statement):
            return answer.index, "numeric_exact"
        how = number_met(number, answer, row.tolerance, row.question)
        if how is not None and is_in_asked_form(number, answer, row):
            return answer.index, ROUNDED if number.guess else how
        is_text = answer.number is None and answer.pi is None and bool(answer.text)
        name = _other_form(statement, text, answer, accepted, row) if is_text else None
        said = answer if name is None else replace(answer, text=name, written=name.title())
        is_part = name is None and is_part_of_list(text, answer, row)
        if (
            is_text
            and several is None
            and not is_part
            and _says(statement, text, said, accepted, row.question)
        ):
            if answer.text in _YES_AND_NO or not _names_others(statement, said, accepted, row):
                return answer.index, "answer_span"
            several = answer.index
        if is_text and _is_said_of_it(statement, text, answer, row):
            return answer.index, "polarity"
    return None if several is None else (several, "several")


def _met_of_offered(
    statement: str, row: ShortRow, accepted: Sequence[Accepted]
) -> tuple[tuple[int, str] | None] | None:
    """Return what a statement meets that says who has won, or compares two numbers; None where it does neither."""
    score = says_score(statement, [answer.written for answer in accepted], row.question)
    if score is not None:
        return ((accepted[0].index, "same_score") if score else None,)
    compared = compared_number(statement, row.question)
    if compared is None:
        return None
    found = next((answer.index for answer in accepted if answer.text == compared), None)
    return (None if found is None else (found, "offered"),)


def _lists(statement: str, answer: Accepted, accepted: Sequence[Accepted], row: ShortRow) -> bool:
    """Return whether a statement lists the members of an answer side by side, in any order, and names no others."""
    if asks_for_order(row.question):
        return False
    bare = without_asides(statement, answer.text)
    listing = said_as_list(folded(bare), answer.members)
    if listing is None:
        return False
    said = replace(answer, text=listing, written=listing.title())
    return not _names_others(bare, said, [*accepted, said], row)


def _other_form(
    statement: str, text: str, answer: Accepted, accepted: Sequence[Accepted], row: ShortRow
) -> str | None:
    """Return the form in which a statement has an accepted answer, folded, where it has another one than the row."""
    if next(whole_places(text, answer.text), None) is not None:
        return None
    names = [other.written for other in accepted]
    return (
        said_name(statement, answer.written, names, row.question)
        or said_in_short(statement, answer.written, row.question)
        or said_otherwise(statement, text, answer.written, row.question)
    )


def _names_others(statement: str, answer: Accepted, accepted: Sequence[Accepted], row: ShortRow) -> bool:
    """Return whether a statement names values beside an accepted one, or says of another what the question asks."""
    same = (other for one in (answer, *accepted) for other in same_names(one.text))
    texts = [*{answer.text, *(other.text for other in accepted), *same}]
    if is_expression(answer.written) and "=" not in answer.written:
        statement = statement[statement.rfind("=") + 1 :]
    return (
        names_several(statement, answer.written, texts, row.question)
        or opens_with_rival(statement, answer.text, row.question)
        or (not is_expression(answer.written) and comes_second(statement, answer.text, row.question))
        or dates_another_event(statement, answer.text, row.question)
        or rival_is_asserted(statement, answer.text, texts, row.question)
        or is_said_of_opposite(statement, answer.text, row.question)
        or concludes_with_other(statement, texts, row.question)
        or is_other_of_family(statement, answer.written, [other.written for other in accepted])
    )


def _is_said_of_it(statement: str, text: str, answer: Accepted, row: ShortRow) -> bool:
    """Return whether a statement without yes or no says the one that is the answer: `221 is not prime`."""
    said = words(text)
    if answer.text not in ("yes", "no") or _YES_AND_NO.intersection((*said[:1], *said[-1:])):
        return False
    if _CONCLUDED.search(text):
        return False  # it says it, after all
    return polarity(statement, row.question) is (answer.text == "yes")


def _says(statement: str, text: str, answer: Accepted, accepted: Sequence[Accepted], question: str) -> bool:
    """Return whether a folded statement holds an answer as a whole and does not deny it."""
    if answer.text in _YES_AND_NO:
        said = [_OTHER_WORDS.get(word, word) for word in words(text)]
        concluded = [*_CONCLUDED.finditer(text)]
        if concluded:
            return concluded[-1]["word"] == answer.text
        lead = leading_yes_or_no(text)
        if lead is not None and answer.text in ("yes", "no"):
            return lead is (answer.text == "yes")
        if not said or any(word in _YES_AND_NO and word != answer.text for word in said[:4]):
            return False
        return answer.text in (said[0], said[-1])
    if len(answer.text) == 1 and answer.text in "aio":
        return False
    if not may_be_said(statement, answer.written):
        return False
    text = _QUESTIONED.sub("", text)
    if keeps_distance(text.partition(answer.text)[0]):
        return False
    text, places = answer_places(text, answer.text)
    longer = [other.text for other in accepted if len(other.text) >= len(answer.text)]
    denied = [
        place
        for other in longer
        for place in islice(whole_places(text, other), _MOST_PLACES)
        if is_denied(text, *place)
    ]
    formula = is_expression(answer.written)
    times = [other.text for other in accepted]
    return any(
        not is_denied(text, *place)
        and not is_beside(statement, text, place, question)
        and not any(is_within(place, other) for other in denied)
        and not (formula and continues_formula(text, *place))
        and not (answer.text[-1:].isdigit() and is_other_half(text, place[1], times))
        for place in places
    )
