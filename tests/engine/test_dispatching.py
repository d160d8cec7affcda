"""Dispatch: who takes a record, in which order, who learns of it, and how far."""

from __future__ import annotations

import pytest
from store_builder import (
    EPOCH_MS,
    LOG_FILE_SIZE,
    RECORD_SIZE,
    SYNC,
    StoreBuilder,
)

from crashmq.engine.host.probe import recording
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import BrokerRole
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.message.message import tags_code
from crashmq.engine.store.message_arriving_listener import ArrivedMessage
from crashmq.engine.store.results import PutMessageStatus

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
SLAVE = BrokerRole.SLAVE


class Listener:
    """Keeps what it learns, and what could be read then."""

    def __init__(self, store: StoreBuilder) -> None:
        self.store = store
        self.arrived: list[ArrivedMessage] = []
        self.readable: list[bool] = []
        store.live.reput.arriving_listener = self

    def arriving(self, message: ArrivedMessage) -> None:
        self.arrived.append(message)
        end_of = self.store.live.get_max_offset_in_queue
        end = end_of(message.topic, message.queue_id)
        self.readable.append(end == message.logic_offset)


class Dispatcher:
    """Takes records; fails at those that it is told to."""

    def __init__(self, store: StoreBuilder, *fails_at: int) -> None:
        self.store = store
        self.fails_at = list(fails_at)
        self.taken: list[int] = []
        self.bit_maps: list[bytes | None] = []
        self.listed: list[bool] = []

    def dispatch(self, request: DispatchRequest) -> None:
        if request.commit_log_offset in self.fails_at:
            self.fails_at.remove(request.commit_log_offset)
            raise OSError("it could not be taken")
        self.taken.append(request.commit_log_offset)
        self.bit_maps.append(request.bit_map)
        listed = [
            unit.phy_offset
            for queue in self.store.image().consume_queues
            for unit in queue.units
        ]
        self.listed.append(request.commit_log_offset in listed)


def test_a_listener_learns_of_each_message_once_it_can_be_read(
    store: StoreBuilder,
) -> None:
    store.live.calc_bit_map(lambda request: b"\x05")
    listener = Listener(store)
    store.put().put(properties={"TAGS": "A"}).reput()

    assert listener.arrived == [
        ArrivedMessage("T0", 0, 1, 0, EPOCH_MS, b"\x05", {}),
        ArrivedMessage(
            "T0", 0, 2, tags_code("A"), EPOCH_MS + 1, b"\x05", {"TAGS": "A"}
        ),
    ]
    assert listener.readable == [True, True]


def test_a_listener_learns_of_it_for_each_light_queue_too(store: StoreBuilder) -> None:
    store.configured(enable_multi_dispatch=True)
    listener = Listener(store)

    names = {"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b"}
    store.put(queue_id=3, properties=names).reput()

    told = [(m.topic, m.queue_id, m.logic_offset) for m in listener.arrived]
    assert told == [("T0", 3, 1), ("%LMQ%a", 0, 1), ("%LMQ%b", 0, 1)]
    assert len({m.msg_store_time for m in listener.arrived}) == 1


def test_nobody_learns_of_what_no_queue_lists(store: StoreBuilder) -> None:
    listener = Listener(store)

    store.put(sys_flag=0x4).reput()

    assert listener.arrived == []


def test_a_dispatcher_is_asked_after_the_queues_and_with_the_bit_map(
    store: StoreBuilder,
) -> None:
    dispatcher = Dispatcher(store)
    store.live.add_dispatcher(dispatcher)
    store.live.calc_bit_map(lambda request: bytes([request.consume_queue_offset]))

    store.put(3).reput()

    assert dispatcher.taken == [0, RECORD_SIZE, 2 * RECORD_SIZE]
    assert dispatcher.bit_maps == [b"\x00", b"\x01", b"\x02"]
    assert dispatcher.listed == [True] * 3


@pytest.mark.parametrize("failing", [0, 1])
def test_whichever_dispatcher_fails_the_record_is_given_to_all_again(
    store: StoreBuilder, failing: int
) -> None:
    both = [Dispatcher(store, *[RECORD_SIZE] * (n == failing)) for n in range(2)]
    for dispatcher in both:
        store.live.add_dispatcher(dispatcher)
    listener = Listener(store)
    store.put(3)

    with pytest.raises(OSError, match="taken"):
        store.reput()
    assert store.live.reput.reput_from_offset == RECORD_SIZE
    assert len(listener.arrived) == 1
    store.reput()

    again = [RECORD_SIZE] if failing else []
    assert both[0].taken == [0, *again, RECORD_SIZE, 2 * RECORD_SIZE]
    assert both[1].taken == [0, RECORD_SIZE, 2 * RECORD_SIZE]
    assert [m.logic_offset for m in listener.arrived] == [1, 2, 3]
    assert store.served() == [0, 1, 2]


def test_what_replicas_do_not_have_is_not_dispatched(store: StoreBuilder) -> None:
    store.configured(duplication_enable=True).put(3)

    with recording() as hits:
        store.reput()
        assert store.served() == []
        store.live.set_confirm_offset(RECORD_SIZE + 99)
        store.reput()
        assert store.served() == [0]
    assert hits["reput.unconfirmed"] == 1
    assert store.live.reput.stopped_at == -1
    assert store.live.reput.unconfirmed == 2 * RECORD_SIZE - 99
    store.live.set_confirm_offset(5)
    store.live.set_confirm_offset(1 << 40)

    assert store.reput().served() == [0, 1, 2]
    assert store.live.reput.confirm_offset == 3 * RECORD_SIZE


@pytest.mark.parametrize("part", [0, 3, 8, 20])
def test_a_filler_that_replicas_have_in_part_is_passed_in_time(
    store: StoreBuilder, part: int
) -> None:
    store.configured(duplication_enable=True).put(PER_FILE + 1)
    store.live.set_confirm_offset(PER_FILE * RECORD_SIZE + part)

    store.reput()
    assert store.live.reput.stopped_at == -1
    assert store.live.reput.reput_from_offset == PER_FILE * RECORD_SIZE
    assert store.served() == list(range(PER_FILE))
    store.live.set_confirm_offset(1 << 40)

    assert store.reput().served() == list(range(PER_FILE + 1))


def test_under_sync_flush_replicas_alone_do_not_confirm(store: StoreBuilder) -> None:
    store.configured(duplication_enable=True, flush_disk_type=SYNC)
    store.put(2, properties={"WAIT": "false"})

    store.live.set_confirm_offset(1 << 40)

    assert store.reput().served() == []
    assert store.flush().reput().served() == [0, 1]


def test_a_stop_with_what_is_not_confirmed_leaves_it_to_the_next_start(
    store: StoreBuilder,
) -> None:
    store.configured(duplication_enable=True, shutdown_dispatch_timeout=0).put(3)
    store.live.set_confirm_offset(2 * RECORD_SIZE)
    store.reput()

    assert not store.stop()

    assert store.live.reput.confirm_offset == 2 * RECORD_SIZE
    assert store.reput().served() == [0, 1]
    store.live.set_confirm_offset(3 * RECORD_SIZE)
    assert store.reput().stop()


def test_what_any_queue_lists_is_confirmed_after_a_start(store: StoreBuilder) -> None:
    store.configured(duplication_enable=True)
    store.put(queue_id=1).put(2)
    store.live.set_confirm_offset(3 * RECORD_SIZE)
    store.reput().kill().remove("consumequeue/T0/1/00000000000000000000")

    assert store.live.reput.reput_from_offset == 0
    assert store.live.reput.confirm_offset == 3 * RECORD_SIZE
    assert store.served() == [1, 2]


def test_a_record_that_takes_more_of_the_log_than_itself_is_passed_whole(
    store: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(4)
    check = CommitLog.check_message

    def in_a_frame(
        log: CommitLog, phy_offset: int, data: bytes, at: int
    ) -> DispatchRequest:
        found = check(log, phy_offset, data, at)
        return found._replace(buffer_size=2 * RECORD_SIZE) if found.success else found

    monkeypatch.setattr(CommitLog, "check_message", in_a_frame)
    dispatcher = Dispatcher(store)
    store.live.reput.dispatchers[:] = [dispatcher]

    assert store.turn("reput") == 4 * RECORD_SIZE

    assert dispatcher.taken == [0, 2 * RECORD_SIZE]


def test_a_slave_takes_no_put_and_counts_what_it_dispatches(
    store: StoreBuilder,
) -> None:
    store.put(3).kill().configured(broker_role=SLAVE)

    store.reput().put()

    assert store.results[-1].status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert store.live.stats.put_by_topic == {"T0": (3, 3 * RECORD_SIZE)}
    assert sum(store.live.stats.put_time_distribution) == 0
    assert store.served() == [0, 1, 2]


def test_a_slave_with_duplication_counts_nothing(store: StoreBuilder) -> None:
    store.put(3).kill().configured(broker_role=SLAVE, duplication_enable=True)
    store.live.set_confirm_offset(1 << 40)

    store.reput()

    assert store.live.stats.put_by_topic == {}
    assert store.served() == [0, 1, 2]
