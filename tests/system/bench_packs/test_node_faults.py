"""Hostile packs: whatever one scenario does, it alone fails, with a sentence that says what happened."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_pack_folders import write_bench_pack_folder
from bridges import BOUNDS, SHORT_BOUNDS, Item, bridge_to, outcomes

from pytest_helmbench.benchmarks.bench_packs.node.process import PackFailedError

_SLOW = "async () => { await new Promise((resolve) => setTimeout(resolve, 300)); return result({ note: 'slow' }); }"
_LIMIT_S = 1.5
_ALONE = " while this scenario ran alone"
_IGNORED = "the scenario gave no result within 1.5 s, and it ignored the abort signal"

_FAILING = {
    "throws": (
        "() => { throw new TypeError('no\\u202e') }",
        "threw",
        "runScenario() threw TypeError: no\\u202e",
    ),
    "rejects": (
        "async () => { throw new Error('fetch failed', { cause: new Error('ECONNREFUSED') }) }",
        "threw",
        "runScenario() threw Error: fetch failed (cause: Error: ECONNREFUSED)",
    ),
    "rejects-unhandled": (
        "() => { Promise.reject(new Error('lost')); return new Promise(() => {}) }",
        "unhandled",
        "a rejected promise was never handled: Error: lost",
    ),
    "throws-in-a-timer": (
        "() => { setTimeout(() => { throw new RangeError('tick') }, 5); return new Promise(() => {}) }",
        "unhandled",
        "an error was never caught: RangeError: tick",
    ),
    "exits": ("() => process.exit(0)", "exited", "it called process.exit(0)"),
    "kills-itself": (
        "() => process.kill(process.pid, 'SIGKILL')",
        "crashed",
        f"the process was ended by SIGKILL{_ALONE}",
    ),
    "closes-the-channel": (
        "() => { const fs = require('node:fs'); for (let fd = 3; fd < 40; fd += 1) try { fs.closeSync(fd) } catch {} "
        "return new Promise(() => {}) }",
        "crashed",
        None,
    ),
    "loops": ("() => { for (;;); }", "hung", None),
    "never-settles": ("() => new Promise(() => {})", "too_slow", _IGNORED),
    "ignores-aborts": (
        "() => new Promise((resolve) => { input.abortSignal.onabort = () => { throw new Error('no') } })",
        "too_slow",
        None,
    ),
    "stops-when-aborted": (
        "() => new Promise((_, reject) => "
        "input.abortSignal.addEventListener('abort', () => reject(input.abortSignal.reason)))",
        "too_slow",
        "the scenario gave no result within 1.5 s, and it ended when it was aborted",
    ),
    "reads-files-outside": (
        "() => require('node:fs').readFileSync('/etc/shadow', 'utf8')",
        "threw",
        "runScenario() threw Error: ENOENT: no such file or directory, open '/etc/shadow'",
    ),
    "writes-into-the-pack": (
        "() => { process.chdir(__dirname); require('node:fs').writeFileSync('x', '') }",
        "threw",
        "runScenario() threw Error: EROFS: read-only file system, open 'x'",
    ),
}


@pytest.mark.parametrize("name", _FAILING)
def test_a_failing_scenario_fails_alone(tmp_path: Path, name: str) -> None:
    act, reason, message = _FAILING[name]
    root = write_bench_pack_folder(tmp_path / "pack", {"bad": act, "slow": _SLOW, "quick": ""})

    limit_s = _LIMIT_S if reason in ("too_slow", "hung") else 20.0

    async def go() -> list[Any]:
        async with bridge_to(root, bounds=SHORT_BOUNDS if reason == "hung" else BOUNDS) as bridge:
            beside, bad = await asyncio.gather(
                outcomes(bridge, [Item("slow"), Item("quick"), Item("slow")]),
                outcomes(bridge, [Item("bad")], limit_s),
            )
            return [*beside, *await outcomes(bridge, [Item("slow"), Item("quick")]), *bad]

    slow, quick, *others, failed = asyncio.run(go())

    assert [one["note"] for one in (slow, others[0], others[1])] == ["slow"] * 3
    assert (quick["status"], others[2]["status"]) == ("pass", "pass")
    assert isinstance(failed, PackFailedError)
    assert failed.reason == reason
    if message is None:
        assert failed.message.startswith("the ")
        assert len(failed.message) < 120
    else:
        assert failed.message.removesuffix(", use --allow-fs-read to manage permissions") == message or (
            message.endswith("restricted") and failed.message.startswith(message)
        )


def test_a_frozen_process_runs_its_items_again_one_by_one(tmp_path: Path) -> None:
    act = "() => { if (input.scenario.id === 'bad') for (;;); return new Promise((r) => setTimeout(r, 400, result())) }"
    root = write_bench_pack_folder(tmp_path / "pack", {"bad": act, "good": act})
    bad, good = Item("bad"), [Item("good") for _ in range(3)]

    async def go() -> list[Any]:
        async with bridge_to(root, bounds=SHORT_BOUNDS) as bridge:
            return await outcomes(bridge, [*good, bad])

    *fine, failed = asyncio.run(go())

    assert [one["status"] for one in fine] == ["pass"] * 3
    assert ([item.begun for item in good], bad.begun) == ([2] * 3, 3)  # the last time in a process of its own
    assert failed.reason == "hung"
    assert failed.message.startswith("the process gave no sign of life for 2")
    assert failed.message.endswith(_ALONE)


def test_an_error_that_nobody_can_be_blamed_for_is_found_by_running_alone(tmp_path: Path) -> None:
    root = write_bench_pack_folder(
        tmp_path / "pack",
        {"bad": "() => { queue.push(1); return new Promise(() => {}) }", "slow": _SLOW},
        head="const queue = []; setInterval(() => { if (queue.length) throw new Error('from the queue') }, 5);",
    )
    bad, slow = Item("bad"), Item("slow")

    async def go() -> list[Any]:
        async with bridge_to(root) as bridge:
            return await outcomes(bridge, [bad, slow])

    failed, fine = asyncio.run(go())

    assert fine["note"] == "slow"
    assert (bad.begun, slow.begun) == (2, 2)
    assert (failed.reason, failed.message) == (
        "unhandled",
        f"an error was never caught: Error: from the queue{_ALONE}",
    )
    assert "index.js" in failed.stack


_PRINTS = {
    "both": "console.error('oops'); process.stdout.write(Buffer.from('bytes\\u001b]0;x\\u0007'))",
    "20-mb": "for (let i = 0; i < 20; i += 1) console.log('y'.repeat(1024 * 1024))",
}


@pytest.mark.parametrize("name", _PRINTS)
def test_what_a_scenario_prints_is_bounded_and_attached_to_its_failure(tmp_path: Path, name: str) -> None:
    runs = {
        "bad": f"async () => {{ {_PRINTS[name]}; await null; console.log('last'); throw new Error('no') }}",
        "loud": "async () => { console.log('of another item'); return result() }",
        "slow": _SLOW,
    }
    root = write_bench_pack_folder(tmp_path / "pack", runs)

    async def go() -> list[Any]:
        async with bridge_to(root) as bridge:
            return await outcomes(bridge, [Item("loud"), Item("bad"), Item("loud"), Item("slow")])

    _, failed, loud, slow = asyncio.run(go())

    assert (loud["status"], slow["note"]) == ("pass", "slow")
    assert failed.output.endswith("last")
    assert "of another item" not in failed.output
    assert len(failed.output) <= 16 * 1024
    if name == "both":
        assert failed.output == "oops\nbytes\\x1b]0;x\\x07last"


_FORGES = """async () => {
  const fs = require('node:fs');
  const line = JSON.stringify({ id: 1, value: { status: 'forged' } });
  const { slice } = String.prototype;
  String.prototype.slice = function (...a) { secrets.push(String(this)); return slice.apply(this, a) };
  JSON.stringify = (v) => { secrets.push(v); return '"forged"' };
  JSON.parse = (v) => { secrets.push(v); return {} };
  fs.writeSync = () => { throw new Error('patched') };
  Array.prototype.push = function () { throw new Error('patched') };
  TextEncoder.prototype.encode = () => { throw new Error('patched') };
  Object.prototype.toJSON = () => 'forged';
  for (const fd of [1, 2, ...process.argv[2].split(/[:,]/).map(Number).filter(Boolean)]) {
    for (const text of [line, '\\n' + line + '\\n', '{"lost":{}}\\n', 'half a line']) {
      try { write(fd, text) } catch {}
    }
  }
  for (const handle of process._getActiveHandles()) {
    try { handle.write('\\n' + line + '\\n') } catch {}
  }
  delete Object.prototype.toJSON;
  return result();
}"""
_PEEKS = "async () => result({ note: secrets.filter((text) => /[0-9a-f]{32}/.test(text)).length })"


@pytest.mark.parametrize("permission", [True, False])
def test_forged_lines_are_dropped_and_patched_prototypes_do_not_matter(
    tmp_path: Path, permission: bool
) -> None:
    root = write_bench_pack_folder(
        tmp_path / "pack",
        {"bad": _FORGES, "peek": _PEEKS, "slow": _SLOW},
        head="const write = require('node:fs').writeSync; const secrets = [];",
    )

    async def go() -> list[Any]:
        async with bridge_to(root, fenced=permission) as bridge:
            first = await outcomes(bridge, [Item("slow"), Item("bad"), Item("slow")])
            return [*first, *await outcomes(bridge, [Item("peek")])]

    slow, bad, other, peek = asyncio.run(go())
    assert (slow["note"], bad["status"], other["note"]) == ("slow", "pass", "slow")
    assert peek["note"] == 0


def test_a_pack_that_cannot_prepare_or_prepares_nothing_says_so(tmp_path: Path) -> None:
    for number, (prepare, reason, message) in enumerate(
        (
            ("throw new Error('no verifier')", "threw", "prepare() threw Error: no verifier"),
            ("return {}", "malformed", "prepare() gave nothing with a function runScenario()"),
            ("return undefined", "malformed", "prepare() gave nothing with a function runScenario()"),
        )
    ):
        root = write_bench_pack_folder(tmp_path / str(number), {"A": ""}, prepare=f"{prepare};")

        async def go(root: Path = root) -> list[Any]:
            async with bridge_to(root) as bridge:
                return [await outcomes(bridge, [Item("A"), Item("A")]), await bridge.scenarios()]

        (first, second), listed = asyncio.run(go())
        for failed in (first, second):
            assert (failed.reason, failed.message) == (reason, message)
        assert listed == [{"id": "A", "title": "Scenario A"}]


def test_listing_and_scoring_fail_with_a_reason_too(tmp_path: Path) -> None:
    source = """module.exports = {
      async listScenarios() { throw new Error('empty'); },
      async prepare() {},
      scoreModelResults(results) { if (results.length) process.exit(1); throw new Error('nothing to add up'); },
    };"""
    root = write_bench_pack_folder(tmp_path / "pack", {}, source=source)

    async def go() -> list[PackFailedError]:
        errors = []
        async with bridge_to(root) as bridge:
            for asked in (bridge.scenarios, lambda: bridge.score([]), lambda: bridge.score([{"score": 1}])):
                with pytest.raises(PackFailedError) as caught:
                    await asked()
                errors.append(caught.value)
        return errors

    assert [(error.reason, error.message) for error in asyncio.run(go())] == [
        ("threw", "listScenarios() threw Error: empty"),
        ("threw", "scoreModelResults() threw Error: nothing to add up"),
        ("exited", "it called process.exit(1)"),
    ]


def test_new_items_go_to_a_fresh_process_while_the_old_one_finishes(tmp_path: Path) -> None:
    runs = {
        "bad": "() => new Promise(() => {})",
        "long": """() => new Promise((resolve) => {
          const look = () => {
            if (!require('node:fs').existsSync(process.env.HOME + '/go')) setTimeout(look, 10);
            else resolve(result({ note: performance.timeOrigin }));
          };
          look();
        })""",
        "pid": "async () => result({ note: performance.timeOrigin })",
    }
    root = write_bench_pack_folder(tmp_path / "pack", runs)
    long = Item("long")

    async def go() -> tuple[int, int, int]:
        async with bridge_to(root) as bridge:
            waiting = asyncio.create_task(outcomes(bridge, [long]))
            first = (await outcomes(bridge, [Item("pid")]))[0]["note"]
            failed = (await outcomes(bridge, [Item("bad")], limit_s=0.2))[0]
            assert failed.reason == "too_slow"
            second = (await outcomes(bridge, [Item("pid")]))[0]["note"]
            assert not waiting.done()
            (tmp_path / "work" / "home" / "go").touch()
            return first, second, (await waiting)[0]["note"]

    first, second, old = asyncio.run(go())
    assert first == old != second
    assert long.begun == 1


def test_a_cancelled_item_is_aborted_and_not_waited_for(tmp_path: Path) -> None:
    act = """() => new Promise((_, reject) => input.abortSignal.addEventListener('abort', () => {
      const { name, message } = input.abortSignal.reason;
      require('node:fs').writeFileSync(process.env.HOME + '/aborted', name + ': ' + message);
      reject(input.abortSignal.reason);
    }))"""
    root = write_bench_pack_folder(tmp_path / "pack", {"A": act, "slow": _SLOW})

    async def go() -> list[Any]:
        async with bridge_to(root, bounds=replace(BOUNDS, grace_s=600)) as bridge:
            await bridge.scenarios()
            running = asyncio.create_task(bridge.run(Item("A"), 20.0))
            healthy = asyncio.create_task(outcomes(bridge, [Item("slow")]))
            await asyncio.sleep(0.1)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            return await healthy

    healthy = asyncio.run(go())
    assert healthy[0]["note"] == "slow"
    said = (tmp_path / "work" / "home" / "aborted").read_text()
    assert said == "AbortError: This operation was aborted"
