"""Programs of living consumers: who joins, and what they ask for."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.ops import (
    AdvanceClock,
    AskBroker,
    ConfigureGroup,
    Consume,
    EndConsumer,
    Op,
    ResetOffset,
    Resubscribe,
    SendMessage,
    Session,
    StartConsumer,
    TellReset,
    Together,
)
from crashmq.models.program import Program
from crashmq.scenarios.catalogue.living_consumers import LIVING_CONSUMERS
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

SUBSCRIPTIONS = SCENARIOS["subscriptions"]
PROGRAMS = [program_for(SUBSCRIPTIONS, 1, episode) for episode in range(400)]


def plain(ops: tuple[Op, ...]) -> Iterator[Op]:
    for op in ops:
        if isinstance(op, Together):
            yield from op.ops
        else:
            yield op


def asking(program: Program) -> list[StartConsumer | Resubscribe]:
    kinds = StartConsumer, Resubscribe
    return [op for op in plain(program.ops) if isinstance(op, kinds)]


def test_only_a_broker_that_filters_is_asked_by_expressions() -> None:
    told = [(p.setup.filters, op) for p in PROGRAMS for op in asking(p)]

    kinds = {(filters, op.expression_type) for filters, op in told}
    assert kinds == {(True, "SQL92"), (True, "TAG"), (False, "TAG")}


def test_consumers_subscribe_something_else_and_go_back() -> None:
    told = [op for p in PROGRAMS for op in asking(p) if isinstance(op, Resubscribe)]

    asked = {(op.topics, op.expression, op.expression_type) for op in told}
    assert len(asked & {*SUBSCRIPTIONS.space.resubscriptions}) > 15
    goes_back = 0
    for program in PROGRAMS:
        seen: dict[str, list[tuple[str, str]]] = {}
        for op in asking(program):
            seen.setdefault(op.client, []).append((op.topics, op.expression))
        goes_back += any(len(set(its)) < len(its) for its in seen.values())
    assert goes_back > len(PROGRAMS) // 20


def test_who_joins_a_group_mostly_asks_for_what_the_group_does() -> None:
    alike = other = 0
    for program in PROGRAMS:
        asked: dict[str, tuple[str, str]] = {}
        group_of: dict[str, str] = {}
        for op in asking(program):
            if isinstance(op, Resubscribe):
                asked[group_of.get(op.client, "")] = op.topics, op.expression
                continue
            known = asked.get(op.group)
            alike += known == (op.topics, op.expression)
            other += known is not None and known != (op.topics, op.expression)
            asked[op.group] = op.topics, op.expression
            group_of[op.client] = op.group

    assert alike > 50
    assert alike > 5 * other


def test_groups_of_other_scenarios_subscribe_other_topics_too() -> None:
    for scenario in LIVING_CONSUMERS:
        programs = [program_for(scenario, 1, episode) for episode in range(100)]
        told = [op for p in programs for op in asking(p)]
        some = any(isinstance(op, Resubscribe) for op in told)
        assert some is bool(scenario.space.resubscriptions), scenario.name


def test_producers_send_what_is_dead_by_its_tries_or_by_the_locks_of_its_group() -> (
    None
):
    more, aged, topics = set[int](), set[int](), set[str]()
    for name in ("retries", "rebalance"):
        for episode in range(400):
            program = program_for(SCENARIOS[name], 1, episode)
            most: dict[str, int] = {}
            for op, then in zip(program.ops, program.ops[1:], strict=False):
                match op, then:
                    case ConfigureGroup(group, times), _:
                        most[group] = times
                    case SendMessage(topic, _, _, times, bound), _:
                        topics.add(topic)
                        allowed = most.get(topic.removeprefix("%RETRY%"), 16)
                        more.add(times - (bound if bound >= 0 else allowed))
                    case AdvanceClock(ms), SendMessage():
                        aged.add(ms)

    assert {-1, 0, 1} <= more
    assert {30_000, 59_999, 60_000, 60_001} <= aged
    assert {"%RETRY%q", "%RETRY%r", "%RETRY%o", "N0", "T0"} <= topics


def test_things_happen_to_a_consumer_while_its_listener_works() -> None:
    programs = [program_for(SCENARIOS["rebalance"], 1, number) for number in range(200)]
    meanwhile = {
        type(op.ops[1].ops[0])
        for program in programs
        for op in program.ops
        if isinstance(op, Together) and isinstance(op.ops[0], Consume)
        if isinstance(op.ops[1], Session)
    }

    assert {TellReset, ResetOffset, StartConsumer, Resubscribe} <= meanwhile
    assert {EndConsumer, AdvanceClock} <= meanwhile


def test_a_group_drops_a_topic_pulls_on_and_the_broker_is_asked_who_has_it() -> None:
    drops = asks = 0
    for program in PROGRAMS:
        topics: dict[str, str] = {}
        for at, op in enumerate(program.ops):
            if isinstance(op, StartConsumer):
                topics[op.client] = op.topics
            if not isinstance(op, Resubscribe) or op.client not in topics:
                continue
            left = set(op.topics.split(","))
            is_fewer = left < set(topics[op.client].split(","))
            soon = program.ops[at + 1 : at + 12]
            drops += is_fewer
            asks += is_fewer and any(isinstance(one, AskBroker) for one in soon)
            topics[op.client] = op.topics

    assert drops > len(PROGRAMS) // 10
    assert asks > len(PROGRAMS) // 20
