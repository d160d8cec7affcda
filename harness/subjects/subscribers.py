"""Subscribers: what the groups' clients say to a broker, and pulls that it filters.

A client of each group lives in the store's process, and ends with it; so does what the
broker knows of its heartbeat.
"""

from __future__ import annotations

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.common.mix_all import retry_topic_of
from crashmq.engine.remoting.filter_api import build_subscription_data
from crashmq.engine.remoting.heartbeat_data import ConsumerData
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
        consumers = self._broker.consumer_manager
        # A client subscribes its group's retries, whatever else it subscribes.
        retries = SubscriptionData(retry_topic_of(group))
        known = {one.topic: one for one in consumers.subscriptions_of(group)}
        heartbeat = {retries.topic: retries, **known, topic: told}
        consumers.register_consumer(
            _client_of(group), ConsumerData(group, subscriptions=(*heartbeat.values(),))
        )
        return Done()

    def unsubscribe(self, group: str) -> Observation:
        """Let a client say that it is gone."""
        if not self._broker.is_started:
            return _STOPPING
        self._broker.consumer_manager.unregister_consumer(group, _client_of(group))
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
        told = self._broker.consumer_manager.find_subscription_data(group, topic)
        if told is None:
            return Skipped("the group subscribes no such topic")
        filters = self._broker.consumer_filter_manager
        data = None
        if told.expression_type != "TAG":
            data = filters.get(topic, group)
            if data is None or data.client_version < told.sub_version:
                return NotFiltered()
        wanted = self._broker.filtering.filter_by(told, data)
        try:
            found = self._broker.message_store.get_message(
                topic, queue_id, queue_offset, max_msg_nums, wanted
            )
        except StoreStopped:
            return _STOPPING
        expression = told.sub_string if data is None else data.expression
        return FilteredPull(pulled_of(found), expression, told.expression_type)


def _client_of(group: str) -> str:
    """The client that speaks for a group; living consumers are others."""
    return f"subscriber-of-{group}"
