"""Grammars: codes (`P1-B2-S1-C1-U1-PT3`), with their order and selection by components; names of images."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt

BARE_CODE = re.compile(r"(?:P\d+|B\d+|S\d+[A-Z]?|C\d+|U\d+|PT\d+[a-z]?|CR\d+)\Z")
"""One component of a code, alone."""

_FULL = re.compile(
    r"(?P<pillar>P\d+)"
    r"(?:-(?P<behaviour>B\d+)"
    r"(?:-(?P<scenario>S\d+[A-Z]?)"
    r"(?:-(?P<condition>C\d+))?"
    r"(?:-(?P<user_context>U\d+))?"
    r"(?:-(?P<perturbation>PT\d+[a-z]?))?"
    r")?)?\Z"
)
_SCENARIO = re.compile(r"(P\d+)-(B\d+)-(S\d+[A-Z]?)\Z")
_PIECES = re.compile(r"(\d+)")
_PREFIXES = ("P", "B", "S", "C", "U", "PT")
_COMPONENT = re.compile(r"(PT|P|B|S|C|U)\d+[A-Za-z]?\Z")
# Source: https://github.com/distribution/reference
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_HOST = r"(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?"
_TAIL = r"(?::[A-Za-z0-9_][\w.-]{0,127})?(?:@[A-Za-z][\w.+-]*:[0-9A-Fa-f]{32,})?"
_IMAGE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*{_TAIL}", re.ASCII)


class SelectError(HelmbenchError):
    """A `--helmbench-select` pattern that is not a code pattern."""


def natural_key(code: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key that puts PT2 before PT10."""
    return tuple(map(_piece_key, filter(None, _PIECES.split(code))))


@lru_cache(4096)
def _piece_key(piece: str) -> tuple[int, int | str]:
    return (0, int(piece)) if piece.isdecimal() else (1, piece)


def scenario_code_of(name: str) -> str | None:
    """Return the scenario code that a folder name carries, or None.

    A readability suffix (`P1-B1-S1--threat-recognition`) is dropped.
    """
    bare = name.split("--", 1)[0]
    return bare if _SCENARIO.match(bare) else None


@dataclass(frozen=True, slots=True)
class CaseCode:
    """The parts of a full code; None where the case has no such axis."""

    pillar: str
    behaviour: str | None = None
    scenario: str | None = None
    condition: str | None = None
    user_context: str | None = None
    perturbation: str | None = None

    @classmethod
    def parse(cls, text: str) -> CaseCode | None:
        """Return the parts of `P1-B2-…`, or None when the text is not a code."""
        match = _FULL.match(text)
        return cls(**match.groupdict()) if match else None

    def parts(self) -> tuple[str | None, ...]:
        """Return the six components in order; None where absent."""
        return (
            self.pillar,
            self.behaviour,
            self.scenario,
            self.condition,
            self.user_context,
            self.perturbation,
        )


def scenario_of(code: str) -> str:
    """Return the scenario of a case; empty for a code that is none of a scenario tree."""
    parsed = CaseCode.parse(code)
    return "-".join(filter(None, parsed.parts()[:3])) if parsed else ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One of the patterns of a selection.

    Args:
        parts: Six places; None matches anything.
        excludes: It leaves out what it matches.
    """

    text: str
    parts: tuple[str | None, ...]
    excludes: bool

    def matches(self, parts: tuple[str | None, ...]) -> bool:
        """Return whether a case has these components."""
        return all(
            wanted is None or (index < len(parts) and parts[index] == wanted)
            for index, wanted in enumerate(self.parts)
        )

    def may_match(self, known: tuple[str, ...]) -> bool:
        """Return whether a case whose first components are `known` could have the others."""
        return all(wanted is None or wanted == have for wanted, have in zip(self.parts, known, strict=False))


@dataclass(frozen=True, slots=True)
class Selection:
    """A parsed `--helmbench-select`: any of the patterns, and none of the excluded ones."""

    patterns: tuple[Pattern, ...]
    text: str

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Read comma-separated patterns.

        Raises:
            SelectError: A pattern is not made of code components, `*` and a leading `~`.
        """
        patterns = tuple(_pattern(item.strip()) for item in text.split(",") if item.strip())
        if not patterns:
            raise SelectError(
                f"--helmbench-select={text!r} names nothing\n  hint: for example P1-B2 or '*-*-S1-C2'"
            )
        return cls(patterns, text)

    def matches(self, parts: tuple[str | None, ...]) -> bool:
        """Return whether a case with these six components is selected."""
        return self._judge(pattern.matches(parts) for pattern in self.patterns)

    def may_match(self, known: tuple[str, ...]) -> bool:
        """Return whether a case whose first components are `known` could be selected."""
        return self._judge(
            pattern.matches((*known, *[None] * (6 - len(known))))
            if pattern.excludes
            else pattern.may_match(known)
            for pattern in self.patterns
        )

    def _judge(self, hits: Iterable[bool]) -> bool:
        found = [(pattern.excludes, hit) for pattern, hit in zip(self.patterns, hits, strict=True)]
        wanted = [hit for excludes, hit in found if not excludes]
        return (any(wanted) or not wanted) and (True, True) not in found


def _pattern(text: str) -> Pattern:
    excludes = text.startswith("~")
    places: list[str | None] = [None] * 6
    position = 0
    for part in text.removeprefix("~").split("-"):
        if part == "*":
            place = position
        else:
            match = _COMPONENT.match(part)
            if match is None or _PREFIXES.index(match[1]) < position:
                raise SelectError(
                    f"--helmbench-select: {part!r} in {text!r} is not a code component at that place\n"
                    "  hint: the order is P-B-S-C-U-PT, for example P1-B2, '*-*-S1-C2', P1-B1-S1-C1-PT3, ~P4"
                )
            place = _PREFIXES.index(match[1])
            if position < 3 and place > position:
                raise SelectError(
                    f"--helmbench-select: {text!r} skips a component before {part!r}\n"
                    f"  hint: write * for any one component: {'-'.join(['*'] * place)}-{part}"
                )
            places[place] = part
        if place >= 6:
            raise SelectError(f"--helmbench-select: {text!r} has more than six components")
        position = place + 1
    return Pattern(text, tuple(places), excludes)


def image_fault(image: str) -> str:
    """Return what is wrong with the name of a container image; empty for nothing."""
    return "" if _IMAGE.fullmatch(image) else f"{excerpt(repr(image), 60)} is not a name of an image"
