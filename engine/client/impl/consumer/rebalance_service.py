"""RebalanceService: rebalances every 20 seconds, or every second until all is done.

Source: org.apache.rocketmq.client.impl.consumer.RebalanceService, RocketMQ 5.3.
Differs: the host that runs the rounds has to keep them a second apart.
"""

from __future__ import annotations

from collections.abc import Callable

from crashmq.engine.client.impl.consumer.rebalance_impl import RebalanceImpl

WAIT_INTERVAL_MS = 20_000
MIN_INTERVAL_MS = 1_000


class RebalanceService:
    """The rounds of rebalance of one consumer.

    Attributes:
        interval_ms: ms until the next round is due.
    """

    name = "rebalance"

    def __init__(self, rebalance_impl: RebalanceImpl) -> None:
        self.rebalance_impl = rebalance_impl
        self.is_running = False
        self.paused = False
        self.interval_ms = MIN_INTERVAL_MS
        self._wake: Callable[[], None] | None = None

    def on_work(self, wake: Callable[[], None]) -> None:
        """Register ``wake``, to be called when a round is needed at once."""
        self._wake = wake

    def rebalance_immediately(self) -> None:
        """Ask for a round now. Source: MQClientInstance#rebalanceImmediately."""
        self.interval_ms = MIN_INTERVAL_MS
        if self._wake is not None:
            self._wake()

    def run_once(self) -> int:
        """Rebalance; returns how many queues came and went, 0 while it may not.

        Raises:
            OSError: as ``RebalanceImpl.do_rebalance``.
        """
        if self.paused or not self.is_running:
            return 0
        self.interval_ms = MIN_INTERVAL_MS
        balanced, changes = self.rebalance_impl.do_rebalance()
        if balanced:
            self.interval_ms = WAIT_INTERVAL_MS
        return changes
