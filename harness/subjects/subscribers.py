"""Subscribers: what the groups' clients say to a broker, and pulls that it filters.

A client of each group lives in the store's process, and ends with it; so does what the
broker knows of its heartbeat.
"""

from __future__ import annotations

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.broker.filter.expression_message_filter import (
    ExpressionMessageFilter,
)
from crashmq.engine.remoting.filter_api import build_subscription_data
from crashmq.engine.remoting.subscription_data import SubscriptionData
from crashmq.engine.store.errors import StoreStopped
from crashmq.harness.subjects.engine_messages import pulled_of
from crashmq.models.observations import (
    Done,
    FilteredPull,
    NotFiltered,
    Observation,
    Skipped,
)
from crashmq.models.ops import ExpressionType

_STOPPING = Skipped("the store is stopping")


class Subscribers:
    """The clients of one life of a broker."""

    def __init__(self, broker: BrokerController) -> None:
        self._broker = broker
        self._subscriptions: dict[str, dict[str, SubscriptionData]] = {}

    def filters(self) -> tuple[tuple[tuple[str, str], tuple[str, int]], ...] | None:
        """By group and topic the expression and its version, sorted."""
        if not self._broker.config.enable_property_filter:
            return None
        found = self._broker.consumer_filter_manager.get_all()
        return tuple(
            sorted(
                ((one.consumer_group, one.topic), (one.expression, one.client_version))
                for one in found
            )
        )

    def subscribe(
        self,
        group: str,
        topic: str,
        expression: str,
        expression_type: ExpressionType,
        version: int,
    ) -> Observation:
        """Let a client's heartbeat say all that its group subscribes."""
        if not self._broker.is_started:
            return _STOPPING
        if not self._broker.config.enable_property_filter:
            return Skipped("the broker filters by no expression")
        try:
            told = build_subscription_data(topic, expression, expression_type, version)
        except ValueError as error:
            return Skipped(str(error))
        known = self._subscriptions.setdefault(group, {})
        old = known.get(topic)
        if old is None or old.sub_version < version:
            known[topic] = told
        others = [one for name, one in known.items() if name != topic]
        heartbeat = [told, *others]
        self._broker.consumer_filter_manager.register(group, heartbeat)
        return Done()

    def unsubscribe(self, group: str) -> Observation:
        """Let a client say that it is gone."""
        if not self._broker.is_started:
            return _STOPPING
        self._subscriptions.pop(group, None)
        self._broker.consumer_filter_manager.unregister(group)
        return Done()

    def pull_filtered(
        self,
        group: str,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_msg_nums: int,
    ) -> Observation:
        """Read a queue by what its group subscribes.

        Source: PullMessageProcessor#processRequest, its checks of subscriptions.
        """
        told = self._subscriptions.get(group, {}).get(topic)
        if told is None:
            return Skipped("the group subscribes no such topic")
        filters = self._broker.consumer_filter_manager
        data = None
        if told.expression_type != "TAG":
            data = filters.get(topic, group)
            if data is None or data.client_version < told.sub_version:
                return NotFiltered()
        wanted = ExpressionMessageFilter(told, data, filters)
        try:
            found = self._broker.message_store.get_message(
                topic, queue_id, queue_offset, max_msg_nums, wanted
            )
        except StoreStopped:
            return _STOPPING
        expression = told.sub_string if data is None else data.expression
        return FilteredPull(pulled_of(found), expression, told.expression_type)
