"""Packs of both kinds are loaded with what they may import, listed, run and scored; what cannot be loaded says why."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_pack_folders import ENTRY, write_bench_pack_folder
from bridges import BOUNDS, Item, bridge_to, outcomes

from pytest_helmbench.benchmarks.bench_packs.node.process import PackFailedError

_IMPORTS = {
    False: """
        const sdk = require("@benchlocal/sdk");
        const core = require("@benchlocal/core");
    """,
    True: """
        import sdk, { createHostHelpers, defineBenchPlugin, definePluginManifest } from "@benchlocal/sdk";
        import * as core from "@benchlocal/core";
        import { createRequire } from "node:module";
        const waited = await new Promise((resolve) => setImmediate(() => resolve(7)));
        const required = createRequire(import.meta.url)("@benchlocal/sdk");
        if (waited !== 7 || sdk.createHostHelpers !== createHostHelpers) throw new Error("not the same");
        if (required.createHostHelpers !== createHostHelpers) throw new Error("two copies of the SDK");
    """,
}
_USES_IMPORTS = """async () => {
  const helpers = sdk.createHostHelpers(context);
  return result({
    score: 75,
    note: helpers.getRequiredModel(input.model.id).label + core.DEFAULT_BENCHLOCAL_REQUEST_TIMEOUT_SECONDS,
  });
}"""


@pytest.mark.parametrize("permission", [True, False])
@pytest.mark.parametrize("es_module", [False, True])
def test_a_pack_lists_runs_and_scores(tmp_path: Path, es_module: bool, permission: bool) -> None:
    root = write_bench_pack_folder(
        tmp_path / "pack", {"A": _USES_IMPORTS, "B": ""}, es_module=es_module, head=_IMPORTS[es_module]
    )
    before = sorted(root.rglob("*"))

    async def go() -> tuple[Any, list[Any], Any]:
        async with bridge_to(root, fenced=permission) as bridge:
            listed = await bridge.scenarios()
            results = await outcomes(bridge, [Item("A"), Item("B")])
            return listed, results, await bridge.score(results)

    listed, results, score = asyncio.run(go())

    assert listed == [{"id": "A", "title": "Scenario A"}, {"id": "B", "title": "Scenario B"}]
    plain = {"scenarioId": "A", "status": "pass", "summary": "done", "rawLog": ""}
    assert results == [
        {**plain, "score": 75, "note": "m300"},
        {**plain, "scenarioId": "B", "score": 100},
    ]
    assert score == {"totalScore": 87.5, "categories": [{"id": "all", "label": "All", "score": 87.5}]}
    assert sorted(root.rglob("*")) == before


_RUNTIME = '{ async listScenarios() { return [{ id: "A", title: "A" }]; }, async prepare() {}, scoreModelResults() {} }'


@pytest.mark.parametrize(
    "source",
    [
        f"module.exports = {_RUNTIME};",
        f"exports.default = {_RUNTIME};",
        f'Object.defineProperty(exports, "__esModule", {{ value: true }}); exports.default = {_RUNTIME};',
        f"module.exports = {{ default: {{ default: {_RUNTIME} }} }};",
        'class Pack { async listScenarios() { return [{ id: "A", title: "A" }]; } async prepare() {} '
        "scoreModelResults() {} }\nmodule.exports = new Pack();",
    ],
    ids=["module.exports", "exports.default", "esModule", "default.default", "class"],
)
def test_every_shape_of_a_default_export_is_found(tmp_path: Path, source: str) -> None:
    root = write_bench_pack_folder(tmp_path / "pack", {}, source=source)

    async def go() -> Any:
        async with bridge_to(root) as bridge:
            return await bridge.scenarios()

    assert asyncio.run(go()) == [{"id": "A", "title": "A"}]


_IMPATIENT = replace(BOUNDS, start_s=2.0)
_AT = "the Bench Pack cannot be loaded: "


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("const a = ;", "SyntaxError: Unexpected token ';'"),
        ("throw new TypeError('not today\\u001b[31m')", "TypeError: not today\\x1b[31m"),
        ("throw 7", "7"),
        ("exports.other = 1;", "its default export has no function listScenarios()"),
        ("module.exports = { listScenarios() {} };", "its default export has no function prepare()"),
        (
            "module.exports = { listScenarios() {}, prepare() {} };",
            "its default export has no function scoreModelResults()",
        ),
        ("process.exit(3)", "it called process.exit(3)"),
        ("process.kill(process.pid, 'SIGKILL')", "the process was ended by SIGKILL"),
        ("for (;;);", "index.js did not finish loading within 2 s"),
    ],
    ids=["syntax", "throws", "throws-7", "no-default", "no-prepare", "no-score", "exits", "dies", "loops"],
)
def test_what_cannot_be_loaded_says_why(tmp_path: Path, source: str, message: str) -> None:
    root = write_bench_pack_folder(tmp_path / "pack", {}, source=f"console.log('hello');\n{source}")
    item = Item("A")

    async def go() -> list[PackFailedError]:
        from_both = []
        async with bridge_to(root, bounds=_IMPATIENT) as bridge:
            for asked in (bridge.scenarios, lambda: bridge.run(item, 5.0)):
                with pytest.raises(PackFailedError) as caught:
                    await asked()
                from_both.append(caught.value)
        return from_both

    for error in asyncio.run(go()):
        assert (error.reason, error.message) == ("not_loadable", _AT + message)
        assert str(error) == error.message
        if "SyntaxError" in message:
            assert f"{ENTRY}:2" in error.stack
        else:
            assert error.output.startswith("hello")
    assert item.begun == 0


async def test_progress_and_log_arrive_in_order_and_nothing_after_the_result(tmp_path: Path) -> None:
    act = """async () => {
      context.logger.info("began", { by: 1n });
      await emit({ type: "model_progress", modelId: input.model.id, scenarioId: "A", message: "halfway" });
      context.logger.warn(new Error("odd"));
      setTimeout(() => { emit({ type: "model_progress", message: "late" }); context.logger.error("late"); }, 20);
      return result();
    }"""
    root = write_bench_pack_folder(
        tmp_path / "pack", {"A": act, "B": "() => new Promise((r) => setTimeout(r, 100, result()))"}
    )
    item = Item("A")

    async with bridge_to(root) as bridge:
        assert (await outcomes(bridge, [item, Item("B")]))[0]["status"] == "pass"
    assert item.events == [
        {"type": "log", "level": "info", "message": "began", "meta": {"by": "1"}},
        {"type": "model_progress", "modelId": "test/m", "scenarioId": "A", "message": "halfway"},
        {"type": "log", "level": "warn", "message": "Error: odd"},
    ]


@pytest.mark.parametrize("key", [None, "session"])
def test_each_item_has_its_own_prepare_unless_they_share_one(tmp_path: Path, key: str | None) -> None:
    root = write_bench_pack_folder(
        tmp_path / "pack",
        {
            "A": "async () => { context.logger.info('hi'); return result({ score: prepared, points: disposed }); }"
        },
        head="let prepared = 0; let disposed = 0;",
        prepare="prepared += 1;",
        dispose="disposed += 1; require('node:fs').writeFileSync(process.env.HOME + '/disposed', String(disposed));",
    )

    async def go() -> list[tuple[int, int]]:
        async with bridge_to(root) as bridge:
            items = [Item("A") for _ in range(3)]
            results: list[Any] = [await bridge.run(item, 5.0, key) for item in items]
            assert [len(item.events) for item in items] == [1, 1, 1]
            return [(result["score"], result["points"]) for result in results]

    seen = asyncio.run(go())
    assert seen == ([(1, 0), (2, 1), (3, 2)] if key is None else [(1, 0)] * 3)
    assert (tmp_path / "work" / "home" / "disposed").read_text() == ("3" if key is None else "1")


def test_fetch_waits_as_long_as_its_host(tmp_path: Path) -> None:
    # Node's own limit is five minutes, too long to wait for: the limits are looked at.
    looks = """async () => {
      const dispatcher = globalThis[Symbol.for("undici.globalDispatcher.1")];
      const settings = Object.getOwnPropertySymbols(dispatcher).map((name) => dispatcher[name]);
      const limits = settings.find((value) => value?.headersTimeout !== undefined);
      return result({ note: `${limits.headersTimeout} ${limits.bodyTimeout}` });
    }"""
    root = write_bench_pack_folder(tmp_path / "pack", {"A": looks})

    async def go() -> list[Any]:
        async with bridge_to(root) as bridge:
            return await outcomes(bridge, [Item("A")])

    assert [answer["note"] for answer in asyncio.run(go())] == ["0 0"]
