"""How queues are divided: by the tables of the reference, and as RocketMQ does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from random import Random

import pytest
from golden_kinds import RunClient

from crashmq.engine.client.consumer.rebalance.allocate_machine_room_nearby import (
    AllocateMachineRoomNearby,
    MachineRoomResolver,
)
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_averagely import (
    AllocateMessageQueueAveragely,
)
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_averagely_by_circle import (  # noqa: E501 - RocketMQ's name
    AllocateMessageQueueAveragelyByCircle,
)
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_by_config import (
    AllocateMessageQueueByConfig,
)
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_by_machine_room import (  # noqa: E501 - RocketMQ's name
    AllocateMessageQueueByMachineRoom,
)
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_consistent_hash import (  # noqa: E501 - RocketMQ's name
    AllocateMessageQueueConsistentHash,
)
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_strategy import (
    AllocateMessageQueueStrategy,
    AllocationRefused,
)
from crashmq.engine.common.message_queue import MessageQueue

AVG = AllocateMessageQueueAveragely()
CIRCLE = AllocateMessageQueueAveragelyByCircle()
HASH = AllocateMessageQueueConsistentHash()
COVERING = (AVG, CIRCLE, HASH)
UP_TO = 40


def queues_of(n: int, broker: str = "broker-a") -> list[MessageQueue]:
    return [MessageQueue("T", broker, queue_id) for queue_id in range(n)]


def clients_of(k: int) -> list[str]:
    return sorted(f"c{i}" for i in range(k))


def shares(
    strategy: AllocateMessageQueueStrategy,
    queues: Sequence[MessageQueue],
    clients: Sequence[str],
) -> list[list[int]]:
    """For each client the places of its queues."""
    return [
        [queues.index(queue) for queue in strategy.allocate("g", cid, queues, clients)]
        for cid in clients
    ]


TABLE = [
    (AVG, "c0 c1 c2", [[0, 1, 2], [3, 4, 5], [6, 7]]),
    (AVG, "c0 c2", [[0, 1, 2, 3], [4, 5, 6, 7]]),
    (AVG, "c0 c1 c2 c3", [[0, 1], [2, 3], [4, 5], [6, 7]]),
    (CIRCLE, "c0 c1 c2", [[0, 3, 6], [1, 4, 7], [2, 5]]),
    (CIRCLE, "c0 c2", [[0, 2, 4, 6], [1, 3, 5, 7]]),
    (CIRCLE, "c0 c1 c2 c3", [[0, 4], [1, 5], [2, 6], [3, 7]]),
    (HASH, "c0 c1 c2", [[0, 1, 5, 6], [3, 4], [2, 7]]),
    (HASH, "c0 c2", [[0, 1, 5, 6], [2, 3, 4, 7]]),
    (HASH, "c0 c1 c2 c3", [[0, 1, 5, 6], [4], [2, 7], [3]]),
]


@pytest.mark.parametrize(("strategy", "clients", "expected"), TABLE)
def test_eight_queues_are_divided_as_the_table_says(
    strategy: AllocateMessageQueueStrategy, clients: str, expected: list[list[int]]
) -> None:
    assert shares(strategy, queues_of(8), clients.split()) == expected


def test_ten_clients_of_eight_queues_are_served_as_the_table_says() -> None:
    one_each = [[i] for i in range(8)] + [[], []]

    assert shares(AVG, queues_of(8), clients_of(10)) == one_each
    assert shares(CIRCLE, queues_of(8), clients_of(10)) == one_each
    assert shares(HASH, queues_of(8), clients_of(10)) == [
        *([0, 6], [], [7], [3], [5], [4], [], [1], [], [2])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", COVERING, ids=lambda each: each.name)
def test_every_queue_is_in_exactly_one_share(
    strategy: AllocateMessageQueueStrategy,
) -> None:
    for k in range(1, UP_TO + 1):
        clients = clients_of(k)
        for n in range(1, UP_TO + 1):
            each = shares(strategy, queues_of(n), clients)
            assert sorted(chain.from_iterable(each)) == list(range(n)), (n, k)
            if strategy is not HASH:
                sizes = sorted(map(len, each))
                assert sizes[-1] - sizes[0] <= 1, (n, k)


@pytest.mark.parametrize("strategy", COVERING, ids=lambda each: each.name)
def test_a_share_is_the_same_whenever_it_is_computed(
    strategy: AllocateMessageQueueStrategy,
) -> None:
    queues, clients = queues_of(17), clients_of(12)
    first = shares(strategy, queues, clients)

    assert shares(strategy, queues, clients) == first
    assert shares(strategy, list(queues), tuple(clients)) == first


@pytest.mark.parametrize("n", [1, 8, 40])
def test_on_the_ring_a_client_that_leaves_moves_only_its_own_queues(n: int) -> None:
    queues, clients = queues_of(n), clients_of(7)
    before = dict(zip(clients, shares(HASH, queues, clients), strict=True))

    for gone in clients:
        left = [cid for cid in clients if cid != gone]
        after = dict(zip(left, shares(HASH, queues, left), strict=True))
        for cid in left:
            assert set(before[cid]) <= set(after[cid])


def test_a_client_that_the_broker_does_not_know_gets_nothing() -> None:
    for strategy in (*COVERING, AllocateMessageQueueByMachineRoom()):
        assert strategy.allocate("g", "c9", queues_of(8), ["c0", "c1"]) == []


@pytest.mark.parametrize(
    ("client", "queues", "clients"), [("", 8, 2), ("c0", 0, 2), ("c0", 8, 0)]
)
def test_nothing_is_divided_without_queues_or_clients(
    client: str, queues: int, clients: int
) -> None:
    for strategy in COVERING:
        with pytest.raises(AllocationRefused, match="none of the three may be empty"):
            strategy.allocate("g", client, queues_of(queues), clients_of(clients))


def test_by_config_a_share_is_what_was_written_down() -> None:
    queues = queues_of(4)
    first = AllocateMessageQueueByConfig((queues[0], queues[1]))
    second = AllocateMessageQueueByConfig((queues[1], queues[2]))

    assert first.allocate("g", "c0", queues, ["c0", "c1"]) == queues[0:2]
    assert second.allocate("g", "c1", queues, ["c0", "c1"]) == queues[1:3]
    assert AllocateMessageQueueByConfig().allocate("g", "c0", queues, ["c0"]) == []


ROOMS = [*queues_of(4, "room1@broker-a"), *queues_of(3, "room2@broker-b")]


def test_by_machine_room_queues_of_other_rooms_are_nobodys() -> None:
    both = AllocateMessageQueueByMachineRoom(frozenset({"room1", "room2"}))
    one = AllocateMessageQueueByMachineRoom(frozenset({"room1"}))

    assert shares(both, ROOMS, clients_of(3)) == [[0, 1, 6], [2, 3], [4, 5]]
    assert shares(one, ROOMS, clients_of(3)) == [[0, 3], [1], [2]]


def room_of(name: str) -> str:
    room, _, rest = name.partition("@")
    return room if rest else ""


RESOLVER = MachineRoomResolver(lambda queue: room_of(queue.broker_name), room_of)
NEARBY = AllocateMachineRoomNearby(AVG, RESOLVER)


def test_nearby_a_room_is_served_by_its_own_clients_if_it_has_any() -> None:
    assert shares(NEARBY, ROOMS, ["room1@c0", "room1@c1"]) == [
        [0, 1, 4, 5],
        [2, 3, 6],
    ]
    assert shares(NEARBY, ROOMS, ["room1@c0", "room2@c1"]) == [[0, 1, 2, 3], [4, 5, 6]]
    assert NEARBY.name == "MACHINE_ROOM_NEARBY-AVG"


def test_nearby_nothing_is_divided_while_a_room_is_unknown() -> None:
    with pytest.raises(AllocationRefused, match="machine room broker-a is"):
        NEARBY.allocate("g", "room1@c0", queues_of(2), ["room1@c0"])
    with pytest.raises(AllocationRefused, match="machine room c1 is"):
        NEARBY.allocate("g", "room1@c0", ROOMS, ["room1@c0", "c1"])


Case = tuple[
    AllocateMessageQueueStrategy, tuple[str, ...], list[str], list[MessageQueue]
]


def cases() -> Iterator[Case]:
    """Every n and k up to 40, then names and rooms drawn by chance."""
    for strategy in COVERING:
        for k in range(1, UP_TO + 1):
            for n in range(1, UP_TO + 1):
                yield strategy, (), clients_of(k), queues_of(n)
    chance = Random(5_3_0)
    for _ in range(600):
        rooms = tuple(sorted(chance.sample(("r1", "r2", "r3", "r4"), 2)))
        queues = sorted(
            MessageQueue("T", f"{drawn_room(chance)}broker-{chance.randrange(3)}", i)
            for i in range(chance.randrange(1, 30))
        )
        clients = sorted({drawn_client(chance) for _ in range(chance.randrange(1, 12))})
        by_room = AllocateMessageQueueByMachineRoom(frozenset(rooms))
        for each in (*COVERING, by_room, NEARBY):
            yield each, rooms, clients, queues


def drawn_room(chance: Random) -> str:
    return chance.choice(("r1@", "r2@", "r3@", "r1@x@", "@", "r1@", "r2@"))


def drawn_client(chance: Random) -> str:
    room = chance.choice(("r1@", "r2@", "r4@", "r1@"))
    host = ".".join(str(chance.randrange(256)) for _ in range(4))
    return f"{room}{host}@{chance.choice(('DEFAULT', 'ä', '77#9', 'x'))}"


def line_of(case: Case) -> str:
    strategy, rooms, clients, queues = case
    listed = ",".join(f"{queue.broker_name}:{queue.queue_id}" for queue in queues)
    return "\t".join((strategy.name, ",".join(rooms), ",".join(clients), listed))


def answer_of(case: Case) -> str:
    strategy, _, clients, queues = case
    answers = []
    for cid in clients:
        try:
            share = strategy.allocate("g", cid, queues, clients)
        except AllocationRefused:
            answers.append("!")
        else:
            answers.append(",".join(str(queues.index(queue)) for queue in share))
    return ";".join(answers)


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.xdist_group("golden-client")
def test_rocketmq_divides_as_we_do(golden_client: RunClient) -> None:
    asked = list(cases())

    lines = "".join(f"{line_of(case)}\n" for case in asked)
    told = golden_client("crashmq.client.Allocate", told=lines)

    differing = [
        (line_of(case), theirs, ours)
        for case, theirs in zip(asked, told.splitlines(), strict=True)
        if theirs != (ours := answer_of(case))
    ]
    assert differing == []
    assert len(asked) == 3 * UP_TO**2 + 5 * 600
