"""Settings that make git run nothing which a repository in a workspace names: hooks, drivers, filters, pagers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox.workspace import EntryKind, Workspace

_HEAD = re.compile(r'\[([A-Za-z0-9.-]*)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?[ \t]*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)")
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}


@dataclass(frozen=True, slots=True)
class GitSetting:
    """One setting.

    Args:
        section: In lower case.
        subsection: As it is; None for none.
        key: In lower case.
        value: Without quotes and comments; None where nothing is set to it.
        start: Of its text in the file.
        end: Behind it.
    """

    section: str
    subsection: str | None
    key: str
    value: str | None
    start: int
    end: int

    @property
    def name(self) -> str:
        """As `git config` takes it."""
        return ".".join(part for part in (self.section, self.subsection, self.key) if part is not None)


def git_settings(text: str) -> Iterator[GitSetting]:
    """Yield the settings of a file, up to where git would refuse it."""
    section, subsection = "", None
    place = 1 if text.startswith("\ufeff") else 0
    while place < len(text):
        char = text[place]
        if char.isspace():
            place += 1
        elif char in "#;":
            place = _line_end(text, place)
        elif char == "[":
            head = _HEAD.match(text, place)
            if head is None:
                return
            section, dot, inner = head[1].lower().partition(".")
            quoted = None if head[2] is None else re.sub(r"\\(.)", r"\1", head[2])
            subsection = quoted if quoted is not None else inner if dot else None
            place = head.end()
        else:
            key = _KEY.match(text, place)
            if key is None:
                return
            value, end = _value(text, key.end()) if key[2] else (None, _line_end(text, key.end()))
            yield GitSetting(section, subsection, key[1].lower(), value, place, end)
            place = end


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _value(text: str, place: int) -> tuple[str, int]:
    """Return a value, and where it ends."""
    read: list[str] = []
    is_quoted = False
    while place < len(text) and text[place] != "\n":
        char = text[place]
        if char == "\\" and place + 1 < len(text):
            follows = text[place + 1 : place + 3]
            place += 3 if follows == "\r\n" else 2
            if not follows.startswith(("\n", "\r\n")):
                read.append(_ESCAPED.get(follows[0], follows[0]))
            continue
        if char in "#;" and not is_quoted:
            return "".join(read).strip(), _line_end(text, place)
        if char == '"':
            is_quoted = not is_quoted
        else:
            read.append(char)
        place += 1
    return "".join(read).strip(), place


_NAMES = ("config", "config.worktree")
_OF_A_REPOSITORY = ("HEAD", "objects", "refs", "commondir")
_LARGEST = 1024 * 1024
_MOST = 2000
_EMPTY = b"[core]\n\trepositoryformatversion = 0\n"
_ALWAYS = {
    **dict.fromkeys(("core.hooksPath", "core.attributesFile"), "/dev/null"),
    **dict.fromkeys(
        ("core.fsmonitor", "core.editor", "core.sshCommand", "core.askPass", "gpg.program"), "false"
    ),
    **dict.fromkeys(("diff.external", "credential.helper"), ""),
    **{"safe.directory": "*", "core.pager": "cat", "gc.auto": "0"},
}
_PLAIN = (
    *(("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_TERMINAL_PROMPT", "0")),
    *(("GIT_PAGER", "cat"), ("PAGER", "cat"), ("GIT_OPTIONAL_LOCKS", "0"), ("GIT_EXTERNAL_DIFF", "")),
)
_IN_PLACE = {
    **dict.fromkeys(("textconv", "clean", "smudge", "pager"), "cat"),
    **dict.fromkeys(("process", "external", "difffilter", "helper"), ""),
    **{"required": "false", "hookspath": "/dev/null", "templatedir": "", "fsmonitor": "false"},
    **dict.fromkeys(("command", "cmd", "driver", "program", "editor", "sshcommand", "askpass"), "false"),
    **dict.fromkeys(("uploadpack", "receivepack", "vcs", "gitproxy", "defaultkeycommand"), "false"),
    **dict.fromkeys(("alternaterefscommand", "packobjectshook", "browser", "proxycommand"), "false"),
}
"""By the last word of a setting that names a program: what stands for it."""


def git_environment(workspace: Workspace) -> tuple[tuple[str, str], ...]:
    """Return the environment of a checker; includes of other settings are taken out of the workspace's own.

    Raises:
        SandboxError: The workspace cannot be read or written.
    """
    settings = [*_ALWAYS.items(), *dict.fromkeys(_programs(workspace))]
    return (
        *_PLAIN,
        ("GIT_CONFIG_COUNT", str(len(settings))),
        *((f"GIT_CONFIG_KEY_{place}", key) for place, (key, _) in enumerate(settings)),
        *((f"GIT_CONFIG_VALUE_{place}", value) for place, (_, value) in enumerate(settings)),
    )


def _programs(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Yield what takes the place of each program that a repository names."""
    entries = workspace.entries()
    names = {entry.name for entry in entries}
    folders = {name.rpartition("/")[0] for name in names}
    found = 0
    for entry in entries:
        folder, _, name = entry.name.rpartition("/")
        if entry.kind is not EntryKind.FILE or name not in _NAMES:
            continue
        around = {f"{folder}/{sign}".lstrip("/") for sign in _OF_A_REPOSITORY}
        is_gits = not around.isdisjoint(names | folders) or ".git" in folder.split("/")
        found += 1
        if entry.size_bytes > _LARGEST or found > _MOST:
            if is_gits:
                workspace.put(entry.name, _EMPTY, mode=entry.mode)
            continue
        text = (workspace.get(entry.name, limit_bytes=_LARGEST) or b"").decode("utf-8", "surrogateescape")
        settings = tuple(git_settings(text))
        if not is_gits and not any(one.section == "core" for one in settings):
            continue
        if includes := [one for one in settings if one.section in ("include", "includeif")]:
            kept = _without(text, includes).encode("utf-8", "surrogateescape")
            workspace.put(entry.name, kept, mode=entry.mode)
        yield from (pair for one in settings for pair in _in_place(one))


def _in_place(setting: GitSetting) -> Iterator[tuple[str, str]]:
    if setting.section == "pager":
        yield setting.name, "cat"
    elif setting.section in ("alias", "submodule", "credential") and (setting.value or "").startswith("!"):
        yield setting.name, "" if setting.section == "credential" else "!false"
    elif setting.key in _IN_PLACE and setting.section not in ("alias", "user"):
        yield setting.name, _IN_PLACE[setting.key]


def _without(text: str, settings: Sequence[GitSetting]) -> str:
    for one in reversed(settings):
        text = text[: one.start] + text[one.end :]
    return text
