"""Rules that take their time: other cases go on, what a benchmark brings ends by itself, and Ctrl-C is heard."""

from __future__ import annotations

import json

import pytest
from provider import Provider
from sessions import Session, until
from trees import category, rows, run_tree, write_tree

from pytest_helmbench.core.json_types import JsonValue

_SLOW = """
import pathlib
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_types import FieldRule

def evaluate(self, case, reply, *, strict_json):
    pathlib.Path("judging").touch()
    while True:
        pass

FieldRule.evaluate = evaluate
"""


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_ctrl_c_is_heard_while_a_rule_runs_without_end(
    pytester: pytest.Pytester, provider: Provider, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("CALM", "RISK")})
    (pytester.path / "slow_rule.py").write_text(_SLOW)
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    session = Session(pytester.path, provider.url, workers, "-q", "-p", "slow_rule")
    until((pytester.path / "judging").exists, "the rule begins")
    session.interrupt(everybody=True)
    assert session.end() == pytest.ExitCode.INTERRUPTED  # it waits for 1.5 s, not for ever
    assert session.living_workers() == []
    # The reply that was being judged is on record, and is not asked for again.
    assert rows(pytester.path / "helmbench.db", "select count(*) from responses")[0][0] >= 1


_MANY: JsonValue = [{"a": number} for number in range(20_000)]


def _schema(part: JsonValue, leaf: str = "string") -> dict[str, JsonValue]:
    """Return the schema of a reply with a part that may refer to `a0`, from where references double per level."""
    twice: dict[str, JsonValue] = {
        f"a{number}": {"allOf": [{"$ref": f"#/$defs/a{number + 1}"}] * 2} for number in range(40)
    }
    return {
        "type": "object",
        "properties": {"category": {"type": "string"}, "other": part},
        "required": ["category"],
        "$defs": {**twice, "a40": {"type": leaf}},
    }


_BUSY: dict[str, JsonValue] = {
    "P1-B1-S1": {**_schema({}, "object"), "unevaluatedProperties": False, "$ref": "#/$defs/a0"},
    "P1-B1-S2": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        **_schema({"enum": [{"a": n} for n in range(9_000)]}),
    },
}


def test_a_schema_that_keeps_its_validator_busy_is_a_fault_of_its_file_and_others_run(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    benchmark = pytester.path / "benchmark"
    write_tree(benchmark, {f"P1-B1-S{number}": category("RISK") for number in range(1, 4)})
    for code, schema in _BUSY.items():
        (benchmark / "scenarios" / code / f"{code[6:]}.json").write_text(json.dumps(schema))
    provider.answers(text=json.dumps({"response": "x", "category": "RISK"}))
    result = run_tree(pytester, "-n0", url=provider.url)
    result.assert_outcomes(passed=1, errors=2)
    for code in _BUSY:
        result.stdout.fnmatch_lines([f"*{code}/{code[6:]}.json:1: *took more than 2 s"])


@pytest.mark.parametrize(
    ("part", "other", "reason"),
    [
        ({"type": "string", "pattern": "^(a+)+$"}, "a" * 50 + "!", "schema_violation"),
        ({"type": "string", "pattern": "^(a|aa)+$"}, "a" * 80 + "!", "rule_timeout"),
        ({"if": {"minLength": 1}, "then": {"$ref": "#/$defs/a0"}}, "a", "rule_timeout"),
        ({"type": "array", "uniqueItems": True}, _MANY, "rule_timeout"),
    ],
    ids=["quick", "pattern", "references", "unique"],
)
def test_a_schema_is_held_to_in_bounded_time(
    pytester: pytest.Pytester,
    provider: Provider,
    part: dict[str, JsonValue],
    other: JsonValue,
    reason: str,
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    (schema_path,) = (pytester.path / "benchmark").rglob("S1.json")
    schema_path.write_text(json.dumps(_schema(part)))
    provider.answers(text=json.dumps({"category": "RISK", "other": other}), times=1)
    provider.answers(text=json.dumps({"category": "RISK"}))
    result = run_tree(pytester, "-n0", url=provider.url)
    faulty = {"schema_violation": "failed", "rule_timeout": "errors"}[reason]
    result.assert_outcomes(**{"passed": 1, faulty: 1})
    reasons = rows(pytester.path / "helmbench.db", "select reason from results where outcome <> 'passed'")
    assert reasons == [(reason,)]
