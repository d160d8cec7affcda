from __future__ import annotations

from dataclasses import replace

import pytest
from store_builder import StoreBuilder

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.broker.offset.consumer_offset_manager import PATH
from crashmq.engine.broker.processor.consumer_manage_processor import OffsetResponse
from crashmq.engine.common.message_ext import decode_message
from crashmq.engine.common.mix_all import Perm
from crashmq.engine.common.subscription_group_config import SubscriptionGroupConfig
from crashmq.engine.common.topic_config import TopicConfig
from crashmq.engine.host.service_threads import ServiceThreads
from crashmq.engine.remoting.filter_api import build_subscription_data
from crashmq.engine.remoting.pull_message import (
    PullMessageRequest,
    PullMessageResponse,
    PullSysFlag,
)
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.store.errors import StoreCorrupted
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message_store import MessageStore

NOT_FOUND = OffsetResponse(ResponseCode.QUERY_NOT_FOUND)


def broker_on(store: StoreBuilder) -> BrokerController:
    of_messages = MessageStore(store.config, store.mount, store.runtime)
    broker = BrokerController(of_messages, store.mount, store.runtime)
    broker.load()
    return broker


def started_on(store: StoreBuilder) -> BrokerController:
    broker = broker_on(store)
    broker.start()
    store._store = broker.message_store
    return broker


def test_an_orderly_end_persists_the_offsets(store: StoreBuilder) -> None:
    broker = started_on(store)
    store.put(8).reput()
    broker.consumer_offset_manager.commit_offset("g", "T0", 0, 7)

    assert store.runtime.run(broker.shutdown)
    assert store.runtime.run(broker.shutdown)
    assert store.disk.unsynced() == ()
    store.disk.unmount()
    store._mount = None

    again = started_on(store).consumer_offset_manager
    assert again.query_offset("g", "T0", 0) == 7


def test_a_round_persists_until_the_broker_has_stopped(store: StoreBuilder) -> None:
    broker = started_on(store)
    (service,) = (s for s in broker.services if s.name == "persist_consumer_offset")

    assert service.run_once() == 1
    assert PATH in store.disk.files()
    store.runtime.run(broker.shutdown)
    assert service.run_once() == 0


def test_offsets_that_nobody_can_read_refuse_the_start(store: StoreBuilder) -> None:
    store.disk.load({PATH: b"", f"{PATH}.bak": b"\0" * 40})
    before = store.disk.files()

    with pytest.raises(StoreCorrupted) as refused:
        broker_on(store)

    assert refused.value.path == PATH
    assert {**store.disk.files(), "lock": b""} == {**before, "lock": b""}
    assert store.disk.left_open() == ()


def test_a_persist_that_fails_keeps_the_store_from_nothing(store: StoreBuilder) -> None:
    broker = started_on(store)
    store.put(8).reput()
    broker.consumer_offset_manager.commit_offset("g", "T0", 0, 7)
    broker.consumer_offset_manager.persist()
    broker.consumer_offset_manager.commit_offset("g", "T0", 0, 8)
    store.fail("create", "ENOSPC")

    assert store.runtime.run(broker.shutdown)
    store.disk.unmount()
    store._mount = None

    again = started_on(store).consumer_offset_manager
    assert again.query_offset("g", "T0", 0) == 7


def test_commits_are_swallowed_while_a_reset_is_pending(store: StoreBuilder) -> None:
    broker = started_on(store)
    for _ in range(26):
        store.put(20)
    processor = broker.consumer_manage_processor
    manager = broker.consumer_offset_manager

    success = ResponseCode.SUCCESS
    assert processor.update_consumer_offset("g", "T0", 0, 500) is success
    manager.assign_reset_offset("T0", "g", 0, 200)
    assert processor.update_consumer_offset("g", "T0", 0, 510) is success
    assert processor.query_consumer_offset("g", "T0", 0)[:2] == (success, 200)
    assert manager.query_then_erase_reset_offset("T0", "g", 0) == 200
    assert processor.query_consumer_offset("g", "T0", 0)[:2] == (success, 200)
    invalid = ResponseCode.INVALID_PARAMETER
    assert processor.update_consumer_offset("g", "T0", 0, -1) is invalid


def test_a_new_group_begins_at_0_while_the_queue_is_young(store: StoreBuilder) -> None:
    store.put(3).reput()
    of_messages = store.live
    broker = BrokerController(of_messages, store.mount, store.runtime)
    ask = broker.consumer_manage_processor.query_consumer_offset

    assert ask("g", "T0", 0)[:2] == (ResponseCode.SUCCESS, 0)
    assert ask("g", "T0", 1) == NOT_FOUND
    assert ask("g", "none", 0) == NOT_FOUND
    assert of_messages.get_min_offset_in_queue("T0", 0) == 0
    assert of_messages.get_max_offset_in_queue("T0", 0) == 3
    assert of_messages.get_max_offset_in_queue("none", 0) == 0


def test_a_beginning_at_0_that_a_client_was_told_is_kept(store: StoreBuilder) -> None:
    broker = started_on(store)
    store.put(3).reput()
    ask = broker.consumer_manage_processor.query_consumer_offset
    offsets = broker.consumer_offset_manager

    assert ask("g", "T0", 0, "c0")[:2] == (ResponseCode.SUCCESS, 0)
    assert ask("h", "T0", 0)[:2] == (ResponseCode.SUCCESS, 0)
    assert ask("g", "T0", 1, "c0").code is ResponseCode.QUERY_NOT_FOUND

    assert offsets.query_offset("g", "T0", 0) == 0
    assert offsets.query_offset("h", "T0", 0) == -1
    assert offsets.query_offset("g", "T0", 1) == -1


def test_no_group_begins_at_0_of_a_queue_far_behind(store: StoreBuilder) -> None:
    store.configured(access_message_in_memory_max_size=150).put(3).reput()
    broker = BrokerController(store.live, store.mount, store.runtime)

    query = broker.consumer_manage_processor.query_consumer_offset
    assert query("g", "T0", 0) == NOT_FOUND


def test_threads_turn_its_services(store: StoreBuilder) -> None:
    broker = started_on(store)

    store.put(8)
    with ServiceThreads(broker) as threads:
        broker.consumer_offset_manager.commit_offset("g", "T0", 0, 7)

    assert threads.errors == {}
    assert b'"T0@g":{0:7' in store.disk.files()[PATH]


def lost_tail(store: StoreBuilder) -> BrokerController:
    """Example E4: a group has consumed ten messages, and a power loss takes three."""
    broker = started_on(store)
    store.put(7).reput().flush().put(3).reput()
    broker.consumer_offset_manager.commit_offset("g", "T0", 0, 10)
    broker.consumer_offset_manager.persist()
    store.lose_power()
    return broker_on(store)


def test_a_group_consumes_what_takes_the_offsets_that_it_had(
    store: StoreBuilder,
) -> None:
    broker = lost_tail(store)
    broker.start()
    store._store = broker.message_store

    query = broker.consumer_manage_processor.query_consumer_offset
    assert query("g", "T0", 0)[:2] == (ResponseCode.SUCCESS, 7)
    store.put(2).reput()
    assert len(store.pull(7).messages) == 2


def test_the_corrected_offset_survives_the_next_power_loss(store: StoreBuilder) -> None:
    broker = lost_tail(store)
    broker.start()
    store._store = broker.message_store
    store.put(15).reput().flush().lose_power()

    again = started_on(store)

    assert again.consumer_offset_manager.query_offset("g", "T0", 0) == 7
    assert again.message_store.next_queue_offsets == ((("T0", 0), 22),)


def test_a_start_that_cannot_correct_offsets_opens_nothing(store: StoreBuilder) -> None:
    broker = lost_tail(store)
    table = broker.consumer_offset_manager
    store.traced(table.settle)
    store.fail("create", "ENOSPC", times=99)

    with pytest.raises(OSError, match="No space left"):
        broker.start()

    assert not broker.is_started
    assert not broker.message_store.is_started
    store.disk.heal()
    store.disk.unmount()
    store._mount = None
    assert started_on(store).consumer_offset_manager.query_offset("g", "T0", 0) == 7


def test_a_pull_is_answered_by_what_the_broker_knows_of_its_topic(
    store: StoreBuilder,
) -> None:
    broker = started_on(store)
    topics = broker.tables.topic_config_manager
    pull = PullMessageRequest("g", "T0", 0, 0, sys_flag=PullSysFlag.SUBSCRIPTION)
    answers: list[PullMessageResponse] = []

    def code_of(request: PullMessageRequest) -> ResponseCode:
        broker.pull_message_processor.process_request(request, answers.append)
        return answers[-1].code

    assert code_of(pull) is ResponseCode.TOPIC_NOT_EXIST
    topics.update_topic_config(TopicConfig("T0", 2, 4))
    assert code_of(pull) is ResponseCode.PULL_NOT_FOUND
    assert code_of(replace(pull, queue_id=2)) is ResponseCode.INVALID_PARAMETER
    topics.update_topic_config(TopicConfig("T0", 2, 4, Perm.WRITE))
    assert code_of(pull) is ResponseCode.NO_PERMISSION


def test_a_pull_is_refused_as_its_group_is_configured(store: StoreBuilder) -> None:
    broker = started_on(store)
    broker.tables.topic_config_manager.update_topic_config(TopicConfig("T0", 2, 2))
    groups = broker.tables.subscription_group_manager
    pull = PullMessageRequest("g", "T0", 0, 0, sys_flag=PullSysFlag.SUBSCRIPTION)
    answers: list[PullMessageResponse] = []

    def code() -> ResponseCode:
        broker.pull_message_processor.process_request(pull, answers.append)
        return answers[-1].code

    assert code() is ResponseCode.PULL_NOT_FOUND
    assert [*groups.groups] == ["g"]  # made by its use
    barred = SubscriptionGroupConfig("g", consume_enable=False)
    groups.update_subscription_group_config(barred)
    assert code() is ResponseCode.NO_PERMISSION
    groups.delete_subscription_group_config("g")
    assert code() is ResponseCode.PULL_NOT_FOUND


@pytest.mark.parametrize(
    ("expression", "filters", "found"),
    [
        ("a > 5", True, (0, 2)),  # 6, and what it fails on
        ("a >", True, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ("", True, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ("a > 5", False, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_pull_is_filtered_by_the_expression_that_it_carries(
    store: StoreBuilder,
    expression: str,
    filters: bool,
    found: ResponseCode | tuple[int, ...],
) -> None:
    of_messages = MessageStore(store.config, store.mount, store.runtime)
    config = BrokerConfig(enable_property_filter=filters)
    broker = BrokerController(of_messages, store.mount, store.runtime, config)
    broker.load()
    broker.start()
    for value in ("6", "3", "many"):
        broker.send_message_processor.send_message(
            Message("T0", 0, b"body", {"a": value})
        )
    of_messages.reput.run_once()
    broker.consumer_filter_manager.register_one(
        "g", build_subscription_data("T0", "a < 5", "SQL92", 1)
    )
    flags = PullSysFlag.SUBSCRIPTION
    pull = PullMessageRequest("g", "T0", 0, 0, sys_flag=flags, expression_type="SQL92")
    answers: list[PullMessageResponse] = []

    broker.pull_message_processor.process_request(
        replace(pull, subscription=expression), answers.append
    )

    (answer,) = answers
    offsets = [decode_message(record).queue_offset for record in answer.messages]
    assert found == (tuple(offsets) if answer.messages else answer.code)
