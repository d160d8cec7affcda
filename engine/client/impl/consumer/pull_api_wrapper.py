"""PullAPIWrapper: what a pull sends to the broker, and what it accepts of the answer.

Source: org.apache.rocketmq.client.impl.consumer.PullAPIWrapper, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.consumer.store.offset_store import (
    OffsetStore,
    ReadOffsetType,
)
from crashmq.engine.client.impl.broker_api import BrokerApi, PullAnswer
from crashmq.engine.client.impl.consumer.pull_request import PullRequest
from crashmq.engine.common.message_ext import MessageExt, decode_message
from crashmq.engine.host.probe import probe
from crashmq.engine.remoting.pull_message import PullMessageRequest, PullSysFlag
from crashmq.engine.remoting.subscription_data import SubscriptionData
from crashmq.engine.store.message.message import PROPERTY_TAGS

BROKER_SUSPEND_MAX_TIME_MILLIS = 15_000

COMMITS = probe("pull_api.commits", "a pull carried its group's offset")
FILTERED = probe("pull_api.filtered", "a pulled message had none of the tags asked for")


class PullAPIWrapper:
    """The pulls of one consumer."""

    def __init__(
        self, config: PushConsumerConfig, api: BrokerApi, offset_store: OffsetStore
    ) -> None:
        self._config = config
        self._api = api
        self._offset_store = offset_store

    def pull_kernel_impl(
        self, request: PullRequest, subscription: SubscriptionData, answer: PullAnswer
    ) -> None:
        """Send a pull, with the offset that the client has in memory as its commit.

        An offset of 0 is not sent, since it means no more than none.

        Raises:
            BrokerFailed: it could not be sent.

        Source: PullAPIWrapper#pullKernelImpl.
        """
        queue, config = request.queue, self._config
        sys_flag, commit_offset = PullSysFlag.SUSPEND, 0
        if config.is_clustering:
            memory = ReadOffsetType.READ_FROM_MEMORY
            commit_offset = max(0, self._offset_store.read_offset(queue, memory))
        if commit_offset > 0:
            COMMITS.hit()
            sys_flag |= PullSysFlag.COMMIT_OFFSET
        if config.post_subscription_when_pull:
            sys_flag |= PullSysFlag.SUBSCRIPTION
        pull = PullMessageRequest(
            consumer_group=config.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=request.next_offset,
            max_msg_nums=config.pull_batch_size,
            sys_flag=sys_flag,
            commit_offset=commit_offset,
            suspend_timeout_millis=BROKER_SUSPEND_MAX_TIME_MILLIS,
            subscription=subscription.sub_string,
            sub_version=subscription.sub_version,
            expression_type=subscription.expression_type,
            client_id=config.client_id,
            broker_life=self._offset_store.broker_life_of(queue),
        )
        self._api.pull_message(pull, answer)


def messages_that_match(
    records: Iterable[bytes], subscription: SubscriptionData
) -> list[MessageExt]:
    """The messages with a subscribed tag, since a broker may compare hashes alone.

    Source: PullAPIWrapper#processPullResult.
    """
    messages = [decode_message(record) for record in records]
    if not subscription.tags:
        return messages
    kept = [m for m in messages if m.properties.get(PROPERTY_TAGS) in subscription.tags]
    if len(kept) < len(messages):
        FILTERED.hit()
    return kept
