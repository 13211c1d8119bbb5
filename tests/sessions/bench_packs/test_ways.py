"""How Bench Packs are run: prepared once or per item, so many at a time, fenced in, and what they print is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bench_pack_sessions import ASKS, run_packs, write_asking_pack
from provider import Provider
from trees import rows

_COUNTED = """
const fs = require("node:fs");
let prepared = 0;
const note = (context, what) => fs.appendFileSync(`${context.benchPack.dataDir}/log.txt`, `${what} ${process.pid}\\n`);
"""
_TELLS = """async () => {
    await ask(input.scenario.id);
    return result({ output: { prepared, url: context.providers[0].baseUrl, token: context.secrets[0].value.length } });
}"""


@pytest.fixture
def counted(pytester: pytest.Pytester) -> None:
    """A pack of six scenarios that writes down when it is prepared and disposed of."""
    write_asking_pack(
        pytester.path / "pack",
        {f"s{number}": _TELLS for number in range(6)},
        head=_COUNTED,
        prepare="prepared += 1; note(context, `prepare ${context.models[0].id}`);",
        dispose="note(context, `dispose ${context.models[0].id}`);",
    )


def _log(pytester: pytest.Pytester) -> list[str]:
    text = (pytester.path / ".helmbench/small-pack/data/log.txt").read_text()
    return text.splitlines()


def _urls(pytester: pytest.Pytester) -> set[str]:
    outputs: list[Any] = [
        json.loads(output)
        for (output,) in rows(pytester.path / "helmbench.db", "SELECT output FROM pack_results")
    ]
    return {output["url"] for output in outputs}


@pytest.mark.usefixtures("counted")
def test_a_pack_is_prepared_for_each_item_with_an_address_of_its_own(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.latency_s = 0.3
    run_packs(pytester, url=provider.url).assert_outcomes(passed=6)
    whats = [line.rpartition(" ")[0] for line in _log(pytester)]
    assert sorted(whats) == ["dispose test/good"] * 6 + ["prepare test/good"] * 6
    assert len(_urls(pytester)) == 6
    assert provider.max_in_flight == 6


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_pack_with_a_costly_start_is_prepared_once_per_model_and_process(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    provider.latency_s = 0.05
    models = ("--helmbench-model=test/good", "--helmbench-model=test/better")
    run_packs(pytester, workers, "--helmbench-prepare=session", *models, url=provider.url).assert_outcomes(
        passed=12
    )
    prepared = [line.removeprefix("prepare ") for line in _log(pytester) if line.startswith("prepare ")]
    disposed = [line.removeprefix("dispose ") for line in _log(pytester) if line.startswith("dispose ")]
    # Each line names a model and a process.
    assert {line.partition(" ")[0] for line in prepared} == {"test/good", "test/better"}
    assert sorted(prepared) == sorted(set(prepared)) == sorted(disposed)
    assert len(_urls(pytester)) == len(prepared)
    # Items of a model take turns in a process.
    assert provider.max_in_flight <= len(prepared)


@pytest.mark.parametrize(
    ("options", "most"),
    [
        (("-n0", "--helmbench-model=llamacpp/tiny"), 1),
        (("-n2", "--helmbench-model=llamacpp/tiny"), 1),
    ],
    ids=["local", "local-over-workers"],
)
@pytest.mark.usefixtures("counted")
def test_scenarios_run_so_many_at_a_time(
    pytester: pytest.Pytester, provider: Provider, options: tuple[str, ...], most: int
) -> None:
    provider.latency_s = 0.05
    run_packs(pytester, *options, url=provider.url).assert_outcomes(passed=6)
    assert provider.max_in_flight == most


def test_a_pack_without_a_verifier_is_fenced_in(pytester: pytest.Pytester, provider: Provider) -> None:
    secret = pytester.path / "secret.txt"
    secret.write_text("the secret")
    tries = {
        "reads-outside": f"require('node:fs').readFileSync({json.dumps(str(secret))}, 'utf8')",
        "reads-elsewhere": "require('node:fs').readdirSync('/etc')",
        "writes-into-the-pack": "require('node:fs').writeFileSync(`${context.benchPack.installDir}/x`, '')",
        "writes-outside": f"require('node:fs').writeFileSync({json.dumps(str(secret))}, 'overwritten')",
        "starts-a-program": "require('node:child_process').execFileSync('/bin/true')",
    }
    runs = {
        name: f"""async () => {{
            await ask('x');
            let said = 'done';
            try {{ {act}; }} catch (error) {{ said = error.code; }}
            return result({{ output: {{ said }} }});
        }}"""
        for name, act in tries.items()
    }
    runs["own-folders"] = """async () => {
        await ask('x');
        const { installDir, dataDir, cacheDir, runsDir } = context.benchPack;
        const fs = require("node:fs");
        for (const folder of [dataDir, cacheDir, runsDir]) fs.writeFileSync(`${folder}/own.txt`, "mine");
        fs.writeFileSync("relative.txt", "mine");
        return result({ output: { said: fs.existsSync(`${installDir}/benchlocal.pack.json`) ? "done" : "lost" } });
    }"""
    write_asking_pack(pytester.path / "pack", runs)

    run_packs(pytester, url=provider.url).assert_outcomes(passed=6)

    said = "SELECT code, json_extract(output, '$.said') FROM pack_results JOIN results ON id = result_id"
    told = dict(rows(pytester.path / "helmbench.db", said))
    # A place under /tmp is in a /tmp of its own, which it may write; any other is read-only.
    assert told.pop("writes-outside") in ("done", "EROFS")
    assert told == {
        "reads-outside": "ENOENT",
        "reads-elsewhere": "done",  # there is little in it
        "writes-into-the-pack": "EROFS",
        "starts-a-program": "done",
        "own-folders": "done",
    }
    assert secret.read_text() == "the secret"
    assert not (pytester.path / "pack" / "x").exists()
    home = pytester.path / ".helmbench" / "small-pack"
    assert sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()) == [
        "cache/own.txt",
        "data/own.txt",
        "runs/1/own.txt",
    ]


def test_a_worker_without_a_scenario_leaves_the_folders_to_the_others(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.latency_s = 0.5
    write_asking_pack(pytester.path / "pack", {"a": ASKS, "b": ASKS})

    dry = run_packs(pytester, "--helmbench-dry-run", url=provider.url)
    assert dry.ret == pytest.ExitCode.OK
    assert not (pytester.path / ".helmbench").exists()
    run_packs(pytester, "-n4", url=provider.url).assert_outcomes(passed=2)
    run_packs(pytester, "-n2", "-k", "a[", url=provider.url).assert_outcomes(passed=1)
