"""Reading files as text, and gathering what is wrong with them."""

from __future__ import annotations

import errno
import hashlib
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from difflib import get_close_matches
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import Problem

_MOST_BYTES = 32 * 2**20
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
HALF_MERGED = "a merge was left half done: both of its versions stand here"
RESOLVE = "keep one version, and remove the lines of <<<<<<<, ======= and >>>>>>>"


@dataclass(frozen=True, slots=True)
class Fault:
    """A problem of a text whose file is not known here.

    Args:
        line: 1-based line in that text; None when all of it is meant.
        message: What is wrong, with the offending value.
        usable: Only odd: a warning.
        cause: Name of another file whose problems cause this one.
    """

    line: int | None
    message: str
    hint: str = ""
    usable: bool = False
    cause: str = ""


@dataclass(slots=True)
class Findings:
    """Problems and warnings in the order they were found."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def add(self, path: Path, *faults: Fault) -> None:
        """File faults under the file they were found in."""
        for fault in faults:
            found = self.warnings if fault.usable else self.problems
            found.append(Problem(path, fault.line, fault.message, fault.hint, fault.cause))

    def extend(self, path: Path, faults: Iterable[Fault], *, shift: int = 0) -> None:
        """File faults of a part of a file that starts `shift` lines below its first."""
        for fault in faults:
            self.add(path, replace(fault, line=None if fault.line is None else fault.line + shift))


def read_plain(path: Path, root: Path | None = None) -> bytes:
    """Return the bytes of a file that may be foreign.

    Args:
        root: The folder of the benchmark, which a link in it must not lead out of; None for a file that the user names.

    Raises:
        OSError: It cannot be read, is not a plain file, is too large, or leads out of the benchmark; its `strerror`
            says which, and quotes nothing of it.
    """
    if root is not None and not resolved(path).is_relative_to(root.resolve()):
        raise OSError(errno.ELOOP, "a link leads out of the benchmark, which holds all that it is made of")
    facts = path.stat()
    if not stat.S_ISREG(facts.st_mode) and not stat.S_ISDIR(facts.st_mode):
        raise OSError(errno.EINVAL, "it is not a plain file")
    if facts.st_size > _MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has {facts.st_size:,} bytes; at most {_MOST_BYTES:,} are read")
    return path.read_bytes()


def resolved(path: Path) -> Path:
    """Return where a path leads.

    Raises:
        OSError: It is a link that leads to itself.
    """
    try:
        return path.resolve()
    except RuntimeError as error:  # before Python 3.13
        raise OSError(errno.ELOOP, "the link leads to itself") from error


def is_merge_mark(line: str) -> bool:
    """Return whether a line is one that git leaves between two versions that it could not merge."""
    return line[:7] in ("<<<<<<<", ">>>>>>>", "=======") and line[7:8] in ("", " ", "\r", "\n")


def half_merged(text: str) -> Iterator[tuple[int, bool]]:
    """Yield the first line of each merge that was left half done, and whether it stands in a code fence.

    A line `=======` alone is a line of Markdown.
    """
    if "<<<<<<<" not in text and ">>>>>>>" not in text:
        return
    is_open = is_divided = is_fenced = False
    for number, line in enumerate(text.split("\n"), start=1):
        is_fenced ^= _FENCE.match(line) is not None
        if not is_merge_mark(line):
            continue
        if line[0] == "<" or (line[0] == ">" and is_divided and not is_open):
            yield number, is_fenced
        is_open = line[0] == "<" or (line[0] == "=" and is_open)
        is_divided = line[0] == "="


class Reader:
    """Reads the files of one benchmark and remembers their contents for its hash.

    Args:
        root: The folder of the benchmark; None for files that the user names.
        trust_hint: How the user trusts the benchmark; empty where he does, so that its Python may be run.
    """

    def __init__(self, findings: Findings, root: Path | None = None, *, trust_hint: str = "") -> None:
        self.root = root
        self.findings = findings
        self.trust_hint = trust_hint
        self._contents: dict[Path, bytes] = {}

    def text(self, path: Path, *, counts: bool = True) -> str | None:
        """Return a file's text without BOM and with LF line ends, or None after filing why not.

        Args:
            counts: Whether the file can change a case or a score, so that the content hash covers it.
        """
        try:
            raw = read_plain(path, self.root)
        except OSError as error:
            self.findings.add(path, Fault(None, f"the file cannot be read: {error.strerror or error}"))
            return None
        raw = raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
        if counts:
            self._contents[path] = raw
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            message = f"the file is not UTF-8: byte 0x{raw[error.start]:02x} cannot be read"
            self.findings.add(path, Fault(line, message, "save the file with the encoding UTF-8"))
            return None
        if "\r" in text and "\n" not in text:
            message = "the lines end in a bare carriage return, so the file is one long line"
            self.findings.add(path, Fault(1, message, "save the file with LF line ends"))
            return None
        merges = (Fault(line, HALF_MERGED, RESOLVE, usable=fenced) for line, fenced in half_merged(text))
        self.findings.add(path, *merges)
        return text

    def cover(self, path: Path, part: str) -> None:
        """Have the content hash cover the part of a file that can change a case, where the rest of it cannot."""
        self._contents[path] = part.encode()

    def content_hash(self, root: Path) -> str:
        """Return SHA-256 (hex) over the sorted relative paths and contents of the files that count."""
        digest = hashlib.sha256()
        named = {path.relative_to(root).as_posix(): raw for path, raw in self._contents.items()}
        for name in sorted(named):
            # lengths keep two files from being read as one
            digest.update(f"{len(name.encode('utf-8', 'surrogateescape'))}:{len(named[name])}:".encode())
            digest.update(name.encode("utf-8", "surrogateescape"))
            digest.update(named[name])
        return digest.hexdigest()


def suggestion(word: object, known: Iterable[str]) -> str:
    """Return `did you mean 'x'?` for the nearest known word, or empty."""
    by_lower = {name.lower(): name for name in known}
    near = get_close_matches(str(word).lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]!r}?" if near else ""


def listed(word: object, known: Iterable[str], what: str) -> str:
    """Return the nearest known word, where there is one, and all of them."""
    names = list(known)
    near = suggestion(word, names)
    return f"{near} {what}: {', '.join(names)}".strip()
