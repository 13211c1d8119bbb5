"""Unified diffs as git and models write them: which files a patch announces, and the patch without what is around it.

The reader follows git's own grammar, but git has the last word: what it really changes is compared with what is
announced here.
"""

from __future__ import annotations

import re
from dataclasses import field

from pytest_helmbench.benchmarks.packs.families.repo_patch.patch_blocks import (
    has_signs_of_a_patch,
    patch_blocks,
)
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt, without_surrogates

__all__ = ["FileChange", "MalformedPatchError", "Patch", "encoded", "read_patch"]

_NO_FILE = "/dev/null"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_UNNUMBERED = re.compile(r"^--- .*\n\+\+\+ .*\n(@@.*)", re.MULTILINE)
_NUMBERS = "a hunk needs its line numbers, as in '@@ -1,3 +1,4 @@'"
_HUNK_KINDS = ("", " ", "-", "+", "\\")
_PREFIXES = frozenset("abciow")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_ESCAPE = re.compile(r'\\(?:([0-3][0-7]{2})|([abtnvfr"\\]))|([^\\]+)')
_LINK, _SUBMODULE = "120000", "160000"
_LONGEST_NAME = 20_000  # characters, in quotes and escaped
_SIGNATURE = ("--", "-- ")  # what `git format-patch` puts under a patch
_BINARY_LINE = re.compile(r"(?:literal|delta) \d+$|[A-Za-z][!-~]+$")


class MalformedPatchError(HelmbenchError):
    """A text is no patch that can be applied."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a patch announces for one file, in paths relative to the repository.

    Args:
        named: Every path that the headers mention, a copy's source too.
        changed: Those of them that the patch changes.
        modes: Git's modes that the headers mention, such as `100644`.
        text: Headers and hunks, as they stand in the patch.
        miscounted: A hunk has more or fewer lines than its header says.
    """

    named: frozenset[str]
    changed: frozenset[str]
    modes: frozenset[str]
    text: str
    miscounted: bool

    @property
    def special(self) -> bool:
        """Whether it is about a symbolic link or a submodule."""
        return bool(self.modes & {_LINK, _SUBMODULE})


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch.

    Args:
        changes: By file, in order.
        strip: Leading parts of the paths that git is to leave out: 1 for `a/` and `b/`, else 0.
    """

    changes: tuple[FileChange, ...]
    strip: int

    @property
    def text(self) -> str:
        """The patch, and nothing else of the text that it stood in."""
        return "".join(change.text for change in self.changes)

    @property
    def named(self) -> frozenset[str]:
        """Every path that is mentioned."""
        return frozenset[str]().union(*(change.named for change in self.changes))

    @property
    def changed(self) -> frozenset[str]:
        """Every path that is announced to change."""
        return frozenset[str]().union(*(change.changed for change in self.changes))

    @property
    def miscounted(self) -> bool:
        """Whether hunks are longer or shorter than they say."""
        return any(change.miscounted for change in self.changes)


def encoded(text: str) -> bytes:
    """Return the bytes of a text; those that were no UTF-8 when it was read come out as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return without_surrogates(text).encode()


def read_patch(text: str) -> Patch:
    """Read a patch, or the patch in a reply: prose and fences around it are left out.

    Where fenced blocks hold several patches to a file, the last one stands. A patch that arrived with CRLF at the
    end of its own headers is read without.

    Raises:
        MalformedPatchError: There is none, or a part of it that cannot be read.
    """
    sections = _last_word([_sections(block) for block in patch_blocks(text)])
    if not sections:
        what = "there seems to be a patch in it, but none that git reads"
        what = what if has_signs_of_a_patch(text) else "there is no patch in it"
        unnumbered = _UNNUMBERED.search(text)
        why = (
            "no line starts with 'diff --git' or '---'"
            if unnumbered is None
            else f"{_NUMBERS}, this one has {excerpt(unnumbered[1], 40)!r}"
        )
        raise MalformedPatchError(f"{what}: {why}")
    for section in sections:
        if section.unnumbered is not None:
            raise MalformedPatchError(f"{_NUMBERS}, one has {excerpt(section.unnumbered, 40)!r}")
    prefixed = {section.prefixed for section in sections} - {None}
    if len(prefixed) > 1:
        raise MalformedPatchError("some of its paths start with a/ and b/, some do not")
    strip = 0 if prefixed == {False} else 1
    return Patch(tuple(section.change(strip) for section in sections), strip)


def _last_word(blocks: list[list[_Section]]) -> list[_Section]:
    """Return the sections of all blocks; those of an earlier block give way to a later one's for the same file."""
    kept: list[list[_Section]] = []
    taken: set[str] = set()
    for sections in reversed(blocks):
        kept.append([section for section in sections if not taken.intersection(section.paths)])
        taken.update(name for section in sections for name in section.paths)
    return [section for sections in reversed(kept) for section in sections]


@dataclass(slots=True)
class _Section:
    """The headers and hunks of one file, as written."""

    start: int
    git: tuple[str, str] | None = None  # of `diff --git`, where both can be told apart
    sides: list[str] = field(default_factory=list)  # of `---` and `+++`
    moved: list[str] = field(default_factory=list)  # of rename and copy lines: never prefixed
    copied_from: str | None = None
    modes: set[str] = field(default_factory=set)
    miscounted: bool = False
    unnumbered: str | None = None  # what stands where its first hunk should begin with line numbers
    text: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths with whatever stands before them."""
        return tuple({*(self.git or ()), *self.sides, *self.moved} - {_NO_FILE})

    @property
    def prefixed(self) -> bool | None:
        """Whether paths start with `a/` and `b/`; None where that makes no difference."""
        pairs = [pair for pair in (self.git, tuple(self.sides)) if pair]
        found = {_is_prefixed(pair) for pair in pairs}
        return False if False in found else True if found else None

    def change(self, strip: int) -> FileChange:
        """Return what is announced."""
        named = {_stripped(name, strip) for name in (*(self.git or ()), *self.sides) if name != _NO_FILE}
        named.update(self.moved)
        if not named:
            raise MalformedPatchError(f"a part of it names no file: {excerpt(self.text, 80)!r}")
        changed = named - {self.copied_from} if self.copied_from is not None else named
        return FileChange(
            frozenset(named), frozenset(changed), frozenset(self.modes), self.text, self.miscounted
        )


def _is_prefixed(pair: tuple[str, ...]) -> bool:
    """Return whether both sides start as git's do: with one letter each, not the same one."""
    real = [name for name in pair if name != _NO_FILE]
    letters = [name[0] for name in real if name[1:2] == "/" and name[0] in _PREFIXES]
    return len(letters) == len(real) and len(set(letters)) == len(letters)


def _stripped(name: str, strip: int) -> str:
    if not strip:
        return name
    _, slash, rest = name.partition("/")
    if not slash:
        raise MalformedPatchError(f"the path {excerpt(name, 80)!r} does not start with a/ or b/")
    return rest


def _sections(text: str) -> list[_Section]:
    """Return the parts of a text that are a patch."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    sections: list[_Section] = []
    at = 0
    while at < len(lines):
        if lines[at].startswith("diff --git "):
            section, end = _git_section(lines, at)
        elif _starts_plain(lines, at):
            section = _Section(at)
            end = _hunks(section, lines, _sides(section, lines, at))
        else:
            at += 1
            continue
        section.text = "".join(f"{line}\n" for line in lines[at:end])
        sections.append(section)
        at = end
    return sections


def _starts_plain(lines: list[str], at: int) -> bool:
    """Return whether a diff without `diff --git` starts here, as git tells."""
    return (
        lines[at].startswith("--- ")
        and len(lines) > at + 2
        and lines[at + 1].startswith("+++ ")
        and lines[at + 2].startswith("@@ -")
    )


def _git_section(lines: list[str], start: int) -> tuple[_Section, int]:
    section = _Section(start, git=_git_pair(lines[start].removeprefix("diff --git ")))
    at = start + 1
    while at < len(lines):
        line = lines[at]
        if line.startswith("--- ") and lines[at + 1 : at + 2] and lines[at + 1].startswith("+++ "):
            return section, _hunks(section, lines, _sides(section, lines, at))
        if line == "GIT binary patch":
            return section, _binary(lines, at + 1)
        if not _extended(section, line):
            break
        at += 1
    return section, at


def _extended(section: _Section, line: str) -> bool:
    """Read a line between `diff --git` and the hunks; False when it is none."""
    for start in ("old mode ", "new mode ", "deleted file mode ", "new file mode "):
        if line.startswith(start):
            section.modes.add(line.removeprefix(start).strip())
            return True
    for start in ("rename from ", "rename to ", "rename old ", "rename new ", "copy from ", "copy to "):
        if line.startswith(start):
            name = _name(line.removeprefix(start))
            section.moved.append(name)
            if start == "copy from ":
                section.copied_from = name
            return True
    if line.startswith("index "):
        section.modes.update(re.findall(r" (\d{6})$", line.rstrip()))
        return True
    return line.startswith(("similarity index ", "dissimilarity index ", "Binary files "))


def _sides(section: _Section, lines: list[str], at: int) -> int:
    section.sides = [_name(lines[at][4:]), _name(lines[at + 1][4:])]
    return at + 2


def _name(text: str) -> str:
    """Return a path of a header: unquoted, without a time stamp behind a tab."""
    if len(text) > _LONGEST_NAME:
        raise MalformedPatchError(f"a path is too long: {excerpt(text, 80)!r}")
    if text.startswith('"'):
        return _unquoted(text)[0]
    return text.partition("\t")[0]


def _git_pair(text: str) -> tuple[str, str] | None:
    """Return both paths behind `diff --git`; None where it is not certain where the first one ends."""
    if len(text) > 2 * _LONGEST_NAME:
        raise MalformedPatchError(f"a path is too long: {excerpt(text, 80)!r}")
    if text.startswith('"'):
        first, rest = _unquoted(text)
        rest = rest.removeprefix(" ")
        return first, _unquoted(rest)[0] if rest.startswith('"') else rest
    if text.endswith('"') and ' "' in text:
        first, _, rest = text.partition(' "')
        return first, _unquoted('"' + rest)[0]
    half, odd = divmod(len(text) - 1, 2)
    left, right = text[:half], text[half + 1 :]
    if not odd and text[half] == " " and (left == right or left[2:] == right[2:]):
        return left, right  # blanks in it or not: both are the same file
    parts = text.split(" ")
    return (parts[0], parts[1]) if len(parts) == 2 else None


def _unquoted(text: str) -> tuple[str, str]:
    """Return a path in git's quotes, and what stands behind it."""
    raw = bytearray()
    at = 1
    while at < len(text):
        if text[at] == '"':
            return raw.decode("utf-8", "surrogateescape"), text[at + 1 :]
        found = _ESCAPE.match(text, at, _quote_or_backslash(text, at))
        if found is None:
            break
        octal, letter, plain = found.groups()
        if plain is not None:
            raw += encoded(plain)
        else:
            raw.append(int(octal, 8) if octal is not None else _ESCAPES[letter])
        at = found.end()
    raise MalformedPatchError(f"a path is quoted wrongly: {excerpt(text, 80)!r}")


def _quote_or_backslash(text: str, at: int) -> int:
    """Return where the piece that starts here ends at the latest."""
    if text[at] == "\\":
        return len(text)
    ends = [end for end in (text.find('"', at), text.find("\\", at)) if end >= 0]
    return min(ends, default=len(text))


def _hunks(section: _Section, lines: list[str], at: int) -> int:
    if at < len(lines) and lines[at].startswith("@@") and _HUNK.match(lines[at]) is None:
        section.unnumbered = lines[at]
    while at < len(lines) and (found := _HUNK.match(lines[at])):
        old, new = (int(count) if count is not None else 1 for count in (found[2], found[4]))
        at = _hunk(section, lines, at + 1, old, new)
    return at


def _hunk(section: _Section, lines: list[str], at: int, old: int, new: int) -> int:
    """Walk over a hunk of so many old and new lines; return where it ends."""
    while at < len(lines) and (old > 0 or new > 0):
        kind = lines[at][:1]
        if kind not in _HUNK_KINDS:
            break
        old -= kind in ("", " ", "-")
        new -= kind in ("", " ", "+")
        at += 1
    if old > 0 or new > 0:
        while not lines[at - 1]:  # blank lines before what is no longer a hunk
            at -= 1
    elif lines[at : at + 1] and lines[at].startswith("\\"):
        at += 1
    end = _overhang(lines, at)
    section.miscounted |= old != 0 or new != 0 or end > at
    return end


def _overhang(lines: list[str], at: int) -> int:
    """Return where the lines end that belong to a hunk though its header does not count them."""
    end = at
    while at < len(lines) and lines[at][:1] in _HUNK_KINDS and lines[at] not in _SIGNATURE:
        if _starts_plain(lines, at):
            break
        at += 1
        if lines[at - 1]:
            end = at
    return end


def _binary(lines: list[str], at: int) -> int:
    while at < len(lines) and (not lines[at] or _BINARY_LINE.match(lines[at])):
        at += 1
    return at
