"""Any value that a pack can make arrives as JSON: bounded, and with a word where it was cut."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from bench_pack_folders import write_bench_pack_folder
from bridges import Item, bridge_to, outcomes

_MIB = 1024 * 1024

_VALUES: dict[str, tuple[str, Any]] = {
    "undefined": ("undefined", None),
    "wrong-status": ("result({ status: 'great' })", "great"),
    "no-numbers": (
        "{ a: NaN, b: Infinity, c: -Infinity, d: -0, e: 1e300 }",
        {"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 0, "e": 1e300},
    ),
    "bigint": ("{ a: 10n, b: 2n ** 100000n }", {"a": "10", "b": "[a huge bigint]"}),
    "left-out": (
        "{ a: undefined, b: () => 1, c: Symbol('s'), d: [undefined, () => 1] }",
        {"d": [None, None]},
    ),
    "circular": ("(() => { const a = { b: [] }; a.b.push(a, a.b); return a })()", {"b": ["[circular]"] * 2}),
    "built-ins": (
        "{ d: new Date(0), bad: new Date(NaN), e: new TypeError('no'), m: new Map([[1, 2]]), b: Buffer.alloc(9) }",
        {
            "d": "1970-01-01T00:00:00.000Z",
            "bad": None,
            "e": "TypeError: no",
            "m": {},
            "b": "[binary data]",
        },
    ),
    "toJSON": (
        "[{ toJSON: () => 7 }, { toJSON() { throw new Error('no') } }, { toJSON() { return this } }]",
        [7, "[threw: Error: no]", {}],
    ),
    "getters": ("{ get a() { throw new Error('no') }, b: 1 }", {"a": "[threw: Error: no]", "b": 1}),
    "proxies": (
        "[new Proxy({}, { ownKeys() { throw new Error('no') } }), new Proxy({ a: 1 }, {}), new Proxy([1], {})]",
        ["[threw: Error: no]", {"a": 1}, [1]],
    ),
    "surrogates": ("'a\\ud800b\\u0000'", "a\ud800b\0"),
    "long-text": (f"'é'.repeat({20 * _MIB})", "é" * _MIB + f"… [cut: {19 * _MIB} more characters]"),
}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run all of them in one process."""
    root = tmp_path_factory.mktemp("values") / "pack"
    runs = {name: f"async () => ({{ value: ({text}) }}).value" for name, (text, _) in _VALUES.items()}
    write_bench_pack_folder(root, runs)

    async def go() -> list[Any]:
        async with bridge_to(root) as bridge:
            return await outcomes(bridge, [Item(name) for name in runs])

    return dict(zip(runs, asyncio.run(go()), strict=True))


@pytest.mark.parametrize("name", _VALUES)
def test_a_value_arrives_as_json(given: dict[str, Any], name: str) -> None:
    value, expected = given[name], _VALUES[name][1]
    assert (value["status"] if name == "wrong-status" else value) == expected


def test_huge_values_are_cut_and_say_where(tmp_path: Path) -> None:
    runs = {
        "deep": "async () => { let a = 1; for (let i = 0; i < 1e5; i += 1) a = [a]; return a }",
        "wide": "async () => ({ list: new Array(1e8), after: 1 })",
        "many-keys": "async () => Object.fromEntries(Array.from({ length: 3e5 }, (_, i) => ['key' + i, i]))",
        "many-texts": "async () => Array.from({ length: 100 }, () => 'x'.repeat(1e6))",
        "escapes": "async () => ({ a: '\\u0001'.repeat(3e6), b: '\\u0001'.repeat(3e6), c: 1 })",
        "small": "",
    }
    root = write_bench_pack_folder(tmp_path / "pack", runs)

    async def go() -> list[Any]:
        async with bridge_to(root) as bridge:
            return await outcomes(bridge, [Item(name) for name in runs])

    deep, wide, many_keys, many_texts, escapes, small = asyncio.run(go())

    depth = 0
    while isinstance(deep, list):
        (deep,) = deep
        depth += 1
    assert (depth, deep) == (64, "[cut: too deep]")
    full = "[cut: a result has room for 2 MiB and 100,000 values]"
    assert wide["list"][-1] == full
    assert len(wide["list"]) <= 100_000
    assert many_keys["[cut]"] == full
    assert len(many_keys) <= 100_000
    assert many_texts[-1] == full
    assert _MIB < sum(map(len, many_texts)) < 3 * _MIB
    assert escapes["a"].endswith(" more characters]")
    assert escapes["[cut]"] == full
    assert small["status"] == "pass"


def test_endless_events_are_cut_and_say_so(tmp_path: Path) -> None:
    runs = {
        "many": "async () => { for (let i = 0; i < 30000; i += 1) emit({ type: 'progress', i }); return result() }",
        "large": "async () => { for (let i = 0; i < 250; i += 1) context.logger.info('x'.repeat(1e6)); return {} }",
        "one": "async () => { emit({ list: Array(9999).fill('x'.repeat(99)) }); return result() }",
        "odd": "async () => { emit(7); emit(undefined); emit(null); emit({ a: 1n }); return result() }",
    }
    root = write_bench_pack_folder(tmp_path / "pack", runs)
    items = [Item(name) for name in runs]

    async def go() -> list[Any]:
        async with bridge_to(root) as bridge:
            return await outcomes(bridge, items)

    assert asyncio.run(go())[1] == {}
    many, large, one, odd = (item.events for item in items)
    cut = {"type": "log", "level": "warn", "message": "[cut: this item emits too much]"}
    assert (len(many), many[-1]) == (10_001, cut)
    assert large[-1] == cut
    assert max(len(str(event)) for event in large) < _MIB / 3
    assert one[0]["list"][-1] == "[cut: an event has room for 256 KiB and 100,000 values]"
    assert sum(len(str(event)) for event in large) < 9 * _MIB
    assert odd == [{"a": "1"}]
