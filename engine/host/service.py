"""Background work as a body of blocking code, turned by whoever hosts it.

Source: org.apache.rocketmq.common.ServiceThread, of which a service is the loop's
body: the engine owns no thread, so nothing runs until its host says so.
"""

from __future__ import annotations

from typing import Protocol


class Service(Protocol):
    """One kind of background work of a running store.

    Its rounds never overlap: a host ends one before it begins the next.
    """

    name: str
    interval_ms: int

    def run_once(self) -> int:
        """Do one round; returns the work done in the service's own unit, 0 if idle."""
