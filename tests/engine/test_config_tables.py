"""Topics and groups of a broker, and the files that RocketMQ 5.3.0 writes of them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from crashmq.engine.broker.broker_tables import BrokerTables
from crashmq.engine.broker.offset.consumer_offset_manager import PATH as OFFSETS
from crashmq.engine.broker.subscription.subscription_group_manager import (
    PATH as GROUPS,
)
from crashmq.engine.broker.subscription.subscription_group_manager import (
    SubscriptionGroupManager,
)
from crashmq.engine.broker.topic.topic_config_manager import PATH as TOPICS
from crashmq.engine.broker.topic.topic_config_manager import TopicConfigManager
from crashmq.engine.common.mix_all import AUTO_CREATE_TOPIC, READ_WRITE, Perm
from crashmq.engine.common.subscription_group_config import SubscriptionGroupConfig
from crashmq.engine.common.topic_config import TopicConfig
from crashmq.engine.store.errors import StoreCorrupted, StoreStopped
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.ops import DiskFault

EPOCH_MS = 1_795_446_702_886
TOPICS_OF_ROCKETMQ = """{
	"dataVersion":{
		"counter":2,
		"stateVersion":0,
		"timestamp":1795446702886
	},
	"topicConfigTable":{
		"SCHEDULE_TOPIC_XXXX":{
			"attributes":{},
			"order":false,
			"perm":6,
			"readQueueNums":18,
			"topicFilterType":"SINGLE_TAG",
			"topicName":"SCHEDULE_TOPIC_XXXX",
			"topicSysFlag":0,
			"writeQueueNums":18
		},
		"orders":{
			"attributes":{},
			"order":false,
			"perm":6,
			"readQueueNums":4,
			"topicFilterType":"SINGLE_TAG",
			"topicName":"orders",
			"topicSysFlag":0,
			"writeQueueNums":4
		},
		"%RETRY%g":{
			"attributes":{},
			"order":false,
			"perm":6,
			"readQueueNums":1,
			"topicFilterType":"SINGLE_TAG",
			"topicName":"%RETRY%g",
			"topicSysFlag":0,
			"writeQueueNums":1
		},
		"TBW102":{
			"attributes":{},
			"order":false,
			"perm":7,
			"readQueueNums":8,
			"topicFilterType":"SINGLE_TAG",
			"topicName":"TBW102",
			"topicSysFlag":0,
			"writeQueueNums":8
		}
	}
}"""
GROUPS_OF_ROCKETMQ = """{
	"dataVersion":{
		"counter":4,
		"stateVersion":0,
		"timestamp":1795446702916
	},
	"forbiddenTable":{
		"g":{
			"orders":1
		}
	},
	"subscriptionGroupTable":{
		"g":{
			"attributes":{},
			"brokerId":0,
			"consumeBroadcastEnable":true,
			"consumeEnable":true,
			"consumeFromMinEnable":true,
			"consumeMessageOrderly":false,
			"consumeTimeoutMinute":15,
			"groupName":"g",
			"groupRetryPolicy":{
				"type":"CUSTOMIZED"
			},
			"groupSysFlag":0,
			"notifyConsumerIdsChangedEnable":true,
			"retryMaxTimes":16,
			"retryQueueNums":1,
			"whichBrokerWhenConsumeSlowly":1
		},
		"g2":{
			"attributes":{},
			"brokerId":0,
			"consumeBroadcastEnable":true,
			"consumeEnable":true,
			"consumeFromMinEnable":true,
			"consumeMessageOrderly":false,
			"consumeTimeoutMinute":15,
			"groupName":"g2",
			"groupRetryPolicy":{
				"type":"CUSTOMIZED"
			},
			"groupSysFlag":0,
			"notifyConsumerIdsChangedEnable":true,
			"retryMaxTimes":16,
			"retryQueueNums":0,
			"whichBrokerWhenConsumeSlowly":1
		}
	}
}"""


def topics_on(disk: SimDisk) -> TopicConfigManager:
    manager = TopicConfigManager(disk.mount(), SimRuntime(EPOCH_MS))
    manager.table.load()
    return manager


def groups_on(disk: SimDisk, *, auto_create: bool = True) -> SubscriptionGroupManager:
    manager = SubscriptionGroupManager(
        disk.mount(), SimRuntime(EPOCH_MS), auto_create=auto_create
    )
    manager.table.load()
    return manager


def test_the_file_of_topics_is_rocketmqs_byte_for_byte() -> None:
    disk = SimDisk()
    disk.load({TOPICS: TOPICS_OF_ROCKETMQ.encode()})

    manager = topics_on(disk)
    manager.table.persist()

    assert disk.files()[TOPICS].decode() == TOPICS_OF_ROCKETMQ
    assert manager.topics["orders"] == TopicConfig("orders", 4, 4)
    assert manager.topics[AUTO_CREATE_TOPIC].perm == READ_WRITE | Perm.INHERIT


def test_the_file_of_groups_is_rocketmqs_byte_for_byte() -> None:
    disk = SimDisk()
    disk.load({GROUPS: GROUPS_OF_ROCKETMQ.encode()})

    manager = groups_on(disk)
    manager.table.persist()

    assert disk.files()[GROUPS].decode() == GROUPS_OF_ROCKETMQ
    assert manager.groups["g2"] == SubscriptionGroupConfig("g2", retry_queue_nums=0)


def test_what_is_read_of_a_table_is_written_again() -> None:
    disk = SimDisk()
    config = {
        "groupRetryPolicy": {"type": "EXPONENTIAL", "exponentialRetryPolicy": {"a": 1}},
        "attributes": {"x": "1"},
        "subscriptionDataSet": [{"topic": "T", "version": 3}],
    }
    table = {"subscriptionGroupTable": {"g": config}, "forbiddenTable": {"h": {"T": 2}}}
    disk.load({GROUPS: json.dumps(table).encode()})

    groups_on(disk).table.persist()

    written = json.loads(disk.files()[GROUPS])
    of_g = written["subscriptionGroupTable"]["g"]
    assert {name: of_g[name] for name in config} == config
    assert written["forbiddenTable"] == {"h": {"T": 2}}
    assert list(of_g) == sorted(of_g)


def test_a_table_of_4x_is_read() -> None:
    disk = SimDisk()
    row = {"perm": 6, "readQueueNums": 4, "topicName": "T", "writeQueueNums": 4}
    disk.load({TOPICS: json.dumps({"topicConfigTable": {"T": row}}).encode()})

    assert topics_on(disk).topics["T"] == TopicConfig("T", 4, 4)


@pytest.mark.parametrize(
    "text",
    [
        *("null", "[]", '{"topicConfigTable":5}', '{"topicConfigTable":{"T":5}}'),
        *('{"topicConfigTable":{"T":{"perm":"6"}}}', '{"dataVersion":[]}'),
        *('{"topicConfigTable":{"T":{"order":1}}}', '{"topicConfigTable":{"T":null}}'),
        *('{"topicConfigTable":{"T":{"attributes":{"a":1}}}}', '{"topicConfigTable":'),
        *('{"topicConfigTable":{"T":{"readQueueNums":-1}}}', "{1:2}"),
        *('{"topicConfigTable":{"T":{"topicName":7}}}', '{"topicConfigTable":null}'),
        *('{"dataVersion":null}', '{"dataVersion":{"counter":true}}'),
        '{"topicConfigTable":{"T":{"readQueueNums":4294967297}}}',
    ],
)
def test_a_text_that_is_no_table_of_topics_refuses_the_start(text: str) -> None:
    disk = SimDisk()
    disk.load({TOPICS: text.encode()})

    with pytest.raises(StoreCorrupted) as refused:
        topics_on(disk)

    assert refused.value.path == TOPICS
    assert disk.files() == {TOPICS: text.encode()}


@pytest.mark.parametrize(
    "text",
    [
        *('{"subscriptionGroupTable":null}', '{"forbiddenTable":7}'),
        '{"subscriptionGroupTable":{"g":{"retryMaxTimes":2147483648}}}',
        '{"subscriptionGroupTable":{"g":{"brokerId":9223372036854775808}}}',
    ],
)
def test_a_text_that_is_no_table_of_groups_refuses_the_start(text: str) -> None:
    disk = SimDisk()
    disk.load({GROUPS: text.encode()})

    with pytest.raises(StoreCorrupted):
        groups_on(disk)

    assert disk.files() == {GROUPS: text.encode()}


def test_what_no_start_could_load_is_not_written() -> None:
    disk = SimDisk()
    topics = topics_on(disk)
    topics.update_topic_config(TopicConfig("T", 2, 2))
    before = disk.files()

    with pytest.raises(ValueError, match="a number of 32 bits"):
        topics.update_topic_config(TopicConfig("T", 1 << 31, 2))

    assert disk.files() == before
    assert topics.topics["T"] == TopicConfig("T", 2, 2)


def test_a_version_at_the_end_of_its_64_bits_goes_on_as_in_java() -> None:
    disk = SimDisk()
    version = {"counter": 9223372036854775807}
    disk.load({TOPICS: json.dumps({"dataVersion": version}).encode()})

    topics_on(disk).update_topic_config(TopicConfig("T", 2, 2))

    disk.unmount()
    assert topics_on(disk).table.data_version.counter == -9223372036854775808


def test_a_change_is_durable_before_it_is_seen() -> None:
    disk = SimDisk()
    topics, groups = (
        topics_on(disk),
        SubscriptionGroupManager(disk.beside(), SimRuntime(EPOCH_MS)),
    )
    groups.table.load()
    topics.update_topic_config(TopicConfig("T", 2, 3))
    groups.update_subscription_group_config(SubscriptionGroupConfig("g"))
    assert disk.unsynced() == ()
    disk.unmount()

    again = topics_on(disk)
    assert again.topics["T"] == TopicConfig("T", 2, 3)
    assert again.table.data_version.counter == 1
    assert again.delete_topic_config("T")
    assert not again.delete_topic_config("T")
    disk.unmount()
    assert topics_on(disk).select_topic_config("T") is None
    disk.unmount()
    assert groups_on(disk).delete_subscription_group_config("g")


def test_a_change_that_fails_has_not_happened() -> None:
    disk = SimDisk()
    topics = topics_on(disk)
    topics.update_topic_config(TopicConfig("T", 2, 2))
    disk.fail(DiskFault("create", "ENOSPC", 1))

    with pytest.raises(OSError, match="No space left"):
        topics.update_topic_config(TopicConfig("U", 2, 2))

    assert topics.select_topic_config("U") is None
    assert topics.table.data_version.counter == 1
    topics.update_topic_config(TopicConfig("U", 2, 2))
    assert topics.table.data_version.counter == 2


def test_the_next_use_takes_back_a_deletion_that_failed_late() -> None:
    disk = SimDisk()
    topics = topics_on(disk)
    topics.update_topic_config(TopicConfig("T", 2, 2))
    disk.fail(DiskFault("sync", "EIO", 1, after=2))
    with pytest.raises(OSError, match="Input/output"):
        topics.delete_topic_config("T")
    assert '"T"' not in disk.files()[TOPICS].decode()

    assert topics.create_topic_in_send_message_method("T") is not None

    assert '"T"' in disk.files()[TOPICS].decode()
    assert topics.table.data_version.counter == 1


def test_a_new_topic_inherits_of_the_default_topic() -> None:
    topics = topics_on(SimDisk())

    made = topics.create_topic_in_send_message_method("T", queue_nums=100)
    assert made == TopicConfig("T", 8, 8, READ_WRITE)
    assert topics.create_topic_in_send_message_method("T") is made
    assert topics.create_topic_in_send_message_method("U") == TopicConfig("U", 4, 4)

    model = topics.topics[AUTO_CREATE_TOPIC]
    topics.update_topic_config(replace(model, perm=READ_WRITE))
    assert topics.create_topic_in_send_message_method("V") is None
    assert topics.create_topic_in_send_message_method("V", "none") is None


def test_a_groups_topics_are_made_once() -> None:
    topics = topics_on(SimDisk())

    made = topics.create_topic_in_send_message_back_method("%RETRY%g", 1)

    assert made == TopicConfig("%RETRY%g", 1, 1)
    assert topics.create_topic_in_send_message_back_method("%RETRY%g", 5) is made


def test_a_group_gets_the_defaults_where_it_may() -> None:
    disk = SimDisk()
    groups = groups_on(disk)

    made = groups.find_subscription_group_config("g")
    assert made == SubscriptionGroupConfig("g")
    assert groups.find_subscription_group_config("g") is made
    assert groups.find_subscription_group_config("") is None
    disk.unmount()

    strict = groups_on(disk, auto_create=False)
    assert strict.contains_subscription_group("g")
    assert strict.find_subscription_group_config("h") is None


@pytest.mark.parametrize("path", [TOPICS, OFFSETS, GROUPS])
def test_one_table_that_cannot_be_read_leaves_all_as_they_are(path: str) -> None:
    disk = SimDisk()
    good = {
        TOPICS: TOPICS_OF_ROCKETMQ.encode(),
        OFFSETS: b'{"offsetTable":{"T@g":{0:7}}}',
        GROUPS: GROUPS_OF_ROCKETMQ.encode(),
    }
    before = {**good, path: b"", f"{path}.bak": b"\0\0\0"}
    disk.load(before)

    for _ in range(2):
        with pytest.raises(StoreCorrupted) as refused:
            BrokerTables(disk.mount(), SimRuntime(EPOCH_MS)).load()
        disk.unmount()
        assert refused.value.path == path

    assert disk.files() == before


def test_a_table_that_has_ended_is_written_no_more() -> None:
    disk = SimDisk()
    topics = topics_on(disk)
    topics.update_topic_config(TopicConfig("T", 2, 3))
    before = dict(disk.files())

    topics.table.end()

    with pytest.raises(StoreStopped, match="the broker stops"):
        topics.update_topic_config(TopicConfig("U", 1, 1))
    assert "U" not in topics.topics
    assert dict(disk.files()) == before
