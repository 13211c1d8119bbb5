"""One item for all cases of a scenario file on a model, where an item per case would be the wall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

from pytest_helmbench.core.case_texts import error_text, failure_text
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.core.problem import CaseError
from pytest_helmbench.engine.job import CaseJob, escaped_id, escaped_path
from pytest_helmbench.pytest_side.plain_item import PlainItem

if TYPE_CHECKING:
    from pytest_helmbench.pytest_side.session_plugin import SessionPlugin

__all__ = ["ScenarioItem", "scenario_items", "scenario_key"]

_MOST_LINES = 50
_NAMED = 3
_SUMMED = ("cost_usd", "prompt_tokens", "completion_tokens")
_WORDS = {Verdict.ERROR: "are errors", Verdict.FAILED: "failed", Verdict.SKIPPED: "skipped"}


def scenario_key(node_id: str) -> tuple[str, str]:
    """Return what the id of a case and that of its scenario's item have in common: file, and model with repetition."""
    file_id, _, name = node_id.rpartition("::")
    return file_id, name[name.rfind("[") :]


def scenario_items(
    parent: pytest.File, jobs: Sequence[CaseJob], plugin: SessionPlugin
) -> Iterator[ScenarioItem]:
    """Yield one item per model and repetition, in the order of the jobs.

    Args:
        parent: The file of the cases.
        jobs: Of all its cases.
        plugin: Obtains outcomes.
    """
    order = {key: number for number, key in enumerate(dict.fromkeys(map(_turn, jobs)))}
    for _, found in groupby(sorted(jobs, key=lambda job: order[_turn(job)]), _turn):
        own = list(found)
        name = f"{_label(parent, own[0])}{scenario_key(own[0].node_id)[1]}"
        item: ScenarioItem = ScenarioItem.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.begin(own, plugin)
        yield item


def _turn(job: CaseJob) -> tuple[str, int]:
    return job.model_id, job.repetition


def _label(parent: pytest.File, job: CaseJob) -> str:
    """Return the code of the scenario; the name of its file where cases have no such code."""
    code = [part for part in job.parts[:3] if part is not None]
    return escaped_id("-".join(code) if len(code) == 3 else parent.path.stem)


class ScenarioItem(PlainItem):
    """The cases of a file on one model in one repetition. Setup obtains their outcomes, the call asserts them."""

    jobs: Sequence[CaseJob]

    def begin(self, jobs: Sequence[CaseJob], plugin: SessionPlugin) -> None:
        """Take the cases; see `scenario_items`."""
        self.jobs = jobs
        self._plugin = plugin
        self._left: Sequence[CaseJob] | None = None
        self._counts: Counter[Verdict] = Counter()
        self._lines: dict[Verdict, list[str]] = {Verdict.ERROR: [], Verdict.FAILED: [], Verdict.SKIPPED: []}
        self._codes: dict[Verdict, list[str]] = {verdict: [] for verdict in self._lines}
        self._wrong = 0
        self._weight = 0
        self._sums: dict[str, float | None] = dict.fromkeys(_SUMMED, 0)
        self.own_s = 0.0

    def narrow(self, is_wanted: Callable[[CaseJob], bool]) -> bool:
        """Keep the cases that are wanted, and return whether there are any."""
        self.jobs = [job for job in self.jobs if is_wanted(job)]
        return bool(self.jobs)

    def iter_markers_with_node(self, name: str | None = None) -> Iterator[tuple[Any, pytest.Mark]]:
        """Yield the marks; ours says what all its cases have in common."""
        if name is None or name == "helmbench":
            first, last = self.jobs[0].facts(), self.jobs[-1].facts()
            common = {key: value for key, value in first.items() if last.get(key) == value}
            yield self, pytest.mark.helmbench(**common).mark
        yield from super().iter_markers_with_node(name)

    def _initrequest(self) -> None:
        """Begin anew without fixtures: pytest-retry asks every item that it repeats for this."""

    def listextrakeywords(self) -> set[str]:
        """Let `-k` find a scenario by its family, and by its model as written."""
        return {self.jobs[0].family, self.jobs[0].model_id, *super().listextrakeywords()}

    @property
    def was_begun(self) -> bool:
        """Whether any outcome has been waited for: not where a mark or another plugin skipped the item."""
        return self._left is not None

    def setup(self) -> None:
        """Wait for all outcomes; a fault is an error. What was judged stands when the item is run once more."""
        jobs = self.jobs if self._left is None else self._left
        self._left = again = []
        for verdict in (Verdict.ERROR, Verdict.SKIPPED):
            self._counts[verdict] = 0
            self._lines[verdict].clear()
            self._codes[verdict].clear()
        ends_at_first = self.config.getoption("maxfail", 0) == 1
        for job in jobs:
            outcome = self._plugin.obtain_of(self, job)
            self._take(job, outcome)
            if outcome.verdict is Verdict.ERROR:
                again.append(job)
            if ends_at_first and (again or self._wrong):
                break
        if self._plugin.wants_properties:
            self.user_properties[:] = self._properties()
        if self._counts[Verdict.ERROR]:
            raise CaseError(self._text(Verdict.ERROR, Verdict.FAILED))
        if self._counts[Verdict.SKIPPED] == len(self.jobs):
            pytest.skip(self._text(Verdict.SKIPPED))

    def runtest(self) -> None:
        """Assert all verdicts; wrong neutral cases count where pytest is told to ignore `xfail`."""
        if self._wrong:
            pytest.fail(self._text(Verdict.FAILED), pytrace=False)

    def reportinfo(self) -> tuple[str, int | None, str]:
        """Return the file and the item's name."""
        return escaped_path(str(self.path)), 0, self.name

    @property
    def verdict(self) -> Verdict:
        """An error where any case is one, else failed where any was judged wrong."""
        if self._counts[Verdict.ERROR]:
            return Verdict.ERROR
        if self._wrong:
            return Verdict.FAILED
        return Verdict.SKIPPED if self._counts[Verdict.SKIPPED] == len(self.jobs) else Verdict.PASSED

    def carried(self) -> dict[str, str | int]:
        """Return what its reports carry; see `CaseJob.carried`."""
        code = scenario_key(self.nodeid)[1]
        carried = self.jobs[0].carried(str(self.verdict))
        neutral = all(job.neutral for job in self.jobs)
        return {
            **carried,
            "code": self.name.removesuffix(code),
            "weight": self._weight,
            "neutral": neutral,
        }

    def _take(self, job: CaseJob, outcome: Outcome) -> None:
        verdict = outcome.verdict
        self._counts[verdict] += 1
        if outcome.judged:
            for name, before in self._sums.items():
                value = getattr(outcome.usage, name)
                self._sums[name] = None if value is None or before is None else before + value
        self.own_s += (outcome.latency_ms or 0.0) / 1000
        if verdict is Verdict.FAILED and job.neutral and not self.config.getoption("runxfail", False):
            return
        if verdict is Verdict.FAILED:
            self._wrong += 1
            self._weight = max(self._weight, int(job.carried(str(verdict))["weight"]))
        lines = self._lines.get(verdict)
        if lines is None or len(lines) >= _MOST_LINES:
            return
        if verdict is Verdict.FAILED:
            text = failure_text(job, outcome, with_text=False)
        else:
            text = (
                error_text(outcome)
                if verdict is Verdict.ERROR
                else outcome.message or outcome.reason or "skipped"
            )
        headline = text.partition("\n")[0]
        lines.append(f"  {job.name}: {headline}")
        self._codes[verdict].append(job.code)

    def _properties(self) -> list[tuple[str, object]]:
        counts = {"cases": len(self.jobs), **{str(verdict): self._counts[verdict] for verdict in Verdict}}
        known = [(name, value) for name, value in self._sums.items() if value is not None]
        return [("model", self.jobs[0].model_id), *counts.items(), *known]

    def _text(self, *verdicts: Verdict) -> str:
        """Return how many cases have these verdicts, and which they are."""
        counts = {**self._counts, Verdict.FAILED: self._wrong}
        said = [f"{counts[verdict]} {_WORDS[verdict]}" for verdict in verdicts if counts.get(verdict)]
        codes = [code for verdict in verdicts for code in self._codes[verdict]]
        more = sum(counts.get(verdict, 0) for verdict in verdicts) > _NAMED
        named = ", ".join([*codes[:_NAMED], *(["…"] if more else [])])
        lines = [f"of {len(self.jobs)} cases {', '.join(said)}: {named}"]
        for verdict in verdicts:
            lines += self._lines[verdict]
            left_out = counts.get(verdict, 0) - len(self._lines[verdict])
            if left_out > 0:
                option = "--errors" if verdict is Verdict.ERROR else "--failed"
                lines.append(f"  … and {left_out} more (`helmbench show last {option}` lists all)")
        return "\n".join(lines)
