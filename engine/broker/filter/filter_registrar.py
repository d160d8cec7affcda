"""FilterRegistrar: keeps filters in step with what the members of groups subscribe.

Source: org.apache.rocketmq.broker.client.DefaultConsumerIdsChangeListener, RocketMQ
5.3, its cases REGISTER and UNREGISTER.
"""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.engine.broker.filter.consumer_filter_manager import ConsumerFilterManager
from crashmq.engine.remoting.subscription_data import SubscriptionData


class FilterRegistrar:
    """Listens to the members of all groups."""

    def __init__(self, filters: ConsumerFilterManager) -> None:
        self._filters = filters

    def consumer_ids_changed(self, group: str, client_ids: Sequence[str]) -> None:
        """Do nothing: filters do not depend on the list of members."""

    def group_registered(
        self, group: str, subscriptions: Sequence[SubscriptionData]
    ) -> None:
        """Adopt what a group subscribes."""
        self._filters.register(group, subscriptions)

    def group_unregistered(self, group: str) -> None:
        """Mark the filters of a group without members as dead."""
        self._filters.unregister(group)
