"""`helmbench datasette`: the results file in Datasette."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import webbrowser
from pathlib import Path

import click

from pytest_helmbench.cli.output import CommandError, complain, db_option, say
from pytest_helmbench.cli.recorded import database_of, run_of
from pytest_helmbench.store.file_form import check_form
from pytest_helmbench.view.datasette_server import explore, installed_version

__all__ = ["command"]


@click.command("datasette")
@click.argument("what", nargs=-1, metavar="[RUN]... | [DB]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: any that is free.")
@click.option("--open/--no-open", "opens", default=False, help="Open it in a browser.")
@click.option("--text", "with_text", is_flag=True, help="Also prompts, replies and the judge's words.")
@db_option
def command(what: tuple[str, ...], port: int, *, opens: bool, with_text: bool, db: Path | None) -> int:
    """Start Datasette over the results, with facets, labels and ready queries: every table to browse, filter and ask
    by SQL. RUN opens the results of these runs, DB another file.

    It reads only, listens at 127.0.0.1 alone, and lets in who has the address that is printed. Ctrl-C ends it.
    """
    installed_version()
    runs = what
    if len(what) == 1 and not what[0].isdigit() and what[0] != "last":
        if db is not None:
            raise CommandError(f"{what[0]!r} and --db both name a database\n  hint: give one of them")
        db, runs = Path(what[0]), ()
    path = database_of(db).absolute()
    check_form(path)
    ids = dict.fromkeys(run_of(path, run).summary.id for run in runs)
    page = f"/v_results?run_id__in={','.join(map(str, ids))}" if ids else ""

    def listening(address: str) -> None:
        say(f"helmbench datasette: {address}", "Ctrl-C ends it; nobody but who has this address is let in")
        sys.stdout.flush()
        if opens and (os.environ.get("CI") or not sys.stdout.isatty()):
            complain("not opened: --open needs a terminal, and no CI")
        elif opens:  # it listens a moment later
            threading.Timer(1.0, webbrowser.open, (address,)).start()

    with contextlib.suppress(KeyboardInterrupt, click.Abort):
        explore(path, page, port, with_text=with_text, listening=listening)
    return 0
