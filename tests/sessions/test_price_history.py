"""A dry run prices what this file has seen before by what it has cost."""

from __future__ import annotations

import pytest
from inner_pytest import run_pytest
from provider import Provider
from trees import category, write_tree


def test_a_dry_run_prices_known_scenarios_from_the_files_own_history(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    provider.cost_usd = 0.002
    options = (
        "-q",
        "-p",
        "no:cacheprovider",
        "--helmbench-model=test/unpriced",
        f"--helmbench-base-url={provider.url}",
    )

    before = run_pytest(pytester, "benchmark", *options, "--helmbench-dry-run").stdout.str()
    run_pytest(pytester, "benchmark", *options)
    asked = provider.count
    after = run_pytest(pytester, "benchmark", *options, "--helmbench-dry-run").stdout.str()

    assert "unknown   unknown  unknown" in before
    price = f"{0.002 * asked:.4f}"
    assert f"{price}    {price}  {price}" in after
    assert provider.count == asked
