"""Ctrl-C, SIGTERM and SIGHUP, to a session or to one of its workers, and a controller that is gone."""

from __future__ import annotations

import _thread
import gc
import os
import select
import signal
import stat
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from types import FrameType

import pytest

from pytest_helmbench.pytest_side.workers.role import INTERRUPT_GRACE_S, INTERRUPTED, SessionRole
from pytest_helmbench.run.coordinator import Coordinator

_ENDING = {"SIGINT": signal.default_int_handler, "SIGTERM": signal.SIG_DFL, "SIGHUP": signal.SIG_DFL}
"""The signals, with their handlers where no plugin has set its own."""

_ONE_STROKE_S = (
    0.5  # a parent that ends a group of processes may send several signals, to several of them, at once
)
_PASSED_ON_S = 0.1  # a parent passes on what the terminal has sent to both; no second stroke is so fast
_UNHEARD_S = 2.0  # after so long other code has caught the exception, and the next signal raises it again
_LOOK_S = 0.4
_ORDERLY_END_S = 1.0


class Interruptions:
    """The signals that end a session, from its beginning to its end.

    SIGTERM and SIGHUP become what Ctrl-C is: `KeyboardInterrupt` in the main thread, once: a second one in the middle
    of the first would leave locks of others unlocked. A session that is not run there, and a signal that another plugin
    handles or ignores (`nohup`), are left alone.
    """

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}
        self._raised_at: float | None = None
        self._again = False
        self._hurry: Callable[[], None] | None = None
        self._of_worker: str | None = None
        self._noted: signal.Signals | None = None

    def listen(self) -> None:
        """Begin to hear signals."""
        if threading.current_thread() is not threading.main_thread():
            return
        for name, untaken in _ENDING.items():
            number: signal.Signals | None = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) is untaken:
                self._before[number] = signal.signal(number, self._end)

    def stop_listening(self) -> None:
        """Have every signal do again what it did before."""
        while self._before:
            number, before = self._before.popitem()
            signal.signal(number, before)

    def begun(self, hurry: Callable[[], None]) -> None:
        """Take note that the session ends: from now on each signal, once, cuts short what is waited for.

        The Ctrl-C after that is handled as before.
        """
        if self._hurry is not None:
            return
        self._hurry = hurry
        if threading.current_thread() is not threading.main_thread():
            return

        def heard(_number: int, _frame: object) -> None:
            if not self._is_passed_on():
                self._restore(signal.SIGINT)
                hurry()

        self._before.setdefault(signal.SIGINT, signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, heard)
        if self._again:
            self._restore(signal.SIGINT)
            hurry()

    def worker_ends(self, sentence: str) -> None:
        """End the session because one of its workers was sent a signal. From any thread.

        Args:
            sentence: Which worker, and what it was sent.
        """

        def end() -> None:
            # Where all processes were sent the signal, this one has heard it by now.
            if self._hurry is None and self._before:
                self._of_worker = sentence
                _wake_main_thread(next(iter(self._before)))

        timer = threading.Timer(_ONE_STROKE_S, end)
        timer.daemon = True
        timer.start()

    def look(self) -> None:
        """Raise what was heard and came to nothing: Python drops what is raised in a callback. From any thread."""
        number, raised_at = self._noted, self._raised_at
        if number is None or raised_at is None or self._hurry is not None:
            return
        is_main = threading.current_thread() is threading.main_thread()
        if is_main or time.monotonic() - raised_at >= _UNHEARD_S:
            self._raised_at = None
            _wake_main_thread(number)

    def _is_passed_on(self) -> bool:
        """Return whether a signal is the one that has ended the session, passed on by a parent."""
        return self._raised_at is not None and time.monotonic() - self._raised_at < _PASSED_ON_S

    def _restore(self, number: signal.Signals) -> None:
        before = self._before.pop(number, None)
        if before is not None:
            signal.signal(number, before)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self._hurry is not None:
            if self._of_worker is None and not self._is_passed_on():
                self._hurry()
            return
        now = time.monotonic()
        since = None if self._raised_at is None else now - self._raised_at
        if since is not None and (self._of_worker is not None or since < _UNHEARD_S):
            self._again |= number == signal.SIGINT and since >= _ONE_STROKE_S
            return
        self._raised_at = now
        is_dropped = _is_dropped(frame)
        if is_dropped or number != signal.SIGINT:  # Ctrl-C may be caught, as by a debugger
            self._noted = signal.Signals(number)
        if is_dropped:
            return
        name = "" if number == signal.SIGINT else signal.Signals(number).name
        raise KeyboardInterrupt(*filter(None, [self._of_worker or name]))


def _wake_main_thread(number: signal.Signals) -> None:
    """Have the main thread handle a signal, whatever it waits for."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        _thread.interrupt_main(number)


def _is_dropped(frame: FrameType | None) -> bool:
    """Return whether Python drops what is raised in a frame: one of the garbage collector has called it."""
    callbacks = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    while frame is not None and frame.f_code.co_name != "__del__" and frame.f_code not in callbacks:
        frame = frame.f_back
    return frame is not None


class EndingHooks:
    """The hooks of a session that is ended from outside.

    Args:
        config: pytest's.
        interruptions: What is heard.
        role: Told to stop.
        coordinator: Knows what is on the wire; None in an xdist worker.
    """

    def __init__(
        self,
        config: pytest.Config,
        interruptions: Interruptions,
        role: SessionRole,
        coordinator: Coordinator | None,
    ) -> None:
        self._config = config
        self._interruptions = interruptions
        self._role = role
        self._coordinator = coordinator
        interruptions.listen()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Begin nothing, and end with no verdict, where a signal came to nothing."""
        self._interruptions.look()
        ended = yield
        self._interruptions.look()
        return ended

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Begin no item where a signal came to nothing."""
        self._interruptions.look()

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Stop: nothing new is sent, and what is on the wire is waited for, unless a signal comes again."""
        if isinstance(excinfo.value, KeyboardInterrupt):
            self._role.interrupted(str(excinfo.value) or "Ctrl-C")
        else:
            self._role.cancel(INTERRUPTED)  # `pytest.exit`, ours among them
        self._interruptions.begun(self._role.hurry)
        _let_go_of_closed_pipes()
        if self._coordinator is not None and self._coordinator.limiter is not None:
            try:
                _say_what_is_awaited(self._config, self._coordinator.limiter.in_flight)
            except OSError:  # its reader was sent the signal, too
                _let_go_of_closed_pipes()
        if not self._config.getoption("fulltrace", False):
            # pytest shows the innermost line, but formats every frame first: half a second in each process.
            excinfo.traceback = excinfo.traceback[-2:]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        """From here on a signal cuts short what is waited for: nothing is interrupted that puts things on disk."""
        self._interruptions.begun(self._role.hurry)
        _let_go_of_closed_pipes()
        yield

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Have signals do what they did before."""
        self._interruptions.stop_listening()


def _say_what_is_awaited(config: pytest.Config, in_flight: int) -> None:
    """Print how many calls are on the wire, and for how long their replies are awaited; nothing when there are none."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not in_flight or reporter is None:
        return
    calls = "1 call" if in_flight == 1 else f"{in_flight} calls"
    reporter.ensure_newline()
    if config.get_terminal_writer().width_of_current_line:  # pytest's letters with -q are no line to it
        reporter.write("\n")
    reporter.write_line(
        f"helmbench: {calls} on the wire may be billed: waiting up to {INTERRUPT_GRACE_S:g} s for the replies"
        " (Ctrl-C again ends at once)",
        flush=True,
    )


def _let_go_of_closed_pipes() -> None:
    """Print into nothing from now on where the reader is gone, as when Ctrl-C has ended `| tee` as well.

    Else pytest's own next line would break off the end of the session, and what it still has to store.
    """
    if not hasattr(select, "poll"):  # Windows
        return
    for number in (1, 2):
        with suppress(OSError):
            asked = select.poll()
            asked.register(number, 0)
            if stat.S_ISFIFO(os.fstat(number).st_mode) and any(
                found & select.POLLERR for _, found in asked.poll(0)
            ):
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, number)
                os.close(nothing)


def end_with_parent() -> None:
    """Have this process end within 2 s once the one that has started it is gone, whatever it does then."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_S)
        time.sleep(_ORDERLY_END_S)
        os._exit(1)

    threading.Thread(target=watch, name="helmbench-parent", daemon=True).start()
