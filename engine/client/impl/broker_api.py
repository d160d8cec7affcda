"""BrokerApi: what a consumer asks of the brokers, as calls.

Every call raises ``BrokerFailed`` if the broker could not be asked, or answers with an
error that the call's own text does not name.

Source: org.apache.rocketmq.client.impl.MQClientAPIImpl, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from crashmq.engine.client.consumer.pull_from_where import OffsetAdmin
from crashmq.engine.client.consumer.store.remote_broker_offset_store import OffsetBroker
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.remoting.heartbeat_data import ConsumerData
from crashmq.engine.remoting.pull_message import PullMessageRequest, PullMessageResponse

PullAnswer = Callable[[PullMessageResponse], None]
"""Takes the answer to one pull, at once or later, from any activity; only once."""


class BrokerApi(OffsetBroker, OffsetAdmin, Protocol):
    """The requests of a consumer to its brokers."""

    def topic_queues(self, topic: str) -> Sequence[MessageQueue]:
        """The queues of a topic that can be read, sorted; empty: no such topic.

        Source: MQClientInstance#updateTopicRouteInfoFromNameServer.
        """

    def consumer_id_list(self, group: str) -> Sequence[str]:
        """The ids of the clients that consume for a group, as the broker knows them.

        Source: MQClientAPIImpl#getConsumerIdListByGroup.
        """

    def send_heartbeat(self, client_id: str, consumers: Sequence[ConsumerData]) -> None:
        """Tell who this client is, and what its consumers subscribe."""

    def unregister_client(self, client_id: str, group: str) -> None:
        """Tell that this client consumes no more for a group."""

    def pull_message(self, request: PullMessageRequest, answer: PullAnswer) -> None:
        """Ask for messages; ``answer`` takes what comes, perhaps during this call.

        A broker that holds the request answers later, and one that ends meanwhile
        never does: the client gives up after its own time-out.
        """

    def lock_batch(
        self, group: str, client_id: str, queues: Sequence[MessageQueue]
    ) -> Sequence[MessageQueue]:
        """Lock queues for orderly consumption; returns those that were locked."""

    def unlock_batch(
        self, group: str, client_id: str, queues: Sequence[MessageQueue]
    ) -> None:
        """Unlock queues that this client holds."""

    def send_message_back(
        self,
        group: str,
        record: bytes,
        delay_level: int,
        max_reconsume_times: int,
    ) -> None:
        """Put a message that could not be consumed into the group's retry topic.

        ``record`` is the message as it was pulled; with ``delay_level`` 0 the broker
        chooses by how often it was tried, and after ``max_reconsume_times`` it goes
        to the dead letters.

        Source: MQClientAPIImpl#consumerSendMessageBack.
        """
