"""Concurrency that adapts, rates per minute, the budget."""

from __future__ import annotations

import pytest

from pytest_helmbench.gateway.limits import AdaptiveLimit, Budget, Rate


def test_a_jam_is_cut_once_however_many_calls_tell_of_it() -> None:
    limit = AdaptiveLimit(10)
    assert [limit.rate_limited(now=100.0 + number / 10) for number in range(10)] == [True] + [False] * 9
    assert limit.calls == 7
    assert not limit.rate_limited(now=106.0)  # nothing has succeeded since: fewer would not help
    limit.succeeded()
    assert limit.rate_limited(now=107.0)
    assert limit.calls == 5


def test_three_timeouts_in_a_row_are_a_jam_and_a_success_between_them_is_none() -> None:
    limit = AdaptiveLimit(10)
    assert [limit.timed_out(now=0.0), limit.timed_out(now=0.0)] == [False, False]
    limit.succeeded()
    assert [limit.timed_out(now=0.0) for _ in range(3)] == [False, False, True]
    assert limit.calls == 7


@pytest.mark.parametrize("per_minute", [0.5, 1, 7, 60, 90, 600, 6000])
def test_no_minute_gets_more_than_its_rate_and_little_is_wasted(per_minute: float) -> None:
    rate = Rate(per_minute)
    now = 1000.0
    sent: list[float] = []
    while now < 1000.0 + 600:
        wait_s = rate.wait_s(now)
        if wait_s > 1e-9:
            now += wait_s
            continue
        rate.take(now, 1)
        sent.append(now)
    first = 0
    for index, at in enumerate(sent):
        while sent[first] <= at - 60 + 1e-6:
            first += 1
        assert index - first + 1 <= max(1, per_minute)
    assert len(sent) >= per_minute * 10 * 0.97


def test_what_costs_nothing_can_be_paid_even_when_replies_have_cost_too_much() -> None:
    budget = Budget(1.0, spent_usd=1.2)
    found = (budget.is_spent, budget.can_ever_pay(0.0), budget.can_pay_now(0.0), budget.can_ever_pay(0.001))
    assert found == (True, True, True, False)


def test_with_no_call_out_nothing_is_reserved_however_the_sums_are_rounded() -> None:
    budget = Budget(1.0)
    for cost_usd in (0.1, 0.2, 0.3):
        budget.reserve(cost_usd)
    assert budget.reserved_usd == pytest.approx(0.6)
    budget.spend(0.25)
    for cost_usd in (0.1, 0.2, 0.3):
        budget.release(cost_usd)
    assert (budget.spent_usd, budget.reserved_usd) == (0.25, 0.0)
