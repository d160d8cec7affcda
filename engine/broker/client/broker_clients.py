"""BrokerClients: what a broker knows of its clients, all of it in memory."""

from __future__ import annotations

from crashmq.engine.broker.client.client_housekeeping_service import (
    ClientHousekeepingService,
)
from crashmq.engine.broker.client.consumer_manager import ConsumerManager
from crashmq.engine.broker.client.rebalance_lock_manager import RebalanceLockManager
from crashmq.engine.host.runtime import Runtime


class BrokerClients:
    """Who consumes for which group, who holds which queue, and who falls silent."""

    def __init__(self, runtime: Runtime) -> None:
        self.consumer_manager = ConsumerManager(runtime)
        self.rebalance_lock_manager = RebalanceLockManager(runtime)
        self.housekeeping = ClientHousekeepingService(self.consumer_manager)
