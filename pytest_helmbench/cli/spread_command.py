"""`helmbench spread`: the shards of a session on a Dask cluster, merged at the end."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_helmbench.cli.exchange_commands import merge_command
from pytest_helmbench.cli.output import CommandError, complain, refuse_unused, say, writing
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.core.whole_file import try_place
from pytest_helmbench.reports.tables import table
from pytest_helmbench.sandbox.box import Unavailable
from pytest_helmbench.sandbox.detection import find_engine

if TYPE_CHECKING:
    from pytest_helmbench.run.spread import Spread

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
        raise CommandError("distributed is not installed\n  hint: pip install 'pytest-helmbench[dask]'")
    # Dask is imported only to spread.
    from pytest_helmbench.run.spread import Spread, connected, hosts_of, is_safe, refuse_others
    from pytest_helmbench.run.spread_session import key_variables

    if not is_safe(address):
        raise CommandError(
            f"--dask={address}: a scheduler beyond this machine needs TLS: Dask unpickles what it is sent\n"
            "  hint: tls://HOST:PORT, with the certificates in Dask's configuration (distributed.comm.tls)",
            code=_UNSAFE,
        )
    project = Project.at(Path.cwd())
    if pytest_args == ("check",):
        refuse_unused("`check` only lists the workers", resume=resume, shared=shared, **ending)
        with connected(address) as client:
            hosts, keys = hosts_of(client), client.run(key_variables)
            boxes = client.run(_sandboxes, project.settings().packs.sandbox)
            rows = [(name, *hosts[name], boxes[name], keys[name]) for name in sorted(hosts)]
            say(*table(_HEAD, rows, left=_HEAD))
            refuse_others(hosts)
        return 0
    results = _results(out, shards, resume=resume)
    folder, files = (str(Path.cwd()), None) if shared else _travelling(project, pytest_args)
    with connected(address) as client:
        refuse_others(hosts_of(client))
        spread = Spread(client, pytest_args, folder, files, results, complain)
        spread.run()
    return _merged(spread, out, **ending)


def _merged(spread: Spread, out: Path, *, junitxml: Path | None, gate: bool) -> int:
    complain(spread.problems)
    if spread.usage_problem:
        raise CommandError(f"pytest cannot use its arguments:\n{spread.usage_problem}", code=_UNSAFE)
    if not spread.files:
        raise CommandError("no shard has stored anything", code=1)
    is_whole = spread.is_whole
    try:
        code = click.get_current_context().invoke(
            merge_command,
            files=tuple(spread.files),
            out=out,
            junitxml=junitxml,
            paths=(),
            partial=not is_whole,
            gate=gate and is_whole,
            force=True,
        )
    except HelmbenchError as error:
        named = ((path.name, host) for path, host in spread.files.items() if path.name in str(error))
        complain(f"{name} came from {host}" for name, host in named if host)
        raise
    if is_whole:
        return code or int(bool(spread.problems))
    complain("helmbench: add --resume to go on: nothing that is stored is asked again")
    return _INTERRUPTED if spread.stopped_at is not None else 1


def _results(out: Path, shards: int, *, resume: bool) -> list[Path]:
    """Return the results files of shards; none is replaced without --resume, before a call is paid.

    Raises:
        CommandError: A file exists, or the merged one cannot be written.
    """
    results = [out.absolute().parent / Shard(index, shards).file_name for index in range(1, shards + 1)]
    there = next((path for path in (out, *results) if path.exists()), None)
    if there is not None and not resume:
        raise CommandError(
            f"{there} is there already\n  hint: --resume goes on with the shards that are there; else another folder"
        )
    with writing(out, "name another file with -o"):
        try_place(out.with_suffix(".part"))
    return results


def _travelling(project: Project, arguments: Sequence[str]) -> tuple[str, bytes]:
    """Return the folder to run in and what travels: benchmarks, files that arguments name, the project's settings.

    Raises:
        CommandError: Something is not below the project's folder.
    """
    from pytest_helmbench.run.spread_session import packed

    options = [word.partition("=")[2] for word in arguments if word.startswith("-")]
    places = [word.partition("::")[0] for word in arguments if not word.startswith("-")]
    paths = {Path(place) for place in places if place and Path(place).exists()}
    paths |= set() if paths else set(project.benchmarks(None))
    named = (project.ini_file, project.root / "conftest.py", project.root / "models.yml", *options)
    paths |= {Path(place) for place in named if place}
    paths = {path.resolve() for path in paths if path.exists()}
    root = project.root.resolve()
    for path in sorted(paths):
        if not path.is_relative_to(root):
            raise CommandError(
                f"{path} is not below {root}, which travels\n  hint: --shared, where all hosts have it at the same path"
            )
    return Path.cwd().resolve().relative_to(root).as_posix(), packed(root, sorted(paths))


async def _sandboxes(wanted: Granted[str]) -> str:
    """Return which sandboxes this host has; `none: ` and why where there is none."""
    found = await find_engine(wanted, pull=NOT_ALLOWED)
    return f"none: {found.reason}" if isinstance(found, Unavailable) else found.name
