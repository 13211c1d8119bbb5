"""Texts of failed cases in a log: a CI takes none of their lines for a command."""

from __future__ import annotations

import re
from typing import NamedTuple

from pytest_helmbench.core.case_texts import error_text, failure_text, quoted_texts
from pytest_helmbench.core.outcome import Evaluation, Outcome, Verdict

_COMMAND = re.compile(r"^\s*::|##(?:\[|vso\[|teamcity\[)", re.MULTILINE | re.IGNORECASE)
_EVIL = (
    "::stop-commands::token\n::error::forged\n \t::add-mask::a\r\n##[error]legacy ##Vso[task.complete]\n"
    "##teamcity[testFailed]\u2028::set-output name=a::b\v::group::x\x85::debug::y\x1c::z"
)


class _Job(NamedTuple):
    name: str = "P1[test/good]"


def test_no_line_of_a_reply_or_an_error_is_a_command_of_a_ci_log() -> None:
    evaluation = Evaluation(
        criterion="", rule="list_includes", rule_hash="0" * 16, passed=False, credit=0.0, reason=None, parse=None,
        expected=_EVIL,
        observed=_EVIL, justification=_EVIL,
    )  # fmt: skip
    outcome = Outcome(Verdict.FAILED, evaluations=(evaluation,), excerpt=_EVIL)
    said = [failure_text(_Job(), outcome, with_text=True), *(text for _, text in quoted_texts(outcome))]
    said.append(error_text(Outcome(Verdict.ERROR, "rejected", _EVIL)))
    assert [text for text in said if _COMMAND.search(text)] == []
    assert all("forged" in text for text in said)
