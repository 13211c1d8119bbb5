"""`docs/options.md`, made of the declared options.

`python tests/support/options_page.py` writes it; `tests/fast/test_options_page.py` holds the page to the declaration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from pytest_helmbench.options.declarations import OPTIONS
from pytest_helmbench.options.option import Option

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "options.md"

_INTRODUCTION = """\
# Options

What helmbench adds to `pytest --help`: {count} settings: options, all named `--helmbench-…`,
each with its ini key, and a few that are ini keys alone. This page
is made from their declaration in `pytest_helmbench/options/declarations.py`.

* **The command line wins**, pytest's `addopts` and `PYTEST_ADDOPTS` included; then comes the ini key, then the default.
* **Ini keys** stand in pytest's own configuration file. A repeatable option is given once for each value on the command
  line, and has one value per line in the file. A switch is `true` there; what the file turns on,
  `-o helmbench_pull=false` turns off.
* **Relative paths** start from the folder that pytest is started in, wherever they are written; those of
  `helmbench_paths` from pytest's rootdir.
* **No ini key ever starts a session.** Cases are collected when the path of a benchmark, or any of these options, is on
  the command line itself; `addopts` and `PYTEST_ADDOPTS` start none either.
* The [`helmbench` command](cli.md) reads the same file and the same `addopts`.

```toml
# pyproject.toml
[tool.pytest.ini_options]
helmbench_model = ["openai/gpt-4o-mini", "baseline/lexical"]
helmbench_max_cost = "5"
helmbench_pull = true
```

```ini
# pytest.ini
[pytest]
helmbench_model =
    openai/gpt-4o-mini
    baseline/lexical
helmbench_max_cost = 5
helmbench_pull = true
```
"""

_ABOUT = {
    "models and judge": "The benchmark's `models.yml` may name them too, each with server, key, limits and prices.",
    "cases": "Which cases there are, what is sent and how the reply is read.",
    "sampling": "Of the models under test; they win over `models.yml`. What is given in neither is not sent.",
    "limits, retries and money": "Of the session as a whole, however many workers it has.",
    "record, cache and resume": "What the record holds: [database.md](database.md).",
    "gates and reports": "What holds and what is inconclusive: [scores.md](scores.md#gates). "
    "What is written: [reports.md](reports.md).",
    "more than one machine": "Which of them one needs, and recipes: [scaling.md](scaling.md).",
    "question packs": "Of [question packs](packs.md) alone.",
    "Bench Packs": "Of [Bench Packs](bench-packs.md) of the BenchLocal app alone.",
}
"""What stands below the heading of a group."""


def page() -> str:
    """Return the page."""
    introduction = _INTRODUCTION.format(count=len(OPTIONS))
    groups = groupby(OPTIONS, key=lambda option: option.group)
    return "\n".join([introduction, *(_section(group.title, options) for group, options in groups)])


def _section(title: str, options: Iterable[Option]) -> str:
    head = (f"## {title[0].upper()}{title[1:]}", "", _ABOUT[title], "")
    table = ("| option, ini key | takes | default | what it is for |", "|---|---|---|---|")
    return "\n".join([*head, *table, *map(_row, options), ""])


def _row(option: Option) -> str:
    cells = ("<br>".join(_names(option)), *map(_prose, (_takes(option), _default(option), option.text)))
    return f"| {' | '.join(cells)} |"


def _prose(text: str) -> str:
    """Return text for a cell: other options as code, signs of Markdown as they are."""
    return re.sub(r"--helmbench-[a-z-]+", r"`\g<0>`", re.sub(r"[*|~]", r"\\\g<0>", text))


def _names(option: Option) -> Iterator[str]:
    metavar = f"={option.type.metavar}" if option.type.metavar else ""
    if option.use != "ini":
        yield f"`{option.flag}{metavar}`"
    yield f"`{option.key}`" if option.use != "ini" else f"`{option.key}` (ini alone)"


def _takes(option: Option) -> str:
    if option.type.action == "store_true":
        return "nothing; it is a switch"
    return f"{option.type.wanted}; repeatable" if option.type.is_repeatable else option.type.wanted


def _default(option: Option) -> str:
    return option.default_text or ("off" if option.type.action == "store_true" else "–")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
