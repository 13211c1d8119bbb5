"""YAML that is made to do harm."""

from __future__ import annotations

import pytest

from pytest_helmbench.files.yaml_text import parse_yaml


@pytest.mark.parametrize("text", ["a: " + "[" * 100_000, "- " * 5000, "a: &x [*x]"])
def test_yaml_made_to_crash_a_reader_is_a_fault(text: str) -> None:
    assert parse_yaml(text).faults


def test_yaml_made_to_swell_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    document = parse_yaml("\n".join(lines))
    assert document.data is None
    assert "its aliases stand for more than 1,000,000 values" in document.faults[0].message
