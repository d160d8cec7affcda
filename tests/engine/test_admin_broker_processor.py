from __future__ import annotations

import pytest
from store_builder import EPOCH_MS, StoreBuilder

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.broker.offset.consumer_offset_manager import PATH, Part
from crashmq.engine.broker.processor.admin_broker_processor import LATEST
from crashmq.engine.common.topic_config import TopicConfig
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.store.errors import StoreStopped
from crashmq.engine.store.message_store import MessageStore

SUCCESS = ResponseCode.SUCCESS


def broker_on(store: StoreBuilder) -> BrokerController:
    messages = MessageStore(store.config, store.mount, store.runtime)
    broker = BrokerController(messages, store.mount, store.runtime)
    broker.load()
    broker.start()
    store._store = broker.message_store
    store.runtime.serve(broker.waited_for)
    return broker


@pytest.fixture
def broker(store: StoreBuilder) -> BrokerController:
    broker = broker_on(store)
    store.put(8).put(4, queue_id=1).put(3, topic="T1").reput()
    offsets = broker.consumer_offset_manager
    for group, topic, queue_id, offset in (
        *(("g", "T0", 0, 5), ("g", "T0", 1, 4), ("g", "T1", 0, 2)),
        *(("h", "T0", 0, 3), ("h", "T1", 0, 3)),
    ):
        assert offsets.commit_offset(group, topic, queue_id, offset)
    offsets.persist()
    return broker


def table_of(broker: BrokerController) -> dict[str, dict[int, int]]:
    table = broker.consumer_offset_manager.offset_table
    return {key: dict(offsets) for key, offsets in sorted(table.items())}


def test_a_topic_goes_with_what_was_consumed_of_it(
    broker: BrokerController, store: StoreBuilder
) -> None:
    topics = broker.tables.topic_config_manager
    topics.update_topic_config(TopicConfig("T0", 2, 2))
    broker.consumer_offset_manager.assign_reset_offset("T0", "g", 0, 1)

    assert broker.admin_broker_processor.delete_topic("T0") == 1

    assert table_of(broker) == {"T1@g": {0: 2}, "T1@h": {0: 3}}
    assert not broker.consumer_offset_manager.has_offset_reset("T0", "g", 0)
    assert topics.select_topic_config("T0") is None
    store.put(3).flush().lose_power()
    assert table_of(broker_on(store)).keys() == {"T1@g", "T1@h"}


def test_a_queue_goes_with_what_was_consumed_of_it(broker: BrokerController) -> None:
    assert broker.admin_broker_processor.delete_queue("T0", 0) == 1

    assert table_of(broker) == {"T0@g": {1: 4}, "T1@g": {0: 2}, "T1@h": {0: 3}}


def test_nothing_is_committed_for_what_is_being_deleted(
    broker: BrokerController,
) -> None:
    offsets = broker.consumer_offset_manager
    with offsets.removal(Part(topic="T0")):
        assert not offsets.commit_offset("g", "T0", 0, 5)
        assert not offsets.assign_reset_offset("T0", "g", 0, 5)
        offsets.clone_offset("h", "k", "T0")
        assert offsets.commit_offset("g", "T1", 0, 3)

    assert table_of(broker) == {"T1@g": {0: 3}, "T1@h": {0: 3}}
    assert offsets.commit_offset("g", "T0", 0, 5)


def test_no_commit_passes_the_end_of_its_queue(broker: BrokerController) -> None:
    commit = broker.consumer_manage_processor.update_consumer_offset

    assert commit("g", "T0", 0, 9) is ResponseCode.INVALID_PARAMETER
    assert commit("g", "none", 0, 1) is ResponseCode.INVALID_PARAMETER
    assert commit("g", "T0", 0, 8) is SUCCESS
    broker.admin_broker_processor.delete_topic("T0")
    assert commit("g", "T0", 0, 8) is ResponseCode.INVALID_PARAMETER
    assert commit("g", "T0", 0, 0) is SUCCESS


def test_a_deletion_that_fails_keeps_the_offsets(
    broker: BrokerController, store: StoreBuilder
) -> None:
    before = table_of(broker)
    store.fail("create", "ENOSPC")
    with pytest.raises(OSError, match="No space left"):
        broker.admin_broker_processor.delete_topic("T0")
    assert table_of(broker) == before

    broker.message_store.deletion.topics.stop()
    with pytest.raises(StoreStopped):
        broker.admin_broker_processor.delete_topic("T0")
    assert table_of(broker) == before
    assert broker.consumer_offset_manager.commit_offset("g", "T0", 0, 6)


def test_a_group_goes_with_its_offsets_or_without(broker: BrokerController) -> None:
    groups = broker.tables.subscription_group_manager
    for group in ("g", "h"):
        groups.find_subscription_group_config(group)

    broker.admin_broker_processor.delete_subscription_group("g")
    broker.admin_broker_processor.delete_subscription_group("h", clean_offset=False)

    assert table_of(broker) == {"T0@h": {0: 3}, "T1@h": {0: 3}}
    assert not groups.groups


def test_a_removed_group_does_not_come_back(
    broker: BrokerController, store: StoreBuilder
) -> None:
    broker.admin_broker_processor.delete_subscription_group("g")
    store.flush().lose_power()

    assert table_of(broker_on(store)).keys() == {"T0@h", "T1@h"}
    assert b"@g" not in store.disk.files()[PATH]


@pytest.mark.parametrize(("offset", "is_set"), [(0, True), (8, True), (9, False)])
def test_a_reset_to_an_offset_stays_by_its_queue(
    broker: BrokerController, offset: int, is_set: bool
) -> None:
    answer = broker.admin_broker_processor.reset_offset("g", "T0", 0, offset)

    assert (answer.code is SUCCESS) is is_set
    pending = broker.consumer_offset_manager.has_offset_reset("T0", "g", 0)
    assert pending is is_set
    refused = broker.admin_broker_processor.reset_offset("g", "T0", 0, -1)
    assert refused.code is ResponseCode.SYSTEM_ERROR


def test_a_reset_chosen_before_a_deletion_is_refused(broker: BrokerController) -> None:
    offsets = broker.consumer_offset_manager
    broker.admin_broker_processor.delete_topic("T0")

    assert not offsets.assign_reset_offset("T0", "g", 0, 5)
    assert offsets.query_offset("g", "T0", 0) == -1
    assert not offsets.assign_reset_offset("T0", "g", 0, 1)
    assert offsets.assign_reset_offset("T0", "g", 0, 0)


def test_a_reset_below_the_first_message_is_refused(store: StoreBuilder) -> None:
    broker = broker_on(store)
    store.put(12).reput()
    queue = broker.message_store._consume_queues.find("T0", 0)
    assert queue is not None
    queue.correct_min_offset(1024)

    below = broker.admin_broker_processor.reset_offset("g", "T0", 0, 9)
    assert below.code is ResponseCode.SYSTEM_ERROR
    assert "[10, 12]" in below.remark
    assert broker.admin_broker_processor.reset_offset("g", "T0", 0, 10).offset == 10


def test_a_reset_to_a_time_goes_to_the_first_message_since(
    broker: BrokerController,
) -> None:
    reset = broker.admin_broker_processor.reset_offset_by_time

    assert reset("g", "T0", 0, EPOCH_MS + 2).offset == 2
    assert reset("g", "T0", 0, 0).offset == 0
    assert reset("g", "T0", 0, EPOCH_MS + 10**6).offset == 8
    assert reset("g", "T0", 1, LATEST).offset == 4
    assert broker.consumer_offset_manager.query_offset("g", "T0", 1) == 4


def test_a_reset_of_a_queue_that_cannot_be_is_refused(
    broker: BrokerController,
) -> None:
    admin = broker.admin_broker_processor
    answers = [
        admin.reset_offset("g", "T0", -1, 0),
        admin.reset_offset_by_time("g", "T0", -1, LATEST),
        admin.reset_offset_by_time("g", "T0", -1, 0),
    ]

    assert [one.code for one in answers] == [ResponseCode.SYSTEM_ERROR] * 3
    assert all(one.offset == -1 for one in answers)


def test_a_query_of_the_lowest_offsets_removes_nothing(
    broker: BrokerController,
) -> None:
    before = table_of(broker)
    query = broker.admin_broker_processor.query_correction_offset

    assert query("T0") == {0: 3, 1: 4}
    assert query("T0", ["h"]) == {0: 5, 1: 4}
    assert query("T0", ["g", "h"]) == {}
    assert query("none") == {}
    assert table_of(broker) == before


def test_groups_behind_the_first_message_do_not_count(
    broker: BrokerController,
) -> None:
    offsets = broker.consumer_offset_manager
    query = offsets.query_min_offset_in_all_group

    assert query("T0", (), lambda topic, queue_id: 4) == {0: 5, 1: 4}


def test_a_group_is_given_anothers_offsets(broker: BrokerController) -> None:
    broker.admin_broker_processor.clone_group_offset("h", "g", "T0")

    assert table_of(broker)["T0@g"] == {0: 3}


def test_a_topic_is_created_or_changed_but_no_system_topic(
    broker: BrokerController,
) -> None:
    admin, topics = broker.admin_broker_processor, broker.tables.topic_config_manager

    assert admin.update_and_create_topic(TopicConfig("T0", 9, 2))
    assert admin.update_and_create_topic(TopicConfig("T9"))
    assert not admin.update_and_create_topic(TopicConfig("TBW102", 1, 1))
    assert not admin.update_and_create_topic(TopicConfig("a/b"))

    assert topics.topics["T0"].read_queue_nums == 9
    assert {"T9"} == {"T9", "a/b"} & topics.topics.keys()
    assert topics.topics["TBW102"].read_queue_nums == 8
