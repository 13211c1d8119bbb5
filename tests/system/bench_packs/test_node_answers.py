"""Values that JSON lacks, as the Node host writes them: what becomes of them in a pack's answer."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files

import pytest

from pytest_helmbench.benchmarks.bench_packs.node.answers import MalformedAnswerError, result_of


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_what_the_bridge_makes_of_values_that_json_lacks_is_told() -> None:
    made = ["undefined", "null", "{...r, score: NaN}", "{...r, score: -Infinity}", "{...r, score: 12n}"]
    inside = files("pytest_helmbench.benchmarks.bench_packs.node").joinpath("inside", "encode.cjs")
    script = (
        f"const {{ encode }} = require({json.dumps(str(inside))});"
        "const r = { scenarioId: 'A', status: 'pass', note: undefined };"
        "r.self = r;"
        f"for (const value of [{', '.join(made)}, r]) console.log(encode(value));"
    )
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True, timeout=60)
    *wrong, sound = [json.loads(line) for line in done.stdout.splitlines()]

    sentences = []
    for answer in wrong:
        with pytest.raises(MalformedAnswerError) as caught:
            result_of(answer, "A")
        sentences.append(str(caught.value))
    assert sentences == [
        "the pack returned nothing (undefined or null)",
        "the pack returned nothing (undefined or null)",
        "score is NaN: not a finite number",
        "score is -Infinity: not a finite number",
        "score is '12', a bigint or text, not a number",
    ]
    assert result_of(sound, "A").stated["self"] == "[circular]"
