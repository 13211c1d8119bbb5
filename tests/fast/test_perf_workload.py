"""The race track itself: what is measured is what is said."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from perf.growth import growth_lines
from perf.measure import Measure
from perf.mock import latency_s
from perf.workload import semaphore_wall_s, tail_latencies_s, write_prompts, write_tree


def test_a_semaphore_lets_the_next_call_go_where_a_place_is_free_first() -> None:
    assert semaphore_wall_s([3.0, 1.0, 1.0, 4.0], places=2) == 6.0
    assert semaphore_wall_s([2.0] * 5, places=2) == 6.0


def test_prompts_stand_in_the_order_of_their_latencies(tmp_path: Path) -> None:
    write_tree(tmp_path, 30)
    prompts = [json.loads(line) for line in write_prompts(tmp_path).read_text(encoding="utf-8").splitlines()]
    assert len({case["prompt"] for case in prompts}) == 30
    assert (prompts[0]["name"], prompts[-1]["name"]) == ("P1-B1-S1-C1-PT1", "P1-B1-S1-C10-PT3")
    seen = []
    for case in prompts:
        found = re.search(r"Condition (\d+)\..*Message (\d+)\.", case["prompt"], re.DOTALL)
        assert found is not None
        seen.append(latency_s(int(found[1]), int(found[2]), 0.2, 1.0))
    assert seen == tail_latencies_s(30, 0.2, 1.0)
    assert len(set(seen)) == 30
    assert min(seen) < 0.2 < max(seen)


def test_a_size_at_which_a_case_is_over_a_tenth_dearer_than_before_is_marked() -> None:
    base = Measure(
        wall_s=1,
        cpu_s=1,
        busiest_s=1,
        peak_mib=50,
        largest_mib=50,
        written=10,
        requests=0,
        most_in_flight=0,
        output="",
        switches=0,
    )
    more = replace(base, cpu_s=10, largest_mib=60, written=4_000_010)
    most = replace(base, cpu_s=130, largest_mib=161, written=40_000_000)

    *_, first, second, third = growth_lines([(1_000, base), (10_000, more), (100_000, most)])

    assert first.endswith("| – | – | – |")
    assert second.endswith("| 1.00 | 1.14 | 444 |")
    assert third.endswith("| 1.33 ! | 1.15 | 400 |")
