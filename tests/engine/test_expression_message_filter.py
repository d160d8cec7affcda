"""The two stages of a filter, row by row of the reference's tables, and bit maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from store_builder import StoreBuilder

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.broker.filter.commit_log_dispatcher_calc_bit_map import (
    CommitLogDispatcherCalcBitMap,
)
from crashmq.engine.broker.filter.consumer_filter_manager import ConsumerFilterManager
from crashmq.engine.broker.filter.expression_for_retry_message_filter import (
    ExpressionForRetryMessageFilter,
)
from crashmq.engine.broker.filter.expression_message_filter import (
    ExpressionMessageFilter,
)
from crashmq.engine.filter.bits_array import BitsArray
from crashmq.engine.filter.bloom_filter import BloomFilter
from crashmq.engine.remoting.filter_api import build_subscription_data
from crashmq.engine.remoting.heartbeat_data import ConsumerData
from crashmq.engine.remoting.pull_message import (
    PullMessageRequest,
    PullMessageResponse,
)
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.message.message import (
    Message,
    java_string_hash,
    properties_to_bytes,
)
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.queue.consume_queue_ext import CqExtUnit
from crashmq.engine.store.results import GetMessageStatus

BLOOM = BloomFilter()
NEWEST = 1000
CONFIG = BrokerConfig(enable_property_filter=True, enable_calc_filter_bit_map=True)


def bits_of(*groups: str) -> bytes:
    bits = BitsArray(BLOOM.m)
    for group in groups:
        BLOOM.hash_to(BLOOM.generate(f"{group}#orders"), bits)
    return bits.to_bytes()


@pytest.fixture
def manager(store: StoreBuilder) -> ConsumerFilterManager:
    manager = ConsumerFilterManager(CONFIG, store.mount, store.runtime)
    manager.load()
    manager.open(lambda: NEWEST)
    return manager


def filter_of(
    manager: ConsumerFilterManager, expression: str, group: str = "group_a"
) -> ExpressionMessageFilter:
    told = build_subscription_data("orders", expression, "SQL92", 1)
    manager.register_one(group, told)
    return ExpressionMessageFilter(told, manager.get("orders", group), manager)


@pytest.mark.parametrize(
    ("expression", "tags_code", "expected"),
    [
        ("*", 1, True),
        ("", 1, True),
        ("Aa", None, True),
        ("Aa", java_string_hash("BB"), True),
        ("Aa || TagB", java_string_hash("TagA"), False),
        ("Aa", 0, False),
        ("A||*", 65, True),
        ("A||*", 66, False),
        (" ", 0, False),
        ("Aa", 1 << 40, True),
    ],
)
def test_tags_are_compared_by_their_hash_first(
    manager: ConsumerFilterManager,
    expression: str,
    tags_code: int | None,
    expected: bool,
) -> None:
    told = build_subscription_data("orders", expression)

    asked = ExpressionMessageFilter(told, None, manager)

    assert asked.is_matched_by_consume_queue(tags_code, None) is expected


def test_tags_of_one_hash_are_told_apart_by_their_text(
    manager: ConsumerFilterManager,
) -> None:
    told = build_subscription_data("orders", "Aa")
    asked = ExpressionMessageFilter(told, None, manager)

    tags = ("Aa", "BB", "")
    found = [asked.is_matched_by_commit_log(None, {"TAGS": tag}) for tag in tags]

    assert found == [True, False, False]
    assert asked.is_matched_by_commit_log(None, {}) is False


@pytest.mark.parametrize(
    ("ext", "expected"),
    [
        (None, True),
        (CqExtUnit(0, NEWEST, bits_of()), True),
        (CqExtUnit(0, NEWEST + 1, b""), True),
        (CqExtUnit(0, NEWEST + 1, bits_of()[1:]), True),
        (CqExtUnit(0, NEWEST + 1, bits_of()), False),
        (CqExtUnit(0, NEWEST + 1, bits_of("CID_1")), False),
        (CqExtUnit(0, NEWEST + 1, bits_of("group_a")), True),
        (CqExtUnit(0, NEWEST + 1, bits_of("group_a", "CID_1")), True),
    ],
)
def test_a_bit_map_counts_if_it_is_whole_and_knew_the_filter(
    manager: ConsumerFilterManager, ext: CqExtUnit | None, expected: bool
) -> None:
    asked = filter_of(manager, "a > 5")

    assert asked.is_matched_by_consume_queue(0, ext) is expected


def test_a_bit_map_by_a_newer_expression_says_nothing(
    manager: ConsumerFilterManager,
) -> None:
    asked = filter_of(manager, "a > 5")
    newer = build_subscription_data("orders", "b = 'x'", "SQL92", 2)

    manager.register_one("group_a", newer)

    ext = CqExtUnit(0, NEWEST + 1, bits_of())
    assert asked.is_matched_by_consume_queue(0, ext) is True


@pytest.mark.parametrize(
    ("properties", "expected"),
    [({"a": "6"}, True), ({"a": "5"}, False), ({}, False), ({"a": "x"}, True)],
)
def test_the_message_itself_decides_and_a_failure_delivers_it(
    manager: ConsumerFilterManager, properties: Mapping[str, str], expected: bool
) -> None:
    asked = filter_of(manager, "a > 5")

    assert asked.is_matched_by_commit_log(None, properties) is expected


def test_without_a_subscription_or_filter_every_message_matches(
    manager: ConsumerFilterManager,
) -> None:
    told = build_subscription_data("orders", "a > 5", "SQL92")
    for asked in (
        ExpressionMessageFilter(None, None, manager),
        ExpressionMessageFilter(told, None, manager),
    ):
        assert asked.is_matched_by_consume_queue(5, CqExtUnit(5, 1 << 40, bits_of()))
        assert asked.is_matched_by_commit_log(None, {})
        assert asked.is_matched_by_commit_log(None, None)


def test_a_bit_map_has_the_groups_that_a_message_is_for(
    manager: ConsumerFilterManager,
) -> None:
    calc = CommitLogDispatcherCalcBitMap(manager).calc
    message = DispatchRequest(
        True, 100, "orders", properties=properties_to_bytes({"a": "6", "c": "many"})
    )
    assert calc(message) == b""

    filter_of(manager, "a > 5")
    assert calc(message) == bytes.fromhex("0000001010000000000000800000")
    filter_of(manager, "b = 'x'", "CID_1")
    assert calc(message) == bits_of("group_a")
    filter_of(manager, "c > 5", "CID_1_fails")
    manager.unregister("group_a")
    assert calc(message) == bits_of("group_a", "CID_1_fails")


def test_a_broker_filters_by_bit_maps_that_dispatch_has_computed(
    store: StoreBuilder,
) -> None:
    store.configured(enable_consume_queue_ext=True)
    of_messages = MessageStore(store.config, store.mount, store.runtime)
    broker = BrokerController(of_messages, store.mount, store.runtime, CONFIG)
    broker.load()
    broker.start()
    asked = filter_of(broker.consumer_filter_manager, "a > 5")
    for value in ("6", "5", "7", "many", ""):
        store.runtime.advance(1)
        of_messages.put_message(Message("orders", 0, b"body", {"a": value}))
    of_messages.reput.run_once()

    got = of_messages.get_message("orders", 0, 0, 32, asked)

    assert got.status is GetMessageStatus.FOUND
    assert (len(got.messages), got.next_begin_offset) == (3, 5)
    assert "persist_consumer_filter" in [one.name for one in broker.services]
    assert store.runtime.run(broker.shutdown)
    assert "config/consumerFilter.json" in store.disk.files()


RETRIES = build_subscription_data("%RETRY%group_a", "*")


def retry_of(topic: str, **properties: str) -> dict[str, str]:
    return {**properties, "RETRY_TOPIC": topic}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (retry_of("orders", a="6"), True),
        (retry_of("orders", a="5"), False),
        (retry_of("orders"), False),
        (retry_of("orders", a="many"), True),
        (retry_of("invoices", a="5"), True),
        ({"a": "5"}, True),
    ],
)
def test_a_retry_is_asked_for_the_topic_that_it_came_from(
    manager: ConsumerFilterManager, properties: Mapping[str, str], expected: bool
) -> None:
    filter_of(manager, "a > 5")
    filter_of(manager, "a > 9", group="group_b")
    asked = ExpressionForRetryMessageFilter(RETRIES, None, manager)

    assert asked.is_matched_by_commit_log(None, properties) is expected
    assert asked.is_matched_by_consume_queue(7, None) is True


def test_an_expression_that_was_given_up_drops_no_retry(
    manager: ConsumerFilterManager,
) -> None:
    filter_of(manager, "a > 5")
    asked = ExpressionForRetryMessageFilter(RETRIES, None, manager)
    retry = retry_of("orders", a="5")
    assert asked.is_matched_by_commit_log(None, retry) is False

    manager.unregister("group_a")

    assert asked.is_matched_by_commit_log(None, retry) is True


def test_what_is_no_retry_topic_is_filtered_as_ever(
    manager: ConsumerFilterManager,
) -> None:
    plain = filter_of(manager, "a > 5")
    told = build_subscription_data("orders", "a > 5", "SQL92", 1)
    asked = ExpressionForRetryMessageFilter(
        told, manager.get("orders", "group_a"), manager
    )

    for properties in ({"a": "6"}, retry_of("invoices", a="5"), {}, {"a": "x"}):
        by_both = [
            one.is_matched_by_commit_log(None, properties) for one in (plain, asked)
        ]
        assert by_both[0] is by_both[1]


@pytest.mark.parametrize(("is_asked_again", "count"), [(False, 3), (True, 2)])
def test_a_broker_filters_retries_only_if_told_so(
    store: StoreBuilder, is_asked_again: bool, count: int
) -> None:
    config = replace(CONFIG, filter_support_retry=is_asked_again)
    of_messages = MessageStore(store.config, store.mount, store.runtime)
    broker = BrokerController(of_messages, store.mount, store.runtime, config)
    broker.load()
    broker.start()
    broker.send_message_processor.topic_of(RETRIES.topic)
    by_a = build_subscription_data("orders", "a > 5", "SQL92", 1)
    told = ConsumerData("group_a", subscriptions=(by_a, RETRIES))
    broker.client_manage_processor.heart_beat("c", [told])
    for value in ("6", "5", "7"):
        retry = retry_of("orders", a=value)
        of_messages.put_message(Message(RETRIES.topic, 0, b"body", retry))
    of_messages.reput.run_once()
    answers: list[PullMessageResponse] = []

    broker.pull_message_processor.process_request(
        PullMessageRequest("group_a", RETRIES.topic, 0, 0), answers.append
    )

    assert [len(answer.messages) for answer in answers] == [count]
    assert answers[0].next_begin_offset == 3
    assert store.runtime.run(broker.shutdown)
