"""OneAtATime: keeps a service's rounds from overlapping, as its own thread would."""

from __future__ import annotations

from crashmq.engine.host.service import Service
from crashmq.harness.scheduling.sim_runtime import SimRuntime


class OneAtATime:
    """A service whose rounds never overlap, as in a thread of its own."""

    def __init__(self, service: Service, runtime: SimRuntime) -> None:
        self.name = service.name
        self.interval_ms = service.interval_ms
        self._service = service
        self._turn = runtime.lock()

    def run_once(self) -> int:
        """Do one round, once the one in progress has ended."""
        with self._turn:
            return self._service.run_once()
