"""No gate is green that gated nothing: every option of ours asks, and a gate wants a judged case of every model."""

from __future__ import annotations

import pytest
from inner_pytest import run_pytest
from packs import row, write_pack
from provider import Answer, Provider, Request
from trees import MODEL, category, run_tree, write_tree


@pytest.fixture
def ordinary(pytester: pytest.Pytester, provider: Provider) -> pytest.Pytester:
    """A project whose ini file names a model, with one ordinary test and no benchmark."""
    pytester.makeini(f"[pytest]\nhelmbench_model = {MODEL}\nhelmbench_base_url = {provider.url}\n")
    pytester.makepyfile(test_own="def test_own(): pass")
    return pytester


@pytest.mark.parametrize(
    "options",
    [
        ("--helmbench-min-score=0.99",),
        ("--helmbench-min-score=0.99", "-n2"),
        ("--helmbench-require-run",),
    ],
)
def test_a_gate_over_ordinary_tests_alone_does_not_hold(
    ordinary: pytest.Pytester, options: tuple[str, ...]
) -> None:
    result = run_pytest(ordinary, "test_own.py", "-q", *options)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*nothing was judged (*"])


def test_a_gate_of_the_ini_file_counts_in_a_session_that_asks_and_in_no_other(
    ordinary: pytest.Pytester,
) -> None:
    with (ordinary.path / "tox.ini").open("a", encoding="utf-8") as ini:
        ini.write("\nhelmbench_min_score = 0.9\n")

    assert run_pytest(ordinary, "test_own.py").ret == pytest.ExitCode.OK
    assert run_pytest(ordinary, "test_own.py", "--helmbench-repeat=2").ret == pytest.ExitCode.TESTS_FAILED


_UNJUDGED = {
    "its judge is not named": (
        [row("free_response", {"eval.rubric": "Is it kind?"})],
        "test/good on demo",
    ),
    "it has no rows": ([], "demo"),
}


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
@pytest.mark.parametrize("why", _UNJUDGED)
def test_each_named_benchmark_has_to_be_judged_where_a_run_is_required(
    pytester: pytest.Pytester, provider: Provider, why: str, mode: str
) -> None:
    rows, name = _UNJUDGED[why]
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    write_pack(pytester.path / "quiz", rows)

    def ran(*words: str) -> pytest.RunResult:
        model = (f"--helmbench-base-url={provider.url}", "--helmbench-model=test/good")
        return run_pytest(pytester, "benchmark", "quiz", mode, *model, *words)

    assert ran().ret == pytest.ExitCode.OK
    required = ran("--helmbench-require-run")

    assert required.ret == pytest.ExitCode.TESTS_FAILED
    assert required.outlines[-1].endswith(f"nothing was judged of {name} (--helmbench-require-run)")
    assert ran("--helmbench-require-run", "-k", "P1-B1").ret == (
        pytest.ExitCode.OK if rows else pytest.ExitCode.TESTS_FAILED
    )


@pytest.mark.parametrize(
    ("folder", "hint"),
    [
        ("cases", "rename 'cases' to 'scenarios'"),
        (".", "move its folders into a folder 'scenarios'"),
    ],
)
def test_a_folder_that_was_meant_as_a_tree_is_a_usage_error_beside_another(
    pytester: pytest.Pytester, provider: Provider, folder: str, hint: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    scenarios = write_tree(pytester.path / "meant", {"P1-B1-S1": category("RISK")}) / "scenarios"
    if folder == ".":
        (scenarios / "P1-B1-S1").rename(pytester.path / "meant" / "P1-B1-S1")
        scenarios.rmdir()
    else:
        scenarios.rename(pytester.path / "meant" / folder)

    result = run_tree(pytester, "benchmark", "meant", url=provider.url)

    assert (result.ret, provider.count) == (pytest.ExitCode.USAGE_ERROR, 0)
    result.stderr.fnmatch_lines(["ERROR: meant: this was meant as a benchmark*", f"  hint: {hint}"])


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_a_gate_wants_a_judged_case_of_every_model(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    def reply(request: Request) -> Answer | None:
        return (
            Answer(status=401, body={"error": {"message": "no"}}) if "bad" in request.body["model"] else None
        )

    provider.reply = reply
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})

    result = run_tree(
        pytester,
        mode,
        f"--helmbench-model={MODEL}",
        "--helmbench-model=test/bad",
        "--helmbench-min-score=P1=0",
        url=provider.url,
    )

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["✗ FAILS   test/bad: stopped: answered 401 (no): 1 of 1 case not judged"])


@pytest.mark.parametrize("mode", ["-n2"])
def test_every_pattern_of_a_selection_has_to_match_something(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK"), "P1-B1-S2": category("RISK")})
    write_tree(pytester.path / "other", {"P2-B1-S1": category("RISK")})

    slip = run_tree(pytester, mode, "--helmbench-select=P1-B1-S1,P1-B1-S22,P1-B1-S1-C1-PT9", url=provider.url)
    both = run_tree(
        pytester, mode, "benchmark", "other", "--helmbench-select=P1-B1-S1,P2,~P9", url=provider.url
    )

    assert slip.ret == pytest.ExitCode.USAGE_ERROR
    slip.stderr.fnmatch_lines(
        [
            "ERROR: --helmbench-select=*: P1-B1-S22, P1-B1-S1-C1-PT9 match no case",
            "  hint: near are P1-B1-S2*",
        ]
    )
    both.assert_outcomes(passed=2)
    assert both.stdout.str().count("--helmbench-select: ~P9 leaves nothing out: no case has such a code") == 1


@pytest.mark.parametrize("option", ["select", "min-score", "min-coverage", "max-drop"])
def test_an_empty_selection_or_gate_is_a_slip(pytester: pytest.Pytester, option: str) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})

    result = run_tree(pytester, "--helmbench-model=baseline/first", f"--helmbench-{option}=")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --helmbench-{option}*"])
