"""Settings that make git run nothing which a repository in a workspace names: hooks, drivers, filters, pagers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

from pytest_helmbench.sandbox.workspace import EntryKind, Workspace

GIT_LISTS = """
command -v git >/dev/null || exit 0
for file; do git config --file "$file" --no-includes --list -z 2>/dev/null; printf '\\0=\\0'; done
"""
"""Lists the settings of files, each file ended by a field `=`."""

_NAMES = ("config", "config.worktree")
_BESIDE = ("HEAD", "objects", "refs")  # in a folder of git's
_LARGEST = 1024 * 1024
_MOST = 200
_MOST_CHARACTERS = 100_000
_VARIABLES = 50  # characters of the names of the two variables that hold a setting
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
"""By the last word of a setting that names a program: what represents it."""


async def quiet_settings(
    workspace: Workspace, listed: Callable[[Sequence[str]], Awaitable[bytes]]
) -> tuple[tuple[str, str], ...]:
    """Return the environment of a checker; includes of other settings are taken out of the workspace's own.

    Args:
        workspace: Before the checker runs.
        listed: Runs `GIT_LISTS` over files of it.

    Raises:
        SandboxError: The workspace cannot be read or written.
    """
    entries = [entry for entry in workspace.entries() if entry.kind is not EntryKind.OTHER]
    names = {entry.name for entry in entries}
    found: dict[str, int] = {}
    for entry in entries:
        folder, slash, name = entry.name.rpartition("/")
        if entry.kind is EntryKind.FILE and name in _NAMES:
            if names.isdisjoint(f"{folder}{slash}{sign}" for sign in _BESIDE):
                continue
            if len(found) == _MOST or entry.size_bytes > _LARGEST:
                workspace.put(entry.name, _EMPTY, mode=entry.mode)
            else:
                found[entry.name] = entry.mode
    settings = dict(_ALWAYS)
    if found:
        *told, rest = (await listed(tuple(found))).decode("utf-8", "surrogateescape").split("\0=\0")
        for path, mode in tuple(found.items())[len(told) :] if told or rest else ():
            workspace.put(path, _EMPTY, mode=mode)  # there was too much to list
        for (path, mode), text in zip(found.items(), told, strict=False):
            own = [setting.partition("\n") for setting in text.split("\0") if setting]
            kept = [one for one in own if one[0].partition(".")[0] not in ("include", "includeif")]
            if len(kept) < len(own):
                content = "".join(_written(*one) for one in kept)
                workspace.put(path, content.encode("utf-8", "surrogateescape"), mode=mode)
            settings.update(pair for name, _, value in kept for pair in _in_place(name, value))
    if sum(len(name) + len(value) + _VARIABLES for name, value in settings.items()) > _MOST_CHARACTERS:
        settings = dict(_ALWAYS)  # more than an environment holds
        for path, mode in found.items():
            workspace.put(path, _EMPTY, mode=mode)
    return (
        *_PLAIN,
        ("GIT_CONFIG_COUNT", str(len(settings))),
        *((f"GIT_CONFIG_KEY_{place}", key) for place, key in enumerate(settings)),
        *((f"GIT_CONFIG_VALUE_{place}", value) for place, value in enumerate(settings.values())),
    )


def _in_place(name: str, value: str) -> Iterator[tuple[str, str]]:
    section, key = name.partition(".")[0], name.rpartition(".")[2]
    if section == "pager":
        yield name, "cat"
    elif section in ("alias", "submodule", "credential") and value.startswith("!"):
        yield name, "" if section == "credential" else "!false"
    elif key in _IN_PLACE and section not in ("alias", "user"):
        yield name, _IN_PLACE[key]


def _written(name: str, is_set: str, value: str) -> str:
    """Return a setting as a file holds it."""
    section, _, rest = name.partition(".")
    inner, dot, key = rest.rpartition(".")
    head = f'{section} "{_escaped(inner)}"' if dot else section
    text = _escaped(value).replace("\n", "\\n")
    return f'[{head}]\n\t{key} = "{text}"\n' if is_set else f"[{head}]\n\t{key}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
