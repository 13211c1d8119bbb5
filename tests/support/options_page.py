"""The lists of `docs/options.md`, made from the options, the commands and the schema of the results database.

`python tests/support/options_page.py` writes them; `tests/fast/test_options_page.py` compares the two.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import click

from pytest_helmbench.cli.main import helmbench
from pytest_helmbench.options.declarations import OPTIONS
from pytest_helmbench.options.option import Option
from pytest_helmbench.store.schema import create_tables

__all__ = ["PAGE", "TABLES", "page"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "options.md"

TABLES = {
    "benchmarks": "one content of a benchmark; `kind` is `scenario_tree`, `pack`, `bench_pack` or `python_tests`",
    "texts": "one distinct text, by SHA-256",
    "pillars": "a pillar, `P1`",
    "behaviours": "a behaviour, `B2` of `P1-B2`",
    "scenarios": "a scenario, a row of a pack, or a scenario of a Bench Pack; `evaluation` is JSON",
    "conditions": "a condition; `difficulty` 0 to 10",
    "user_contexts": "a user context; `severity` −10 to 10",
    "perturbations": "a perturbation; `severity` −10 to 10",
    "llms": "a model at a server; `base_url` is NULL for the provider's own",
    "evaluation_runs": "a run; `settings`, `shard` and `baseline` are JSON, `status` is `running`, `complete`,"
    " `partial` or `interrupted`",
    "plans": "the planned cases of a run, compressed, one code per line; `sample` and `broken` are JSON",
    "leases": "an open session and its last sign of life",
    "sent_calls": "a call in flight, in sessions with a budget",
    "batches": "a batch of calls; `state` is `planned`, `creating`, `out` or `read`",
    "judge_labels": "a person's verdict beside the judge's",
    "results": "a case × repetition; `outcome` is `passed`, `failed`, `error` or `skipped`; `severity` is the base",
    "evaluations": "a result × criterion; `observed_text` holds running text of the reply",
    "judgements": "a result × criterion × judge, in runs with two judges; `of_record` 1 is the verdict that counts",
    "pack_results": "a Bench Pack's own words about a result",
    "pack_scores": "a Bench Pack's own total of a run; `categories` is JSON",
    "events": "a tool call, a step of an agent, or an event of a Bench Pack; `payload` is JSON",
    "calls": "one attempt, or one cached answer (`from_cache` 1, cost 0); `purpose` is `case`, `judge`, `agent` or"
    " `pack`",
    "requests": "one distinct request body",
    "responses": "one reply, never changed; `body` as received",
    "scenario_conditions": "view: the conditions of a scenario",
    "scenario_user_contexts": "view: the user contexts of a scenario",
    "v_results": "view: an evaluation with everything joined; a result without one has one row",
    "v_costs": "view: a run and purpose; `calls` and tokens were sent, `cached_answers` were not",
}
"""The meaning of one row of each table and view."""
_WITHOUT_COLUMNS = {
    *("benchmarks", "texts", "pillars", "behaviours", "conditions", "user_contexts", "perturbations"),
    *("plans", "leases", "sent_calls", "batches", "scenario_conditions", "scenario_user_contexts"),
}
"""Tables that `v_results` joins, or that only the program reads."""


def page() -> str:
    """Return the page, with its three generated lists made anew."""
    text = PAGE.read_text("utf-8")
    for name, lines in (("options", _options()), ("commands", _commands()), ("tables", _tables())):
        before, start, rest = text.partition(f"<!-- made: {name} -->\n")
        end = rest.index("\n<!-- /made -->")
        text = "\n".join([f"{before}{start}", *lines, rest[end:]])
    return text


def _options() -> Iterator[str]:
    for group, options in groupby(OPTIONS, key=lambda option: option.group):
        yield from (f"### {group.title[0].upper()}{group.title[1:]}\n", *map(_option, options), "")


def _option(option: Option) -> str:
    metavar = f"={option.type.metavar}" if option.type.metavar else ""
    name = f"`{option.flag}{metavar}`" if option.use != "ini" else f"`{option.key}` (ini key only)"
    return f"* {name}: {_prose(option.help)}"


def _prose(text: str) -> str:
    """Return text for people: options as code, signs of Markdown as they are."""
    outside = re.sub(r"[*~]", r"\\\g<0>", text)
    return re.sub(
        r"`[^`]*`|(--[a-z][a-z-]+(?:=[A-Z/]+)?)", lambda it: f"`{it[1]}`" if it[1] else it[0], outside
    )


def _commands() -> Iterator[str]:
    for name, command in _all_commands(helmbench, "helmbench"):
        usage = " ".join([name, *command.collect_usage_pieces(click.Context(command))[1:]])
        first = re.split(r"[.:;] ", " ".join((command.help or "").split("\n\n")[0].split()))[0].rstrip(".")
        yield f"* `{usage}`: {_prose(first)}"


def _all_commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _all_commands(command, f"{path} {name}")
        elif command is not None:
            yield f"{path} {name}", command


def _tables() -> Iterator[str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as conn:
        create_tables(conn)
        for table, meaning in TABLES.items():
            names = [name for (name,) in conn.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            columns = "" if table in _WITHOUT_COLUMNS else f". `{', '.join(names)}`"
            yield f"* `{table}`: {meaning}{columns}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
