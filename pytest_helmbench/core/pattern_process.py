"""The process in which regular expressions are searched for that may take time without end."""

from __future__ import annotations

import atexit
import json
import threading

from pytest_helmbench.core.piped_process import PipedProcess
from pytest_helmbench.core.problem import HelmbenchError

__all__ = ["SEARCHER", "RuleTimeoutError", "Searcher"]

_LIMIT_S = 1
_LATEST_S = 10.0  # where the system does not count CPU time, or the process does not come to run

# The limit is of CPU time: it holds on a busy machine, and when the process that asks has been killed.
_PROGRAM = f"""
import json, re, signal, sys
def limit(seconds):
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
for line in sys.stdin.buffer:
    pattern, text = json.loads(line)
    limit({_LIMIT_S})
    try:
        found = re.search(pattern, text) is not None
    except (re.error, RecursionError):
        found = False
    limit(0)
    sys.stdout.write("1\\n" if found else "0\\n")
    sys.stdout.flush()
"""


class RuleTimeoutError(HelmbenchError):
    """A rule of a benchmark took too long: an error of the case, and no verdict."""

    code = "rule_timeout"


class Searcher:
    """Searches in a process of its own, which is started when it is needed and killed when it takes too long.

    Of use from any thread, by one at a time.
    """

    def __init__(self) -> None:
        self._process: PipedProcess | None = None
        self._lock = threading.Lock()

    def found(self, pattern: str, text: str) -> bool:
        """Return whether an expression that Python can read is found in a text.

        Raises:
            RuleTimeoutError: It took more than a second.
        """
        with self._lock:
            answer = self._answer(json.dumps([pattern, text]).encode() + b"\n")
        if answer not in (b"1\n", b"0\n"):
            raise RuleTimeoutError(
                f"searching a text of {len(text):,} characters for the pattern {pattern[:200]!r} took more than"
                f" {_LIMIT_S} s\n  hint: without look-around and back-references it is searched for in linear time"
            )
        return answer == b"1\n"

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _answer(self, question: bytes) -> bytes:
        process = self._process = self._process or PipedProcess(["-I", "-S", "-c", _PROGRAM], {})
        timer = threading.Timer(_LATEST_S, process.kill)
        timer.daemon = True
        timer.start()
        answer = b""
        try:
            process.questions.write(question)
            process.questions.flush()
            answer = process.answers.readline()
        except OSError:
            pass  # it has ended
        finally:
            timer.cancel()
            if not answer:
                self.close()
        return answer


SEARCHER = Searcher()
atexit.register(SEARCHER.close)
