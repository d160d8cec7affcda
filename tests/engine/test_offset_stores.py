from __future__ import annotations

import pytest

from crashmq.engine.client.consumer.pull_from_where import (
    ConsumeFromWhere,
    PullFromNowhere,
    compute_pull_from_where,
)
from crashmq.engine.client.consumer.store.local_file_offset_store import (
    LocalFileOffsetStore,
)
from crashmq.engine.client.consumer.store.offset_store import (
    FAILED,
    NOT_FOUND,
    OffsetStore,
    ReadOffsetType,
)
from crashmq.engine.client.consumer.store.remote_broker_offset_store import (
    BrokerFailed,
    KeptOffset,
    OffsetNotFound,
    RemoteBrokerOffsetStore,
)
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.store.errors import StoreCorrupted
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.ops import Crash, Survivors

MEMORY = ReadOffsetType.READ_FROM_MEMORY
STORE = ReadOffsetType.READ_FROM_STORE
EITHER = ReadOffsetType.MEMORY_FIRST_THEN_STORE
Q0, Q1 = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)
RETRY = MessageQueue("%RETRY%g", "broker-a", 0)
OFFSETS_JSON = "10.0.0.1@DEFAULT/g/offsets.json"


class Broker:
    """A broker of clients: its offsets, its queues' ends, and whether it answers."""

    def __init__(self) -> None:
        self.offsets: dict[MessageQueue, int] = {}
        self.told_by_life: dict[MessageQueue, int] = {}
        self.life = 1
        self.answers = True

    def query_consumer_offset(self, group: str, queue: MessageQueue) -> KeptOffset:
        self._answer()
        if queue not in self.offsets:
            raise OffsetNotFound(self.life)
        return KeptOffset(self.offsets[queue], self.life)

    def update_consumer_offset_oneway(
        self, group: str, queue: MessageQueue, offset: int, broker_life: int
    ) -> None:
        self._answer()
        self.told_by_life[queue] = broker_life
        self.offsets[queue] = offset

    def max_offset(self, queue: MessageQueue) -> int:
        self._answer()
        return 100

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        self._answer()
        return timestamp // 10 if timestamp >= 0 else -1

    def _answer(self) -> None:
        if not self.answers:
            raise BrokerFailed("system busy")


def remote(broker: Broker) -> RemoteBrokerOffsetStore:
    return RemoteBrokerOffsetStore("g", broker, SimRuntime(0))


def local(disk: SimDisk) -> LocalFileOffsetStore:
    store = LocalFileOffsetStore(disk.mount(), "10.0.0.1@DEFAULT", "g", SimRuntime(0))
    store.load()
    return store


@pytest.mark.parametrize("kind", ["remote", "local"])
def test_memory_is_the_same_in_both_kinds(kind: str) -> None:
    store: OffsetStore = remote(Broker()) if kind == "remote" else local(SimDisk())
    assert store.read_offset(Q0, MEMORY) == NOT_FOUND

    store.update_offset(Q0, 5, increase_only=True)
    store.update_offset(Q0, 3, increase_only=True)
    assert store.read_offset(Q0, MEMORY) == 5
    store.update_offset(Q0, 3, increase_only=False)
    assert store.read_offset(Q0, EITHER) == 3

    store.update_and_freeze_offset(Q0, 2)
    store.update_offset(Q0, 9, increase_only=False)
    store.update_offset(RETRY, 1, increase_only=True)
    assert store.clone_offset_table("T") == {Q0: 2}
    assert store.clone_offset_table("") == {Q0: 2, RETRY: 1}

    store.remove_offset(Q0)
    assert store.read_offset(Q0, EITHER) == NOT_FOUND


def test_a_remote_store_tells_no_offset_from_no_answer() -> None:
    broker = Broker()
    store = remote(broker)
    store.load()
    assert store.read_offset(Q0, STORE) == NOT_FOUND
    broker.answers = False
    assert store.read_offset(Q0, STORE) == FAILED
    assert store.read_offset(Q0, EITHER) == FAILED
    assert store.read_offset(Q0, MEMORY) == NOT_FOUND

    broker.answers, broker.offsets[Q0] = True, 40
    assert store.read_offset(Q0, STORE) == 40
    assert store.read_offset(Q0, MEMORY) == 40


def test_a_remote_store_persists_its_queues_and_forgets_the_others() -> None:
    broker = Broker()
    store = remote(broker)
    store.update_offset(Q0, 5, increase_only=True)
    store.update_offset(Q1, 6, increase_only=True)

    store.persist_all(())
    assert broker.offsets == {}
    store.persist_all({Q0, RETRY})
    assert broker.offsets == {Q0: 5}
    assert store.read_offset(Q1, MEMORY) == NOT_FOUND

    store.update_offset(Q0, 7, increase_only=True)
    broker.answers = False
    store.persist(Q0)
    broker.answers = True
    assert broker.offsets == {Q0: 5}
    store.persist(Q0)
    store.persist(Q1)
    assert broker.offsets == {Q0: 7}


def test_a_local_store_keeps_other_queues_in_its_file() -> None:
    disk = SimDisk()
    store = local(disk)
    store.update_offset(Q0, 5, increase_only=True)
    store.update_offset(Q1, 6, increase_only=True)
    store.persist_all(())
    assert disk.files() == {}
    store.persist_all({Q0, Q1, RETRY})
    store.update_offset(Q0, 9, increase_only=True)
    store.persist(Q0)
    store.remove_offset(Q1)
    assert store.read_offset(Q1, STORE) == 6
    assert store.read_offset(RETRY, STORE) == NOT_FOUND
    disk.unmount()

    assert local(disk).clone_offset_table("") == {Q0: 9, Q1: 6}


def test_a_local_store_writes_rocketmqs_file() -> None:
    disk = SimDisk()
    store = local(disk)
    store.update_offset(
        MessageQueue("TopicTest", "broker-a", 3), 250, increase_only=True
    )

    store.persist_all(store.clone_offset_table(""))

    assert disk.files()[OFFSETS_JSON].decode() == (
        '{\n\t"offsetTable":{{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":3,\n'
        '\t\t\t"topic":"TopicTest"\n\t\t}:250\n\t}\n}'
    )


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"offsetTable":{"a":1}}', '{"offsetTable":{{"topic":1}:1}}'],
)
def test_a_local_file_that_nobody_can_read_refuses_the_start(text: str) -> None:
    disk = SimDisk()
    disk.load({OFFSETS_JSON: text.encode()})

    with pytest.raises(StoreCorrupted, match=r"offsets\.json"):
        local(disk)


LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
TIMESTAMP = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP


@pytest.mark.parametrize(
    ("where", "queue", "kept", "begins_at"),
    [
        *(
            (where, queue, 40, 40)
            for where in ConsumeFromWhere
            for queue in (Q0, RETRY)
        ),
        *((where, Q0, 0, 0) for where in ConsumeFromWhere),
        *((LAST, Q0, None, 100), (LAST, RETRY, None, 0)),
        *((FIRST, Q0, None, 0), (FIRST, RETRY, None, 0)),
        *((TIMESTAMP, Q0, None, 25), (TIMESTAMP, RETRY, None, 100)),
    ],
)
def test_where_a_consumer_begins(
    where: ConsumeFromWhere, queue: MessageQueue, kept: int | None, begins_at: int
) -> None:
    broker = Broker()
    if kept is not None:
        broker.offsets[queue] = kept
    store = remote(broker)
    store.update_offset(queue, 77, increase_only=True)  # memory is not asked

    assert compute_pull_from_where(queue, store, broker, where, 250) == begins_at


@pytest.mark.parametrize("where", ConsumeFromWhere)
def test_nobody_begins_where_the_offset_is_not_known(where: ConsumeFromWhere) -> None:
    broker = Broker()
    broker.answers = False

    with pytest.raises(PullFromNowhere, match="could not be asked for"):
        compute_pull_from_where(Q0, remote(broker), broker, where)


@pytest.mark.parametrize("where", [LAST, TIMESTAMP])
def test_nobody_begins_where_the_queue_cannot_be_asked(where: ConsumeFromWhere) -> None:
    asked, silent = Broker(), Broker()
    silent.answers = False

    with pytest.raises(PullFromNowhere, match="system busy"):
        compute_pull_from_where(Q0, remote(asked), silent, where)


def test_nobody_begins_at_a_negative_answer() -> None:
    broker = Broker()

    with pytest.raises(PullFromNowhere, match="begins at -1"):
        compute_pull_from_where(Q0, remote(broker), broker, TIMESTAMP, -5)


def test_a_commit_says_which_life_of_the_broker_told_the_client() -> None:
    broker = Broker()
    store = remote(broker)
    broker.offsets[Q0] = 7
    store.read_offset(Q0, STORE)
    store.read_offset(Q1, STORE)
    store.update_offset(Q0, 8, increase_only=True)
    store.update_offset(Q1, 1, increase_only=True)
    broker.life = 2

    store.persist_all((Q0, Q1))
    store.heard_of(Q1, 2)
    told = dict(broker.told_by_life)
    store.persist(Q1)

    assert told == {Q0: 1, Q1: 1}
    assert broker.told_by_life == {Q0: 1, Q1: 2}


def test_a_queue_that_is_removed_was_told_by_no_life() -> None:
    broker = Broker()
    store = remote(broker)
    store.heard_of(Q0, 3)
    assert store.broker_life_of(Q0) == 3

    store.remove_offset(Q0)

    assert store.broker_life_of(Q0) == 0


def test_the_file_of_a_broadcaster_keeps_which_life_told_it() -> None:
    disk = SimDisk()
    store = LocalFileOffsetStore(disk.mount(), "10.0.0.1@DEFAULT", "g", SimRuntime(0))
    store.load()
    for queue, life in ((Q0, 0), (Q1, 3)):
        store.heard_of(queue, life)
        store.update_offset(queue, 7, increase_only=False)
    store.persist_all((Q0, Q1))
    disk.crash(Crash("power_loss", Survivors("none")))

    again = LocalFileOffsetStore(disk.mount(), "10.0.0.1@DEFAULT", "g", SimRuntime(0))
    again.load()
    loaded = [again.broker_life_of(queue) for queue in (Q0, Q1)]
    for queue in (Q0, Q1):
        again.remove_offset(queue)
        assert again.read_offset(queue, STORE) == 7

    assert loaded == [0, 3]
    assert [again.broker_life_of(queue) for queue in (Q0, Q1)] == [0, 3]
