"""DeliverDelayedService: delivers delayed messages that are due.

Source: ScheduleMessageService#start, DeliverDelayedMessageTimerTask, RocketMQ 5.3: a
task for each level, of which the first runs after one second. Differs: one round goes
through all levels.
"""

from __future__ import annotations

from crashmq.engine.broker.schedule.schedule_message_service import (
    ScheduleMessageService,
)
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

FIRST_DELAY_TIME = 1000
DELAY_FOR_A_WHILE = 100

STOPPED = probe(
    "deliver_delayed.stopped", "a round of delivery came after the broker's end"
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
                STOPPED.hit()
                return 0
            return self._schedule.deliver()

    def stop(self) -> None:
        """Let a round in progress finish its message; later rounds do nothing."""
        self._schedule.is_stopping = True
        with self._lock:
            pass
