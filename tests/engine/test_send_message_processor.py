from __future__ import annotations

from dataclasses import replace

import pytest
from store_builder import SYNC, StoreBuilder

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.broker.processor.send_message_processor import (
    SendMessageProcessor,
    SendResponse,
)
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.common.mix_all import Perm
from crashmq.engine.common.subscription_group_config import SubscriptionGroupConfig
from crashmq.engine.common.topic_config import TopicConfig
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message.message_decoder import MessageExt, decode_message_ext
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import PutMessageResult


class Broker:
    """A started broker, and what its log has got since."""

    def __init__(self, store: StoreBuilder) -> None:
        self.store = store
        messages = MessageStore(store.config, store.mount, store.runtime)
        self.controller = BrokerController(messages, store.mount, store.runtime)
        self.controller.load()
        self.controller.start()
        store.runtime.serve(self.controller.waited_for)
        self.processor: SendMessageProcessor = self.controller.send_message_processor
        self.groups = self.controller.tables.subscription_group_manager
        self.topics = self.controller.tables.topic_config_manager

    def send(self, message: Message, max_times: int = -1) -> SendResponse:
        return self.store.runtime.run(
            lambda: self.processor.send_message(message, max_times)
        )

    def send_back(
        self, phy_offset: int, delay_level: int = 0, max_times: int = -1
    ) -> SendResponse:
        return self.store.runtime.run(
            lambda: self.processor.consumer_send_msg_back(
                "g", phy_offset, delay_level, max_times
            )
        )

    def stored(self, response: SendResponse) -> MessageExt:
        assert response.code is ResponseCode.SUCCESS, response
        assert response.result is not None
        at = response.result.phy_offset
        record = self.controller.message_store.look_message_by_offset(at)
        assert record is not None
        return decode_message_ext(record)


ORDER = Message(
    *("orders", 1, b"body"),
    properties={"TAGS": "a", "UNIQ_KEY": "0A", "WAIT": "false"},
    born_timestamp=7,
    flag=3,
)


@pytest.fixture
def broker(store: StoreBuilder) -> Broker:
    return Broker(store)


def test_a_message_that_comes_back_is_stored_once_more(broker: Broker) -> None:
    first = broker.stored(broker.send(ORDER))

    copy = broker.stored(broker.send_back(first.phy_offset))

    assert copy.message == replace(
        ORDER,
        topic="%RETRY%g",
        queue_id=0,
        reconsume_times=1,
        properties={
            "TAGS": "a",
            "UNIQ_KEY": "0A",
            "RETRY_TOPIC": "orders",
            "ORIGIN_MESSAGE_ID": first.message_id,
            "DELAY": "3",
        },
    )
    assert broker.topics.topics["%RETRY%g"] == TopicConfig("%RETRY%g", 1, 1)


def test_each_try_waits_longer_and_the_last_is_a_dead_letter(broker: Broker) -> None:
    found = broker.stored(broker.send(ORDER))
    first, levels = found, []
    while found.message.topic != "%DLQ%g":
        found = broker.stored(broker.send_back(found.phy_offset))
        levels.append(found.message.properties.get("DELAY", ""))

    assert levels == [*[f"{level}" for level in range(3, 19)], ""]
    assert found.message.reconsume_times == 17
    assert found.message.properties["RETRY_TOPIC"] == "orders"
    assert found.message.properties["ORIGIN_MESSAGE_ID"] == first.message_id
    assert broker.topics.topics["%DLQ%g"] == TopicConfig("%DLQ%g", 1, 1)


def test_the_consumer_may_choose_the_delay_and_the_tries(broker: Broker) -> None:
    at = broker.stored(broker.send(ORDER)).phy_offset

    assert broker.stored(broker.send_back(at, 7)).message.properties["DELAY"] == "7"
    assert broker.stored(broker.send_back(at, -1)).message.topic == "%DLQ%g"
    assert broker.stored(broker.send_back(at, 0, 0)).message.topic == "%DLQ%g"


def test_a_group_without_retry_queues_loses_nothing_silently(broker: Broker) -> None:
    at = broker.stored(broker.send(ORDER)).phy_offset
    none = SubscriptionGroupConfig("g", retry_queue_nums=0)
    broker.groups.update_subscription_group_config(none)
    end = broker.controller.message_store.commit_log.max_offset

    answers = [broker.send_back(at), broker.send(replace(ORDER, topic="%RETRY%g"))]

    assert [answer.code for answer in answers] == [ResponseCode.SYSTEM_ERROR] * 2
    assert all("no retry queue" in answer.remark for answer in answers)
    assert broker.controller.message_store.commit_log.max_offset == end


def test_what_comes_back_is_what_its_consumer_had(broker: Broker) -> None:
    at = broker.stored(broker.send(ORDER)).phy_offset
    record = broker.controller.message_store.look_message_by_offset(at)
    other = broker.stored(broker.send(replace(ORDER, body=b"other"))).phy_offset

    answer = broker.processor.consumer_send_msg_back("g", other, record=record)

    assert broker.stored(answer).message.body == ORDER.body


def test_what_cannot_be_sent_back_is_said(broker: Broker) -> None:
    at = broker.stored(broker.send(ORDER)).phy_offset

    assert broker.send_back(at + 1).code is ResponseCode.SYSTEM_ERROR
    broker.topics.update_topic_config(TopicConfig("%RETRY%g", 1, 1, Perm.READ))
    assert broker.send_back(at).code is ResponseCode.NO_PERMISSION
    broker.groups.auto_create = False
    other = broker.processor.consumer_send_msg_back("h", at)
    assert other.code is ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    sent = broker.send(replace(ORDER, topic="%RETRY%h"))
    assert sent.code is ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


def test_a_light_queues_message_can_come_back(store: StoreBuilder) -> None:
    broker = Broker(store.configured(enable_multi_dispatch=True))
    light = {"INNER_MULTI_DISPATCH": "%LMQ%a"}
    at = broker.stored(broker.send(replace(ORDER, properties=light))).phy_offset

    copy = broker.stored(broker.send_back(at)).message

    assert copy.properties["INNER_MULTI_DISPATCH"] == "%LMQ%a"
    assert "INNER_MULTI_QUEUE_OFFSET" not in copy.properties


def test_under_sync_flush_a_copy_is_durable_once_it_is_answered(
    store: StoreBuilder,
) -> None:
    broker = Broker(store.configured(flush_disk_type=SYNC))
    at = broker.stored(broker.send(ORDER)).phy_offset

    response = broker.send_back(at)

    assert response.result is not None
    log = broker.controller.message_store.commit_log
    assert log.flushed_where >= response.result.end_offset


def test_a_put_that_fails_is_answered_as_an_error(
    broker: Broker, store: StoreBuilder
) -> None:
    at = broker.stored(broker.send(ORDER)).phy_offset
    broker.send_back(at)
    store.fail("write", times=9)

    assert broker.send_back(at).code is ResponseCode.SYSTEM_ERROR


def test_a_new_topic_is_created_by_its_first_message(broker: Broker) -> None:
    broker.send(ORDER)
    assert broker.topics.topics["orders"] == TopicConfig("orders", 4, 4)

    broker.topics.delete_topic_config("TBW102")
    refused = broker.send(replace(ORDER, topic="others"))
    assert refused.code is ResponseCode.TOPIC_NOT_EXIST


def test_a_message_sent_to_be_retried_is_dead_after_its_tries(broker: Broker) -> None:
    retry = replace(ORDER, topic="%RETRY%g", queue_id=0, properties={"DELAY": "3"})

    last = broker.stored(broker.send(replace(retry, reconsume_times=16)))
    assert (last.message.topic, last.message.properties["DELAY"]) == ("%RETRY%g", "3")
    dead = broker.stored(broker.send(replace(retry, reconsume_times=17)))
    assert (dead.message.topic, dead.message.properties) == ("%DLQ%g", {})
    assert broker.stored(broker.send(retry, 0)).message.topic == "%RETRY%g"


def test_a_group_that_consumes_in_order_retries_nothing_there(broker: Broker) -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    retry = replace(ORDER, topic="%RETRY%g", queue_id=0, properties={})
    broker.controller.rebalance_lock_manager.try_lock_batch("g", [queue], "c1")
    assert broker.stored(broker.send(retry)).message.topic == "%DLQ%g"

    broker.store.runtime.advance(60_001)
    assert broker.stored(broker.send(retry)).message.topic == "%RETRY%g"


def test_a_topic_that_is_deleted_amid_a_put_is_made_again(broker: Broker) -> None:
    broker.send(ORDER)

    def put() -> PutMessageResult:
        broker.topics.delete_topic_config("orders")
        return broker.controller.message_store.put_message(ORDER)

    put_in_its_topic = broker.processor.put_in_its_topic
    result = broker.store.runtime.run(lambda: put_in_its_topic("orders", put))

    assert result.is_appended
    assert broker.topics.topics["orders"] == TopicConfig("orders", 4, 4)


def test_a_topic_gets_the_queues_it_asks_for_as_far_as_it_may(broker: Broker) -> None:
    assert broker.processor.topic_of("T0", 6) == TopicConfig("T0", 6, 6)
    assert broker.processor.topic_of("T1", 60) == TopicConfig("T1", 8, 8)
    assert broker.processor.topic_of("%RETRY%g", 6) == TopicConfig("%RETRY%g", 1, 1)
    assert broker.processor.topic_of("%LMQ%a") == TopicConfig("%LMQ%a", 1, 1)
    assert "%LMQ%a" not in broker.topics.topics


def test_a_message_for_a_queue_past_its_topics_queues_is_refused(
    broker: Broker,
) -> None:
    wide = TopicConfig("wide", read_queue_nums=2, write_queue_nums=3)
    broker.topics.update_topic_config(wide)

    for topic, queue_id in (("orders", 4), ("wide", 3), ("%RETRY%g", 1)):
        refused = broker.send(replace(ORDER, topic=topic, queue_id=queue_id))
        assert (refused.code, refused.result) == (ResponseCode.SYSTEM_ERROR, None)
        broker.stored(broker.send(replace(ORDER, topic=topic, queue_id=queue_id - 1)))
