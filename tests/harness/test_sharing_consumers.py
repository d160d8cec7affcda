"""Consumers of a program share queues by each strategy, of one broker or of three."""

from __future__ import annotations

import pytest

from crashmq.harness.episodes.episode import (
    Episode,
    run_program,
)
from crashmq.models.brokers import broker_of, room_of_client
from crashmq.models.knowledge.sharing import covered, listed_queues, listing
from crashmq.models.ops import (
    AdvanceClock,
    EndConsumer,
    Schedule,
    StartConsumer,
    Strategy,
    Together,
    TurnConsumer,
)
from crashmq.models.program import (
    Program,
    Setup,
)
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

THREE = Setup(keeps_progress=True, brokers=3, topic_queues=6)
FIVE = ("c0", "c1", "c10", "c2", "c3")
EACH: tuple[Strategy, ...] = (
    *("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM"),
    "MACHINE_ROOM_NEARBY",
)


def held_by(setup: Setup, *ops: StartConsumer) -> dict[str, list[tuple[str, int]]]:
    """The queues of T0 that each consumer has once all have rebalanced."""
    episode = Episode("", setup)
    episode.begin()
    for op in ops:
        episode.step(op)
    for _ in range(2):
        episode.step(AdvanceClock(1000))
        for op in ops:
            episode.step(TurnConsumer(op.client, "rebalance"))
    held = episode.judge.known.consumption.held
    told = {
        client: [queue for queue in queues if queue[0] == "T0"]
        for client, queues in held.items()
    }
    episode.finish()
    return told


def test_a_store_of_three_brokers_names_each_for_a_third_of_the_queues() -> None:
    names = [broker_of("T0", number, THREE) for number in range(6)]

    assert names == [
        *("room1@broker-a", "room1@broker-a", "room2@broker-b", "room2@broker-b"),
        *("broker-c", "broker-c"),
    ]
    assert broker_of("%RETRY%g", 0, THREE) == "room1@broker-a"
    assert broker_of("T0", 5, Setup()) == "broker-a"


@pytest.mark.parametrize("strategy", EACH)
def test_five_consumers_share_what_their_strategy_covers(strategy: Strategy) -> None:
    ops = [StartConsumer(one, "g", "T0", strategy=strategy) for one in FIVE]

    held = held_by(THREE, *ops)

    everything = sorted(queue for queues in held.values() for queue in queues)
    is_by_room = strategy == "MACHINE_ROOM"
    assert everything == [("T0", number) for number in range(4 if is_by_room else 6)]
    assert everything == [q for q in covered(ops[0], ops, THREE) if q[0] == "T0"]


def test_near_machine_rooms_keep_their_queues_to_their_own_clients() -> None:
    ops = [
        StartConsumer(one, "g", "T0", strategy="MACHINE_ROOM_NEARBY") for one in FIVE
    ]

    held = held_by(THREE, *ops)

    for client, queues in held.items():
        brokers = {broker_of(*queue, THREE) for queue in queues}
        rooms = {name.partition("@")[0] for name in brokers if "@" in name}
        assert rooms <= {room_of_client(client)}


def test_a_list_is_what_its_client_has_be_others_there_or_not() -> None:
    lists = {"c0": "T0/0,T0/3,%RETRY%g/0", "c1": "T0/1,T0/2"}
    ops = [
        StartConsumer(client, "g", "T0", strategy="CONFIG", listed=listed)
        for client, listed in lists.items()
    ]

    assert held_by(THREE, ops[0]) == {"c0": [("T0", 0), ("T0", 3)]}
    assert held_by(THREE, *ops)["c1"] == [("T0", 1), ("T0", 2)]
    assert covered(ops[0], ops[1:], THREE) == [("T0", 1), ("T0", 2)]


def test_at_its_end_a_group_with_lists_and_without_members_loses_no_queue() -> None:
    op = StartConsumer("c0", "g", "T0", strategy="CONFIG", listed="T0/1")
    episode = Episode("", THREE)
    for step in (op, TurnConsumer("c0", "rebalance"), EndConsumer("c0", "kill")):
        episode.step(step)

    episode.finish()

    queues = episode.judge.known.consumption.owed.since
    assert {number for _, topic, number in queues if topic == "T0"} == {*range(6)}


def test_a_list_says_the_queues_that_it_was_made_of() -> None:
    queues = [("T0", 1), ("%RETRY%g", 0)]
    op = StartConsumer("c", "g", "T0", listed=listing(queues))

    assert listed_queues(op) == queues
    assert listed_queues(StartConsumer("c", "g", "T0", listed="T0,/1,T1/x")) == []


def test_consumers_of_one_group_are_drawn_with_one_strategy_and_one_list_each() -> None:
    for name in ("rebalance", "broadcast", "consumer_crash"):
        kinds: dict[str, set[tuple[str, bool, bool]]] = {}
        clients: set[str] = set()
        for op in SCENARIOS[name].space.consumers:
            kind = (op.strategy, op.is_orderly, op.broadcasts)
            kinds.setdefault(op.group, set()).add(kind)
            clients.add(op.client)
        assert all(len(found) == 1 for found in kinds.values())
        assert len(clients) == len(SCENARIOS[name].space.consumers)


@pytest.mark.parametrize(("to_lock", "back"), [(13, 20), (14, 24), (15, 28), (16, 23)])
def test_a_lock_got_while_another_turn_tells_the_queues_stays_known(
    to_lock: int, back: int
) -> None:
    """CON-14 took the queue for unlocked, which the rebalance was about to take."""
    turns = (TurnConsumer("c0", "rebalance"), TurnConsumer("c0", "lock"))
    ops = (
        StartConsumer("c0", "g", "T0", is_orderly=True),
        Together(turns, Schedule(preemptions=((to_lock, 1), (back, 0)))),
        *(AdvanceClock(500), TurnConsumer("c0", "pull", 3)),
    )

    result = run_program(Program(Setup(keeps_progress=True), ops))

    assert result.outcome is Outcome.PASSED, result.message
