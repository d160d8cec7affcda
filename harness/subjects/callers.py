"""Counts the callers in a store: a shutdown waits until no other caller is in it."""

from __future__ import annotations

from collections.abc import Callable

from crashmq.engine.host.runtime import Event
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.observations import Observation

CALLERS_END_MS = 60_000


class Callers:
    """How many callers are in a store, and how many of them wait for the others."""

    def __init__(self) -> None:
        self._inside = self._stopping = 0
        self._alone: Event | None = None

    def come(self, count: int) -> None:
        """Set the number of callers in the store; 0 when an op has ended."""
        self._inside, self._stopping, self._alone = count, 0, None

    def wait_for_the_others(self, runtime: SimRuntime) -> None:
        """Wait until no other caller is in the store, before its process ends."""
        self._stopping += 1
        while self._inside > self._stopping:
            if self._alone is None:
                self._alone = runtime.event()
            self._alone.wait(CALLERS_END_MS)

    def call(self, body: Callable[[], Observation]) -> Observation:
        """Run a caller's body, and wake waiting callers when it ends."""
        try:
            return body()
        finally:
            self._inside -= 1
            waited_for, self._alone = self._alone, None
            if waited_for is not None:
                waited_for.set()
