"""`helmbench view`: runs in a browser, while they are written."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import webbrowser
from pathlib import Path

import click

from pytest_helmbench.cli.lookup import database_of, run_of
from pytest_helmbench.cli.output import complain, db_option, say, texts_option
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.store.read.connection import opened
from pytest_helmbench.view.live_pages import Address, LivePages
from pytest_helmbench.view.local_server import serve


@click.command("view")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: any that is free.")
@click.option("--open/--no-open", "opens", default=False, help="Open it in a browser.")
@click.option(
    "--refresh",
    type=click.FloatRange(0.2, 60),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the database is looked at.",
)
@texts_option
@db_option
def view_command(
    runs: tuple[str, ...], port: int, *, opens: bool, refresh: float, with_text: str | None, db: Path | None
) -> int:
    """Show runs in a browser while sessions write them.

    It has the page of `helmbench report --format html`, the list of all runs, and comparisons of two. The server
    listens at 127.0.0.1, needs the token in the printed address, and only reads. Ctrl-C ends it.
    """
    path = database_of(db).absolute()
    opened(path).close()  # told now, and not on its first page
    asked = None if with_text is None else ShownTexts(with_text)
    first = "/" if not runs else Address(tuple(dict.fromkeys(run_of(path, run).id for run in runs))).path

    def listening(address: str) -> None:
        say(f"helmbench view: {address}", "Ctrl-C ends it; only this address is let in")
        sys.stdout.flush()
        if opens and (os.environ.get("CI") or not sys.stdout.isatty()):
            complain("not opened: --open needs a terminal, and no CI")
        elif opens:  # a browser in the terminal would hold the server up
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    with contextlib.suppress(KeyboardInterrupt):  # where signals cannot be asked for: Windows
        asyncio.run(serve(LivePages(path, asked, refresh), port, first, listening))
    return 0
