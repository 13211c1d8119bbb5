"""YAML that is made to do harm."""

from __future__ import annotations

import pytest

from pytest_helmbench.files.yaml_text import parse_yaml


@pytest.mark.parametrize("text", ["a: " + "[" * 100_000, "- " * 5000])
def test_yaml_made_to_crash_a_reader_is_a_fault(text: str) -> None:
    assert parse_yaml(text).faults


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb: &x [*x]",
        "a: 1\nb: &x {c: *x}",
        "a: 1\nb: &x {c: {d: [e, *x]}}",
        "a: 1\nb: &x {<<: *x, c: 1}",
        "a: 1\nb: &x {<<: [{c: 1}, *x]}",
        "a: 1\nb: &x {c: &y {<<: *x}, d: *y}",
        "a: 1\nb: &x {? *x : 1}",
    ],
)
@pytest.mark.parametrize("keep_keys", [True, False])
def test_a_value_that_holds_itself_is_a_fault_with_its_line(text: str, keep_keys: bool) -> None:
    (fault,) = parse_yaml(text, keep_keys=keep_keys).faults
    assert (fault.line, fault.message) == (2, "this is not valid YAML: an alias points at itself")
    assert parse_yaml("&x\na: *x").faults[0].line == 1


@pytest.mark.parametrize("line", ["a{n}: &a{n} [{many}]", "a{n}: &a{n} {{<<: [{many}]}}"])
def test_yaml_made_to_swell_is_refused_at_once(line: str) -> None:
    lines = [line.format(n=n, many=", ".join([f"*a{n - 1}"] * 9)) for n in range(1, 20)]
    document = parse_yaml("\n".join(["a0: &a0 {x: 1}", *lines]))
    assert document.data is None
    assert "its aliases represent more than 1,000,000 values" in document.faults[0].message


def test_honest_aliases_and_merges_are_read() -> None:
    honest = parse_yaml("a: &a [1, 2]\nb: *a\nc: {<<: {d: 1}}")
    assert honest.data == {"a": [1, 2], "b": [1, 2], "c": {"d": 1}}
