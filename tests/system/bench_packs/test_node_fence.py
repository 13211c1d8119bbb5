"""Secrets that a Bench Pack cannot reach: of our channel, and the relay's tokens."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from bench_pack_folders import pack_place, write_bench_pack_folder
from bridges import BOUNDS, Item, bridge_to, outcomes

from pytest_helmbench.benchmarks.bench_packs.node.bridge import Bridge
from pytest_helmbench.benchmarks.bench_packs.node.command import Node
from pytest_helmbench.benchmarks.bench_packs.node.process import PackFailedError

_ROOM = 16 * 1024


def _ran(root: Path, runs: dict[str, str], head: str = "") -> list[Any]:
    write_bench_pack_folder(root, runs, head=head)

    async def go() -> list[Any]:
        async with bridge_to(root) as bridge:
            return await outcomes(bridge, [Item(name) for name in runs])

    return asyncio.run(go())


_PATCHES = """
const secrets = [];
const bytes = Object.getPrototypeOf(Uint8Array.prototype);
for (const name of ["length", "byteLength", "byteOffset", "buffer"]) {
  const { get } = Object.getOwnPropertyDescriptor(bytes, name);
  const read = function () { secrets.push(this[0]); return get.call(this) };
  Object.defineProperty(bytes, name, { configurable: true, get: read });
}
"""


def test_getters_of_bytes_do_not_see_our_lines(tmp_path: Path) -> None:
    runs = {
        "A": "async () => result({ note: secrets.filter((first) => first === 10 /* a new line */).length })"
    }
    root = write_bench_pack_folder(tmp_path / "pack", runs, head=_PATCHES)

    async def go() -> list[Any]:
        async with bridge_to(root) as bridge:
            return [*await outcomes(bridge, [Item("A")]), *await outcomes(bridge, [Item("A")])]

    assert [answer["note"] for answer in asyncio.run(go())] == [0, 0]


def test_no_text_of_a_failure_holds_a_token(tmp_path: Path) -> None:
    token = f"relay-{'tT0_-' * 8}abc"
    tail = " y" * (_ROOM // 2 - 10)
    runs = {
        "thrown": f"async () => {{ console.log('{token}'); throw new Error('at {token}') }}",
        "at-the-cut": f"async () => {{ console.log('{'z' * 99}{token}{tail}'); throw new Error('no') }}",
        "dies": f"() => {{ console.log('{'z' * 99} {token}{tail}'); process.kill(process.pid, 'SIGKILL') }}",
    }

    thrown, cut, died = _ran(tmp_path / "pack", runs)

    assert thrown.message == str(thrown) == "runScenario() threw Error: at <redacted>"
    assert "Error: at <redacted>" in thrown.stack
    assert thrown.output == "<redacted>"
    assert died.reason == "crashed"
    for failed in (thrown, cut, died):
        assert "tT0_-" not in f"{failed.message}{failed.output}{failed.stack}{failed.words}"
        assert len(failed.output) <= _ROOM
    assert cut.output.endswith(" y y")


_PROGRAM = """#!{python} -ISE
import json, os, sys
there, back, _ = map(int, sys.argv[-1].split(","))
sayings = json.load(open({sayings!r}))

def say(text):
    data = ("\\n" + secret + text + "\\n").encode()
    while data:
        data = data[os.write(back, data):]

for line in os.fdopen(there, "rb"):
    message = json.loads(line)
    if message["op"] == "load":
        secret = message["secret"]
        say('{{"loaded":1}}')
    elif message["op"] == "run":
        text, times = sayings[message["input"]["scenario"]["id"]]
        text = text.replace("NUMBER", str(message["id"])).replace("SECRET", secret)
        say(text.replace("[DEEP", "[" * times).replace("DEEP]", "]" * times))
    else:
        say('{{"id":%d,"value":1}}' % message["id"])
"""

_ODD = "its answer came in a form that is none of ours"
_ALONE = " came through its channel while this scenario ran alone"
_FAILED = '{"id":NUMBER,"failed":{"reason":%s,"said":%s,"output":%s,"stack":""}}'
_SAYINGS: dict[str, tuple[str, int, str]] = {
    "no-answer": ('{"id":NUMBER}', 1, _ODD),
    "no-failure": ('{"id":NUMBER,"failed":5}', 1, _ODD),
    "null-failure": ('{"id":NUMBER,"failed":null}', 1, _ODD),
    "odd-failure": (_FAILED % ("5", "7", "[]"), 1, _ODD),
    "odd-output": (_FAILED % ('"threw"', '"x"', "{}"), 1, _ODD),
    "odd-reason": (_FAILED % ('"\\u001b[31mevil"', '"so \\ud800"', '""'), 1, "so \N{REPLACEMENT CHARACTER}"),
    "list-reason": (_FAILED % ('["threw"]', '"x"', '""'), 1, "x"),
    "deep": ('{"id":NUMBER,"value":[DEEPDEEP]}', 65, _ODD),
    "deep-event": ('{"id":NUMBER,"event":{"a":[DEEPDEEP]}}', 64, _ODD),
    "deeper": ('{"id":NUMBER,"value":[DEEPDEEP]}', 100_000, f"a line that cannot be read{_ALONE}"),
    "no-json": ("{nonsense", 1, f"a line that cannot be read{_ALONE}"),
    "no-object": ("5", 1, f"a line that cannot be read{_ALONE}"),
    "digits": (f'{{"id":1{"0" * 5000}}}', 1, f"a line that cannot be read{_ALONE}"),
    "odd-loss": ('{"lost":5}', 1, f"{_ODD} while this scenario ran alone"),
    "odd-start": ('{"unloadable":null}', 1, f"{_ODD} while this scenario ran alone"),
    "noise": ('{"beat":1}\n' + "x\n" * 1000, 1, f"1,000 lines that mean nothing{_ALONE}"),
    "endless": ("[DEEP", 33 * 2**20, f"a line that is too long{_ALONE}"),
}
_STRANGE = (
    '{"id":[NUMBER],"value":1}',
    '{"id":true,"event":{}}',
    '{"id":NUMBER.0}',
    '{"id":-9}',
    '{"hello":1}',
)
_GOOD = '{"id":NUMBER,"value":"fine"}'


@pytest.mark.skipif(os.name != "posix", reason="the program inherits its sockets")
def test_no_line_of_a_pack_that_has_the_secret_does_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A program takes Node's place, because our own side of the channel sends no such lines."""
    sayings = {name: (text, times) for name, (text, times, _) in _SAYINGS.items()}
    sayings["good"] = ("\nSECRET".join((*_STRANGE, _GOOD)), 1)
    said = tmp_path / "sayings.json"
    said.write_text(json.dumps(sayings))
    program = tmp_path / "node"
    program.write_text(_PROGRAM.format(python=sys.executable, sayings=str(said)))
    program.chmod(0o755)
    place = pack_place(write_bench_pack_folder(tmp_path / "pack", {}), tmp_path / "work")
    kept = [name for name, (*_, message) in _SAYINGS.items() if " alone" not in message]
    lost = [name for name in _SAYINGS if name not in kept]
    good = [Item("good") for _ in range(2)]

    async def go() -> list[Any]:
        bridge = Bridge(Node(str(program)), place, fence=None, bounds=BOUNDS)
        try:
            first = await outcomes(bridge, [*map(Item, kept), good[0]])
            return [*first, *await outcomes(bridge, [*map(Item, lost), good[1]])]
        finally:
            await bridge.close()

    failed = asyncio.run(go())

    assert failed.pop(len(kept)) == failed.pop() == "fine"
    assert [item.begun for item in good] == [1, 2]
    for name, error in zip((*kept, *lost), failed, strict=True):
        assert isinstance(error, PackFailedError), name
        assert (name, error.reason, error.message) == (name, "malformed", _SAYINGS[name][2])
    assert caplog.messages == []
