"""The end of a session: the worst are shown, the others counted, nothing twice, and the verdict stands last."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

import pytest
from inner_pytest import run_pytest
from provider import Provider, Request
from trees import Part, category, clear_environment, ordered, run_tree, write_tree

from pytest_helmbench.cli.main import main


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def _many(pytester: pytest.Pytester) -> None:
    """Write 100 cases in three behaviours; of the 43 that fail, those of the small P1-B1 cost most."""
    answers = {"P1-B1": ["CALM"] * 20, "P1-B2": ["CALM"] * 20 + ["RISK"] * 20}
    answers["P2-B1"] = ["CALM"] * 3 + ["RISK"] * 37
    trees = {f"{code}-S1": category(*words) for code, words in answers.items()}
    parts = trees["P2-B1-S1"].perturbations
    trees["P2-B1-S1"] = replace(trees["P2-B1-S1"], perturbations={**parts, "PT2": Part(parts["PT2"].body, 9)})
    write_tree(pytester.path / "benchmark", trees)


@pytest.mark.parametrize(
    ("ignored", "db"),
    [("", "helmbench.db"), ("", "#x.db"), ("", "!a[1].db"), ("", "*? \\.db"), ("*.db*", "my.db")],
)
def test_a_results_file_that_git_would_track_is_told_once(
    pytester: pytest.Pytester, ignored: str, db: str
) -> None:
    subprocess.run(["git", "init", "-q", str(pytester.path)], check=True)
    (pytester.path / ".gitignore").write_text(ignored)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("CALM")})
    arguments = ("--helmbench-model=baseline/first", f"--helmbench-db={db}", "-q")
    first, again = (run_pytest(pytester, "benchmark", *arguments).stdout.str() for _ in range(2))
    told = re.findall(rf"git would track {re.escape(db)}: add the line (.+) to .gitignore", first)
    assert (len(told), again.count("git would track")) == (0 if ignored else 1, 0)
    (pytester.path / ".gitignore").write_text("\n".join((ignored, *told)))
    assert subprocess.call(["git", "-C", str(pytester.path), "check-ignore", "-q", "--", f"{db}-wal"]) == 0


def _summary(result: pytest.RunResult) -> list[str]:
    """Return what stands from the summary's title to the end of the session."""
    lines = result.outlines
    title = next(number for number, line in enumerate(lines) if line.startswith("=") and " × " in line)
    return lines[title:]


@pytest.mark.parametrize(("models", "most"), [(1, 8), (4, 18)])
def test_the_summary_of_one_model_has_8_lines_and_that_of_four_18_quietly_or_not(
    pytester: pytest.Pytester, provider: Provider, models: int, most: int
) -> None:
    _many(pytester)
    parts = ordered(["CALM"] * 10, -5) | ordered(["CALM"] * 2, 0)
    either = ("category: RISK", "evaluation: {type: category_match, polarity: by_severity}")
    calm = replace(category("RISK"), evaluation=either, perturbations=parts)
    write_tree(pytester.path / "benchmark", {"P3-B1-S1": calm})
    provider.answers(status=400, body={"error": {"message": "no"}}, when=_about(7))
    provider.answers(text='So: {"response": "x", "category": "RISK"}', when=lambda ask: ask.model[-1] in "03")
    named = [f"--helmbench-model=lab/m{number}" for number in range(models)]

    plain, quiet = (
        _summary(run_tree(pytester, *named, *words, "--helmbench-cache=reuse", url=provider.url))
        for words in ((), ("-q",))
    )

    for shown in (plain, quiet):
        assert re.match(rf"=+ benchmark · 110 cases × {models} models? =+$", shown[0])
        ours = shown[:-2]  # behind them pytest's counts and the last line
        assert len(ours) <= most, shown
        assert sum(line.startswith("  (flags everything)") for line in ours) == 1
        assert [line[:12].strip() for line in ours[-4:-1]] == ["loses most", "not judged", "notes"]
        assert re.search(r"\d+ judged in \d.* per \w+\) · runs? [\d–]+ in helmbench.db$", shown[-3])
        assert re.match(r"4 runs: scores from \d|lab/m0: \d", shown[-1])
    assert [line[:12] for line in plain[1:-3]] == [line[:12] for line in quiet[1:-3]]


@pytest.mark.parametrize("mode", ["-n2"])
def test_of_many_failures_ten_are_shown_and_the_rest_is_counted(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    _many(pytester)

    plain = run_tree(pytester, mode, "--helmbench-min-score=0.9", url=provider.url)
    quiet = run_tree(pytester, mode, "-q", "--helmbench-cache=reuse", url=provider.url)
    assert "flags everything" not in quiet.stdout.str()  # no case of these is a false alarm

    for result in (plain, quiet):
        result.assert_outcomes(failed=43, passed=57)
        text = result.stdout.str()
        codes = re.findall(
            r"P\d-B\d-S1-C1-PT\d+\[test/good\]", text.partition("FAILURES")[2].partition("model ")[0]
        )
        assert list(dict.fromkeys(codes)) == [f"P1-B1-S1-C1-PT{n}[test/good]" for n in range(1, 11)]
        assert "short test summary" not in text
        result.stdout.fnmatch_lines(["loses most   P1-B1 −33.3 · P1-B2 −16.7 points"])
    assert len(quiet.outlines) < 60
    plain.stdout.fnmatch_lines(
        ["33 more failed cases: `helmbench show 1 --failed` lists all, --helmbench-show=all or -v *"]
    )
    assert re.match(r"✗ FAILS   test/good: 4\d\.\d %, threshold 90.0$", plain.outlines[-1])
    assert re.match(r"=+ 43 failed, 57 passed", plain.outlines[-2])
    assert re.match(r"test/good: 4\d\.\d % \(\d+\.\d – \d+\.\d\)$", quiet.outlines[-1])
    capsys.readouterr()
    assert main(["show", "1", "--failed", f"--db={pytester.path / 'helmbench.db'}"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == 44
    worst = [f"P1-B1-S1-C1-PT{n}" for n in range(1, 21)]
    assert [line.split()[0] for line in listed[1:22]] == [*worst, "P2-B1-S1-C1-PT2"]


def test_a_server_that_is_down_is_told_once(pytester: pytest.Pytester) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 500)})

    result = run_tree(pytester, "-q", "--helmbench-max-retries=0", url="http://127.0.0.1:9/v1")

    assert len(result.outlines) < 25
    result.stdout.fnmatch_lines(
        [
            "*[23]? times: the first was P1-B1-S1-C1-PT1[[]test/good]*",
            "next         *; the same command with --helmbench-resume asks the 500 again",
        ]
    )
    refused = "stopped: the provider at http://127.0.0.1:9/v1 cannot be reached (connection refused)"
    assert f"cause        {refused}; its first 20 cases all ended in this fault" in result.outlines
    assert result.outlines[-1] == "✗ FAILS   test/good: stopped: cannot be reached (connection refused)"
    assert str(result.stdout).count("--helmbench-resume") == 1


def _about(number: int) -> Callable[[Request], bool]:
    return lambda request: f"Message {number}." in str(request.body)


def test_junit_has_the_gate_and_the_time_and_place_of_the_case_and_may_show_no_failure(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM", "RISK")})
    provider.answers(latency_s=0.4, when=_about(2))
    found = {}
    for what in ("failed", "skipped", "none"):
        result = run_tree(
            pytester,
            "--junitxml=report.xml",
            "--helmbench-min-score=0.5",
            f"--helmbench-junit-failures={what}",
            "--helmbench-concurrency=1",
            "--durations=1",
            "-ojunit_family=xunit1",
            url=provider.url,
        )
        assert result.ret == 0
        suite = ET.parse(pytester.path / "report.xml").getroot()[0]
        found[what] = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert found == {
        "failed": ["4", "1", "0", "0"],
        "skipped": ["4", "0", "0", "1"],
        "none": ["4", "0", "0", "0"],
    }
    cases = {case.get("name", ""): case for case in suite.iter("testcase")}
    gate = cases.pop("gate[test/good]")
    assert gate.get("classname") == "helmbench"
    result.stdout.fnmatch_lines(["*s call *S1.md::P1-B1-S1-C1-PT2[[]test/good]"])
    # The third waited for the second, which is not its own time.
    times = [float(case.get("time", "")) for case in cases.values()]
    assert times[0] < times[1] > times[2]
    assert times[1] >= 0.4
    places = [(case.get("file"), case.get("line")) for case in cases.values()]
    assert places == [("benchmark/scenarios/P1-B1-S1/perturbations.md", line) for line in ("0", "11", "22")]
    refused = run_tree(pytester, "--junitxml=report.xml", "--helmbench-min-score=0.9", url=provider.url)
    assert refused.ret == 1
    suite = ET.parse(pytester.path / "report.xml").getroot()[0]
    assert [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None] == [
        "P1-B1-S1-C1-PT2[test/good]",
        "gate[test/good]",
    ]


@pytest.mark.parametrize("mode", ["-n2"])
def test_where_there_is_no_terminal_a_plain_line_tells_how_far_the_session_is(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM", "RISK", "RISK")})
    provider.answers(status=400, when=_about(3))
    provider.answers(latency_s=2.5, when=_about(4))

    result = run_tree(pytester, mode, "-ohelmbench_heartbeat=1", url=provider.url)

    lines = [line for line in result.outlines if re.match(r"helmbench: \d/4 done", line)]
    assert lines
    assert len(lines) < 25  # one a second
    assert "\x1b" not in result.stdout.str()
    found = r"helmbench: [123]/4 done.* USD, \d+ s left$"
    assert re.search(found, lines[-1]), lines
