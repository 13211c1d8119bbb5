"""A JUnit report made from the record: one suite per run, one test case per case; no prompt, no reply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.reports.headline import Headline
from pytest_helmbench.store.read.results import ResultRow, results
from pytest_helmbench.store.read.score_facts import RunFacts

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def junit_report(path: Path, runs: Sequence[tuple[int, str, RunFacts]], headline: Headline | None) -> bytes:
    """Return the report of runs (number, name, plan): suites side by side, one for their gates, their sums on top.

    Raises:
        StoreError: The file cannot be read.
    """
    suites = [_suite(name, [*_cases(path, run_id, facts)]) for run_id, name, facts in runs]
    if headline is not None:
        suites.append(_suite("helmbench", [_gate_case(run) for run in headline.by_run]))
    root = ET.Element("testsuites", {"name": "helmbench"})
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in suites):.3f}")
    root.extend(suites)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _suite(name: str, cases: Sequence[ET.Element]) -> ET.Element:
    said = [part.tag for case in cases for part in case]
    suite = ET.Element("testsuite", {"name": _text(name), "tests": str(len(cases))})
    for tag, key in _COUNTED.items():
        suite.set(key, str(said.count(tag)))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")
    suite.extend(cases)
    return suite


def _cases(path: Path, run_id: int, facts: RunFacts) -> Iterator[ET.Element]:
    seen = set()
    for row in results(path, run_id):
        seen.add((row.code, row.repetition))
        yield _case(row)
    for code in facts.codes:
        for repetition in range(1, facts.repeat + 1):
            if (code, repetition) not in seen:
                name = f"{code} r{repetition}" if repetition > 1 else code
                case = ET.Element("testcase", {"classname": "not run", "name": _text(name), "time": "0.000"})
                ET.SubElement(
                    case, "error", {"message": "it has no result: its shard is missing or was broken off"}
                )
                yield case


def _case(row: ResultRow) -> ET.Element:
    address, bracket, parameters = row.node_id.partition("[")
    *places, name = address.split("::")
    classname = ".".join(re.sub(r"\.py$", "", place).replace("/", ".") for place in places)
    time_s = (row.latency_ms or 0.0) / 1000
    case = ET.Element(
        "testcase",
        {"classname": _text(classname), "name": _text(name + bracket + parameters), "time": f"{time_s:.3f}"},
    )
    element = _ELEMENTS.get(row.outcome)
    if element is not None:
        wrong = [part for part in row.evaluations if not part.passed]
        said = "; ".join(
            f"{part.criterion}: ".removeprefix(": ") + f"expected {part.expected}, observed {part.observed}"
            for part in wrong
        )
        rules = ", ".join(dict.fromkeys(f"{part.rule} {part.rule_hash}" for part in wrong))
        said = said or row.reason or row.outcome
        what = {"message": _text(f"{said} ({rules})" if rules else said)}
        if row.neutral and element == "failure":
            element, what["type"] = "skipped", "pytest.xfail"  # as in the report of a session
        ET.SubElement(case, element, what)
    return case


def _gate_case(headline: Headline) -> ET.Element:
    name = _text(f"gate[{headline.subject}]" if headline.subject else "gate")
    case = ET.Element("testcase", {"classname": "helmbench", "name": name, "time": "0.000"})
    if not headline.holds:
        ET.SubElement(case, "failure", {"message": _text(headline.text)})
    return case


def _text(text: str) -> str:
    """Return text that XML can hold and a terminal can show."""
    return _NOT_XML.sub("?", "\n".join(map(scrub, text.split("\n"))))
