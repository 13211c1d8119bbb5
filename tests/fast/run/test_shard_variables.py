"""`--helmbench-shard=auto`: the variables of schedulers, what they leave out, and what they get wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_helmbench.options.shard_variables import ShardError, shard_of_environment

_SLURM = {
    "SLURM_ARRAY_TASK_MIN": "1",
    "SLURM_ARRAY_TASK_MAX": "8",
    "SLURM_ARRAY_TASK_COUNT": "8",
    "SLURM_ARRAY_TASK_STEP": "1",
}


@pytest.mark.parametrize(
    ("environ", "shard"),
    [
        ({"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "8"}, "2/8"),
        ({"CI_NODE_TOTAL": "1"}, "1/1"),  # GitLab, in a job that is not parallel
        ({"CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "4"}, "1/4"),
        ({"BUILDKITE_PARALLEL_JOB": "3", "BUILDKITE_PARALLEL_JOB_COUNT": "4"}, "4/4"),
        ({"TEST_SHARD_INDEX": "0", "TEST_TOTAL_SHARDS": "2"}, "1/2"),
        ({"JOB_COMPLETION_INDEX": "6", "HELMBENCH_SHARDS": "8"}, "7/8"),
        ({**_SLURM, "SLURM_ARRAY_TASK_ID": "3"}, "3/8"),
        (
            {
                **_SLURM,
                "SLURM_ARRAY_TASK_ID": "6",
                "SLURM_ARRAY_TASK_MIN": "0",
                "SLURM_ARRAY_TASK_COUNT": "4",
                "SLURM_ARRAY_TASK_MAX": "6",
                "SLURM_ARRAY_TASK_STEP": "2",
            },
            "4/4",
        ),
        (
            {"CI_NODE_TOTAL": "1", **_SLURM, "SLURM_ARRAY_TASK_ID": "3"},
            "3/8",
        ),  # only one of them says several
    ],
)
def test_a_scheduler_says_which_shard_this_is(environ: dict[str, str], shard: str) -> None:
    assert shard_of_environment(environ).text == shard


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, "no variable of the environment says which shard this is (looked for those of GitLab, CircleCI, "),
        ({"CI_NODE_INDEX": "", "CI_NODE_TOTAL": ""}, "no variable"),
        ({"CI_NODE_INDEX": "9", "CI_NODE_TOTAL": "8"}, "CI_NODE_INDEX is 9 and CI_NODE_TOTAL is 8: there is no such"),
        ({"CI_NODE_INDEX": "x", "CI_NODE_TOTAL": "8"}, "CI_NODE_INDEX is 'x', which is not a number"),
        ({"JOB_COMPLETION_INDEX": "6"}, "(JOB_COMPLETION_INDEX), but HELMBENCH_SHARDS does not say of how many"),
        ({**_SLURM, "SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "1"}, "$SLURM_ARRAY_TASK_ID/8"),
        ({**_SLURM, "SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "5"}, "the share is unknown"),
        (
            {"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "8", "CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "4"},
            "says different things: GitLab 2/8, CircleCI 1/4",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_said_with_what_to_give(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ShardError) as caught:
        shard_of_environment(environ)

    assert words in str(caught.value)
    assert "\n  hint: " in str(caught.value)


def test_bazel_is_told_that_shards_are_known(tmp_path: Path) -> None:
    status = tmp_path / "status"

    shard_of_environment(
        {"TEST_SHARD_INDEX": "0", "TEST_TOTAL_SHARDS": "2", "TEST_SHARD_STATUS_FILE": str(status)}
    )

    assert status.exists()
