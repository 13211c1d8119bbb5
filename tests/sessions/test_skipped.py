"""A session in which every case was skipped fails, and says why and what helps."""

from __future__ import annotations

import pytest
from inner_pytest import run_pytest
from provider import Provider
from trees import category, judged, run_tree, write_tree


@pytest.mark.parametrize("mode", ["-n2"])
def test_a_session_that_judged_nothing_ends_1_with_the_reasons(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged(*["fine"] * 3)})

    result = run_tree(pytester, mode, url=provider.url)

    result.assert_outcomes(skipped=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = ["not judged   no_judge 3: no judge: give --helmbench-marking-model, *"]
    why = "✗ FAILS   test/good: nothing was judged: every case was skipped (--helmbench-allow-skipped ends 0)"
    result.stdout.fnmatch_lines([*said, why])
    allowed = run_tree(pytester, mode, "--helmbench-allow-skipped", url=provider.url)
    assert allowed.ret == pytest.ExitCode.OK
    allowed.stdout.fnmatch_lines(said)


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_a_judge_that_cannot_be_called_ends_the_session_before_a_call(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    folder = write_tree(
        pytester.path / "benchmark", {"P1-B1-S1": judged("fine"), "P1-B2-S1": category("RISK")}
    )
    (folder / "models.yml").write_text("marking_model: openai/gpt-4o\nmodels: [{id: my-model}]\n")
    given = (f"--helmbench-base-url={provider.url}", "--helmbench-model=my-model", mode)

    result = run_pytest(pytester, "benchmark", *given)

    assert (result.ret, provider.count) == (pytest.ExitCode.USAGE_ERROR, 0)
    result.stderr.fnmatch_lines(
        [
            "*the judge openai/gpt-4o cannot be called: * is set; nothing was called",
            "*--helmbench-marking-model=ID names another judge*--helmbench-marking-base-url=URL names its server*",
        ]
    )
    run_pytest(pytester, "benchmark", *given, "--helmbench-select=P1-B2").assert_outcomes(passed=1)
    run_pytest(pytester, "benchmark", *given, "--helmbench-marking-model=any").assert_outcomes(passed=2)


@pytest.mark.parametrize("mode", ["-n2"])
def test_skips_of_others_are_skips_too(pytester: pytest.Pytester, provider: Provider, mode: str) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged(*["fine"] * 3)})
    pytester.makeconftest(
        """
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.skip(reason="holiday"))
        """
    )

    result = run_tree(pytester, mode, url=provider.url)

    result.assert_outcomes(skipped=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = "skipped: 3 × holiday (a mark or another plugin)"
    why = "✗ FAILS   test/good: nothing was judged: every case was skipped (--helmbench-allow-skipped ends 0)"
    result.stdout.fnmatch_lines([said, why])
    allowed = run_tree(pytester, mode, "--helmbench-allow-skipped", url=provider.url)
    assert allowed.ret == pytest.ExitCode.OK
    allowed.stdout.fnmatch_lines([said])
