"""ClientHousekeepingService: drops clients without heartbeats, every 10 seconds.

Source: org.apache.rocketmq.broker.client.ClientHousekeepingService, RocketMQ 5.3.
"""

from __future__ import annotations

from crashmq.engine.broker.client.consumer_manager import ConsumerManager


class ClientHousekeepingService:
    """The rounds of the scan."""

    name = "client_housekeeping"
    interval_ms = 10_000
    first_after_ms = 10_000

    def __init__(self, consumer_manager: ConsumerManager) -> None:
        self._consumer_manager = consumer_manager

    def run_once(self) -> int:
        """Scan once; returns how many groups lost a member."""
        return self._consumer_manager.scan_not_active_channel()
