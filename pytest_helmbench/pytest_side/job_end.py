"""The end of a session in a CI job: the job's summary, and annotations in GitHub Actions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt, quoted_page, scrub
from pytest_helmbench.pytest_side.say.failures import WorstCases, short_name
from pytest_helmbench.pytest_side.say.printing import in_github_actions
from pytest_helmbench.pytest_side.say.report_files import session_reports
from pytest_helmbench.pytest_side.session_end import SessionEnd
from pytest_helmbench.reports.comparison_lines import flipped_codes
from pytest_helmbench.reports.headline import Headline
from pytest_helmbench.reports.markdown import job_summary, markdown_report
from pytest_helmbench.results.standings import ReportedRuns
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.store.fault import StoreError

_SAME_WORK = "pytest_github_actions_annotate_failures"
MOST_ANNOTATIONS = 10
"""GitHub shows no more errors of one step."""
_LONGEST = 300
_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


@dataclass(frozen=True, slots=True)
class Annotation:
    """An error that is shown beside a job, and beside a file where it has one.

    Args:
        path: Relative to the repository's folder; empty for none.
    """

    title: str
    message: str
    path: str = ""
    line: int = 1

    def command(self) -> str:
        """Return the command; GitHub reads it only at the start of a line.

        Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
        """
        place = f"file={self.path.translate(_IN_PROPERTIES)},line={self.line}," if self.path else ""
        title = excerpt(self.title, _LONGEST).translate(_IN_PROPERTIES)
        return f"::error {place}title={title}::{excerpt(self.message, _LONGEST).translate(_ESCAPES)}"


def report_refusal(config: pytest.Config, message: str) -> None:
    """Write why a session ends with exit code 4 to the job's summary, an annotation and the Markdown report."""
    said, _, hint = scrub(message).partition("\n  hint: ")
    headline = Headline(False, "", " ".join(said.split()), hint=" ".join(hint.split()))
    wanted = str(config.getoption("--helmbench-summary", None) or "auto")
    markdown = config.getoption("--helmbench-markdown", None)
    start, nothing = config.invocation_params.dir, ReportedRuns.of(())
    with suppress(OSError):  # pytest prints the message
        _write_summary(wanted, start, lambda: job_summary(headline, nothing))
        if markdown:
            (start / str(markdown)).write_text(markdown_report(nothing, headline), encoding="utf-8")
    if in_github_actions():
        found = Annotation("the session was refused", " Next: ".join(filter(None, (headline.text, hint))))
        sys.stdout.write(f"{quoted_page(found.command())}\n")


class JobEnd:
    """Writes the summary of a job and the lines that become annotations."""

    def __init__(self, config: pytest.Config, coordinator: Coordinator, end: SessionEnd) -> None:
        self._config = config
        self._coordinator = coordinator
        self._end = end
        self._is_green = False
        self._worst: WorstCases[Annotation] = WorstCases(MOST_ANNOTATIONS)
        self._broken: list[Annotation] = []

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep broken files and the worst failed cases, as many as the job shows."""
        carried: dict[str, Any] | None = getattr(report, "helmbench", None)
        if carried is None or not report.failed or not in_github_actions():
            return
        path, line, _ = report.location
        headline = str(report.longrepr).partition("\n")[0]
        found = Annotation(short_name(report.nodeid), headline, self._in_repository(path), (line or 0) + 1)
        if carried["verdict"] == "broken":
            self._broken += [found] if len(self._broken) < MOST_ANNOTATIONS else []
        elif carried["verdict"] == "failed":
            self._worst.add(carried, found)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Append the summary to that of the job, or write it to a file of its own."""
        coordinator, headline = self._coordinator, self._end.headline
        self._is_green = session.exitstatus == pytest.ExitCode.OK
        if isinstance(error := sys.exc_info()[1], pytest.UsageError):
            report_refusal(self._config, str(error))
            return
        if not coordinator.runs.tallies and headline is None:
            return
        wanted, start = coordinator.settings.summary, self._config.invocation_params.dir
        try:
            _write_summary(wanted, start, lambda: job_summary(headline, session_reports(coordinator)))
        except (OSError, StoreError) as error:
            coordinator.note(f"no job summary: {error}")

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the annotations, each on a line of its own."""
        lines = [found.command() for found in self._annotations()][:MOST_ANNOTATIONS]
        if lines:
            terminalreporter.ensure_newline()
        for line in lines:
            terminalreporter.write_line(quoted_page(line))

    def _annotations(self) -> Iterator[Annotation]:
        """Yield the headline, cases that fail newly, broken files, failed cases; nothing of a shard or a green job."""
        coordinator, headline, gated = self._coordinator, self._end.headline, self._end.gated
        if not in_github_actions() or self._is_green or coordinator.settings.share is not None:
            return
        if headline is not None and headline.holds is False:
            hint = f" Next: {headline.hint}" if headline.hint else ""
            yield Annotation(f"gate {headline.subject}".rstrip(), headline.text + hint)
        if headline is not None and headline.newly_failing:
            cases = flipped_codes(headline.newly_failing, len(headline.newly_failing))
            yield Annotation(f"newly failing: {len(headline.newly_failing)}", cases)
        yield from self._broken
        is_data = coordinator.gates.asked and gated is not None and gated.holds
        if not is_data and not self._config.pluginmanager.has_plugin(_SAME_WORK):
            yield from self._worst.worst(coordinator.runs.losses)

    def _in_repository(self, path: str) -> str:
        """Return a path of pytest's, which is relative to its rootdir, from the folder of the repository."""
        repository = os.environ.get("GITHUB_WORKSPACE", "")
        if not repository:
            return path
        return Path(os.path.relpath(self._config.rootpath / path, repository)).as_posix()


def _write_summary(wanted: str, start: Path, text: Callable[[], str]) -> None:
    """Append a text to the summary of the job, or write it to a file of its own."""
    named, mode = None if wanted == "never" else wanted, "w"
    if wanted == "auto":
        named, mode = (os.environ.get("GITHUB_STEP_SUMMARY") or None) if in_github_actions() else None, "a"
    if named is not None:
        written = text()  # before the file is opened: it may fail
        with (start / named).open(mode, encoding="utf-8") as file:
            file.write(written)
