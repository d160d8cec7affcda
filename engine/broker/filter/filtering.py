"""Filtering: the parts of a broker that filter messages by subscriptions, as one."""

from __future__ import annotations

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.client.consumer_manager import ConsumerManager
from crashmq.engine.broker.filter.commit_log_dispatcher_calc_bit_map import (
    CommitLogDispatcherCalcBitMap,
)
from crashmq.engine.broker.filter.consumer_filter_data import ConsumerFilterData
from crashmq.engine.broker.filter.consumer_filter_manager import ConsumerFilterManager
from crashmq.engine.broker.filter.expression_for_retry_message_filter import (
    ExpressionForRetryMessageFilter,
)
from crashmq.engine.broker.filter.expression_message_filter import (
    ExpressionMessageFilter,
)
from crashmq.engine.broker.filter.filter_registrar import FilterRegistrar
from crashmq.engine.broker.persist_services import PersistConsumerFilterService
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.remoting.pull_message import PullMessageRequest, PullSysFlag
from crashmq.engine.remoting.subscription_data import SubscriptionData
from crashmq.engine.store.message_filter import MessageFilter
from crashmq.engine.store.message_store import MessageStore


class Filtering:
    """The filters of one broker; read and persisted only if property filters are on.

    Attributes:
        manager: the manager of all filters.
        persist: the service that writes them periodically; None: they are not
            persisted.
    """

    def __init__(
        self,
        config: BrokerConfig,
        disk: Disk,
        runtime: Runtime,
        consumers: ConsumerManager,
    ) -> None:
        self._config = config
        self.manager = ConsumerFilterManager(config, disk, runtime)
        self.persist: PersistConsumerFilterService | None = None
        if config.enable_property_filter:
            self.persist = PersistConsumerFilterService(self.manager, runtime)
            consumers.append_listener(FilterRegistrar(self.manager))

    def load(self) -> None:
        """Read the file of filters.

        Raises:
            StoreCorrupted: there was one, and no copy of it can be read.
        """
        if self.persist is not None:
            self.manager.load()

    def settle(self) -> None:
        """Make durable what was loaded.

        Raises:
            OSError: the disk failed.
        """
        if self.persist is not None:
            self.manager.settle()

    def begin(self, store: MessageStore) -> None:
        """Let filters cover what is stored from now on, and add bit maps to dispatch.

        Source: BrokerController#registerProcessor's dispatchers,
        CommitLogDispatcherCalcBitMap.
        """
        if self._config.enable_calc_filter_bit_map:
            store.calc_bit_map(CommitLogDispatcherCalcBitMap(self.manager).calc)
        if self.persist is not None:
            self.manager.open(store.commit_log.newest_store_time)

    def filter_of(
        self, request: PullMessageRequest, subscription: SubscriptionData
    ) -> MessageFilter:
        """The message filter for a pull: the one it carries, or its group's own.

        A group's filter is the one that is registered now.
        """
        group, data = request.consumer_group, None
        if PullSysFlag.SUBSCRIPTION not in request.sys_flag:
            data = self.manager.get(subscription.topic, group)
        elif subscription.expression_type != "TAG":
            data = self.manager.build(group, subscription)
        return self.filter_by(subscription, data)

    def filter_by(
        self, subscription: SubscriptionData, data: ConsumerFilterData | None
    ) -> MessageFilter:
        """The message filter for a subscription and its registered filter, if any.

        Source: PullMessageProcessor#processRequest, its choice of a MessageFilter.
        """
        if self._config.filter_support_retry:
            return ExpressionForRetryMessageFilter(subscription, data, self.manager)
        return ExpressionMessageFilter(subscription, data, self.manager)
