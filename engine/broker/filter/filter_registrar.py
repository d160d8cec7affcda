"""FilterRegistrar: lets filters follow what the members of groups subscribe.

Source: org.apache.rocketmq.broker.client.DefaultConsumerIdsChangeListener, RocketMQ
5.3, its cases REGISTER and UNREGISTER.
"""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.engine.broker.filter.consumer_filter_manager import ConsumerFilterManager
from crashmq.engine.remoting.subscription_data import SubscriptionData


class FilterRegistrar:
    """Hears of the members of all groups."""

    def __init__(self, filters: ConsumerFilterManager) -> None:
        self._filters = filters

    def consumer_ids_changed(self, group: str, client_ids: Sequence[str]) -> None:
        """Do nothing: who the members are decides no filter."""

    def group_registered(
        self, group: str, subscriptions: Sequence[SubscriptionData]
    ) -> None:
        """Take over what a group subscribes."""
        self._filters.register(group, subscriptions)

    def group_unregistered(self, group: str) -> None:
        """Take note that a group has no member any more."""
        self._filters.unregister(group)
