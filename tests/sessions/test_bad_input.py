"""Broken files: one erroring item each, with every problem; healthy scenarios still run."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run_command
from provider import Provider
from trees import category, judged, run_tree, write_tree


@pytest.fixture
def scenarios(pytester: pytest.Pytester) -> Path:
    """Two healthy cases, and four files that are broken in several ways each."""
    trees = {
        "P1-B1-S1": category("RISK"),
        "P1-B1-S2": category("RISK"),
        "P1-B2-S1": category("RISK"),
        "P1-B2-S2": judged("x"),
        "P2-B1-S1": category("RISK"),
        "P2-B1-S2": category("RISK"),
    }
    folder = write_tree(pytester.path / "benchmark", trees) / "scenarios"
    (folder / "P1-B1-S2" / "S2.md").write_text(
        "---\nevaluation:\n  type: category_mach\n  feild: category\n---\n\n## Task\n\nSort.\n"
    )
    (folder / "P1-B2-S1" / "perturbations.md").write_text(
        "# PT1\n---\nseverity: 50\n---\n\n## Say\n\nA.\n\n# PT1\n\n## severity: 3\n\n## Say\n\nB.\n\n# Notes\n"
    )
    (folder / "P1-B2-S2" / "criteria.md").unlink()
    (folder / "P2-B1-S1" / "S1.json").write_text('{"type": "object",\n "properties": {,}}')
    return folder


_SHOWN = (
    "benchmark/scenarios/P1-B1-S2/S2.md:3: evaluation.type is 'category_mach'",
    "  hint: did you mean 'category_match'? known types: category_match, list_includes, tag_threshold, sqe",
    "benchmark/scenarios/P1-B1-S2/S2.md:4: unknown key 'feild' in evaluation",
    "  hint: did you mean 'field'?",
    "benchmark/scenarios/P1-B2-S1/perturbations.md:3: severity is 50, out of range",
    "benchmark/scenarios/P1-B2-S1/perturbations.md:12: the heading '## severity: 3' is frontmatter that lost its",
    "benchmark/scenarios/P1-B2-S1/perturbations.md:18: ",
    "benchmark/scenarios/P1-B2-S2/criteria.md: ",
    "benchmark/scenarios/P2-B1-S1/S1.json:2: ",
)


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_each_broken_file_is_one_error_with_all_its_problems_and_the_rest_runs(
    pytester: pytest.Pytester, provider: Provider, scenarios: Path, mode: str
) -> None:
    result = run_tree(pytester, mode, url=provider.url)

    result.assert_outcomes(passed=2, errors=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert provider.count == 2
    shown = result.stdout.str()
    for text in _SHOWN:
        assert text in shown
    errors = [line for line in result.outlines if line.startswith("ERROR benchmark")]
    assert sorted(line.split()[1] for line in errors) == [
        "benchmark/scenarios/P1-B1-S2/S2.md::P1-B1-S2",
        "benchmark/scenarios/P1-B2-S1/perturbations.md::P1-B2-S1",
        "benchmark/scenarios/P1-B2-S2/S2.md::P1-B2-S2",
        "benchmark/scenarios/P2-B1-S1/S1.json::P2-B1-S1",
    ]
    result.stdout.fnmatch_lines(["4 broken files or rows: none of their cases ran (see ERRORS)"])
    assert "Traceback" not in shown + result.stderr.str()
    assert "pytest_helmbench" not in shown


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
@pytest.mark.parametrize("broken", ["roles: {system: [\n", "tools:\n  - name: look_up\n"])
def test_a_broken_benchmark_file_is_one_error_and_its_scenarios_are_skipped(
    pytester: pytest.Pytester, mode: str, broken: str
) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("A"), "P1-B2-S1": category("B")})
    (folder / "benchmark.yml").write_text(broken)

    result = run_tree(pytester, mode, "--helmbench-dry-run")
    one = run_tree(pytester, mode, "--helmbench-dry-run", "-k", "P1-B2")
    checked = run_command(pytester, "check", "benchmark")

    result.assert_outcomes(errors=1, skipped=2)
    result.stdout.fnmatch_lines(["ERROR benchmark/benchmark.yml::benchmark - benchmark/benchmark.yml:*"])
    one.assert_outcomes(errors=1)
    one.stdout.fnmatch_lines(["*S1.md: benchmark.yml cannot be used, so the cases of this scenario cannot *"])
    checked.stdout.fnmatch_lines(["benchmark: 0 healthy scenarios, 0 cases; 1 error, 0 warnings"])


def test_a_dry_run_fails_on_broken_files(pytester: pytest.Pytester, scenarios: Path) -> None:
    result = run_tree(pytester, "--helmbench-dry-run", "-q")

    result.assert_outcomes(skipped=2, errors=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_a_broken_models_file_ends_the_session_with_all_its_problems(
    pytester: pytest.Pytester, scenarios: Path, mode: str
) -> None:
    (scenarios.parent / "models.yml").write_text(
        "models:\n  - id: a/b\n    temprature: 1\n  - id: c/d\n    max_tokens: many\n  - name: e/f\n"
    )
    pytester.makepyfile(test_own="def test_own(): pass")

    result = run_tree(pytester, "benchmark", "test_own.py", mode)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    shown = result.stderr.str()
    assert "ERROR: benchmark/models.yml:3: unknown key 'temprature'" in shown
    assert "  hint: did you mean 'temperature'?" in shown
    assert "benchmark/models.yml:5: " in shown
    assert "benchmark/models.yml:6: " in shown
    assert "Traceback" not in shown + result.stdout.str()
    assert "INTERNALERROR" not in shown + result.stdout.str()
