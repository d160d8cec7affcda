"""SendBack: puts messages that could not be consumed into their group's retry topic.

Source: DefaultMQPushConsumerImpl#sendMessageBack, RocketMQ 5.3. Differs: the record
itself is sent, so the broker needs no original; and there is no fallback that puts the
message as a new one.
"""

from __future__ import annotations

from crashmq.engine.client.consumer.push_consumer_config import (
    BY_DEFAULT,
    MAX_RECONSUME_TIMES,
    PushConsumerConfig,
)
from crashmq.engine.client.consumer.store.remote_broker_offset_store import BrokerFailed
from crashmq.engine.client.impl.broker_api import BrokerApi
from crashmq.engine.common.message_ext import PROPERTY_RETRY_TOPIC, MessageExt
from crashmq.engine.common.message_queue import RETRY_GROUP_TOPIC_PREFIX
from crashmq.engine.host.probe import probe

FAILED = probe("send_back.failed", "a message could not be sent back to the broker")
ORDERLY_MAX = (1 << 31) - 1


class SendBack:
    """Sends one consumer's failed messages back to the broker."""

    def __init__(self, config: PushConsumerConfig, api: BrokerApi) -> None:
        self._config = config
        self._api = api
        self._retry_topic = RETRY_GROUP_TOPIC_PREFIX + config.group

    @property
    def max_reconsume_times(self) -> int:
        """How often a message is tried again before it is a dead letter.

        Source: DefaultMQPushConsumerImpl, ConsumeMessageOrderlyService
        #getMaxReconsumeTimes.
        """
        if self._config.max_reconsume_times != BY_DEFAULT:
            return self._config.max_reconsume_times
        return ORDERLY_MAX if self._config.is_orderly else MAX_RECONSUME_TIMES

    def send_message_back(self, message: MessageExt, delay_level: int) -> bool:
        """Send a message back; False: the broker has not confirmed it."""
        try:
            self._api.send_message_back(
                self._config.group,
                message.record,
                delay_level,
                self.max_reconsume_times,
            )
        except BrokerFailed:
            FAILED.hit()
            return False
        return True

    def reset_retry_topic(self, message: MessageExt) -> None:
        """Replace a retry's topic by the original topic, for the listener."""
        origin = message.properties.get(PROPERTY_RETRY_TOPIC)
        if origin and message.topic == self._retry_topic:
            message.topic = origin
