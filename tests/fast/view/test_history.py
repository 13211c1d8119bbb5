"""What a viewer is sent: what is newer than what he has, and nothing else."""

from __future__ import annotations

from pytest_helmbench.view.shelf import History


def test_only_what_is_newer_is_told_and_what_has_gone_means_all_anew() -> None:
    history = History[str]()
    history.note({"a": 1, "b": 1}, 1)
    history.note({"a": 1, "b": 2, "c": 1}, 2)
    assert history.since(0) == ("a", "b", "c")
    assert history.since(1) == ("b", "c")
    assert history.since(2) == ()
    history.note({"b": 2, "c": 1}, 3)
    assert history.since(2) is None
    assert history.since(3) == ()
