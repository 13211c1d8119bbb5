"""Settings of a run: each option and fact says whether shards may differ in it and whether reports show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_helmbench.options.declarations import DECLARED
from pytest_helmbench.options.option import FLAG, Group
from pytest_helmbench.options.recorded_settings import FACTS, PER_SHARD, PRIVATE, recorded_settings
from pytest_helmbench.options.settings import Settings


def test_an_option_cannot_be_declared_without_saying_whether_shards_may_differ_in_it() -> None:
    with pytest.raises(TypeError, match="not callable"):
        Group("new")(FLAG, False, "an option")  # type: ignore[operator]

    assert {"concurrency", "base_url", "routes"} <= PER_SHARD
    assert PER_SHARD.isdisjoint({"repeat", "sample", "strict_json", "temperature", "model"})


def test_reports_leave_out_each_path_of_a_machine() -> None:
    paths = {name for name, option in DECLARED.items() if option.type.make is Path}
    assert paths == PRIVATE - {"benchmark_path", "routes"}
    assert {"db", "models_file", "judge_template"} < paths


def test_a_run_records_no_fact_that_is_not_declared() -> None:
    facts = dict.fromkeys(FACTS)
    found = recorded_settings(Settings(), facts)
    assert found.keys() <= DECLARED.keys() | facts.keys()

    with pytest.raises(ValueError, match="undeclared facts: weather"):
        recorded_settings(Settings(), {**facts, "weather": "fine"})
