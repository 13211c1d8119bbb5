"""Signals that end a session: one exception for all of them, and what comes later cuts the wait short."""

from __future__ import annotations

import ctypes
import gc
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_helmbench.pytest_side.workers import interruption
from pytest_helmbench.pytest_side.workers.interruption import Interruptions


@pytest.fixture
def heard() -> Iterator[Interruptions]:
    untaken: dict[signal.Signals, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, what) for number, what in untaken.items()}
    interruptions = Interruptions()
    interruptions.listen()
    yield interruptions
    interruptions.stop_listening()
    after = {number: signal.signal(number, what) for number, what in before.items()}
    assert after == untaken


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("then", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_raises_nothing_in_the_middle_of_the_first(
    heard: Interruptions, monkeypatch: pytest.MonkeyPatch, first: signal.Signals, then: signal.Signals
) -> None:
    hurried: list[bool] = []
    with pytest.raises(KeyboardInterrupt) as raised:
        signal.raise_signal(first)
    assert str(raised.value) == ("" if first == signal.SIGINT else "SIGTERM")
    signal.raise_signal(then)  # of the same stroke
    heard.end_on_next(lambda: hurried.append(True))
    signal.raise_signal(then)  # passed on by a parent
    assert hurried == []
    monkeypatch.setattr(interruption, "_PASSED_ON_S", 0.0)
    signal.raise_signal(then)
    assert hurried == [True]


def test_a_second_ctrl_c_before_the_end_has_begun_cuts_it_short(
    heard: Interruptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruption, "_SAME_SIGNAL_S", 0.0)
    hurried: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
    heard.end_on_next(lambda: hurried.append(True))
    assert hurried == [True]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)  # as before us


def test_news_of_a_worker_raise_nothing_once_the_session_was_interrupted(
    heard: Interruptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruption, "_SAME_SIGNAL_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    heard.worker_ends("gw0 was sent SIGINT")
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()


def test_an_exception_that_somebody_caught_is_raised_again(
    heard: Interruptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruption, "_CAUGHT_S", 0.0)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


class _Signals:
    """Gets a signal where Python drops what its handler raises."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def in_the_collector(self) -> None:
        def called(_phase: str, _about: object) -> None:
            signal.raise_signal(self.number)
            gc.callbacks.remove(called)

        gc.callbacks.append(called)
        gc.collect()

    def in_an_end(self) -> None:
        number = self.number

        class Ends:
            def __del__(self) -> None:
                signal.raise_signal(number)

        Ends()

    def in_a_callback(self) -> None:
        ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(self.number))()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("where", "number"),
    [
        (_Signals.in_the_collector, signal.SIGTERM),
        (_Signals.in_the_collector, signal.SIGINT),
        (_Signals.in_an_end, signal.SIGTERM),
        (_Signals.in_an_end, signal.SIGINT),
        (_Signals.in_a_callback, signal.SIGTERM),
    ],
)
def test_a_signal_that_python_drops_is_raised_where_it_is_looked_for(
    heard: Interruptions, where: Callable[[_Signals], None], number: signal.Signals
) -> None:
    heard.raise_pending()
    where(_Signals(number))
    with pytest.raises(KeyboardInterrupt) as raised:
        heard.raise_pending()
    assert str(raised.value) == ("" if number == signal.SIGINT else "SIGTERM")
    heard.end_on_next(lambda: None)
    heard.raise_pending()


def test_ctrl_c_that_was_caught_is_not_raised_again(heard: Interruptions) -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    heard.raise_pending()
