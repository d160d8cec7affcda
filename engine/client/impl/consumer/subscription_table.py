"""SubscriptionTable: the subscriptions of one consumer, by topic.

Source: RebalanceImpl#getSubscriptionInner, FilterAPI#buildSubscriptionData, RocketMQ
5.3. Differs: each version is higher than the one before, even if the clock was set back
or shows the same millisecond; there, the broker ignores such a subscription.
"""

from __future__ import annotations

from dataclasses import replace

from crashmq.engine.host.runtime import Runtime
from crashmq.engine.remoting.filter_api import build_subscription_data
from crashmq.engine.remoting.subscription_data import ExpressionType, SubscriptionData


class SubscriptionTable:
    """The subscriptions of one consumer."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = runtime.lock()
        self._by_topic: dict[str, SubscriptionData] = {}
        self._newest: dict[str, int] = {}
        self._asked_since: dict[str, int] = {}

    def subscribe(
        self, topic: str, expression: str, expression_type: ExpressionType = "TAG"
    ) -> None:
        """Subscribe a topic, replacing its present subscription.

        Raises:
            ValueError: the expression has no tag.
        """
        data = build_subscription_data(topic, expression, expression_type)
        with self._lock:
            version = self._asked_since[topic] = self._next_version(topic)
            self._by_topic[topic] = replace(data, sub_version=version)

    def unsubscribe(self, topic: str) -> None:
        """Drop the subscription to a topic."""
        with self._lock:
            self._by_topic.pop(topic, None)

    def bump(self, topic: str) -> None:
        """Give a topic's subscription a new version."""
        with self._lock:
            data = self._by_topic.get(topic)
            if data is not None:
                version = self._next_version(topic)
                self._by_topic[topic] = replace(data, sub_version=version)

    def _next_version(self, topic: str) -> int:
        version = max(self._runtime.now_ms(), self._newest.get(topic, 0) + 1)
        self._newest[topic] = version
        return version

    def is_still_asked(self, then: SubscriptionData) -> bool:
        """Whether a subscription has not changed since.

        A change that was taken back counts as a change, since a broker may have
        filtered by it meanwhile.
        """
        with self._lock:
            is_subscribed = then.topic in self._by_topic
            return is_subscribed and then.sub_version >= self._asked_since[then.topic]

    def get(self, topic: str) -> SubscriptionData | None:
        """The subscription to a topic; None: none."""
        return self._by_topic.get(topic)

    def all(self) -> tuple[SubscriptionData, ...]:
        """All subscriptions, sorted by topic."""
        with self._lock:
            return tuple(self._by_topic[topic] for topic in sorted(self._by_topic))
