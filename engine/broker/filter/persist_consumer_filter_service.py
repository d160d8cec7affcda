"""PersistConsumerFilterService: writes the filters of all groups every ten seconds.

Source: BrokerController#initializeBrokerScheduledTasks, its persist of the consumer
filters, first ten seconds after the start.
"""

from __future__ import annotations

from crashmq.engine.broker.filter.consumer_filter_manager import ConsumerFilterManager
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

INTERVAL_MS = 10_000

STOPPED = probe(
    "persist_consumer_filter.stopped", "a round came after the broker's end"
)


class PersistConsumerFilterService:
    """The service that persists the filters, until the broker stops."""

    name = "persist_consumer_filter"
    interval_ms = INTERVAL_MS
    first_after_ms = INTERVAL_MS

    def __init__(self, manager: ConsumerFilterManager, runtime: Runtime) -> None:
        self._manager = manager
        self._lock = runtime.lock()
        self._is_stopped = False

    def run_once(self) -> int:
        """Persist the filters; returns 1, or 0 once the broker has stopped.

        Raises:
            OSError: the disk failed; the next round writes all again.
        """
        with self._lock:
            if self._is_stopped:
                STOPPED.hit()
                return 0
            self._manager.persist()
            return 1

    def stop(self) -> None:
        """Wait for a round in progress, persist once more; later rounds do nothing.

        Raises:
            OSError: the disk failed; what was persisted before is kept.
        """
        with self._lock:
            self._is_stopped = True
            self._manager.persist()
