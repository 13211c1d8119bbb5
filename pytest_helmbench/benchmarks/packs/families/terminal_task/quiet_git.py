"""Settings that make git run nothing which a repository in a workspace names: hooks, drivers, filters, pagers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_helmbench.sandbox.workspace import EntryKind, Workspace

__all__ = ["git_environment"]

_NAMES = ("config", "config.worktree")
_LARGEST = 1024 * 1024
_MOST = 200
_SECTION = re.compile(r'^[ \t]*\[[ \t]*(diff|filter|merge)[ \t]+"([^"\n]+)"', re.IGNORECASE | re.MULTILINE)
_INCLUDE = re.compile(
    r"^[ \t]*\[[ \t]*include[^\n]*\n(?:(?![ \t]*\[)[^\n]*\n?)*", re.IGNORECASE | re.MULTILINE
)
_ALWAYS = (
    *(
        ("safe.directory", "*"),
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("core.pager", "cat"),
    ),
    *(
        ("core.editor", "false"),
        ("core.sshCommand", "false"),
        ("core.askPass", "false"),
        ("diff.external", ""),
    ),
    *(
        ("credential.helper", ""),
        ("core.attributesFile", "/dev/null"),
        ("gpg.program", "false"),
        ("gc.auto", "0"),
    ),
)
_PLAIN = (
    *(("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_TERMINAL_PROMPT", "0")),
    *(("GIT_PAGER", "cat"), ("PAGER", "cat"), ("GIT_OPTIONAL_LOCKS", "0"), ("GIT_EXTERNAL_DIFF", "")),
)
_DEAF = {
    "diff": (("textconv", "cat"), ("command", "true")),
    "filter": (("clean", "cat"), ("smudge", "cat"), ("process", ""), ("required", "false")),
    "merge": (("driver", "false"),),
}


def git_environment(workspace: Workspace) -> tuple[tuple[str, str], ...]:
    """Return the environment of a checker; includes of other settings are taken out of the workspace's own.

    Raises:
        SandboxError: The workspace cannot be read or written.
    """
    settings = [*_ALWAYS, *dict.fromkeys(_drivers(workspace))]
    return (
        *_PLAIN,
        ("GIT_CONFIG_COUNT", str(len(settings))),
        *((f"GIT_CONFIG_KEY_{place}", key) for place, (key, _) in enumerate(settings)),
        *((f"GIT_CONFIG_VALUE_{place}", value) for place, (_, value) in enumerate(settings)),
    )


def _drivers(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Yield what takes the place of each driver and filter that a repository defines."""
    files = [
        entry
        for entry in workspace.entries()
        if entry.kind is EntryKind.FILE
        and entry.name.rpartition("/")[2] in _NAMES
        and entry.size_bytes <= _LARGEST
    ]
    for entry in files[:_MOST]:
        text = (workspace.get(entry.name, limit_bytes=_LARGEST) or b"").decode("utf-8", "surrogateescape")
        if "[" not in text or (".git/" not in f"{entry.name}/" and "[core]" not in text):
            continue
        if _INCLUDE.search(text):
            kept = _INCLUDE.sub("", text).encode("utf-8", "surrogateescape")
            workspace.put(entry.name, kept, mode=entry.mode)
        for kind, name in _SECTION.findall(text):
            yield from ((f"{kind.lower()}.{name}.{key}", value) for key, value in _DEAF[kind.lower()])
