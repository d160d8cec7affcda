"""The services that persist a broker's tables: offsets, filters, delay offsets.

Each writes its table even if it has not changed, as RocketMQ does.

Source: BrokerController#initializeBrokerScheduledTasks, its persists of the consumer
offsets and of the consumer filters; ScheduleMessageService#start, its persist of the
delay offsets; RocketMQ 5.3. The first round of each comes after ten seconds.
"""

from __future__ import annotations

from typing import Protocol

from crashmq.engine.host.probe import Probe, probe
from crashmq.engine.host.runtime import Runtime

FLUSH_CONSUMER_OFFSET_INTERVAL = 5000
CONSUMER_FILTER_INTERVAL_MS = 10_000
FLUSH_DELAY_OFFSET_INTERVAL = 10_000
FIRST_AFTER_MS = 10_000

OFFSETS_STOPPED = probe(
    "persist_consumer_offset.stopped", "a round came after the broker's end"
)
FILTERS_STOPPED = probe(
    "persist_consumer_filter.stopped", "a round came after the broker's end"
)
DELAYS_STOPPED = probe(
    "persist_delay_offset.stopped", "a round came after the broker's end"
)


class PersistentTable(Protocol):
    """A table with a config file."""

    def persist(self) -> None:
        """Write the table to its file, durably.

        Raises:
            OSError: the disk failed; the file has the previous table or this one.
        """


class PersistService:
    """The service that persists one table, until the broker stops."""

    name: str
    interval_ms: int
    first_after_ms = FIRST_AFTER_MS
    stopped: Probe

    def __init__(self, table: PersistentTable, runtime: Runtime) -> None:
        self._table = table
        self._lock = runtime.lock()
        self._is_stopped = False

    def run_once(self) -> int:
        """Persist the table; returns 1, or 0 once the broker has stopped.

        Raises:
            OSError: the disk failed; the next round writes the table again.
        """
        with self._lock:
            if self._is_stopped:
                self.stopped.hit()
                return 0
            self._table.persist()
            return 1

    def stop(self) -> None:
        """Wait for a round in progress, and persist once more; later rounds do nothing.

        Raises:
            OSError: the disk failed; what was persisted before is kept.
        """
        with self._lock:
            self._is_stopped = True
            self._table.persist()


class PersistConsumerOffsetService(PersistService):
    """The service that persists the offsets of all groups, every five seconds."""

    name = "persist_consumer_offset"
    interval_ms = FLUSH_CONSUMER_OFFSET_INTERVAL
    stopped = OFFSETS_STOPPED


class PersistConsumerFilterService(PersistService):
    """The service that persists the filters of all groups, every ten seconds."""

    name = "persist_consumer_filter"
    interval_ms = CONSUMER_FILTER_INTERVAL_MS
    stopped = FILTERS_STOPPED


class PersistDelayOffsetService(PersistService):
    """The service that persists the offsets of all delay levels, every ten seconds."""

    name = "persist_delay_offset"
    interval_ms = FLUSH_DELAY_OFFSET_INTERVAL
    stopped = DELAYS_STOPPED
