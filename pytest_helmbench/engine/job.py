"""Jobs: one case on one model in one repetition, and the run (target) that it belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.core.case import Case, at_risk
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Reply
from pytest_helmbench.engine.work import Route, RunnerSettings, Work
from pytest_helmbench.judging.rubric import JudgeRule

_NO_PARTS = (None,) * 6


RunIds = Mapping[tuple[str, str], int]
"""`evaluation_runs.id` by `Target.key`."""


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """One benchmark × model: what becomes one run.

    Args:
        judges: Marking models, in order, at most three; empty when none is named.
    """

    benchmark: Path
    model: Route
    judges: tuple[Route, ...]

    @property
    def judge_ids(self) -> tuple[str, ...]:
        """The ids of its marking models, in order."""
        return tuple(judge.entry.id for judge in self.judges)

    @property
    def key(self) -> tuple[str, str]:
        """Root folder and model id, the same in every process of a session."""
        return str(self.benchmark), self.model.entry.id


@dataclass(frozen=True, slots=True, eq=False)
class CaseJob(ABC):
    """One case × model × repetition, hashable by identity; the prompt is composed when it runs.

    Args:
        repetition: From 1.
        neutral: Judged, but ignored by scores.
        file_id: Node id of the file it stands in.
    """

    target: Target
    repetition: int
    neutral: bool
    file_id: str

    @property
    @abstractmethod
    def code(self) -> str:
        """Code of the case, unique in its benchmark."""

    @property
    @abstractmethod
    def family(self) -> str:
        """How the case is judged, in a word: what `results.family` says."""

    @property
    def parts(self) -> tuple[str | None, ...]:
        """The components of the code that `--helmbench-select` looks at; only those of trees have any."""
        return _NO_PARTS

    @property
    def cluster(self) -> str | None:
        """Name of a group of dependent rows, such as those of one passage; None for an independent case."""
        return None

    @property
    def part(self) -> str:
        """The row of tables that counts it: its behaviour, or its family where there are none."""
        return self.family

    @property
    def place(self) -> tuple[Path, int] | None:
        """File and 1-based line of what is particular to it; None where that is the file that it stands in."""
        return None

    @property
    def judge_calls(self) -> int:
        """Calls to the judge that the rule needs."""
        return 0

    @property
    def evaluations(self) -> int:
        """Rows that a verdict on it has."""
        return self.judge_calls or 1

    @property
    def may_ask_judge(self) -> bool:
        """Whether a marking model may be asked about its reply."""
        return self.judge_calls > 0

    def marked_by(self, _reply: Reply, /) -> JudgeRule | None:
        """Return what a marking model is asked about a reply to it; None where it is not asked.

        Raises:
            HelmbenchError: Its file has changed since it was collected.
        """
        rule = self.case(None).rule
        return rule if isinstance(rule, JudgeRule) else None

    @property
    def severity(self) -> int:
        """Base severity (−20..20)."""
        return 0

    @property
    def difficulty(self) -> int:
        """Difficulty of the condition (0..10)."""
        return 0

    @abstractmethod
    def prompt_characters(self) -> int:
        """Return about how long the prompt is, without composing it."""

    @abstractmethod
    def case(self, system_prompt: str | None, /) -> Case:
        """Compose the case.

        Raises:
            HelmbenchError: Its file has changed since it was collected.
        """

    def asked(self, turn: int | None = None) -> str:
        """Return the message that tells the case from others of its kind: of a tree, its perturbation.

        Args:
            turn: Of a conversation; None for its last one.
        """
        del turn
        messages = self.case(None).messages
        return messages[-1].content if messages else ""

    def facts(self) -> dict[str, str | int | None]:
        """Return what the `helmbench` marker says."""
        return {
            "model": self.model_id,
            "family": self.family,
            "severity": self.severity,
            "repetition": self.repetition,
        }

    @property
    @abstractmethod
    def work(self) -> Work:
        """How it is run and judged."""

    @property
    def is_one_question(self) -> bool:
        """Whether its prompt is all that its model is asked; else an agent asks what it likes."""
        return True

    @property
    def calls(self) -> int:
        """Calls of the model under test that it makes at least: one per turn of a conversation."""
        return 1

    @property
    def is_open_ended(self) -> bool:
        """Whether its model decides how many calls it makes, by calling tools for example."""
        return not self.is_one_question

    @property
    def runs_anew(self) -> bool:
        """Whether it runs in a session that goes on although its verdict is on record."""
        return False

    @property
    def goes_singly(self) -> bool:
        """Whether none of its calls may go in a batch: foreign code waits for them, or its rule measures them."""
        return not self.is_one_question

    @property
    def skip_reason(self) -> str | None:
        """Why it cannot be run anywhere, in a sentence; None for a case that can."""
        return None

    @property
    def not_rescored(self) -> str | None:
        """Why its reply on record cannot be judged anew, in a sentence; None for a case whose reply can."""
        return None

    @abstractmethod
    def rule_hashes(self, case: Case, settings: RunnerSettings, /) -> tuple[str, ...]:
        """Return the rule hash of every evaluation that the case gets, in order."""

    @property
    def model_id(self) -> str:
        """Name of the model; limits fall under it."""
        return self.target.model.entry.id

    @property
    def system_prompt(self) -> str | None:
        """System prompt of its model; None for none."""
        return self.target.model.entry.system_prompt

    @property
    def name(self) -> str:
        """`P1-B2-S1-C1-PT3[openai/gpt-4o-mini]`; `-r2` behind the model from the second repetition."""
        suffix = f"-r{self.repetition}" if self.repetition > 1 else ""
        return f"{escaped_id(self.code)}[{escaped_id(self.target.model.entry.id)}{suffix}]"

    @property
    def node_id(self) -> str:
        """pytest's node id."""
        return f"{self.file_id}::{self.name}"

    def carried(self, verdict: str, credit: float | None = None) -> dict[str, str | int | float]:
        """Return what reports of its item carry, in types that travel between processes; a credit is in [0, 1]."""
        at_stake = 0 if self.neutral else at_risk(self.severity or 1, self.difficulty)
        return {
            "benchmark": str(self.target.benchmark),
            "code": self.code,
            "model": self.model_id,
            "verdict": verdict,
            "part": self.part,
            "repetition": self.repetition,
            "weight": at_stake * (1 - (credit or 0)),
            "neutral": self.neutral,
        }

    def properties(self, outcome: Outcome) -> list[tuple[str, object]]:
        """Return the JUnit properties of an outcome; what is unknown is left out."""
        usage = outcome.usage
        values = {
            "model": self.target.model.entry.id,
            "severity": self.severity,
            "cost_usd": usage.cost_usd,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "latency_ms": None if outcome.latency_ms is None else round(outcome.latency_ms, 1),
        }
        return [(name, value) for name, value in values.items() if value is not None]


def escaped_id(text: str) -> str:
    r"""Return a text for a node id: printable, no `::`; the rest as `\x..`."""
    return escaped_path(text.replace("::", r"\x3a\x3a"))


def escaped_path(text: str) -> str:
    r"""Return a path for a node id: what is not printable, or no UTF-8 at all, as `\x..`; letters stay."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
