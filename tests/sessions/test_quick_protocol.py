"""The short way from an item to its reports: plugins see no difference to pytest's own."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from provider import Provider
from trees import category, clear_environment, run_tree, write_tree

_ALONE = ("-p", "no:cacheprovider", "--helmbench-cache=reuse")
_STOPS = re.compile("-x|maxfail|stopper")
_TIMES = re.compile(r"\d+\.\d+( ?s\b| per second)|run \d+|=+|\d+ durations")
_OPTIONS = (
    "-rA --durations=0 -vv",
    "-x",
    "--maxfail=3 -v -p no:logging",
    "--runxfail -s",
    "-p no:terminal",
    "-p stopper",
)
_STOPPER = """
def pytest_sessionstart(session):
    global SESSION
    SESSION = session

def pytest_runtest_logreport(report):
    if "S1-C1-PT5[" in report.nodeid and report.when == "call":
        SESSION.shouldstop = "enough"
"""
_RECORDER = """
import json, logging, os, re, time
from dataclasses import replace
from pathlib import Path
import pytest
from pytest_helmbench.pytest_side.collect.items import CaseItem
from pytest_helmbench.pytest_side.session_plugin import SessionPlugin

WHOLE = os.environ["PROTOCOL"] == "whole"
EVENTS, CALLS = [], []
plain_setup, plain_look = CaseItem.setup, SessionPlugin.has_passed

def is_waited_for(item):
    # These do not pass, or something prints and logs while they are waited for; the others pass at once.
    return re.search("PT[23468]", item.name) is not None

def noisy_setup(item):
    if is_waited_for(item):
        print("printed by", item.name)
        logging.getLogger("noise").warning("logged by %s in %s", item.name, os.environ["PYTEST_CURRENT_TEST"])
    plain_setup(item)

def look(plugin, item):
    while not is_waited_for(item) and not plain_look(plugin, item):
        time.sleep(0.001)
    return plain_look(plugin, item) and not is_waited_for(item)

def pytest_configure():
    CaseItem.setup, SessionPlugin.has_passed = noisy_setup, look

def pytest_unconfigure():
    CaseItem.setup, SessionPlugin.has_passed = plain_setup, plain_look
    Path("events.json").write_text(json.dumps([EVENTS, len(CALLS)], default=str))

def pytest_runtest_logstart(nodeid, location):
    EVENTS.append(["start", nodeid, location])

def pytest_runtest_logfinish(nodeid, location):
    EVENTS.append(["finish", nodeid, location, os.environ.get("PYTEST_CURRENT_TEST")])

def pytest_runtest_logreport(report):
    fields = dict(vars(report), start=type(report.start).__name__, stop=report.stop >= report.start)
    if report.when == "teardown" or report.failed or "test_own" in report.nodeid:  # not that of a recorded call
        fields["duration"] = type(report.duration).__name__
    if hasattr(report, "wasxfail"):
        fields["longrepr"] = str(report.longrepr).splitlines()[-1]  # the frames of its callers stand before
    EVENTS.append(["report", fields])

def pytest_runtest_call(item):
    CALLS.append(item)

if not WHOLE:
    pytest_runtest_call.__module__ = "_pytest.recorder"  # as if it were a part of pytest
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


@pytest.fixture
def mixed(pytester: pytest.Pytester, provider: Provider) -> Provider:
    """Cases that pass, fail, err and count for nothing, in two files, and a Python test behind them."""
    tree = category("RISK", "RISK", "CALM", "RISK", "RISK", "CALM", "RISK", "CALM", "RISK")
    neutral = replace(tree.perturbations["PT6"], weight=0)
    tree = replace(tree, perturbations={**tree.perturbations, "PT6": neutral})
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree, "P1-B1-S2": category("RISK", "RISK", "RISK")})
    pytester.makepyfile(recorder=_RECORDER, stopper=_STOPPER)
    pytester.makepyfile(test_own="def test_own(tmp_path): assert tmp_path.exists()")
    pytester.syspathinsert()
    provider.answers(status=400, when=lambda request: "Message 4." in request.prompt)
    return provider


def _session(
    pytester: pytest.Pytester, provider: Provider, protocol: str, *options: str
) -> tuple[list[Any], int, list[str], Sequence[Any]]:
    """Run a session; return its events, how often phases were called, what it printed and its JUnit cases."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROTOCOL", protocol)
        result = run_tree(
            pytester,
            *(["test_before.py"] if Path("test_before.py").exists() else []),
            "benchmark",
            "test_own.py",
            *_ALONE,
            "-p",
            "recorder",
            "--junitxml=junit.xml",
            *options,
            url=provider.url,
        )
    events, calls = json.loads(Path("events.json").read_text(encoding="utf-8"))
    # A session that stops prints how many were judged ahead of its stop, which time decides.
    lines = [] if _STOPS.search(" ".join(options)) else result.outlines
    told = sorted(_TIMES.sub("…", line) for line in lines)
    cases = []
    for case in ET.parse("junit.xml").getroot().iter("testcase"):
        case.attrib.pop("time")  # of a case the same, of an error and of others not
        cases.append(ET.tostring(case))
    return events, calls, told, (result.ret, cases)


def test_reports_output_and_junit_are_the_same_both_ways(pytester: pytest.Pytester, mixed: Provider) -> None:
    _session(pytester, mixed, "whole", "-q")  # from here on all replies are on record
    for options in _OPTIONS:
        events, calls, *seen = _session(pytester, mixed, "whole", *options.split())
        quick_events, quick_calls, *quick_seen = _session(pytester, mixed, "quick", *options.split())

        assert quick_events == events, options
        assert quick_seen == seen, options
        assert quick_calls < calls, options  # it was taken
        assert calls == 12 or options != _OPTIONS[0]  # and not before a hook of another plugin


def test_what_is_not_given_back_when_a_session_stops_is_an_error_of_its_last_case(
    pytester: pytest.Pytester, mixed: Provider
) -> None:
    pytester.makepyfile(
        test_before="import pytest\n@pytest.fixture(scope='session')\ndef lent(): yield; raise ValueError('kept')\n"
        "def test_before(lent): pass"
    )
    for protocol in ("whole", "quick"):
        *_, (_, cases) = _session(pytester, mixed, protocol, "-p", "stopper")

        (last,) = [case for case in cases if b"S1-C1-PT5[" in case and b"<error" in case]
        assert b"kept" in last, protocol
