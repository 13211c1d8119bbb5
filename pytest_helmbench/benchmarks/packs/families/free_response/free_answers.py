"""free_response, default rule: whether a reply says an accepted answer and no rejected one.

An entry is met when the reply holds it word for word, or when token F1 reaches the row's least value; a rejected
entry that is met in its own words fails, one that is met by F1 fails when it fits at least as well as the best accepted
one. Around that, where the specification is silent:

* F1 is taken over the sentences of the reply (as many at a time as the entry has), their clauses and the whole reply;
  the best counts, so that a right answer is not wrong for what is explained around it.
* An entry does not count where its clause denies it (`it is not safe` for `safe`) or where the sentence keeps its
  distance (`contrary to the myth that …`, `many believe that …`). By F1, a sentence with another number of negations,
  odd or even, says something else.
* `don't`, `cannot` and `do not` are the same words. `No` before a comma answers the question and negates nothing.
* Questions that the reply asks are no answers, and words of the prompt alone score nothing by F1.
* Scripts without spaces: every character is a token, and borders of words are not asked for.
* Numbers, periods, opposites and the order of words can contradict an entry: `tokens`. An entry may be said without the
  words that the prompt has, and a question for yes or no is answered by either, in whatever words.
* Of a name and a rejected one (or two numbers) the first counts where a clause ends between them; a name behind
  `ahead of`, `unlike` and the like is in another role.
* Where nothing is met, and there are rejected entries, the reply may lean to one side: `leaning`.
* What a sentence says that one does not know is not said. An entry's own `No,` denies nothing.
* A reply that is an accepted entry word for word passes, whatever else could be said about it. What is certain says
  `sure_verdicts`; silence and an echo are, too. All else is a guess, or not even that where no entry is met and
  nothing is denied; a marking model decides where there is one.
* `yes` and `no` are met where a reply begins with them and a comma or its end follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.free_response.brief import brief_answer
from pytest_helmbench.benchmarks.packs.families.free_response.leaning import nearest_accepted, rubric_of
from pytest_helmbench.benchmarks.packs.families.free_response.row import FreeRow
from pytest_helmbench.benchmarks.packs.families.free_response.rubric_entries import (
    CLAUSE_END,
    Entry,
    Said,
    entry_of,
    said_of,
)
from pytest_helmbench.benchmarks.packs.families.free_response.stance import said_polarity
from pytest_helmbench.benchmarks.packs.families.free_response.sure_verdicts import (
    begins_with_entry,
    begins_with_head,
    is_misquoted,
)
from pytest_helmbench.benchmarks.packs.families.free_response.taken_back import TakenBack, taken_back
from pytest_helmbench.benchmarks.packs.families.free_response.tokens import (
    Unit,
    contradicts,
    denies_it,
    f1,
    free_folded,
    joined,
    polarity,
)
from pytest_helmbench.benchmarks.packs.families.text.denial import is_denied, keeps_distance
from pytest_helmbench.benchmarks.packs.families.text.echo import is_dump, without_passage
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, Sureness, shown
from pytest_helmbench.benchmarks.packs.families.text.plain import spoken
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import (
    is_within,
    whole_places,
)

__all__ = ["judge_free"]

_MOST_PLACES = 50
_OTHER_ROLE = re.compile(
    r"(?<!\w)(?:ahead of|followed by|unlike|than|replacing|succeeding|beating|behind)\s(?:the\s)?$"
)
_OTHER_ROLE_OR_FROM = re.compile(rf"(?<!\w)from\s$|{_OTHER_ROLE.pattern}")
_ROLE_REACH = 20
_OWN_WORDS = 0.8
"""F1 from which a reply says a rejected entry in its own words."""
_CLEAR_SCORE = 2.0
"""Of `leaning`: of lesser ones every fifth misled, of greater ones every twentieth, in tables that nobody had read."""
_YES_AND_NO = word_set("yes no ja nein oui non sí si não sim да нет")
_ENDS_ANSWER = ("", ",", ".", ";", ":", "!", "-")


def judge_free(row: FreeRow, reply: str) -> AnswerFinding:
    """Judge a free_response reply by the default rule."""
    text = spoken(reply)
    if not text.strip():
        return _nothing_said("", "empty")
    accepted = [entry_of(answer) for answer in row.accepted]
    same = _same_entry(text, accepted)
    if same is not None:
        return AnswerFinding(
            True, "word_for_word", same, accepted_f1=1.0, rejected_f1=0.0, statement=shown(text)
        )
    own = reply
    for passage in row.given:
        own = without_passage(own, passage)
    own = spoken(own)
    if not own.strip() or is_dump(text, row.context):
        return _nothing_said(text, "echo")
    said = said_of(own, row.prompt)
    if not said.text:
        return _nothing_said(own, "no_statement")
    whole = _judged(row, said, accepted, own)
    found = taken_back(said.sentences)
    return whole if found is None else _judged_taken_back(row, found, accepted, whole)


def _judged_taken_back(
    row: FreeRow, found: TakenBack, accepted: Sequence[Entry], whole: AnswerFinding
) -> AnswerFinding:
    """Return the verdict on a reply that takes something back: what stands in its place counts, else the contrary.

    Args:
        row: What was asked.
        found: What is taken back.
        accepted: Entries.
        whole: The verdict on all that is said.
    """
    before, behind = (
        _judged(row, said_of(text, row.prompt), accepted, text) if text else None
        for text in (". ".join(found.before), ". ".join(found.behind))
    )
    unsure = replace(whole, sureness=Sureness.UNSURE)
    if behind is not None and (found.replaced or behind.passed):
        return replace(behind, statement=whole.statement, sureness=Sureness.UNSURE)
    if before is not None and before.passed:
        return replace(unsure, passed=False, strategy=None, matched=None)
    if before is not None and before.rejected is not None and not found.replaced:
        return replace(unsure, passed=True, strategy="denies", matched=0, rejected=None)
    return unsure


def _nothing_said(words: str, reason: str) -> AnswerFinding:
    return AnswerFinding(False, accepted_f1=0.0, rejected_f1=0.0, statement=shown(words), reason=reason)


def _judged(row: FreeRow, said: Said, accepted: Sequence[Entry], own: str) -> AnswerFinding:
    rejected = [entry_of(answer) for answer in row.rejected]
    held = _held(said, accepted, rejected)
    matched, refused = held
    accepted_f1, best_accepted = _best_f1(said, accepted)
    rejected_f1, best_rejected = _best_f1(said, rejected)
    strategy = None if matched is None else "contained"
    if matched is None and best_accepted is not None and accepted_f1 >= row.min_token_f1:
        matched, strategy = best_accepted, "token_f1"
    if refused is None and rejected_f1 >= row.min_token_f1 and rejected_f1 >= accepted_f1:
        refused = best_rejected
    told = _by_the_prompt(row, said, accepted, rejected) if refused is None else None
    if told is not None:
        matched, strategy = (matched, strategy or told[1]) if matched is not None else told
    is_worded = rejected_f1 >= _OWN_WORDS and rejected_f1 > accepted_f1
    is_against = is_close = False
    if held[1] is None and not is_worded and (strategy is None or refused is not None):
        is_against = _is_against(row, said, accepted, rejected)
        nearest = None if is_against else _nearest(row, said, accepted, rejected)
        if nearest is not None:
            matched, refused, strategy = nearest[0], None, "nearest"
            is_close = nearest[1] < _CLEAR_SCORE
    finding = AnswerFinding(
        passed=matched is not None and refused is None,
        strategy=strategy,
        matched=matched,
        rejected=refused,
        accepted_f1=accepted_f1,
        rejected_f1=rejected_f1,
        statement=shown(own),
    )
    if _is_certain(row, said, finding, accepted, rejected):
        return finding
    is_open = is_close if finding.passed else refused is None and not is_against
    return replace(finding, sureness=Sureness.UNSURE if is_open else Sureness.GUESSED)


def _is_certain(
    row: FreeRow, said: Said, finding: AnswerFinding, accepted: Sequence[Entry], rejected: Sequence[Entry]
) -> bool:
    """Return whether the words of a reply leave no doubt about its verdict."""
    texts = [*said.sentences]
    if not texts:
        return False
    rights, wrongs = ([entry.text for entry in side] for side in (accepted, rejected))
    if finding.passed:
        return (finding.rejected_f1 or 0.0) < row.min_token_f1 and begins_with_entry(texts, rights, wrongs)
    if len(texts) == 1 and texts[0] in wrongs:
        return True
    if finding.matched is not None:
        return False
    if len(texts) == 1 and is_misquoted(said.whole, [entry.unit for entry in accepted if entry.size == 1]):
        return True
    return begins_with_entry(texts, wrongs, rights)


def _held(said: Said, accepted: Sequence[Entry], rejected: Sequence[Entry]) -> tuple[int | None, int | None]:
    """Return the accepted and the rejected entry that a reply holds; of two names or numbers the one said first.

    That one is the answer where a clause ends before the other one: `Fleming; Florey made it a drug.`
    """
    matched = _first_said(said, accepted)
    refused = _first_said(said, rejected, other_role=_OTHER_ROLE_OR_FROM)
    if matched is None or refused is None:
        return matched, refused
    right, wrong = accepted[matched], rejected[refused]
    places = [next(iter(_places(said.text, entry.text)), (0, 0)) for entry in (right, wrong)]
    if wrong.is_value and places[0][1] <= places[1][0]:
        between = said.text[places[0][1] : places[1][0]]
        if CLAUSE_END.search(between) is not None or ". " in between:
            return matched, None
    return matched, refused


def _by_the_prompt(
    row: FreeRow, said: Said, accepted: Sequence[Entry], rejected: Sequence[Entry]
) -> tuple[int | None, str | None] | None:
    """Return the entry that a reply means with the prompt's words in mind, and how; None where that says nothing.

    `California` stands for `California produces the most almonds` where the prompt has all other words. On a question
    for yes or no the reply says one of them.
    """
    known = said.prompt.union(*(entry.unit.order for entry in rejected))
    for index, entry in enumerate(accepted):
        own = {*entry.unit.order} - known
        if own and any(_is_elliptic(part, entry.unit, own) for part in said.parts):
            return index, "elliptic"
    texts = [[entry.text for entry in side] for side in (accepted, rejected)]
    brief = brief_answer(said.sentences, row.prompt, *texts)
    if brief is not None:
        return brief, "brief"
    wanted, others = _polarities(accepted, row.prompt), _polarities(rejected, row.prompt)
    mine = said_polarity(said.text, said.sentences, said.parts, row.prompt)
    if len(wanted) != 1 or wanted & others or mine is None:
        return None
    return (0, "polarity") if mine in wanted else None


def _is_against(row: FreeRow, said: Said, accepted: Sequence[Entry], rejected: Sequence[Entry]) -> bool:
    """Return whether a reply begins with the wrong one of yes and no, denies or misquotes an accepted entry."""
    if is_misquoted(said.whole, [entry.unit for entry in accepted if entry.size == 1]):
        return True
    if any(is_denied(said.text, *place) for entry in accepted for place in _places(said.text, entry.text)):
        return True
    wanted, mine = _polarities(accepted, row.prompt), polarity(said.text, [], row.prompt)
    if len(wanted) == 1 and mine is not None and mine not in wanted:
        return True
    return begins_with_head(said.sentences, [entry.text for entry in rejected])


def _nearest(
    row: FreeRow, said: Said, accepted: Sequence[Entry], rejected: Sequence[Entry]
) -> tuple[int, float] | None:
    """Return the accepted entry that the words of a reply lean to, in a paraphrase of it, and by how much."""
    if not rejected:
        return None
    sides = [tuple((entry.stated, entry.text) for entry in side) for side in (accepted, rejected)]
    wanted, others = _polarities(accepted, row.prompt), _polarities(rejected, row.prompt)
    is_told = len(wanted) == 1 and not wanted & others
    rubric = rubric_of(sides[0], sides[1], row.prompt, next(iter(wanted)) if is_told else None)
    return nearest_accepted(said.text, said.sentences, rubric)


def _polarities(entries: Sequence[Entry], prompt: str) -> set[bool]:
    """Return what entries say to a question for yes or no; those that say it in so many words speak for all."""
    found = {polarity(entry.text, [], prompt) for entry in entries} - {None}
    if not found:
        found = {polarity(entry.text, [entry.unit], prompt) for entry in entries} - {None}
    return {one for one in found if one is not None}


def _is_elliptic(part: Unit, entry: Unit, own: set[str]) -> bool:
    """Return whether a part is what is left of an entry without words that the prompt or rejected entries have."""
    is_part = own <= {*part.order} - {"he", "she", "they", "we"} <= {*entry.order}
    return is_part and part.denials % 2 == entry.denials % 2 and not contradicts(part, entry)


def _same_entry(text: str, entries: Sequence[Entry]) -> int | None:
    """Return the first entry that a reply is word for word; None for none."""
    longest = max((len(entry.text) for entry in entries), default=0)
    if len(text) > 2 * longest + 40:
        return None
    folded_text = free_folded(text)
    return next((index for index, entry in enumerate(entries) if entry.text == folded_text), None)


def _first_said(
    said: Said, entries: Sequence[Entry], other_role: re.Pattern[str] = _OTHER_ROLE
) -> int | None:
    """Return the first entry that the reply holds as a whole and does not deny, nor names in another role.

    What a longer entry denies (`Leonardo da Vinci did not`) is no place for a shorter one (`Leonardo`).
    """
    places = [_places(said.text, entry.text) for entry in entries]
    denied = [
        place
        for entry, found in zip(entries, places, strict=True)
        for place in found
        if _is_refused(said.text, *place)
        or (entry.is_value and other_role.search(said.text, max(0, place[0] - _ROLE_REACH), place[0]))
    ]
    for index, found in enumerate(places):
        if any(not any(is_within(place, other) for other in denied) for place in found):
            return index
    return None


def _places(text: str, entry: str) -> list[tuple[int, int]]:
    """Return where an entry stands in a text; `yes` and `no` only where they answer, at its start."""
    if entry not in _YES_AND_NO:
        return [*islice(whole_places(text, entry), _MOST_PLACES)]
    answers = text.startswith(entry) and text[len(entry) : len(entry) + 2].strip()[:1] in _ENDS_ANSWER
    return [(0, len(entry))] if answers else []


def _is_refused(text: str, start: int, end: int) -> bool:
    if text[start:end] in _YES_AND_NO:
        return False
    return is_denied(text, start, end) or _is_distant(text, start, end)


def _is_distant(text: str, start: int, end: int) -> bool:
    begin = max(text.rfind(". ", 0, start), text.rfind("; ", 0, start)) + 1
    stop = text.find(". ", end)
    return keeps_distance(text[max(begin, start - 300) : start], text[end : stop if stop >= 0 else end + 200])


def _best_f1(said: Said, entries: Sequence[Entry]) -> tuple[float, int | None]:
    """Return the best F1 of any entry, and the first entry that reaches it; None when nothing overlaps."""
    best: tuple[float, int | None] = (0.0, None)
    for index, entry in enumerate(entries):
        own_words = not said.prompt.issuperset(entry.unit.tokens)
        # What only denies the prompt has to deny all of it: `bats have no eyes` is not `bats are not blind`.
        named = {*entry.unit.order} - {"not"}
        named = named if own_words and named <= said.prompt else set()
        score = 0.0
        for part in _windows(said, entry):
            if entry.unit.denials and part is said.whole and not denies_it(said.units, entry.unit):
                continue
            if named <= {*part.order} and not (own_words and said.prompt.issuperset(part.tokens)):
                score = max(score, f1(part, entry.unit))
        if score > best[0]:
            best = score, index
    return best


def _windows(said: Said, entry: Entry) -> Iterator[Unit]:
    """Yield the parts of a reply that an entry is compared with: no clause of a sentence that contradicts it."""
    size = entry.size
    if size <= 1 or len(said.units) <= size:
        yield from said.units
        for sentence, clauses in zip(said.units, said.clauses, strict=True):
            if not contradicts(sentence, entry.unit):
                yield from clauses
    else:
        for start in range(len(said.units) - size + 1):
            yield joined(said.units[start : start + size])
    yield said.whole
