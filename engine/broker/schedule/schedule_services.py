"""The services of delayed messages: one delivers, one persists the offsets.

Source: ScheduleMessageService#start, RocketMQ 5.3: a task for each level, of which the
first runs after one second; a persist every ten seconds, first after ten. Differs: one
round goes through all levels.
"""

from __future__ import annotations

from crashmq.engine.broker.schedule.schedule_message_service import (
    ScheduleMessageService,
)
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

FIRST_DELAY_TIME = 1000
DELAY_FOR_A_WHILE = 100
FLUSH_DELAY_OFFSET_INTERVAL = 10_000
FIRST_PERSIST_AFTER_MS = 10_000

DELIVERS_NO_MORE = probe(
    "deliver_delayed.stopped", "a round of delivery came after the broker's end"
)
PERSISTS_NO_MORE = probe(
    "persist_delay_offset.stopped", "a round came after the broker's end"
)


class DeliverDelayedService:
    """The service that delivers what is due, until the broker stops."""

    name = "deliver_delayed"
    interval_ms = DELAY_FOR_A_WHILE
    first_after_ms = FIRST_DELAY_TIME

    def __init__(self, schedule: ScheduleMessageService, runtime: Runtime) -> None:
        self._schedule = schedule
        self._lock = runtime.lock()

    def run_once(self) -> int:
        """Deliver what is due; returns how many messages, 0 once the broker stops.

        Raises:
            OSError: the medium could not be read; the next round tries it again.
        """
        with self._lock:
            if self._schedule.is_stopping:
                DELIVERS_NO_MORE.hit()
                return 0
            return self._schedule.deliver()

    def stop(self) -> None:
        """Let a round in progress finish its message; later rounds do nothing."""
        self._schedule.is_stopping = True
        with self._lock:
            pass


class PersistDelayOffsetService:
    """The service that persists the delay offsets, until the broker stops."""

    name = "persist_delay_offset"
    interval_ms = FLUSH_DELAY_OFFSET_INTERVAL
    first_after_ms = FIRST_PERSIST_AFTER_MS

    def __init__(self, schedule: ScheduleMessageService, runtime: Runtime) -> None:
        self._schedule = schedule
        self._lock = runtime.lock()
        self._is_stopped = False

    def run_once(self) -> int:
        """Persist the offsets; returns 1, or 0 once the broker has stopped.

        Raises:
            OSError: the disk failed; the next round writes all again.
        """
        with self._lock:
            if self._is_stopped:
                PERSISTS_NO_MORE.hit()
                return 0
            self._schedule.persist()
            return 1

    def stop(self) -> None:
        """Wait for a round in progress, persist once more; later rounds do nothing.

        Raises:
            OSError: the disk failed; what was persisted before is kept.
        """
        with self._lock:
            self._is_stopped = True
            self._schedule.persist()
