"""Rounds: runs a service round by round until its store stops.

A host should end its threads before it stops a store. If a round is in progress
nevertheless, the store waits for its end; a later round does nothing, since the files
are closed.

Source: org.apache.rocketmq.common.ServiceThread#shutdown, which joins the thread.
"""

from __future__ import annotations

from collections.abc import Callable

from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.host.service import EndingService, Service, WokenService

TOO_LATE = probe("rounds.too_late", "a service was run after its store had stopped")


class Rounds:
    """One service, run round by round until ``stop``."""

    def __init__(self, service: Service, runtime: Runtime) -> None:
        self.name = service.name
        self.interval_ms = service.interval_ms
        self._service = service
        self._lock = runtime.lock()
        self._is_stopped = False

    def run_once(self) -> int:
        """Do one round; returns the work it did, 0 once the store has stopped."""
        return self._do(self._service.run_once)

    def run_last(self) -> int:
        """Run a round that leaves no work undone; returns as ``run_once``."""
        if isinstance(self._service, EndingService):
            return self._do(self._service.run_last)
        return self.run_once()

    def _do(self, one_round: Callable[[], int]) -> int:
        with self._lock:
            if self._is_stopped:
                TOO_LATE.hit()
                return 0
            return one_round()

    def on_work(self, wake: Callable[[], None]) -> None:
        """Register ``wake`` for new work, if the service can report it."""
        if isinstance(self._service, WokenService):
            self._service.on_work(wake)

    def stop(self) -> None:
        """Wait for the round in progress; later rounds do nothing."""
        with self._lock:
            self._is_stopped = True
