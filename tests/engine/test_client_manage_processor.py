from __future__ import annotations

import pytest
from store_builder import StoreBuilder

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.common.subscription_group_config import SubscriptionGroupConfig
from crashmq.engine.common.topic_config import TopicConfig
from crashmq.engine.remoting.heartbeat_data import ConsumerData
from crashmq.engine.store.message_store import MessageStore


@pytest.fixture
def broker(store: StoreBuilder) -> BrokerController:
    messages = MessageStore(store.config, store.mount, store.runtime)
    broker = BrokerController(messages, store.mount, store.runtime)
    broker.load()
    broker.start()
    return broker


def test_a_heartbeat_makes_group_and_retry_topic(
    broker: BrokerController, store: StoreBuilder
) -> None:
    beat = broker.client_manage_processor.heart_beat
    tables = broker.tables

    beat("c1", [ConsumerData("g"), ConsumerData("h")])

    assert broker.consumer_manager.consumer_id_list("g") == ("c1",)
    assert set(tables.subscription_group_manager.groups) == {"g", "h"}
    retry = tables.topic_config_manager.topics["%RETRY%g"]
    assert retry == TopicConfig("%RETRY%g", 1, 1)
    assert not [path for path in store.disk.unsynced() if path.startswith("config/")]


def test_a_heartbeat_of_a_known_group_writes_nothing(
    broker: BrokerController, store: StoreBuilder
) -> None:
    beat = broker.client_manage_processor.heart_beat
    beat("c1", [ConsumerData("g")])

    assert store.traced(lambda: beat("c2", [ConsumerData("g")])) == []
    assert broker.consumer_manager.consumer_id_list("g") == ("c1", "c2")


def test_a_group_without_retry_queues_has_no_retry_topic(
    broker: BrokerController,
) -> None:
    tables = broker.tables
    none = SubscriptionGroupConfig("g", retry_queue_nums=0)
    tables.subscription_group_manager.update_subscription_group_config(none)

    broker.client_manage_processor.heart_beat("c1", [ConsumerData("g")])

    assert "%RETRY%g" not in tables.topic_config_manager.topics
    assert broker.consumer_manager.consumer_id_list("g") == ("c1",)


def test_a_group_that_may_not_be_is_passed_over(broker: BrokerController) -> None:
    broker.tables.subscription_group_manager.auto_create = False

    broker.client_manage_processor.heart_beat("c1", [ConsumerData("g")])

    assert broker.consumer_manager.consumer_id_list("g") == ()


def test_a_goodbye_ends_a_membership(broker: BrokerController) -> None:
    processor = broker.client_manage_processor
    processor.heart_beat("c1", [ConsumerData("g")])
    processor.heart_beat("c2", [ConsumerData("g")])

    processor.unregister_client("c1", "g")
    processor.unregister_client("c1", "none")

    assert broker.consumer_manager.consumer_id_list("g") == ("c2",)
    services = {one.name: one for one in broker.services}
    assert services["client_housekeeping"].run_once() == 0
