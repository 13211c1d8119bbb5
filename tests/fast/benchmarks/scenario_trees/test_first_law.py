"""The first law of the format: no frontmatter text ever reaches a prompt, however damaged the file is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree

SCHEMA = json.dumps({"type": "object"})
MARKER = "ANSWER-9f3e"
FENCES = st.sampled_from(
    [
        "---",
        "---",
        "---",
        "---  ",
        "---\t",
        " ---",
        "----",
        "—",
        "--",
        "",
        "\n\n---",
        "\ufeff---",
        "***",
        "--- #",
    ]
)
KEYS = st.sampled_from(["severity", "Severity", "SEVERITY", '"severity"', "severity "])
NUMBERS = st.sampled_from(["5", "-3", "7 # why", "+2"])
BODIES = st.sampled_from(
    [
        "## User input\n\nHelp me.",
        "Help.",
        "",
        "Text\n\n---\n\nmore",
        "```\n# code\n```\n\n## End\n\nx",
        "Note: yes",
    ]
)
TITLES = st.sampled_from(
    [
        "# {}",
        "# {}",
        "# {}",
        "#  {}  ",
        "# {} #",
        "#{}",
        " # {}",
        "## {}",
        "# {}: calm",
        "# **{}**",
        "\ufeff# {}",
        "#\u00a0{}",
        "\u200b# {}",
        "{}\n===",
        "# {}\r",
        "```\n# {}",
    ]
)
BREAKS = st.sampled_from(["\n", "\n", "\r\n", "\r"])


@st.composite
def components(draw: st.DrawFn, number: int) -> str:
    """One perturbation with frontmatter whose key carries the marker as a comment."""
    line = f"{draw(KEYS)}: {draw(NUMBERS)} # {MARKER}"
    linted = draw(st.sampled_from([line, line, line, f"## {line}", f"\n## {line}", f"{line}\n\n"]))
    parts = [draw(TITLES).format(f"PT{number}"), draw(FENCES), linted, draw(FENCES), "", draw(BODIES), ""]
    return "\n".join(parts)


@st.composite
def consolidated(draw: st.DrawFn) -> str:
    parts = [draw(components(number)) for number in range(1, draw(st.integers(1, 3)) + 1)]
    bom = draw(st.sampled_from(["", "\ufeff"]))
    return (bom + "\n".join(parts)).replace("\n", draw(BREAKS))


@st.composite
def prompt_files(draw: st.DrawFn) -> str:
    keys = draw(
        st.permutations([f"category: {MARKER}", f"evaluation:\n  expected: {MARKER}", f"note: {MARKER}"])
    )
    kept = keys[: draw(st.integers(1, 3))]
    last = draw(st.sampled_from(["{}", "{}", "{}", "## {}", "{}\n\n"])).format(kept[-1])
    front = "\n".join([*kept[:-1], last])
    text = "\n".join([draw(FENCES), front, draw(FENCES), "", draw(BODIES), ""])
    return (draw(st.sampled_from(["", "\ufeff", "\n"])) + text).replace("\n", draw(BREAKS))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark of one scenario; examples write one of its files."""
    root = tmp_path_factory.mktemp("benchmark")
    folder = root / "scenarios" / "P1-B1-S1"
    folder.mkdir(parents=True)
    (folder / "S1.json").write_text(SCHEMA)
    return root


def assert_kept_out(root: Path, name: str, text: str) -> None:
    """Load a scenario with this file and look for the marker wherever a model would read it."""
    folder = root / "scenarios" / "P1-B1-S1"
    files = {"S1.md": b"---\ncategory: X\n---\n\n## Job\n\nSort.\n", "perturbations.md": b"# PT1\n\nx\n"}
    for file, content in (files | {name: text.encode()}).items():
        (folder / file).write_bytes(content)
    benchmark = load_tree(root)
    if folder / name in benchmark.problems:
        assert not benchmark.scenarios
        return
    for scenario in benchmark.scenarios.values():
        for combination in scenario.combinations():
            prompt = combination.prompt()
            assert MARKER not in prompt
            assert "severity" not in prompt.lower()


@examples(500)
@given(text=consolidated())
def test_no_component_frontmatter_reaches_a_prompt(root: Path, text: str) -> None:
    assert_kept_out(root, "perturbations.md", text)


@examples(500)
@given(text=prompt_files())
def test_no_scenario_frontmatter_reaches_a_prompt(root: Path, text: str) -> None:
    assert_kept_out(root, "S1.md", text)
