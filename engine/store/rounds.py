"""Rounds: a service's turns, until the store that owns it stops.

A host should end its threads before it stops a store. Where a round is under way all
the same, the store waits for its end before it takes stock; and whoever turns the
service later finds nothing to do, instead of files that are closed.

Source: org.apache.rocketmq.common.ServiceThread#shutdown, which joins the thread.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.host.probe import probe
from engine.host.runtime import Runtime
from engine.host.service import EndingService, Service, WokenService

TOO_LATE = probe("rounds.too_late", "a service was turned after its store had stopped")


class Rounds:
    """One service, turned a round at a time until ``stop``."""

    def __init__(self, service: Service, runtime: Runtime) -> None:
        self.name = service.name
        self.interval_ms = service.interval_ms
        self._service = service
        self._lock = runtime.lock()
        self._is_stopped = False

    def run_once(self) -> int:
        """Do one round; 0 once the store has stopped."""
        return self._do(self._service.run_once)

    def run_last(self) -> int:
        """Do a round that leaves nothing for later; 0 once the store has stopped."""
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
        """Call ``wake`` when there is work, if the service can tell."""
        if isinstance(self._service, WokenService):
            self._service.on_work(wake)

    def stop(self) -> None:
        """Wait for the end of the round in progress; none begins any more."""
        with self._lock:
            self._is_stopped = True
