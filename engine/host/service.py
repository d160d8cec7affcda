"""A background service: a body of blocking code that the host runs round by round.

Source: org.apache.rocketmq.common.ServiceThread, of which a service is the loop's body:
the engine has no threads, so nothing runs unless its host runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable


class Service(Protocol):
    """One kind of background work of a running store.

    Its rounds never overlap: a host ends one before it begins the next.
    """

    name: str
    interval_ms: int

    def run_once(self) -> int:
        """Do one round; returns the work done in the service's own unit, 0 if idle."""


@runtime_checkable
class WokenService(Service, Protocol):
    """A service that reports new work, so the host need not wait for its interval."""

    def on_work(self, wake: Callable[[], None]) -> None:
        """Register ``wake``, to be called from any thread when there is work."""


@runtime_checkable
class EndingService(Service, Protocol):
    """A service whose normal rounds may leave work; its last round leaves none."""

    def run_last(self) -> int:
        """Do the last round, which leaves no work; returns as ``run_once``."""


@runtime_checkable
class DelayedService(Service, Protocol):
    """A service whose first round comes some time after the start."""

    first_after_ms: int
