"""Rules of several parts: a failure has a line for each of them."""

from __future__ import annotations

from dataclasses import replace

from replies import reply_of

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.combined_types import CombinedRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.text_types import LengthRule, TextRule
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.case_texts import failure_text
from pytest_helmbench.judging.judge import judged_outcome
from pytest_helmbench.pytest_side.say.case_text import brief_parts, brief_text


def test_each_part_of_a_rule_has_a_line_of_its_own() -> None:
    short = LengthRule("length", None, None, 3, "words")
    parts = tuple(TextRule("contains", None, (word,)) for word in ("::sorry", "label"))
    rule = CombinedRule("all", (parts[0], short, CombinedRule("any", (parts[1], replace(short, most=9)))))
    case = Case("P1", (Message("user", "Hi"),), None, rule)
    reply = reply_of("No,\n::error:: it is there.")
    outcome = judged_outcome(reply, (rule.evaluate(case, reply, strict_json=False),))
    hidden = [
        "observed: ✗ contains: expected contains ::sorry",
        "          ✗ length: expected at most 3 words, observed 5 words",
        "          ✓ any: expected contains label or at most 9 words",
        "            ✗ contains: expected contains label",
        "            ✓ length: expected at most 9 words, observed 5 words",
    ]
    shown = list(hidden)
    shown[0] += ", observed No, ::error:: it is there."
    shown[3] += ", observed No, ::error:: it is there."
    for with_text, lines in ((False, hidden), (True, shown)):
        expected = [f"  {line}" for line in lines]
        text = failure_text(_Named(), outcome, with_text=with_text).splitlines()
        assert text[4:9] == expected
        assert text[0].startswith("✗ contains: expected contains ::sorry")
        assert brief_text(brief_parts(outcome, "", with_text=with_text)).splitlines()[1:] == expected


class _Named:
    name = "P1[test/good]"
