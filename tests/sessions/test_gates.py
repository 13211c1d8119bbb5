"""Gates of a session: what the exit code says in each kind of session, and the line that says why."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from commands import captured
from inner_pytest import run_pytest
from provider import Provider, Request
from trees import Part, Tree, category, judged, run_tree, write_tree

_OK, _FAILED, _USAGE = 0, 1, 4

both_modes = pytest.mark.parametrize("mode", ["-n0", "-n2"])


def _gates(result: pytest.RunResult) -> list[str]:
    """Return the lines below the headlines of the gates, and the headline that ends the session."""
    lines = result.outlines
    first = next(number for number, line in enumerate(lines) if line.startswith(("✓ HOLDS", "✗ FAILS")))
    found = [line for line in lines[first:-1] if line.startswith("  ")]
    return [*found, lines[-1]]


def _broken() -> Tree:
    return Tree(("category: RISK", "evaluation:", "  type: nothing"), perturbations={"PT1": Part("One.", 5)})


def test_a_gate_that_holds_forgives_wrong_answers_and_says_what_is_inconclusive(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    trees = {"P1-B1-S1": category("RISK", "CALM", "RISK", "CALM"), "P2-B1-S1": category("RISK", "RISK")}
    write_tree(pytester.path / "benchmark", trees)

    result = run_tree(pytester, "--helmbench-min-score=0.75,P1=0.5,P2-B1=1", url=provider.url)

    result.assert_outcomes(passed=4, failed=2)
    assert result.ret == _OK
    whole, pillar, behaviour, last = _gates(result)
    chance = "reached, but not beyond chance"
    found = re.match(
        rf"  score      75\.0 % \((\d+\.\d) – (\d+\.\d), only 6 perturbations\), threshold 75\.0 %: {chance}",
        whole,
    )
    assert found is not None
    assert float(found[1]) < 75 <= float(found[2])
    assert re.match(rf"  score P1   50\.0 % \(1\d\.\d – 8\d\.\d, .*\), threshold 50\.0 %: {chance}", pillar)
    assert behaviour.startswith(
        "  score P2-B1 100.0 % (34.2 – 100.0, only 2 perturbations), threshold 100.0 %"
    )
    assert last.startswith("✓ HOLDS   test/good: 75.0 % (")
    quiet = run_tree(pytester, "-qq", "--helmbench-min-score=0.75,P1=0.5,P2-B1=1", url=provider.url)
    assert (
        quiet.stdout.str().count("✓ HOLDS") == 1
    )  # pytest's count does not stand between block and last line
    assert last.endswith("threshold 75.0, P1 threshold 50.0, P2-B1 threshold 100.0")


def test_one_threshold_that_is_not_reached_fails_the_session(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    trees = {"P1-B1-S1": category("CALM", "CALM", "CALM"), "P2-B1-S1": category("RISK", "RISK")}
    write_tree(pytester.path / "benchmark", trees)

    result = run_tree(pytester, "--helmbench-min-score=0.5,P1=0.3", url=provider.url)

    assert result.ret == _FAILED
    whole = "  score      50.0 % (16.7 – 83.3, only 5 perturbations), threshold 50.0 %"
    assert _gates(result) == [
        f"{whole}: reached, but not beyond chance",
        "  score P1   0.0 % (0.0 – 56.1, only 3 perturbations), threshold 30.0 %: not reached, within chance",
        "✗ FAILS   test/good: P1 0.0 %, threshold 30.0",
    ]

    (pytester.path / "benchmark" / "scoring.yaml").write_text("floors: {P1: 0.25, P2: 0.25}\n", "utf-8")
    result = run_tree(pytester, "--helmbench-min-score=0.5", url=provider.url)
    assert _gates(result)[0].startswith(whole)
    assert _gates(result)[-1] == "✗ FAILS   test/good: floor breached: P1 0.0 < 25"


def test_a_part_that_nothing_selected_is_in_is_refused_before_anything_is_asked(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK"), "P2-B1-S1": category("RISK")})

    for options in (
        ("--helmbench-min-score=0.5,P3=0.1",),
        ("--helmbench-min-score=P2-B1=0.1", "--helmbench-select=P1"),
        ("--helmbench-min-score=P3=0.1", "--helmbench-dry-run"),
    ):
        result = run_tree(pytester, *options, url=provider.url)
        assert result.ret == _USAGE
        result.stderr.fnmatch_lines(
            ["*--helmbench-min-score: P* is not among what was selected*", "*hint: known: P1,*"]
        )
    assert not provider.requests
    share = run_tree(pytester, "--helmbench-min-score=P2=0.1", "--helmbench-shard=1/2", url=provider.url)
    assert share.ret == _OK


@pytest.mark.parametrize("mode", ["-n2"])
def test_an_undefined_score_fails_the_session_and_so_does_a_gate_for_one_model_of_two(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    provider.answers(status=400, body={"error": {"message": "no"}}, when=lambda ask: ask.model == "test/bad")

    models = ("--helmbench-model=test/good", "--helmbench-model=test/bad")
    result = run_tree(pytester, mode, *models, "--helmbench-min-score=0.5", url=provider.url)

    result.assert_outcomes(passed=2, errors=2)
    assert result.ret == _FAILED
    text = result.stdout.str()
    assert "✓ HOLDS   test/good: 100.0 %" in text
    assert "✗ FAILS   test/bad: 2 of 2 cases not judged" in text
    assert _gates(result)[-1].startswith("✗ FAILS   test/bad: 2 of 2 cases not judged")


def test_cases_that_were_never_judged_fail_the_gate_unless_less_coverage_is_allowed(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    # Without a judge the case of the second scenario is skipped; both behaviours weigh the same.
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK"), "P1-B2-S1": judged("fine")})

    strict = run_tree(pytester, "--helmbench-min-score=0.5", url=provider.url)
    lenient = run_tree(
        pytester, "--helmbench-min-score=0.5", "--helmbench-min-coverage=0.5", url=provider.url
    )

    strict.assert_outcomes(passed=1, skipped=1)
    assert (strict.ret, lenient.ret) == (_FAILED, _OK)
    assert _gates(strict)[-1] == "✗ FAILS   test/good: 1 of 2 cases not judged"
    assert "threshold 50.0 %: reached" in _gates(lenient)[0]
    alone = run_tree(pytester, "--helmbench-min-coverage=0.6", url=provider.url)
    assert alone.ret == _FAILED
    assert _gates(alone) == [
        "  judged     1 of 2 cases, coverage 50.0 %, wanted 60 %",
        "✗ FAILS   test/good: 1 of 2 cases not judged",
    ]


@both_modes
def test_no_gate_forgives_a_python_test_a_broken_file_or_an_error(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    gate = ("--helmbench-min-score=0.5", "--helmbench-min-coverage=0.1")

    def session(*arguments: str, extra: Sequence[str] = ()) -> pytest.RunResult:
        return run_tree(pytester, mode, *gate, *arguments, *extra, url=provider.url)

    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM")})
    pytester.makepyfile(test_own="def test_own(): assert False")
    python = session("benchmark", "test_own.py")
    python.assert_outcomes(passed=1, failed=2)

    def refuse(request: Request) -> bool:
        return "Message 2." in request.prompt

    provider.answers(status=400, body={"error": {"message": "no"}}, when=refuse)
    error = session("benchmark")
    error.assert_outcomes(passed=1, errors=1)
    provider.reset()

    write_tree(pytester.path / "benchmark", {"P1-B1-S2": _broken()})
    broken = session("benchmark")
    broken.assert_outcomes(passed=1, failed=1, errors=1)

    for result in (python, error, broken):
        assert result.ret == _FAILED
        assert "reached" in _gates(result)[0]
        assert (
            "ended without a verdict on the model (errors, broken files, Python tests)" in result.stdout.str()
        )
        assert re.match(r"✗ FAILS   \S+::\S+ ended without", _gates(result)[-1])


@pytest.mark.parametrize("mode", ["-n2"])
def test_cases_that_earlier_outcomes_have_chosen_cannot_be_gated(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM")})
    run_tree(pytester, url=provider.url)
    before = provider.count

    result = run_tree(pytester, mode, "--lf", "--helmbench-min-score=0.5", url=provider.url)

    assert result.ret == _USAGE
    shown = result.stdout.str() + result.stderr.str()
    assert "a run of cases chosen by earlier outcomes (--lf, --sw) has no score, so no gate can hold" in shown
    assert (
        "  hint: leave --helmbench-min-score and --helmbench-baseline out, or run the whole selection"
        in shown
    )
    assert provider.count == before


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("min-score=seven", "--helmbench-min-score: 'seven' is not a number from 0 to 1\n  hint: scores and"),
        ("markdown=no/such.md", "no/such.md'\n  hint: it takes a file in a folder that exists"),
        ("json=.", "\n  hint: it takes a file in a folder that exists"),
    ],
)
def test_a_value_that_cannot_be_used_ends_4_before_anything_is_asked(
    pytester: pytest.Pytester, option: str, said: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    result = run_pytest(pytester, "benchmark", "--helmbench-model=baseline/first", f"--helmbench-{option}")
    assert result.ret == _USAGE
    assert said in result.stderr.str()


@pytest.mark.parametrize(
    ("right", "options", "last"),
    [
        (4, (), "? INCONCLUSIVE   test/good: only 4 perturbations could change, and a regression shows in 5"),
        (1, ("-n2",), "? INCONCLUSIVE   test/good: only 1 perturbation could change"),
        (5, (), "✓ HOLDS   test/good: 100.0 % ("),
        (4, ("--helmbench-min-score=0.5",), "✓ HOLDS   test/good: 100.0 % ("),
    ],
)
def test_a_baseline_alone_is_no_gate_where_too_little_could_change(
    pytester: pytest.Pytester, provider: Provider, right: int, options: Sequence[str], last: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * right)})
    run_tree(pytester, url=provider.url)
    files = ("--junitxml=junit.xml", "--helmbench-markdown=out.md")

    result = run_tree(pytester, "--helmbench-baseline=last", *options, *files, url=provider.url)

    assert result.outlines[-1].startswith(last)
    is_open = last.startswith("?")
    assert result.ret == (_FAILED if is_open else _OK)
    assert ("? INCONCLUSIVE" in (pytester.path / "out.md").read_text()) is is_open
    assert ('failures="1"' in (pytester.path / "junit.xml").read_text()) is is_open


def test_what_fails_comes_before_what_could_not_fail(pytester: pytest.Pytester, provider: Provider) -> None:
    for name, number in (("few", 2), ("many", 6)):
        write_tree(pytester.path / "benchmarks" / name, {"P1-B1-S1": category(*["RISK"] * number)})
    run_tree(pytester, "benchmarks", url=provider.url)
    provider.reply = lambda _ask: '{"response": "So.", "category": "CALM"}'

    worse = run_tree(pytester, "benchmarks/many", "--helmbench-baseline=1", url=provider.url)
    both = run_tree(pytester, "benchmarks", "--helmbench-baseline=1", url=provider.url)

    assert worse.ret == both.ret == _FAILED
    assert both.outlines[-1].startswith("✗ FAILS   test/good on many: worse by 100.0")
    assert "? INCONCLUSIVE   test/good on few: only 2 perturbations could change" in both.stdout.str()


@pytest.mark.parametrize(
    "gate", ["--helmbench-baseline=1", "--helmbench-min-score=P2=0.5", "--helmbench-min-coverage=0.5"]
)
def test_a_breached_floor_of_the_benchmark_fails_every_gate(
    pytester: pytest.Pytester, provider: Provider, gate: str
) -> None:
    trees = {"P1-B1-S1": category(*["CALM"] * 6), "P2-B1-S1": category(*["RISK"] * 6)}
    folder = write_tree(pytester.path / "benchmark", trees)
    (folder / "scoring.yaml").write_text("floors: {P1: 0.25}\n")
    run_tree(pytester, url=provider.url)

    result = run_tree(pytester, gate, url=provider.url)

    assert result.ret == _FAILED
    assert result.outlines[-1] == "✗ FAILS   test/good: floor breached: P1 0.0 < 25"


@pytest.mark.parametrize("gate", ["--helmbench-baseline=last", "--helmbench-min-score=0.5"])
def test_a_floor_of_a_pillar_that_does_not_exist_is_refused_with_a_gate_and_reported_by_check(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str], gate: str
) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 6)})
    (folder / "scoring.yaml").write_text("cap: 0.5\nfloors:\n  P1: 0.5\n  P4: 0.8\n")

    refused = run_tree(pytester, gate, url=provider.url)

    assert refused.ret == _USAGE
    refused.stderr.fnmatch_lines(["*has a floor of P4, which is not a pillar of this benchmark*"])
    assert not provider.requests
    assert run_tree(pytester, url=provider.url).ret == _OK
    assert (
        "scoring.yaml:4: warning: floors has P4, which is not a pillar"
        in captured(capsys, "check", str(folder))[1]
    )
