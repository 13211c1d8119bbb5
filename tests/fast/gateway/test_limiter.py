"""Who may send, and who must wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from pytest_helmbench.core.model import Price
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import (
    AttemptResult,
    BudgetSpentError,
    Ending,
    ModelLimits,
    ModelStoppedError,
    Permit,
    PermitRequest,
    RefusedError,
    SessionLimits,
)

_CENT = Price(input=0.0, output=10.0)  # a thousand tokens of completion cost a cent


def _gate(
    *limits_by_model: ModelLimits, clock: Callable[[], float] = time.monotonic, **limits: float
) -> Limiter:
    gate = Limiter(SessionLimits(**{"concurrency": 4, **limits}), clock)  # type: ignore[arg-type]
    gate.add_models(limits_by_model or (ModelLimits("m", 4),))
    return gate


def _ask(
    model: str = "m", *, urgent: bool = False, max_tokens: int = 1000, prompt_tokens: int = 0
) -> PermitRequest:
    return PermitRequest(model, prompt_tokens, max_tokens, urgent)


def _reply(cost_usd: float | None = None, completion_tokens: int = 10) -> AttemptResult:
    return AttemptResult(Ending.REPLY, Usage(completion_tokens=completion_tokens, cost_usd=cost_usd))


class _Crowd:
    """Asks in tasks, and who has got leave so far."""

    def __init__(self, gate: Limiter) -> None:
        self._gate = gate
        self.tasks: list[asyncio.Task[Permit]] = []

    async def ask(self, *asks: PermitRequest) -> None:
        self.tasks += [asyncio.create_task(self._gate.acquire(ask)) for ask in asks]
        await self.turn()

    async def turn(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    def admitted(self) -> list[int]:
        return [
            index
            for index, task in enumerate(self.tasks)
            if task.done() and not task.cancelled() and task.exception() is None
        ]

    async def settle(self, index: int, used: AttemptResult) -> None:
        self._gate.settle(self.tasks[index].result(), used)
        await self.turn()

    async def leave(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_no_more_go_than_the_session_and_the_model_allow() -> None:
    gate = _gate(ModelLimits("m", 3), ModelLimits("narrow", 1))
    crowd = _Crowd(gate)
    await crowd.ask(*[_ask("narrow")] * 3, *[_ask("m")] * 5)
    assert crowd.admitted() == [0, 3, 4, 5]
    assert gate.in_flight == 4
    await crowd.settle(0, _reply())
    assert crowd.admitted() == [0, 1, 3, 4, 5]
    await crowd.leave()


async def test_who_takes_several_places_waits_for_them_and_is_not_overtaken() -> None:
    gate = _gate(ModelLimits("boxes", 4, items=True))
    crowd = _Crowd(gate)
    await crowd.ask(*(PermitRequest("boxes", 0, None, urgent=False, units=units) for units in (3, 2, 1, 9)))
    assert crowd.admitted() == [0]
    for ended, admitted in (
        (0, [0, 1, 2]),
        (1, [0, 1, 2]),
        (2, [0, 1, 2, 3]),
    ):  # the last wants more than there are
        await crowd.settle(ended, AttemptResult(Ending.OTHER))
        assert crowd.admitted() == admitted
    assert gate.in_flight == 0
    await crowd.leave()


async def test_what_continues_a_case_goes_first_then_the_order_of_asking() -> None:
    gate = _gate(ModelLimits("m", 1), ModelLimits("judge", 1), concurrency=1)
    crowd = _Crowd(gate)
    await crowd.ask(_ask("m"), _ask("m"), _ask("m"), _ask("judge", urgent=True), _ask("m", urgent=True))
    order = [0]
    for _ in range(4):
        await crowd.settle(order[-1], _reply())
        order += [index for index in crowd.admitted() if index not in order]
    assert order == [0, 3, 4, 1, 2]
    await crowd.leave()


async def test_a_ticket_that_is_granted_in_the_turn_of_a_cancellation_comes_back() -> None:
    gate = _gate(concurrency=1)
    crowd = _Crowd(gate)
    await crowd.ask(_ask(), _ask(), _ask())
    first = crowd.tasks[0].result()
    gate.settle(first, _reply())  # grants the second, whose task has not run yet
    crowd.tasks[1].cancel()
    await crowd.turn()
    assert crowd.admitted() == [0, 2]
    assert gate.in_flight == 1
    await crowd.leave()


async def test_a_ticket_counts_once_however_often_it_comes_back() -> None:
    gate = _gate(ModelLimits("m", 4, price=_CENT), max_cost_usd=1.0)
    permit = await gate.acquire(_ask())
    await gate.acquire(_ask())
    assert gate.budget.reserved_usd == pytest.approx(0.02)
    gate.settle(permit, _reply(0.005))
    gate.settle(permit, _reply(0.005))
    gate.settle(permit, AttemptResult(Ending.OTHER))
    assert gate.in_flight == 1
    assert gate.budget.spent_usd == pytest.approx(0.005)
    assert gate.budget.reserved_usd == pytest.approx(0.01)


async def test_a_dead_model_refuses_who_waits_and_who_comes_and_others_go_on() -> None:
    stopped: list[tuple[str, str]] = []

    gate = Limiter(SessionLimits(4), time.monotonic, lambda model, why: stopped.append((model, why)))
    gate.add_models([ModelLimits("bad", 2), ModelLimits("good", 2)])
    crowd = _Crowd(gate)
    await crowd.ask(*[_ask("bad")] * 5, _ask("good"))
    dead = AttemptResult(Ending.DEAD, sentence="the key is wrong")
    await crowd.settle(0, dead)
    await crowd.settle(1, dead)
    assert [str(task.exception()) for task in crowd.tasks[2:5]] == ["the key is wrong"] * 3
    with pytest.raises(ModelStoppedError, match="the key is wrong"):
        await gate.acquire(_ask("bad"))
    assert crowd.admitted() == [0, 1, 5]
    assert gate.stopped_models == {"bad": "the key is wrong"}
    assert stopped == [("bad", "the key is wrong")]


async def test_money_is_reserved_and_a_call_waits_while_others_may_turn_out_cheaper() -> None:
    gate = _gate(ModelLimits("m", 4, price=_CENT), max_cost_usd=0.025)
    crowd = _Crowd(gate)
    await crowd.ask(*[_ask()] * 4)
    assert crowd.admitted() == [0, 1]
    await crowd.settle(0, _reply(0.001))
    assert crowd.admitted() == [0, 1, 2]  # 0.001 spent, two cents reserved
    await crowd.settle(1, _reply(0.01))
    await crowd.settle(2, _reply(0.01))
    refusal = crowd.tasks[3].exception()
    assert isinstance(refusal, BudgetSpentError)
    assert str(refusal) == "budget spent: 0.0210 of 0.0250 USD, the call may cost 0.0100"
    assert gate.refused_for_budget == 1
    assert gate.budget.spent_usd == pytest.approx(0.021)


async def test_where_no_price_is_known_one_call_goes_until_a_reply_names_its_cost() -> None:
    gate = _gate(max_cost_usd=0.05)
    crowd = _Crowd(gate)
    await crowd.ask(*[_ask()] * 8)
    assert crowd.admitted() == [0]
    await crowd.settle(0, AttemptResult(Ending.OTHER))
    assert crowd.admitted() == [0, 1]
    # A reply of 10 tokens cost a cent: what one of 1,000 may cost is more than there is, so each goes alone.
    await crowd.settle(1, _reply(0.01))
    assert crowd.admitted() == [0, 1, 2]
    for number in (2, 3, 4):
        await crowd.settle(number, _reply(0.01))
        assert crowd.admitted() == list(range(number + 2))
    await crowd.settle(5, _reply(0.01))
    assert crowd.admitted() == [0, 1, 2, 3, 4, 5]
    await crowd.leave()


async def test_a_reservation_never_shrinks_to_what_a_cheap_reply_has_cost_and_grows_with_a_dear_one() -> None:
    gate = _gate(ModelLimits("m", 4, price=_CENT), max_cost_usd=10.0)
    gate.settle(await gate.acquire(_ask()), _reply(0.0001, completion_tokens=1))
    permit = await gate.acquire(_ask())
    assert permit.reserved_usd == pytest.approx(0.01)
    gate.settle(permit, _reply(0.05, completion_tokens=1000))
    assert (await gate.acquire(_ask())).reserved_usd == pytest.approx(0.05)


async def test_without_a_price_the_dearest_token_so_far_is_what_every_token_may_cost() -> None:
    gate = _gate(max_cost_usd=100.0)
    gate.settle(await gate.acquire(_ask(max_tokens=100)), _reply(0.01, completion_tokens=10))
    permit = await gate.acquire(_ask(max_tokens=100))
    assert permit.reserved_usd == pytest.approx(0.001 * 8 * 100)
    gate.settle(permit, _reply(0.0001, completion_tokens=10))
    assert (await gate.acquire(_ask(max_tokens=100))).reserved_usd == pytest.approx(0.001 * 8 * 100)


async def test_what_was_sent_and_not_answered_counts_as_spent() -> None:
    gate = _gate(ModelLimits("m", 4, price=_CENT), max_cost_usd=0.035)
    for _ in range(3):
        gate.settle(await gate.acquire(_ask()), AttemptResult(Ending.TIMEOUT, unanswered=True))
    assert gate.budget.spent_usd == pytest.approx(0.03)
    assert gate.budget.unanswered == 3
    assert gate.budget.unanswered_usd == pytest.approx(0.03)
    with pytest.raises(BudgetSpentError):
        await gate.acquire(_ask())


async def test_a_budget_without_a_price_is_given_up_when_calls_go_unanswered() -> None:
    said: list[str] = []
    gate = Limiter(SessionLimits(4, max_cost_usd=1.0), time.monotonic, on_overdrawn=said.append)
    gate.add_models([ModelLimits("m", 4)])
    for _ in range(3):
        gate.settle(await gate.acquire(_ask()), AttemptResult(Ending.TIMEOUT, unanswered=True))
    with pytest.raises(RefusedError, match="--helmbench-max-cost cannot be held"):
        await gate.acquire(_ask())
    assert said == [
        "--helmbench-max-cost cannot be held: m has no known price, and 3 calls were sent and not answered\n"
        "  hint: give the model a `price:` in a models.yml of your own (--helmbench-models-file), or start anew"
        " without --helmbench-max-cost"
    ]


async def test_a_pause_holds_back_its_model_alone_and_ends_by_itself() -> None:
    gate = _gate(ModelLimits("m", 4), ModelLimits("other", 4))
    crowd = _Crowd(gate)
    await crowd.ask(_ask("m"))
    started = time.monotonic()
    await crowd.settle(0, AttemptResult(Ending.RATE_LIMITED, pause_s=0.5))
    await crowd.ask(_ask("m"), _ask("other"))
    assert crowd.admitted() == [0, 2]
    await crowd.tasks[1]
    assert time.monotonic() - started >= 0.49


async def test_variants_of_a_model_share_what_its_provider_lets_through() -> None:
    now = 0.0
    variants = [ModelLimits(name, 4, 60.0, provider_model="m") for name in ("plain", "careful")]
    gate = _gate(*variants, ModelLimits("other", 4), clock=lambda: now, concurrency=40)
    crowd = _Crowd(gate)
    await crowd.ask(*[_ask("plain"), _ask("careful"), _ask("other")] * 2)
    assert crowd.admitted() == [0, 2, 5]  # one call a second of both together
    await crowd.settle(0, AttemptResult(Ending.RATE_LIMITED, pause_s=10))
    now = 9.0
    await crowd.ask(_ask("other"))
    assert crowd.admitted() == [0, 2, 5, 6]


async def test_requests_of_all_models_share_the_rate_of_the_session() -> None:
    now = 0.0
    gate = _gate(
        ModelLimits("m", 40),
        ModelLimits("other", 40),
        clock=lambda: now,
        concurrency=40,
        requests_per_minute=120,
    )
    crowd = _Crowd(gate)
    await crowd.ask(*[_ask("m"), _ask("other")] * 5)
    assert len(crowd.admitted()) == 2
    now = 1.1
    await crowd.settle(0, _reply())
    assert len(crowd.admitted()) == 4
    await crowd.leave()


async def test_the_largest_output_is_reserved_until_a_reply_was_cut_and_for_good_after_a_longer_one() -> None:
    gate = _gate(ModelLimits("m", 4, price=_CENT, largest_output=5_000), max_cost_usd=10.0)

    async def reserved(then: int, cost_usd: float = 0.001) -> float:
        permit = await gate.acquire(_ask())
        gate.settle(permit, _reply(cost_usd, completion_tokens=then))
        return permit.reserved_usd

    largest, bound = pytest.approx(0.05), pytest.approx(0.01)
    assert [await reserved(10), await reserved(999), await reserved(1_001)] == [largest] * 3
    assert [await reserved(20), await reserved(3_000, 0.03)] == [bound] * 2
    # Neither another reply that was cut nor many short ones make up for it.
    assert [await reserved(1_000), await reserved(10), await reserved(8_000, 0.08)] == [largest] * 3
    assert await reserved(10) == pytest.approx(0.08)


async def test_every_ten_replies_within_the_bound_let_one_call_more_go_with_its_bound_reserved() -> None:
    gate = _gate(ModelLimits("m", 4, price=_CENT, largest_output=5_000), max_cost_usd=0.2)

    async def reserved(*completions: int) -> list[float]:
        permits = [await gate.acquire(_ask()) for _ in completions]
        for permit, completion in zip(permits, completions, strict=True):
            gate.settle(permit, _reply(0.0, completion_tokens=completion))
        return [permit.reserved_usd for permit in permits]

    largest, bound = pytest.approx(0.05), pytest.approx(0.01)
    assert [await reserved(10) for _ in range(10)] == [[largest]] * 10
    assert [await reserved(10, 10) for _ in range(5)] == [[bound, largest]] * 5
    assert await reserved(10, 10, 2_000) == [bound, bound, largest]
    assert await reserved(10) == [largest]


async def test_what_the_largest_output_leaves_no_money_for_goes_alone_unless_the_bound_was_passed() -> None:
    gate = _gate(ModelLimits("m", 4, price=_CENT, largest_output=5_000), max_cost_usd=0.045)
    crowd = _Crowd(gate)
    await crowd.ask(*[_ask()] * 3)
    assert crowd.admitted() == [0]
    assert crowd.tasks[0].result().reserved_usd == pytest.approx(0.01)
    await crowd.settle(0, _reply(0.001))
    assert crowd.admitted() == [0, 1]
    await crowd.settle(1, _reply(0.02, completion_tokens=2_000))
    assert isinstance(crowd.tasks[2].exception(), BudgetSpentError)


async def test_calls_of_batches_that_wait_for_money_all_end() -> None:
    gate = _gate(ModelLimits("m", 4, price=_CENT), max_cost_usd=0.02)
    asks = [asyncio.create_task(gate.reserve(_ask(max_tokens=4000))) for _ in range(6)]
    await asyncio.sleep(0.01)
    [first] = [task for task in asks if task.done()]
    asks[1].cancel()  # in the turn in which it is its turn
    permit = first.result()
    assert permit is not None
    gate.settle(permit, _reply(0.01, completion_tokens=1000))
    refused = await asyncio.wait_for(asyncio.gather(*asks[2:], return_exceptions=True), 5)
    assert [type(error) for error in refused] == [BudgetSpentError] * 4
    assert not gate.budget.reserved_usd


async def test_in_a_batch_the_bound_that_is_sent_counts_until_a_reply_was_longer() -> None:
    gate = _gate(ModelLimits("m", 4, price=_CENT, largest_output=4000), max_cost_usd=0.1)
    held = [await gate.reserve(_ask()) for _ in range(2)]
    assert [round(one.reserved_usd, 3) for one in held if one] == [0.005, 0.005]
    gate.settle(gate.hold(_ask(), 0.0), _reply(completion_tokens=3000))
    longer = await gate.reserve(_ask())
    assert longer is not None
    assert longer.reserved_usd == pytest.approx(0.02)
