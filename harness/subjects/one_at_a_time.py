"""OneAtATime and ObservedRounds: how a simulated host runs the rounds of a service.

Rounds of one service do not overlap, as they would not in a thread of its own, and each
is recorded.
"""

from __future__ import annotations

from collections.abc import Callable

from crashmq.engine.host.service import Service
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.harness.subjects.capabilities import RoundOfHost


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
            work = self._service.run_once()
            self.interval_ms = self._service.interval_ms
            return work


def just_turn(service: str, turn: Callable[[], int]) -> int:
    """Run a round that is not recorded; returns its work."""
    del service
    return turn()


class ObservedRounds:
    """A service of the host; ``turned`` runs each of its rounds, and may record it."""

    def __init__(self, service: Service, turned: RoundOfHost) -> None:
        self.name = service.name
        self.interval_ms = service.interval_ms
        self._service = service
        self._turned = turned

    def run_once(self) -> int:
        """Let one round run; returns its work."""
        return self._turned(self.name, self._service.run_once)
