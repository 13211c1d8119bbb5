"""Commands about what stands in a tree: `list` and `prompt`. No model is asked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackOutline
from pytest_helmbench.benchmarks.bench_packs.places import is_bench_pack
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack, load_pack
from pytest_helmbench.benchmarks.packs.places import is_pack
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.tree import Combination, Scenario, ScenarioTree
from pytest_helmbench.cli.hosted import (
    bench_pack_rows,
    bench_pack_table,
    find_scenario,
    loaded_bench_pack,
    prompt_lines,
)
from pytest_helmbench.cli.output import (
    CommandError,
    as_json_option,
    no_db_option,
    say,
    say_json,
)
from pytest_helmbench.cli.packs import find_row, pack_rows, pack_table, row_case
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable, resolve_endpoint
from pytest_helmbench.gateway.wire import request_body
from pytest_helmbench.reports.tables import table
from pytest_helmbench.session.settings import Settings
from pytest_helmbench.session.targets import resolve_targets

__all__ = [
    "AnyBenchmark",
    "benchmark_option",
    "benchmark_table",
    "list_scenarios",
    "nearest",
    "prompt",
    "read_benchmarks",
]

_HEAD = ("code", "behaviour", "family", "cases", "title")


def benchmark_option(command: Any) -> Any:
    """Add `--benchmark`."""
    text = "Benchmark (default: the one the current folder is in, else helmbench_paths)."
    return click.option("--benchmark", "path", type=click.Path(path_type=Path), metavar="PATH", help=text)(
        command
    )


@click.command("list")
@benchmark_option
@as_json_option
@no_db_option
def list_scenarios(path: Path | None, *, as_json: bool) -> None:
    """List the scenarios with their behaviour, evaluation family and number of cases; of packs, the rows; of Bench
    Packs, their scenarios."""
    project = Project.at(Path.cwd())
    loaded = read_benchmarks(project, path)
    no_context = project.settings().add_no_context
    if as_json:
        say_json([row for item in loaded for row in _rows(item, add_no_context=no_context)])
        return
    for benchmark in loaded:
        say(*benchmark_table(benchmark, add_no_context=no_context))


AnyBenchmark = ScenarioTree | Pack | BenchPackOutline
"""What the commands read of a benchmark."""


def read_benchmarks(project: Project, path: Path | None) -> list[AnyBenchmark]:
    """Read the benchmarks that a session here would run, of whatever kind.

    Raises:
        UnreadableBenchmarkError: Nothing of one can be used.
    """
    settings = project.settings()
    return [_read(root, settings) for root in project.benchmarks(path)]


def _read(root: Path, settings: Settings) -> AnyBenchmark:
    if is_bench_pack(root):
        return loaded_bench_pack(root, settings).outline
    return load_pack(root) if is_pack(root) else load_tree(root)


def benchmark_table(benchmark: AnyBenchmark, *, add_no_context: bool) -> Iterator[str]:
    """Yield the table of a benchmark of any kind."""
    if isinstance(benchmark, ScenarioTree):
        return scenario_table(benchmark, add_no_context=add_no_context)
    return pack_table(benchmark) if isinstance(benchmark, Pack) else bench_pack_table(benchmark)


def _rows(benchmark: AnyBenchmark, *, add_no_context: bool) -> list[dict[str, Any]]:
    if isinstance(benchmark, ScenarioTree):
        return scenario_rows(benchmark, add_no_context=add_no_context)
    return pack_rows(benchmark) if isinstance(benchmark, Pack) else bench_pack_rows(benchmark)


def scenario_rows(benchmark: ScenarioTree, *, add_no_context: bool) -> list[dict[str, Any]]:
    """Return one mapping per healthy scenario, in natural order; cases are counted, not made."""
    titles = {behaviour.code: behaviour.title for behaviour in benchmark.behaviours}
    return [
        {
            "benchmark": benchmark.name,
            "code": scenario.code,
            "pillar": scenario.pillar,
            "behaviour": scenario.behaviour,
            "behaviour_title": titles.get(scenario.behaviour, ""),
            "title": scenario.title,
            "family": scenario.family,
            "conditions": len(scenario.conditions),
            "user_contexts": len(scenario.user_contexts),
            "perturbations": len(scenario.perturbations),
            "cases": _cases(scenario, add_no_context=add_no_context),
            "path": str(scenario.path),
        }
        for scenario in benchmark.scenarios.values()
    ]


def scenario_table(benchmark: ScenarioTree, *, add_no_context: bool) -> Iterator[str]:
    """Yield the table of a benchmark, its totals and its broken scenarios."""
    rows = scenario_rows(benchmark, add_no_context=add_no_context)
    cells = [
        (
            row["code"],
            f"{row['behaviour']} {row['behaviour_title']}".strip(),
            row["family"],
            str(row["cases"]),
            row["title"],
        )
        for row in rows
    ]
    yield f"{benchmark.name} {benchmark.version}"
    yield from table(_HEAD, cells, left=("code", "behaviour", "family", "title"))
    cases = sum(row["cases"] for row in rows)
    yield f"{len(rows)} scenario{'s' if len(rows) != 1 else ''}, {cases} cases"
    broken = dict.fromkeys(benchmark.broken.values())
    if broken:
        yield f"broken, not listed: {', '.join(broken)} (`helmbench check {benchmark.root}` says why)"


def _cases(scenario: Scenario, *, add_no_context: bool) -> int:
    contexts = len(scenario.user_contexts)
    contexts += not contexts or add_no_context
    return (len(scenario.conditions) or 1) * contexts * len(scenario.perturbations)


@click.command()
@click.argument("code")
@benchmark_option
@click.option("--model", metavar="ID", help="The body for this model, with its sampling options.")
@click.option("--system-prompt", metavar="FILE", help="A system message before the case.")
@click.option("--json", "as_json", is_flag=True, help="The JSON body as it would be sent.")
@no_db_option
def prompt(
    code: str, path: Path | None, model: str | None, system_prompt: str | None, *, as_json: bool
) -> None:
    """Print exactly what would be sent for the case CODE; nothing is sent.

    As text: the messages and the response format. As JSON, and whenever a model is named: the request body.
    A Bench Pack writes its requests itself: of its scenarios, what it shows of them.
    """
    project = Project.at(Path.cwd())
    settings = project.settings(model=None if model is None else [model], system_prompt=system_prompt)
    loaded = read_benchmarks(project, path)
    hosted = find_scenario([item for item in loaded if isinstance(item, BenchPackOutline)], code)
    if hosted is not None:
        if model is not None or as_json:
            raise CommandError(
                f"{code} is a scenario of a Bench Pack, whose own code writes the requests\n"
                "  hint: leave --model and --json out to see what the pack shows of it"
            )
        say(*prompt_lines(hosted[1]))
        return
    root, case = _find(loaded, code, settings.system_prompt)
    if model is not None:
        say_json(_body(root, settings, case))
    elif as_json:
        body: dict[str, Any] = {
            "messages": [{"role": message.role, "content": message.content} for message in case.messages]
        }
        say_json(body if case.response_format is None else {**body, "response_format": case.response_format})
    else:
        say(*_case_text(case))


def _case_text(case: Case) -> Iterator[str]:
    for message in case.messages:
        yield f"[{message.role}]"
        yield message.content
        yield ""
    if case.response_format is None:
        yield "[no response format: plain text]"
    else:
        yield "[response_format]"
        yield json.dumps(case.response_format, ensure_ascii=False, indent=2)


def _body(root: Path, settings: Settings, case: Case) -> Mapping[str, Any]:
    """Return the body that the model would get; a missing key does not change it."""
    (target,) = resolve_targets(root, settings, os.environ)
    endpoint = target.model.endpoint
    if isinstance(endpoint, Unusable):
        endpoint = _as_if_usable(target.model.entry, settings, endpoint)
    return request_body(
        endpoint, target.model.entry.sampling, case.messages, case.response_format, repetition=1
    )


def _as_if_usable(entry: ModelEntry, settings: Settings, unusable: Unusable) -> Endpoint:
    found = resolve_endpoint(
        entry,
        default_base_url=settings.base_url,
        default_key_env=settings.api_key_env,
        environ={unusable.variable: "none"},
    )
    if isinstance(found, Unusable):
        raise CommandError(f"{entry.id} cannot be resolved: {found.reason}\n  hint: give it a key")
    return replace(found, key=None)


def _find(loaded: Sequence[AnyBenchmark], code: str, system_prompt: str | None) -> tuple[Path, Case]:
    """Return the case of a code and the folder of its benchmark.

    Raises:
        CommandError: There is none, or its scenario is broken.
    """
    packs = [item for item in loaded if isinstance(item, Pack)]
    row = find_row(packs, code)
    if row is not None:
        pack, ref = row
        return pack.root, row_case(pack, ref, system_prompt)
    trees = [item for item in loaded if isinstance(item, ScenarioTree)]
    others = [ref.id for pack in packs for ref in pack.rows]
    others += [name for item in loaded if isinstance(item, BenchPackOutline) for name in item.scenarios]
    benchmark, combination = _find_combination(trees, code, others)
    return benchmark.root, combination.case(system_prompt)


def _find_combination(
    loaded: Sequence[ScenarioTree], code: str, others: Iterable[str]
) -> tuple[ScenarioTree, Combination]:
    parts = CaseCode.parse(code)
    wanted = f"{parts.pillar}-{parts.behaviour}-{parts.scenario}" if parts is not None else code
    known: list[str] = [*others]
    for benchmark in loaded:
        scenarios = {scenario.code: scenario for scenario in benchmark.scenarios.values()}
        scenario = scenarios.get(wanted)
        if scenario is not None:
            combinations = list(scenario.combinations(add_no_context=True))
            found = next((item for item in combinations if item.code == code), None)
            if found is not None:
                return benchmark, found
            known += [item.code for item in combinations]
        elif wanted in benchmark.broken.values():
            texts = [
                problem.text(benchmark.root)
                for path, problems in benchmark.problems.items()
                if benchmark.broken[path] == wanted
                for problem in problems
            ]
            raise CommandError("\n".join([f"{wanted} is broken:", *texts]), code=1)
        else:
            known += [next(item.combinations()).code for item in scenarios.values()]
    raise CommandError(f"there is no case {code}\n  hint: {nearest(code, known)}")


def nearest(code: str, known: Iterable[str]) -> str:
    """Return which codes were probably meant."""
    names = list(known)
    below = [name for name in names if name.startswith(f"{code}-")]
    near = below[:3] or get_close_matches(code, names, n=3, cutoff=0.5) or names[:3]
    return f"did you mean {', '.join(near)}?" if near else "there are none yet"
