"""PersistConsumerOffsetService: writes the offsets of all groups every five seconds.

A round writes the table whether it has changed or not, as RocketMQ does.

Source: BrokerController#initializeBrokerScheduledTasks, its persist of the consumer
offsets, first ten seconds after the start.
"""

from __future__ import annotations

from crashmq.engine.broker.offset.consumer_offset_manager import ConsumerOffsetManager
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

FLUSH_CONSUMER_OFFSET_INTERVAL = 5000
FIRST_AFTER_MS = 10_000

STOPPED = probe(
    "persist_consumer_offset.stopped", "a round came after the broker's end"
)


class PersistConsumerOffsetService:
    """The service that persists the offsets, until the broker stops."""

    name = "persist_consumer_offset"
    interval_ms = FLUSH_CONSUMER_OFFSET_INTERVAL
    first_after_ms = FIRST_AFTER_MS

    def __init__(self, manager: ConsumerOffsetManager, runtime: Runtime) -> None:
        self._manager = manager
        self._lock = runtime.lock()
        self._is_stopped = False

    def run_once(self) -> int:
        """Persist the offsets; returns 1, or 0 once the broker has stopped.

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
