"""Signals that end a session: Ctrl-C, SIGTERM and SIGHUP, to any of its processes, and a controller that is gone."""

from __future__ import annotations

import _thread
import gc
import os
import select
import signal
import stat
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest

from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.pytest_side.workers.role import INTERRUPT_GRACE_S, INTERRUPTED, SessionRole
from pytest_helmbench.reports.tables import count_text
from pytest_helmbench.run.coordinator import Coordinator

_ENDING = {"SIGINT": signal.default_int_handler, "SIGTERM": signal.SIG_DFL, "SIGHUP": signal.SIG_DFL}
"""The signals, each with the handler that it has by default."""

_SAME_SIGNAL_S = 0.5  # a parent may send several signals at once to a group of processes
_PASSED_ON_S = (
    0.1  # a parent passes on a signal that the terminal has sent to both; no second Ctrl-C is so fast
)
_CAUGHT_S = 2.0  # by then other code has caught the exception, and the next signal raises it again
_PARENT_POLL_S = 0.4
_ORDERLY_END_S = 1.0


class Interruptions:
    """The signals that end a session, from its beginning to its end.

    SIGTERM and SIGHUP raise `KeyboardInterrupt` in the main thread, as Ctrl-C does, and do so once: a second one in the
    middle of the first would leave locks of others unlocked. Sessions in other threads, and signals that a plugin
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
        """Install the handlers."""
        if threading.current_thread() is not threading.main_thread():
            return
        for name, untaken in _ENDING.items():
            number: signal.Signals | None = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) is untaken:
                self._before[number] = signal.signal(number, self._end)

    def stop_listening(self) -> None:
        """Restore the previous handlers."""
        while self._before:
            number, before = self._before.popitem()
            signal.signal(number, before)

    def end_on_next(self, hurry: Callable[[], None]) -> None:
        """Have the next signal cut the end of the session short; the Ctrl-C after that is handled as before."""
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
        """End the session because one of its workers got a signal, as a sentence says. From any thread."""

        def end() -> None:
            # A signal to all processes has reached this one by now.
            if self._hurry is None and self._before:
                self._of_worker = sentence
                _wake_main_thread(next(iter(self._before)))

        timer = threading.Timer(_SAME_SIGNAL_S, end)
        timer.daemon = True
        timer.start()

    def raise_pending(self) -> None:
        """Raise a signal again that had no effect: Python drops exceptions of callbacks. From any thread."""
        number, raised_at = self._noted, self._raised_at
        if number is None or raised_at is None or self._hurry is not None:
            return
        is_main = threading.current_thread() is threading.main_thread()
        if is_main or time.monotonic() - raised_at >= _CAUGHT_S:
            self._raised_at = None
            _wake_main_thread(number)

    def _is_passed_on(self) -> bool:
        """Return whether a parent has passed on the signal that has ended the session."""
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
        if since is not None and (self._of_worker is not None or since < _CAUGHT_S):
            self._again |= number == signal.SIGINT and since >= _SAME_SIGNAL_S
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
    """Have the main thread handle a signal, even while it waits."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        _thread.interrupt_main(number)


def _is_dropped(frame: FrameType | None) -> bool:
    """Return whether Python drops the exceptions of a frame: the garbage collector has called it."""
    callbacks = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    while frame is not None and frame.f_code.co_name != "__del__" and frame.f_code not in callbacks:
        frame = frame.f_back
    return frame is not None


class EndingHooks:
    """The hooks of a session that a signal ends; its coordinator, None in an xdist worker, knows calls in flight."""

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
        """Raise a signal that had no effect, before the first item and after the last."""
        self._interruptions.raise_pending()
        ended = yield
        self._interruptions.raise_pending()
        return ended

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Raise a signal that had no effect, before each item."""
        self._interruptions.raise_pending()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> Generator[None, None, None]:
        """Stop: send no more calls, and wait for those in flight until a signal comes again."""
        if isinstance(excinfo.value, KeyboardInterrupt):
            self._role.interrupted(str(excinfo.value) or "Ctrl-C")
        else:
            self._role.cancel(INTERRUPTED)  # `pytest.exit`, ours among them
        self._interruptions.end_on_next(self._role.hurry)
        _discard_output_to_closed_pipes()
        if self._coordinator is not None and self._coordinator.limiter is not None:
            try:
                _print_calls_in_flight(self._config, self._coordinator.limiter)
            except OSError:  # its reader got the signal, too
                _discard_output_to_closed_pipes()
        own: Sequence[object] = ()
        if not self._config.getoption("fulltrace", False):
            # pytest shows the innermost line, but formats every frame first: half a second in each process.
            root = str(self._config.rootpath)
            own = excinfo.traceback.filter(lambda entry: _is_own(entry.path, root))
            excinfo.traceback = (own or excinfo.traceback)[-2:]
        yield
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        place = getattr(getattr(reporter, "_keyboardinterrupt_memo", None), "reprcrash", None)
        if place is not None and not own:
            place.toterminal = lambda _writer: None  # a line of this plugin, or of a library

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        """Let signals cut the wait short from here on, and never interrupt what is written to disk."""
        self._interruptions.end_on_next(self._role.hurry)
        _discard_output_to_closed_pipes()
        yield

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Restore the handlers."""
        self._interruptions.stop_listening()


def _is_own(file: Path | str, root: str) -> bool:
    """Return whether a file is of the project itself, neither of this plugin nor of a library below its folder."""
    inside, folder = str(file).removeprefix(root), str(Path(__file__).parents[2])
    return inside != str(file) and "site-packages" not in inside and not str(file).startswith(folder)


def _print_calls_in_flight(config: pytest.Config, limiter: Limiter) -> None:
    """Print how many calls are in flight, and how long the session waits for them; nothing without any."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not limiter.in_flight or reporter is None:
        return
    reporter.ensure_newline()
    if (
        config.get_terminal_writer().width_of_current_line
    ):  # it does not count pytest's letters with -q as a line
        reporter.write("\n")
    reporter.write_line(
        f"helmbench: {count_text(limiter.in_flight, 'call')} still in flight: up to {INTERRUPT_GRACE_S:g} s more;"
        " Ctrl-C again ends at once",
        flush=True,
    )


def _discard_output_to_closed_pipes() -> None:
    """Discard output from now on where its reader is gone, as when Ctrl-C has ended `| tee` as well.

    Otherwise pytest's next line would raise, and the end of the session with its writes would not run.
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
    """End this process within 2 s after its parent, whatever it does then."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_S)
        time.sleep(_ORDERLY_END_S)
        os._exit(1)

    threading.Thread(target=watch, name="helmbench-parent", daemon=True).start()
