"""`helmbench spread`: the shards of a session on a Dask cluster, merged at the end."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_helmbench.cli.exchange_commands import merge_command
from pytest_helmbench.cli.output import CommandError, complain, no_db_option, say
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.core.whole_file import try_place
from pytest_helmbench.reports.tables import table
from pytest_helmbench.run.spread_session import ShardedWork, key_variables, packed
from pytest_helmbench.sandbox.box import Unavailable
from pytest_helmbench.sandbox.detection import find_engine

if TYPE_CHECKING:
    from pytest_helmbench.run.spread import SpreadResult

_FILE = click.Path(path_type=Path)
_HEAD = ("worker", "host", "versions", "sandboxes", "key variables")
_UNSAFE = 4
_INTERRUPTED = 130


@click.command("spread")
@click.option(
    "--dask", "address", required=True, metavar="ADDRESS", help="tls://HOST:PORT of a scheduler, or local:N."
)
@click.option(
    "--shards", type=click.IntRange(1, 9_999), default=4, show_default=True, help="How many shares."
)
@click.option(
    "-o", "--output", "out", type=_FILE, default=Path("helmbench.db"), help="The merged results file."
)
@click.option(
    "--gate", is_flag=True, help="Check the run against the thresholds and the baseline among PYTEST_ARGS."
)
@click.option("--junitxml", type=_FILE, metavar="FILE", help="Also write a JUnit report of all cases.")
@click.option("--shared", is_flag=True, help="This folder is at the same path on all hosts: nothing travels.")
@click.option("--resume", is_flag=True, help="Go on with the shards' files that are there.")
@no_db_option
@click.argument("pytest_args", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- PYTEST_ARGS")
def spread_command(
    address: str,
    shards: int,
    pytest_args: tuple[str, ...],
    out: Path,
    *,
    shared: bool,
    resume: bool,
    **ending: Any,
) -> int:
    """Run pytest in shards on a Dask cluster, and merge them.

    Each shard is a session on a worker's host, with the worker's environment: no key is sent. The files below this
    folder that PYTEST_ARGS name are sent, with the project's settings. Every 15 s the results of a shard come here, to
    helmbench-KofN.db; if a host is lost, another one goes on from there. With `check` for PYTEST_ARGS the command only
    lists the workers.

    The exit code is that of `helmbench merge`: 1 if something is missing or a gate does not hold. It is 4 for a
    remote scheduler without TLS or arguments that pytest cannot use, and 130 after Ctrl-C.
    """
    if find_spec("distributed") is None:
        raise CommandError(
            "spread needs the package distributed\n  hint: pip install 'pytest-helmbench[dask]'"
        )
    # Dask is imported only to spread.
    from pytest_helmbench.run.spread import Spread, connected, hosts_of, is_safe, refuse_others

    if not is_safe(address):
        raise CommandError(
            f"--dask={address}: a scheduler beyond this machine needs TLS: Dask unpickles what it is sent\n"
            "  hint: tls://HOST:PORT, with the certificates in Dask's configuration (distributed.comm.tls)",
            code=_UNSAFE,
        )
    if pytest_args == ("check",):
        with connected(address) as client:
            return _check(hosts_of(client), client.run)
    results = [out.absolute().parent / Shard(index, shards).file_name for index in range(1, shards + 1)]
    _check_places((out, *results), resume=resume)
    folder, files = (str(Path.cwd()), None) if shared else _travelling(Project.at(Path.cwd()), pytest_args)
    digest = None if files is None else sha256(files).hexdigest()
    work = ShardedWork(f"helmbench-{uuid.uuid4().hex}", shards, pytest_args, folder, digest)
    with connected(address) as client:
        refuse_others(hosts_of(client))
        found = Spread(client, work, files, results, lambda line: complain(f"helmbench: {line}")).run()
    return _merged(found, out, **ending)


def _merged(found: SpreadResult, out: Path, *, junitxml: Path | None, gate: bool) -> int:
    complain(found.problems)
    if found.misused:
        raise CommandError(f"pytest cannot use its arguments:\n{found.misused}", code=_UNSAFE)
    if not found.files:
        raise CommandError("no shard has stored anything", code=1)
    arguments = [*map(str, found.files), "-o", str(out), "--force"]
    arguments += ["--gate"] if gate and found.is_whole else []
    arguments += [] if junitxml is None else ["--junitxml", str(junitxml)]
    arguments += [] if found.is_whole else ["--partial"]
    try:
        code = merge_command.main(arguments, prog_name="helmbench merge", standalone_mode=False)
    except HelmbenchError as error:
        complain(f"{name} came from {host}" for name, host in found.hosts.items() if name in str(error))
        raise
    if found.is_whole:
        return int(code or 0) or int(bool(found.problems))
    complain("helmbench: add --resume to go on: nothing that is stored is asked again")
    return _INTERRUPTED if found.stopped else 1


def _check_places(places: Sequence[Path], *, resume: bool) -> None:
    """Refuse to write over what is there, before anything is paid.

    Raises:
        CommandError: It is there.
    """
    there = next((path for path in places if path.exists()), None)
    if there is not None and not resume:
        raise CommandError(
            f"{there} is there already\n  hint: --resume goes on with the shards that are there; else another folder"
        )
    try:
        try_place(places[0].with_suffix(".part"))
    except OSError as error:
        raise CommandError(
            f"{places[0]}: cannot be written: {error.strerror}\n  hint: name another file with -o"
        ) from error


def _travelling(project: Project, arguments: Sequence[str]) -> tuple[str, bytes]:
    """Return the folder to run in and what travels: benchmarks, files that arguments name, the project's settings.

    Raises:
        CommandError: Something is not below the project's folder.
    """
    named = [path for word in arguments if (path := _named(word)) is not None]
    if not any(_named(word) for word in arguments if not word.startswith("-")):
        named += project.benchmarks(None)
    own = (project.ini_file, project.root / "conftest.py", project.root / "models.yml")
    paths = {path.resolve() for path in (*named, *own) if path is not None and path.exists()}
    root = project.root.resolve()
    for path in sorted(paths):
        if not path.is_relative_to(root):
            raise CommandError(
                f"{path} is not below {root}, which travels\n  hint: --shared, where all hosts have it at the same path"
            )
    return Path.cwd().resolve().relative_to(root).as_posix(), packed(root, sorted(paths))


def _named(word: str) -> Path | None:
    """Return the file or folder that an argument of pytest names; None where it names none."""
    value = word.partition("=")[2] if word.startswith("-") else word.partition("::")[0]
    path = Path(value)
    return path.absolute() if value and path.exists() else None


def _check(hosts: Mapping[str, tuple[str, str]], run: Callable[..., Mapping[str, Any]]) -> int:
    """Say who is there: hosts, versions, sandboxes, and which variables with keys are set."""
    from pytest_helmbench.run.spread import refuse_others

    boxes = run(_sandboxes, Project.at(Path.cwd()).settings().packs.sandbox)
    keys = run(key_variables)
    rows = [
        (address, *host, boxes[address], ", ".join(keys[address]) or "none")
        for address, host in sorted(hosts.items())
    ]
    say(*table(_HEAD, rows, left=_HEAD))
    refuse_others(hosts)
    return 0


async def _sandboxes(wanted: Granted[str]) -> str:
    """Return which sandboxes this host has; `none: ` and why where there is none."""
    found = await find_engine(wanted, pull=NOT_ALLOWED)
    return f"none: {found.reason}" if isinstance(found, Unavailable) else found.name
