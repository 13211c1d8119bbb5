"""Short forms of an accepted answer: without words of the question (`The Pacific`), a team's nickname, an acronym.

What another place or thing may share is a guess, as all that is found here.
"""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.packs.families.short_answer.common_names import peoples_of
from pytest_helmbench.benchmarks.packs.families.short_answer.people import differs_by_one
from pytest_helmbench.benchmarks.packs.families.text.regions import is_region
from pytest_helmbench.benchmarks.packs.families.text.stems import stem
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import (
    FUNCTION_WORDS,
    folded,
    whole_places,
    words,
)

__all__ = ["may_be_said", "said_in_short"]

_SUFFIX = re.compile(r",?\s(?:Jr|Sr)\.?$")
_ASKS_FOR_COMPANY = re.compile(
    rf"(?<!\w){any_of('company companies firm corporation brand manufacturer maker automaker studio')}(?!\w)"
    r"|(?<!\w)(?:carmaker|publisher|airline|bank|retailer|developer|label)(?!\w)",
    re.IGNORECASE,
)
_OF_MANY = word_set(
    "general american united international national first new british bank royal north south",
    "east west standard the global universal western eastern northern southern central pacific atlantic great",
)
"""First words of names that many companies share."""
_ASKS_FOR_TEAM = re.compile(r"(?<!\w)(?:teams?|clubs?|franchises?)(?!\w)", re.IGNORECASE)
_ASKS_FOR_WINNER = re.compile(r"(?<!\w)(?:won|win|wins|winner|champions?)(?!\w)", re.IGNORECASE)
_CITIES_OF_SEVERAL = frozenset({"new york", "los angeles", "chicago"})
_SMALL = word_set("of the and for in on de la le du des und et y a an to")
_LONGEST = 8
_SHORTEST_CORE = 3
_SHORTEST_SHARED = 4
_SHORTEST_SPACED, _LONGEST_SPACED = 6, 60
_WORDS = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_LONG_WORD = 8
_SHORTEST_DOUBLED = 5
_DOUBLED = re.compile(r"(.)\1")
_CAMEL = re.compile(r"[a-z][A-Z]")
_PART_OF = re.compile(r":\s|\sand\sthe\s")
_OWNED = re.compile(r"(?:his|her|their|its|my|your|our)\s(?P<owned>\w{3,}(?:\s\w+)?)(?:'s)?")
_KINDS = word_set("river mount mountain mountains ocean desert")
"""Kinds of places that are left out of their names, but for those that tell two places apart (`Mexico City`)."""
_SMALL_WORDS = FUNCTION_WORDS | word_set("us me am to go or an of all out up any her him his")
"""What a capital abbreviation (`US`, `IT`, `WHO`) reads like when it is folded."""
_DESIGNATIONS = word_set("hms rms uss ss ms mv mts hmas hmcs hmnzs sms rv css hmhs")
"""What stands before the names of ships."""


def said_in_short(statement: str, answer: str, question: str) -> str | None:
    """Return the short form in which a statement has an accepted answer, folded; None where it has none.

    Args:
        statement: As written.
        answer: The accepted answer, as the row has it.
        question: As asked.
    """
    text = folded(statement)
    core = _core(answer, question, text) or _unowned(answer) or _part_of_series(answer, question)
    for form in () if core is None else (core, f"{core}s"):
        if next(whole_places(text, form), None) is not None:
            return form
    return (
        _team(statement, answer, question)
        or _company(statement, answer, question)
        or _initials_said(statement, answer)
        or _words_of_initials(statement, answer)
        or _without_region(text, answer)
        or _turned_owner(text, answer)
        or _player(text, answer, question)
        or _spaced_otherwise(statement, text, folded(answer))
        or _spelled_otherwise(statement, answer)
    )


def _acronym(name: str) -> str:
    """Return the first letters of the words of a name, small words apart; empty where it is no name of several."""
    name = _SUFFIX.sub("", name)
    parts = [part for part in re.split(r"[\s-]+", name) if part.lower() not in _SMALL]
    if not 2 <= len(parts) <= _LONGEST or not all(part[:1].isupper() for part in parts):
        return ""
    return "".join(part[0] for part in parts)


def _core(answer: str, question: str, text: str) -> str | None:
    """Return an answer without the kind of thing that the question asks for; None where it does not name one.

    `ocean` may be left out of `Pacific Ocean` where an ocean is asked for, `city` not of `Mexico City` where Mexico is
    in the question.
    """
    said = words(folded(answer))
    if len(said) > 1 and said[0] in _DESIGNATIONS and said[0] not in words(text):
        return " ".join(said[1:])
    asked = words(question)
    asked += [people for word in asked for people in peoples_of(word.lower())]
    kept = [
        word
        for word in said
        if word in _SMALL or (word not in _KINDS and not any(_is_same(word, one.lower()) for one in asked))
    ]
    core = " ".join(kept).strip()
    missing = [word for word in said if word not in kept]
    if not missing or not _is_whole(core, folded(answer)) or any(map(str.isdigit, "".join(missing))):
        return None
    if not all(word in _KINDS or any(_is_same(word, one) for one in asked) for word in missing):
        return None  # a name in the question is not what it asks for
    while kept and kept[0] in _SMALL:
        kept.pop(0)
    core = " ".join(kept)
    is_long = len(core) >= _SHORTEST_CORE or core == text
    return core if core and is_long and not core.isdigit() else None


def _company(statement: str, answer: str, question: str) -> str | None:
    """Return the first word of a company's name where a statement has no more of it: `Sun` of `Sun Microsystems`."""
    first, _, rest = answer.partition(" ")
    if not rest or not first[:1].isupper() or _ASKS_FOR_COMPANY.search(question) is None:
        return None
    if first.lower() in _OF_MANY or not first.isalnum() or folded(first) in folded(question):
        return None
    found = re.search(rf"(?<![\w-]){re.escape(first)}(?![\w-])(?!\s[A-Z])", statement)
    return None if found is None else folded(first)


def _unowned(answer: str) -> str | None:
    """Return an answer without whose it is: `mother` for `his mother's`."""
    found = _OWNED.fullmatch(folded(answer))
    return None if found is None else found["owned"]


def _part_of_series(answer: str, question: str) -> str | None:
    """Return the title of a part without the name of the series that the question has: `The Chamber of Secrets`."""
    found = _PART_OF.search(answer)
    if found is None:
        return None
    series, part = folded(answer[: found.start()]), answer[found.end() :]
    is_asked = next(whole_places(folded(question), series), None) is not None
    return folded(part) if is_asked and len(part.split()) > 1 and part[:1].isupper() else None


def _is_whole(core: str, text: str) -> bool:
    return core not in ("", text) and next(whole_places(text, core), None) is not None


def _is_same(word: str, asked: str) -> bool:
    """Return whether two words are one: `mount` of `mountain`, `cells` of `cell`."""
    short, long = sorted((word, asked), key=len)
    if len(short) < _SHORTEST_SHARED:
        return short == long
    return stem(word) == stem(asked) or (len(short) > _SHORTEST_SHARED and long.startswith(short))


def _team(statement: str, answer: str, question: str) -> str | None:
    """Return a team's nickname where a team is asked for, its city where only who has won is."""
    if _ASKS_FOR_TEAM.search(question) is not None:
        return _nickname(statement, answer)
    return _city_of_team(statement, answer) if _ASKS_FOR_WINNER.search(question) is not None else None


def _nickname(statement: str, answer: str) -> str | None:
    """Return the last word of a team's name where a statement has it after `the`, or nothing else: `The Broncos`."""
    parts = answer.split()
    if len(parts) < 2 or not (parts[-1][:1].isupper() and parts[-1].endswith("s")):
        return None
    name = re.escape(parts[-1])
    found = re.search(rf"(?:\A\W*|(?<!\w)[Tt]he\s){name}(?!\w)", statement)
    return None if found is None else folded(parts[-1])


def _city_of_team(statement: str, answer: str) -> str | None:
    """Return a team's city where a statement is nothing else: `Denver`; not one that has several teams."""
    city, _, name = answer.rpartition(" ")
    said = folded(statement)
    is_team = name[:1].isupper() and name.endswith("s") and bool(city)
    return said if is_team and said == folded(city) and said not in _CITIES_OF_SEVERAL else None


def _initials_said(statement: str, answer: str) -> str | None:
    name, bare = _acronym(answer), statement.replace(".", "")
    said = name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", bare) is not None
    return name.lower() if said else None


def _without_region(text: str, answer: str) -> str | None:
    """Return the town of an accepted town and region where a folded text names it without another region."""
    town, _, region = (folded(part) for part in answer.partition(","))
    if not region or not is_region(region) or len(town) < _SHORTEST_CORE:
        return None
    for _, end in whole_places(text, town):
        behind = re.match(r",?\s(?:in\s)?(?:the\s)?([^,.;()]{2,30})", text[end : end + 40])
        if behind is None or not is_region(behind[1]) or behind[1] == region:
            return town
    return None


def _turned_owner(text: str, answer: str) -> str | None:
    """Return what a folded text has of somebody where the answer has it as somebody's: `law of Boyle`."""
    owner, _, owned = folded(answer).partition("'s ")
    found = owned and re.search(rf"(?<!\w){re.escape(owned)} of (?:the )?{re.escape(owner)}(?!\w)", text)
    return found[0] if found else None


def _player(text: str, answer: str, question: str) -> str | None:
    """Return who plays an accepted instrument, where a folded text has only that: `cellist` for `cello`."""
    if "instrument" not in question:
        return None
    found = re.search(rf"(?<!\w){re.escape(folded(answer).rstrip('aeo'))}ist(?!\w)", text)
    return None if found is None else found[0]


def _spaced_otherwise(statement: str, text: str, answer: str) -> str | None:
    """Return an answer as a folded text has it with other spaces and hyphens: `mark-up`, `Di Caprio`."""
    letters = [letter for letter in answer if letter.isalnum()]
    if not _SHORTEST_SPACED <= len(letters) <= _LONGEST_SPACED or any(map(str.isdigit, letters)):
        return None
    found = re.search(rf"(?<!\w){r'[ -]?'.join(letters)}(?!\w)", text)
    glued = found is not None and _CAMEL.search(statement) is not None and " " not in found[0]
    return None if found is None or glued else found[0]


def _spelled_otherwise(statement: str, answer: str) -> str | None:
    """Return a name that differs from an accepted one in a letter of a long word: `Tutankhamen`; words in capitals."""
    wanted, said = _WORDS.findall(answer), _WORDS.findall(statement)
    if not all(word[0].isupper() and word.isalpha() for word in answer.split()):
        return None
    for start in range(len(said) - len(wanted) + 1):
        pairs = [*zip(said[start : start + len(wanted)], wanted, strict=True)]
        other = [(mine, theirs) for mine, theirs in pairs if folded(mine) != folded(theirs)]
        if len(other) == 1 and _is_misspelt(*other[0]):
            return folded(" ".join(mine for mine, _ in pairs))
    return None


def _is_misspelt(said: str, wanted: str) -> bool:
    short, long = sorted((folded(said), folded(wanted)), key=len)
    if not said[0].isupper() or short[:2] != long[:2]:
        return False
    if len(wanted) >= _SHORTEST_DOUBLED and _DOUBLED.sub(r"\1", short) == _DOUBLED.sub(r"\1", long):
        return True
    return len(wanted) >= _LONG_WORD and differs_by_one(short, long)


def _words_of_initials(statement: str, answer: str) -> str | None:
    """Return the capital words of a statement whose first letters are an accepted acronym."""
    letters = answer.replace(".", "")
    if not (2 <= len(letters) <= _LONGEST and letters.isalpha() and letters.isupper()):
        return None
    parts = words(statement)
    starts = [place for place, part in enumerate(parts) if part.lower() not in _SMALL]
    for place, first in enumerate(starts):
        chosen = starts[place : place + len(letters)]
        said = " ".join(parts[first : chosen[-1] + 1])
        if _acronym(said) == letters:
            return folded(said)
    return None


def may_be_said(statement: str, answer: str) -> bool:
    """Return False where a small word (`us`) is taken for a capital abbreviation (`US`), else True."""
    letters = re.sub(r"\W", "", answer)
    if len(letters) < 2 or not letters.isupper() or letters.lower() not in _SMALL_WORDS:
        return True
    return re.search(rf"(?<!\w){re.escape(letters)}(?!\w)", statement.replace(".", "")) is not None
