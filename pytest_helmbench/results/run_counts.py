"""Counts of a run: verdicts, faults, calls, tokens, cost; by the same rules while it runs and from the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import (
    BOX_EVENT,
    FORM_REASONS,
    NO_ANSWER,
    NO_MODEL_CALL,
    AttemptRecord,
    Beside,
    Outcome,
    Parse,
    ResultRecord,
    Verdict,
)
from pytest_helmbench.core.reply_text import Finish, finish_of
from pytest_helmbench.store.read.costs import CostRow, answering_models, cut_prompts
from pytest_helmbench.store.read.results import RecordedOutcomes

_JUDGE = "judge"
_CHARACTERS_PER_CUT_TOKEN = 16
_SKIPS_WITH_LINES = ("budget", "dry run", "model_stopped", "judge_model_stopped")
"""Reasons of skips that have lines of their own in the summary."""


@dataclass(slots=True)
class RunCounts:
    """Counts of one run, or of several runs of one model.

    Args:
        skips: Skipped cases by what was said about them.
        parses: How the JSON of replies was read.
        unstated: Judged cases whose reply states no answer, and which no model has read.
        form_faults: Judged cases that fell for the form of their reply.
        beside: Judged cases by the mark of their verdict; those without a mark are left out.
        boxes: Living boxes by whose they were, engine, processors, MB of memory, and whether that has killed in them.
        neutral_wrong: Failed cases that scores ignore.
        no_cases: Tests that asked no model; they are counted nowhere else.
        replays: Answers taken from the record.
        prompt_tokens: As far as known.
        completion_tokens: As far as known.
        known_cost_usd: What is known of the cost, judges included.
        unknown_costs: Calls of unknown cost: answered, or not answered and perhaps billed.
        from_record: Verdicts that a session which goes on has reported again, among `verdicts`.
        estimated: Calls whose tokens were counted here, since the provider named none.
        upper_bounds: Calls whose tokens the provider counts in two ways; the dearer one counts.
        cut: Prompts that a server has cut, their characters and its tokens, by judge (None: the model under test).
        unknown_finishes: Replies by a provider's word for their end that no table has: they were judged as whole ones.
        inner_thoughts: Thoughts that were taken out of the middle of replies.
        answered_by: Replies by the judge that was asked (None for the model under test) and who has answered.
        points: Severity at stake in the cases judged in this session; `points_lost` is what was lost of it.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    parses: Counter[Parse] = field(default_factory=Counter)
    from_record: Counter[Verdict] = field(default_factory=Counter)
    unstated: int = 0
    form_faults: int = 0
    beside: Counter[Beside] = field(default_factory=Counter)
    boxes: Counter[tuple[str, str, float, int, bool]] = field(default_factory=Counter)
    neutral_wrong: int = 0
    no_cases: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    replays: int = 0
    unknown_finishes: Counter[str] = field(default_factory=Counter)
    inner_thoughts: int = 0
    answered_by: Counter[tuple[str | None, str]] = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    known_cost_usd: float = 0.0
    unknown_costs: int = 0
    estimated: int = 0
    upper_bounds: int = 0
    cut: Counter[tuple[str | None, str]] = field(default_factory=Counter)
    points: int = 0
    points_lost: float = 0.0

    @classmethod
    def sum(cls, parts: Iterable[RunCounts]) -> RunCounts:
        """Return the counts of several runs together."""
        total = cls()
        for part in parts:
            for name in cls.__slots__:
                known, more = getattr(total, name), getattr(part, name)
                if isinstance(known, Counter):
                    known.update(more)
                else:
                    setattr(total, name, known + more)
        return total

    @property
    def judged(self) -> int:
        """Cases that a rule has spoken on."""
        return self.verdicts[Verdict.PASSED] + self.verdicts[Verdict.FAILED]

    @property
    def judged_now(self) -> int:
        """Cases that were judged in this session."""
        return self.judged - self.from_record.total()

    @property
    def results(self) -> int:
        """Outcomes of any kind."""
        return self.verdicts.total()

    @property
    def judge_calls(self) -> int:
        """Requests sent to judges."""
        return self.calls[_JUDGE]

    @property
    def case_calls(self) -> int:
        """Requests sent, judges' apart."""
        return self.calls.total() - self.calls[_JUDGE]

    def add_attempt(self, record: AttemptRecord) -> None:
        """Count a request; an answer from the record is counted apart and cost nothing."""
        usage, characters = record.usage, record.prompt_characters or 0
        tokens = usage.prompt_tokens or 0
        if 0 < tokens * _CHARACTERS_PER_CUT_TOKEN < characters:
            for name, more in (("prompts", 1), ("characters", characters), ("tokens", tokens)):
                self.cut[record.judge, name] += more
        if record.reply_key is not None:
            self._add_replies(record.finish_reason, 1, record.inner_thoughts)
        if record.from_cache:
            self.replays += 1
            return
        self.calls[record.purpose] += 1
        self.prompt_tokens += usage.prompt_tokens or 0
        self.completion_tokens += usage.completion_tokens or 0
        self.known_cost_usd += usage.cost_usd or 0.0
        self.unknown_costs += usage.cost_usd is None and (record.unanswered or record.reply_key is not None)
        self.estimated += usage.estimated
        self.upper_bounds += usage.upper_bound
        if record.provider_model is not None:
            self.answered_by[record.judge, record.provider_model] += 1

    def add_costs(self, row: CostRow) -> None:
        """Count requests that the record has summed up."""
        self.replays += row.cached_answers
        self.calls[row.purpose] += row.calls
        self.prompt_tokens += row.prompt_tokens or 0
        self.completion_tokens += row.completion_tokens or 0
        self.known_cost_usd += row.known_cost_usd
        self.unknown_costs += row.unknown_costs
        self.estimated += row.estimated
        self.upper_bounds += row.upper_bounds

    def add_result(self, record: ResultRecord) -> None:
        """Count an outcome."""
        outcome = record.outcome
        if _is_no_case(outcome):
            self.no_cases += 1
            return
        self.from_record[outcome.verdict] += record.from_record
        self.parses.update(part.parse for part in outcome.evaluations if part.parse is not None)
        self.beside.update({part.beside for part in outcome.evaluations if part.beside is not None})
        for box in (event.payload for event in outcome.events if event.type == BOX_EVENT):
            given = (box["part"], box.get("engine", ""), float(box["cpus"]), int(box["memory_mb"]))
            self.boxes[*given, bool(box.get("memory_kills"))] += 1
        self._add(outcome.verdict, outcome.reason, 1, neutral=record.neutral)
        if outcome.judged and not record.neutral:
            stake = abs(record.severity) or 1
            self.points += stake
            self.points_lost += stake * (1 - (outcome.score or 0.0)) * (10 - record.difficulty) / 10
        if outcome.verdict is Verdict.SKIPPED and outcome.reason not in _SKIPS_WITH_LINES:
            self.skips[outcome.message] += 1

    def add_recorded(self, found: RecordedOutcomes) -> None:
        """Count the outcomes of a run on record."""
        for outcome, reason, neutral, rows in found.results:
            self._add(Verdict(outcome), reason, rows, neutral=bool(neutral))
        self.parses.update({Parse(parse): rows for parse, rows in found.parses.items()})
        self.beside.update({Beside(mark): rows for mark, rows in found.beside.items()})
        self.boxes.update(found.boxes)
        for finish in found.finishes:
            self._add_replies(*finish)

    def take_back(self, outcome: Outcome) -> None:
        """Count an error or a skip no more: the case has run again."""
        if _is_no_case(outcome):
            self.no_cases -= 1
            return
        self.verdicts[outcome.verdict] -= 1
        self.reasons[outcome.reason or ""] -= 1
        if outcome.message in self.skips:
            self.skips[outcome.message] -= 1

    def _add_replies(self, word: str | None, replies: int, inner_thoughts: int) -> None:
        self.inner_thoughts += int(inner_thoughts)
        if word is not None and finish_of(word) is Finish.UNKNOWN:
            self.unknown_finishes[word] += replies

    def _add(self, verdict: Verdict, reason: str | None, rows: int, *, neutral: bool) -> None:
        self.verdicts[verdict] += rows
        if verdict in (Verdict.PASSED, Verdict.FAILED):
            self.form_faults += rows * (reason in FORM_REASONS)
            self.unstated += rows * (reason == NO_ANSWER)
        elif reason is not None:
            self.reasons[reason] += rows
        self.neutral_wrong += rows * (neutral and verdict is Verdict.FAILED)


def _is_no_case(outcome: Outcome) -> bool:
    return outcome.verdict is Verdict.SKIPPED and outcome.reason == NO_MODEL_CALL


def recorded_counts(
    path: Path, run_id: int, found: RecordedOutcomes, spent: Iterable[CostRow] = ()
) -> RunCounts:
    """Return the counts of a run on record.

    Args:
        spent: Its costs; without them its calls are not counted.
    """
    answered_by, cut = Counter(answering_models(path, run_id)), Counter(cut_prompts(path, run_id))
    counts = RunCounts(answered_by=answered_by, cut=cut)
    counts.add_recorded(found)
    for cost in spent:
        counts.add_costs(cost)
    return counts
