"""SubscriptionGroupConfig: the permissions of a consumer group, and its retries.

Source: org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig,
RocketMQ 5.3. Differs: the retry policy and the configured subscriptions are kept as
they were read, and have no effect here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crashmq.engine.common.bean import Bean, map_of_texts
from crashmq.engine.common.fastjson import Json, JsonKey

RETRY_QUEUE_NUMS = 1
RETRY_MAX_TIMES = 16
CONSUME_TIMEOUT_MINUTE = 15
_CUSTOMIZED: Json = {"type": "CUSTOMIZED"}


@dataclass(frozen=True, slots=True)
class SubscriptionGroupConfig:
    """The configuration of one group.

    Attributes:
        consume_enable: whether its consumers may pull.
        consume_broadcast_enable: whether its consumers may use broadcasting.
        retry_queue_nums: queues of its retry topic; 0: nothing is retried.
        retry_max_times: retries of a message before it becomes a dead letter.
        notify_consumer_ids_changed_enable: whether the broker notifies its consumers of
            changes of its members.
        group_retry_policy: as it was read; likewise ``subscription_data_set``.
    """

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = RETRY_QUEUE_NUMS
    retry_max_times: int = RETRY_MAX_TIMES
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = CONSUME_TIMEOUT_MINUTE
    attributes: Mapping[str, str] = field(default_factory=dict)
    group_retry_policy: Json = field(default_factory=lambda: _CUSTOMIZED)
    subscription_data_set: Json = None


def group_to_json(group: SubscriptionGroupConfig) -> Json:
    """A group's configuration as a bean."""
    fields: dict[JsonKey, Json] = {
        "attributes": map_of_texts(group.attributes),
        "brokerId": group.broker_id,
        "consumeBroadcastEnable": group.consume_broadcast_enable,
        "consumeEnable": group.consume_enable,
        "consumeFromMinEnable": group.consume_from_min_enable,
        "consumeMessageOrderly": group.consume_message_orderly,
        "consumeTimeoutMinute": group.consume_timeout_minute,
        "groupName": group.group_name,
        "groupRetryPolicy": group.group_retry_policy,
        "groupSysFlag": group.group_sys_flag,
        "notifyConsumerIdsChangedEnable": group.notify_consumer_ids_changed_enable,
        "retryMaxTimes": group.retry_max_times,
        "retryQueueNums": group.retry_queue_nums,
    }
    if group.subscription_data_set is not None:
        fields["subscriptionDataSet"] = group.subscription_data_set
    fields["whichBrokerWhenConsumeSlowly"] = group.which_broker_when_consume_slowly
    return fields


def group_from_json(name: str, found: Json) -> SubscriptionGroupConfig:
    """The configuration of the group ``name`` from a parsed bean.

    Raises:
        ValueError: it is no configuration of a group.
    """
    bean = Bean(found, f"group {name}")
    return SubscriptionGroupConfig(
        bean.text("groupName", name),
        bean.boolean("consumeEnable", default=True),
        bean.boolean("consumeFromMinEnable", default=True),
        bean.boolean("consumeBroadcastEnable", default=True),
        bean.boolean("consumeMessageOrderly", default=False),
        bean.integer("retryQueueNums", RETRY_QUEUE_NUMS),
        bean.integer("retryMaxTimes", RETRY_MAX_TIMES),
        bean.long("brokerId", 0),
        bean.long("whichBrokerWhenConsumeSlowly", 1),
        bean.boolean("notifyConsumerIdsChangedEnable", default=True),
        bean.integer("groupSysFlag", 0),
        bean.integer("consumeTimeoutMinute", CONSUME_TIMEOUT_MINUTE),
        bean.texts("attributes"),
        bean.get("groupRetryPolicy", _CUSTOMIZED),
        bean.get("subscriptionDataSet"),
    )
