"""npm packages of Bench Packs: found in the pack's `node_modules`, missed with a hint."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_pack_sessions import ASKS, run_packs, write_asking_pack
from provider import Provider
from trees import rows

_HEADS = {True: 'import { says } from "zod";', False: 'const { says } = require("zod");'}
_LATE = {
    True: "async () => result({ note: (await import('zod')).says })",
    False: "async () => result({ note: require('zod').says })",
}


@pytest.mark.parametrize("es_module", [False, True])
def test_a_missing_package_is_an_error_with_the_command_as_its_hint(
    pytester: pytest.Pytester, provider: Provider, es_module: bool
) -> None:
    write_asking_pack(pytester.path / "early", {"a": ASKS}, es_module=es_module, head=_HEADS[es_module])
    late = {"a": _LATE[es_module], "b": "async () => { await ask('hi'); return result(); }"}
    write_asking_pack(pytester.path / "late", late, es_module=es_module, manifest={"id": "late"})
    whole = {"a": "async () => { await ask('hi'); return result({ note: says }); }"}
    root = write_asking_pack(
        pytester.path / "whole", whole, es_module=es_module, head=_HEADS[es_module], manifest={"id": "whole"}
    )
    package = Path(root, "node_modules", "zod")
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "zod", "version": "3.24.1", "main": "index.js"}')
    (package / "index.js").write_text("exports.says = 'from node_modules';")

    result = run_packs(pytester, url=provider.url, paths=("early", "late", "whole"))

    result.assert_outcomes(passed=2, errors=2)
    said = result.stdout.str()
    for name in ("early", "late"):
        assert (
            f"hint: run `npm install --ignore-scripts` in {pytester.path / name}, with the name zod where its"
            " package.json does not list it; or ship the package in the pack's node_modules"
        ) in said
    assert rows(
        pytester.path / "helmbench.db", "SELECT code, outcome, reason FROM results ORDER BY 1, 2"
    ) == [
        ("a", "error", "threw"),
        ("a", "passed", None),
        ("b", "passed", None),
    ]
