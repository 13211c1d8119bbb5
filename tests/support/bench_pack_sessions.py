"""Bench Packs in sessions: packs whose scenarios ask their model in one line, and what such sessions leave behind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bench_pack_folders import write_bench_pack_folder
from inner_pytest import run_pytest
from trees import MODEL, rows

__all__ = [
    "ASKS",
    "QUICK",
    "bench_pack_outcomes",
    "model_reasons",
    "node_processes",
    "run_packs",
    "write_asking_pack",
]

QUICK = ("-p", "no:cacheprovider")
"""Options that spare a session what it does not need."""

ASKS = "async () => { const said = await ask(input.scenario.id); return result({ output: { said } }); }"
"""A scenario that asks once, by its id, and passes."""

_HEAD = """
const bound = (context, input) => {
  const provider = context.providers.find((one) => one.id === input.model.provider);
  const secret = context.secrets.find((one) => one.providerId === provider.id);
  const chat = (content, more = {}, signal = input.abortSignal) => fetch(`${provider.baseUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${secret.value}` },
    body: JSON.stringify({ model: input.model.model, messages: [{ role: "user", content }], ...more }),
    signal,
  });
  const ask = async (content, more) => {
    const response = await chat(content, more);
    if (!response.ok) throw new Error(`asked ${content}, got HTTP ${response.status}`);
    return (await response.json()).choices[0].message.content;
  };
  return { chat, ask };
};
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
"""
_BOUND = "const {{ chat, ask }} = bound(context, input); return ({act})();"


def write_asking_pack(
    root: Path,
    runs: Mapping[str, str],
    *,
    es_module: bool = False,
    manifest: Mapping[str, Any] | None = None,
    **parts: str,
) -> Path:
    """Write a Bench Pack whose scenarios can ask, and return its folder; see `write_hosted_pack`.

    Args:
        root: The folder; made.
        runs: Functions that see, beyond the usual, `ask(prompt, more)`: the reply's text, or an error that is
            thrown; `chat(prompt, more)`: the HTTP response; and `sleep(seconds)`.
        es_module: Write an ES module instead of CommonJS.
        manifest: Keys that differ from those of a small manifest.
        parts: JavaScript statements, as there.
    """
    acts = {name: f"async () => {{ {_BOUND.format(act=act)} }}" for name, act in runs.items()}
    own = {**parts, "head": _HEAD + parts.get("head", "")}
    return write_bench_pack_folder(root, acts, es_module=es_module, manifest=manifest, source=None, **own)


def run_packs(
    pytester: pytest.Pytester,
    *arguments: str,
    url: str = "",
    model: str = MODEL,
    paths: tuple[str, ...] = ("pack",),
) -> pytest.RunResult:
    """Run pytest over Bench Packs, warnings as errors.

    Args:
        arguments: More of the command line.
        url: Of the provider; empty for none.
        model: Under test, where a URL is given and no argument names one; empty for none.
        paths: What runs.
    """
    if not (pytester.path / "pytest.ini").exists():
        pytester.makefile(".ini", pytest="[pytest]\nfilterwarnings = error\n")
    given = [*paths, *QUICK]
    if url:
        given += [f"--helmbench-base-url={url}", "--helmbench-concurrency=32"]
    if url and model and not any(argument.startswith("--helmbench-model=") for argument in arguments):
        given.append(f"--helmbench-model={model}")
    return run_pytest(pytester, *given, *arguments)


def bench_pack_outcomes(database: Path, run_id: int = 1) -> dict[str, tuple[str, str | None]]:
    """Return outcome and reason of every scenario of a run."""
    query = f"SELECT code, outcome, reason FROM results WHERE run_id = {run_id}"
    return {code: (outcome, reason) for code, outcome, reason in rows(database, query)}


def model_reasons(outcomes: Mapping[str, tuple[str, str | None]]) -> dict[str, str]:
    """Return outcomes in a word or two: `passed`, `error threw`."""
    return {code: f"{outcome} {reason or ''}".strip() for code, (outcome, reason) in outcomes.items()}


def node_processes(folder: Path) -> list[int]:
    """Return the processes that work for packs in a folder: those that name it, or stand in it."""
    found = (place for place in Path("/proc").iterdir() if place.name.isdigit())
    return [int(place.name) for place in found if _works_in(place, str(folder))]


def _works_in(place: Path, folder: str) -> bool:
    try:
        command = (place / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        stands = str((place / "cwd").readlink())
    except OSError:
        return False
    runs_node = any("main.cjs" in word for word in command)
    return runs_node and (stands.startswith(folder) or any(folder in word for word in command))
