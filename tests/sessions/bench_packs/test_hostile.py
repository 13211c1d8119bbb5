"""Bench Packs that break down or cheat: each scenario hurts itself only, with a sentence that says what happened."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench_pack_sessions import ASKS, node_processes, run_packs, write_asking_pack
from provider import Provider
from trees import clear_environment, rows

_ASKED = "async () => {{ await ask(input.scenario.id); {} }}"
_HOSTILE = {
    "throws": ("throw new TypeError('no such tool');", "threw", "TypeError: no such tool"),
    "throws-nothing": ("throw undefined;", "threw", "runScenario() threw undefined"),
    "returns-nothing": ("return undefined;", "malformed", "the pack returned nothing (undefined or null)"),
    "returns-text": ("return 'pass';", "malformed", "the pack returned 'pass', not an object"),
    "other-status": (
        "return result({ status: 'passed' });",
        "malformed",
        "status is 'passed'; it is one of pass, partial, fail",
    ),
    "no-status": ("return result({ status: undefined });", "malformed", "there is no status"),
    "nan": ("return result({ score: NaN });", "malformed", "score is NaN: not a finite number"),
    "endless-score": (
        "return result({ score: Infinity });",
        "malformed",
        "score is Infinity: not a finite number",
    ),
    "bigint": ("return result({ score: 5n });", "malformed", "score is '5', a bigint or text, not a number"),
    "other-scenario": (
        "return result({ scenarioId: 'healthy-1' });",
        "malformed",
        "scenarioId is 'healthy-1', not 'other-scenario'",
    ),
    "rejects": (
        "Promise.reject(new Error('lost in the wings')); await sleep(0.2); return result();",
        "unhandled",
        "lost in the wings",
    ),
    "rejects-later": (
        "setTimeout(() => { throw new Error('lost in a timer'); }, 1); await sleep(0.2); return result();",
        "unhandled",
        "lost in a timer",
    ),
    "exits": ("process.exit(0);", "exited", "process.exit(0)"),
    "kills-itself": ("process.kill(process.pid, 'SIGKILL'); await sleep(5);", "crashed", "SIGKILL"),
    "loops": ("for (;;) {}", "hung", "no sign of life"),
    "never-settles": ("return new Promise(() => {});", "too_slow", "gave no result within 2 s"),
    "ignores-aborts": ("for (;;) await sleep(0.05);", "too_slow", "it ignored the abort signal"),
    "reads-outside": (
        "require('node:fs').readFileSync('/etc/shadow'); return result();",
        "threw",
        "",
    ),
    "starts-a-program-of-somebody": (
        "require('node:child_process').execSync('/root/bin/x', { stdio: 'ignore' }); return result();",
        "threw",
        "",
    ),
}
_HARMLESS = {
    "prints": "process.stdout.write('x'.repeat(100) + '\\n'); console.error('err'); return result();",
    "prints-20-mb": "for (let n = 0; n < 20; n += 1) console.log('x'.repeat(2 ** 20)); return result();",
    "logs-20-mb": "return result({ rawLog: 'y'.repeat(20 * 2 ** 20) });",
    "forges": (
        "const line = JSON.stringify({ id: 1, value: result({ status: 'fail' }) }) + '\\n';"
        "process.stdout.write(line);"
        "for (const fd of [3, 4, 5]) try { require('node:fs').writeSync(fd, line); } catch {}"
        "return result();"
    ),
    "circular": "const own = { a: 1 }; own.own = own; return result({ output: own, artifacts: [10n, NaN] });",
    "emits-late": "setTimeout(() => emit({ type: 'model_progress', message: 'too late' }), 50); return result();",
    "emits-nonsense": "emit(undefined); emit(7n); emit({ type: 'scenario_result', status: 'fail' }); return result();",
}
_HEALTHY = {f"healthy-{number}": ASKS for number in range(1, 5)}


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def _faults(report: Path) -> dict[str, tuple[str, str]]:
    """Return kind and text of what each item of a JUnit report has met."""
    found = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        for kind in ("error", "failure"):
            for fault in case.iter(kind):
                found[case.attrib["name"].partition("[")[0]] = (kind, fault.text or "")
    return found


def _write(pytester: pytest.Pytester) -> None:
    healthy = iter(_HEALTHY.items())
    runs = {}
    for number, (name, act) in enumerate(
        ({name: act for name, (act, *_) in _HOSTILE.items()} | _HARMLESS).items()
    ):
        runs[name] = _ASKED.format(act)
        if number % 6 == 0 and (one := next(healthy, None)) is not None:
            runs[one[0]] = one[1]
    write_asking_pack(pytester.path / "pack", runs)


def test_what_a_scenario_does_hurts_that_scenario_alone(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _write(pytester)
    result = run_packs(pytester, "--helmbench-case-timeout=2", "--junitxml=report.xml", url=provider.url)

    database = pytester.path / "helmbench.db"
    query = "SELECT code, outcome || ' ' || coalesce(reason, '-') FROM results"
    assert dict(rows(database, query)) == {
        **{name: f"error {reason}" for name, (_, reason, _) in _HOSTILE.items()},
        **dict.fromkeys((*_HARMLESS, *_HEALTHY), "passed -"),
    }
    faults = _faults(pytester.path / "report.xml")
    for name, (_, _, sentence) in _HOSTILE.items():
        assert faults[name][0] == "error"
        assert sentence in faults[name][1], name
    result.assert_outcomes(passed=len(_HARMLESS) + len(_HEALTHY), errors=len(_HOSTILE))
    assert node_processes(pytester.path) == []
    # Whoever ran again did so with the replies that it had.
    assert provider.count == len(_HOSTILE) + len(_HARMLESS) + len(_HEALTHY)


def test_what_a_pack_does_before_and_after_a_scenario_counts_to_that_scenario(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    prepares = {
        "throws": "throw new Error('no licence');",
        "hangs": "await new Promise(() => {});",
        "nothing": "return undefined;",
    }
    disposes = {"disposes": "throw new Error('cannot let go');"}
    for name in (*prepares, *disposes):
        write_asking_pack(
            pytester.path / "packs" / name,
            {"a": ASKS, "b": ASKS},
            manifest={"id": name},
            prepare=prepares.get(name, ""),
            dispose=disposes.get(name, ""),
        )
    result = run_packs(pytester, "--helmbench-case-timeout=1", url=provider.url, paths=("packs",))
    result.assert_outcomes(passed=2, errors=6)
    result.stdout.fnmatch_lines_random(
        [
            "prepare() threw Error: no licence",
            "the scenario gave no result within 1 s, *",
            "prepare() *nothing*",
        ]
    )
    assert node_processes(pytester.path) == []
