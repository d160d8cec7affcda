"""BrokerClients: what a broker knows of its clients, in memory only."""

from __future__ import annotations

from crashmq.engine.broker.client.client_housekeeping_service import (
    ClientHousekeepingService,
)
from crashmq.engine.broker.client.consumer_manager import ConsumerManager
from crashmq.engine.broker.client.rebalance_lock_manager import RebalanceLockManager
from crashmq.engine.host.runtime import Runtime


class BrokerClients:
    """The members of groups, the locks of queues, and the scan for inactive clients."""

    def __init__(self, runtime: Runtime) -> None:
        self.consumer_manager = ConsumerManager(runtime)
        self.rebalance_lock_manager = RebalanceLockManager(runtime)
        self.housekeeping = ClientHousekeepingService(self.consumer_manager)
