"""ConsumerManager: the members of each group, and what they subscribe.

A client is known by its heartbeats, and by the channel on which they come. It is
removed when it unregisters, when its channel closes, or 120 seconds after its last
heartbeat. Of all members' subscriptions to a topic the newest is in effect. Members are
notified when another one joins or leaves, or the subscription changes.

Source: org.apache.rocketmq.broker.client.ConsumerManager, ConsumerGroupInfo, RocketMQ
5.3. Differs: the other members are also notified when a client expires; in RocketMQ the
scan that drops it is silent, and its queues are not consumed until their own next
rebalance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.remoting.heartbeat_data import ConsumerData, MessageModel
from crashmq.engine.remoting.subscription_data import SubscriptionData

CHANNEL_EXPIRED_TIMEOUT = 120_000

REGISTERED = probe("consumer_manager.registered", "a client began to consume")
REPLACED = probe("consumer_manager.replaced", "a client came on another channel")
UNREGISTERED = probe("consumer_manager.unregistered", "a client said that it goes")
CLOSED = probe("consumer_manager.closed", "the channel of a client closed")
EXPIRED = probe("consumer_manager.expired", "a client had no heartbeat for too long")
RESUBSCRIBED = probe("consumer_manager.resubscribed", "a group subscribed otherwise")


class ConsumerIdsChangeListener(Protocol):
    """Is notified of changes of groups and members; called with no lock held.

    Source: org.apache.rocketmq.broker.client.ConsumerIdsChangeListener.
    """

    def consumer_ids_changed(self, group: str, client_ids: Sequence[str]) -> None:
        """The members of a group, or their subscriptions, have changed.

        ``client_ids``, sorted, are the members, which must rebalance.
        """

    def group_registered(
        self, group: str, subscriptions: Sequence[SubscriptionData]
    ) -> None:
        """A member of a group has sent what it subscribes."""

    def group_unregistered(self, group: str) -> None:
        """A group has lost its last member."""


@dataclass(slots=True)
class _Client:
    client_id: str
    last_update_ms: int


@dataclass(slots=True)
class _Group:
    """One group: its members by their channels, and its subscriptions by topic."""

    message_model: MessageModel
    clients: dict[str, _Client] = field(default_factory=dict)
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)

    @property
    def client_ids(self) -> tuple[str, ...]:
        return tuple(sorted({client.client_id for client in self.clients.values()}))

    def update_channel(self, channel: str, client_id: str, now_ms: int) -> bool:
        """Record a heartbeat; returns whether the member, or its channel, is new."""
        known = self.clients.get(channel)
        self.clients[channel] = _Client(client_id, now_ms)
        return known is None or known.client_id != client_id

    def update_subscription(self, told: Collection[SubscriptionData]) -> bool:
        """Adopt newer subscriptions, and drop topics that are no longer subscribed.

        Returns whether anything changed. Source: ConsumerGroupInfo#updateSubscription.
        """
        is_changed = False
        for one in told:
            known = self.subscriptions.get(one.topic)
            is_changed |= known is None
            if known is None or one.sub_version > known.sub_version:
                self.subscriptions[one.topic] = one
        topics = {one.topic for one in told}
        for topic in [*self.subscriptions]:
            if topic not in topics:
                del self.subscriptions[topic]
                is_changed = True
        return is_changed


class ConsumerManager:
    """The members of all groups.

    Invariants:
        a group that is known has a member
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = runtime.lock()
        self._groups: dict[str, _Group] = {}
        self._listeners: list[ConsumerIdsChangeListener] = []

    def _check(self) -> None:
        for group, known in self._groups.items():
            assert known.clients, group

    def append_listener(self, listener: ConsumerIdsChangeListener) -> None:
        """Add a listener, called after those added before."""
        self._listeners.append(listener)

    def register_consumer(
        self,
        client_id: str,
        consumer: ConsumerData,
        channel: str = "",
        *,
        notify: bool = True,
    ) -> bool:
        """Record a heartbeat.

        Args:
            client_id: the client that sent it.
            consumer: the group it consumes for, and what it subscribes.
            channel: the connection on which it came; "": one of that client alone.
            notify: whether the members are notified of a change.

        Returns:
            Whether members or subscriptions changed.

        Source: ConsumerManager#registerConsumer.
        """
        group, is_new = consumer.group, False
        with self._lock:
            known = self._groups.get(group)
            if known is None:
                known = self._groups[group] = _Group(consumer.message_model)
            known.message_model = consumer.message_model
            now_ms = self._runtime.now_ms()
            others = known.client_ids
            is_new = known.update_channel(channel or client_id, client_id, now_ms)
            is_other = known.update_subscription(consumer.subscriptions)
            client_ids = known.client_ids
        if is_new:
            (REPLACED if client_id in others else REGISTERED).hit()
        if is_other:
            RESUBSCRIBED.hit()
        if (is_new or is_other) and notify:
            self._tell_members(group, client_ids)
        for listener in self._listeners:
            listener.group_registered(group, consumer.subscriptions)
        return is_new or is_other

    def unregister_consumer(
        self, group: str, client_id: str, *, notify: bool = True
    ) -> None:
        """Remove a client from a group.

        Source: ConsumerManager#unregisterConsumer.
        """

        def goes(channel: str, client: _Client) -> bool:
            del channel
            return client.client_id == client_id

        for name, client_ids in self._remove(goes, group):
            UNREGISTERED.hit()
            if notify and client_ids:
                self._tell_members(name, client_ids)

    def do_channel_close_event(self, channel: str) -> None:
        """Remove every client whose heartbeats came on this channel: it has closed.

        Source: ConsumerManager#doChannelCloseEvent.
        """

        def goes(its: str, client: _Client) -> bool:
            del client
            return its == channel

        for name, client_ids in self._remove(goes):
            CLOSED.hit()
            if client_ids:
                self._tell_members(name, client_ids)

    def scan_not_active_channel(self) -> int:
        """Drop inactive clients; returns how many groups lost one.

        Of a client whose last heartbeat lies ahead, since the clock was set back, the
        time starts again; there, a dead one keeps its queues until the clock is there.

        Source: ConsumerManager#scanNotActiveChannel.
        """
        now_ms = self._runtime.now_ms()

        def goes(channel: str, client: _Client) -> bool:
            del channel
            client.last_update_ms = min(client.last_update_ms, now_ms)
            return now_ms - client.last_update_ms > CHANNEL_EXPIRED_TIMEOUT

        count = 0
        for name, client_ids in self._remove(goes):
            EXPIRED.hit()
            count += 1
            if client_ids:
                self._tell_members(name, client_ids)
        return count

    def _remove(
        self, goes: Callable[[str, _Client], bool], of_group: str | None = None
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Drop clients for which ``goes``; yields each such group, and who is left."""
        lost: list[tuple[str, tuple[str, ...]]] = []
        with self._lock:
            for name in [*self._groups] if of_group is None else [of_group]:
                known = self._groups.get(name)
                if known is None:
                    continue
                gone = [at for at, client in known.clients.items() if goes(at, client)]
                for channel in gone:
                    del known.clients[channel]
                if not known.clients:
                    del self._groups[name]
                if gone:
                    lost.append((name, known.client_ids))
        for name, client_ids in lost:
            if not client_ids:
                for listener in self._listeners:
                    listener.group_unregistered(name)
            yield name, client_ids

    def _tell_members(self, group: str, client_ids: tuple[str, ...]) -> None:
        for listener in self._listeners:
            listener.consumer_ids_changed(group, client_ids)

    def consumer_id_list(self, group: str) -> tuple[str, ...]:
        """The client ids of a group's members, sorted as text; empty without members.

        Source: ConsumerManageProcessor#getConsumerListByGroup, without an order there.
        """
        with self._lock:
            known = self._groups.get(group)
            return known.client_ids if known is not None else ()

    def find_subscription_data(self, group: str, topic: str) -> SubscriptionData | None:
        """A group's subscription to a topic; None: it has none, or no member.

        Source: ConsumerManager#findSubscriptionData.
        """
        with self._lock:
            known = self._groups.get(group)
            return known.subscriptions.get(topic) if known is not None else None

    def subscriptions_of(self, group: str) -> tuple[SubscriptionData, ...]:
        """All subscriptions of a group, in the order in which they were added."""
        with self._lock:
            known = self._groups.get(group)
            return (*known.subscriptions.values(),) if known is not None else ()

    def message_model_of(self, group: str) -> MessageModel | None:
        """Whether a group clusters or broadcasts; None: it has no member.

        Source: ConsumerGroupInfo#getMessageModel.
        """
        with self._lock:
            known = self._groups.get(group)
            return known.message_model if known is not None else None

    def groups_of_topic(self, topic: str) -> tuple[str, ...]:
        """The groups that subscribe a topic, sorted.

        Source: ConsumerManager#queryTopicConsumeByWho.
        """
        with self._lock:
            return tuple(
                sorted(
                    name
                    for name, known in self._groups.items()
                    if topic in known.subscriptions
                )
            )
