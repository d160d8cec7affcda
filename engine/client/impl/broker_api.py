"""BrokerApi: a consumer's requests to its brokers, as calls.

Every call raises ``BrokerFailed`` if the broker could not be asked, or answers with an
error that the call's own docstring does not name.
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
        """Send this client's id and its consumers' subscriptions."""

    def unregister_client(self, client_id: str, group: str) -> None:
        """Remove this client from a group."""

    def pull_message(self, request: PullMessageRequest, answer: PullAnswer) -> None:
        """Ask for messages; ``answer`` gets what comes, perhaps during this call.

        A broker that holds the request answers later, and one that crashes meanwhile
        never does: the client gives up after its own timeout.
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
