"""Background work as a body of blocking code, turned by whoever hosts it.

Source: org.apache.rocketmq.common.ServiceThread, of which a service is the loop's
body: the engine owns no thread, so nothing runs until its host says so.
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
    """One whose work may come at any time, and should not wait for the interval."""

    def on_work(self, wake: Callable[[], None]) -> None:
        """Call ``wake``, in any thread, whenever there is work."""


@runtime_checkable
class EndingService(Service, Protocol):
    """One whose rounds leave something for later, when there will be no later."""

    def run_last(self) -> int:
        """Do the last round, which leaves nothing; returns as ``run_once``."""
