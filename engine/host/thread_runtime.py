"""ThreadRuntime: the port to time, waiting and mutual exclusion, over threads.

A wait suspends only the calling thread; services run in threads of their own
(``service_threads``). Time-outs use a clock that is never set back; ``now_ms`` is the
wall clock, which may be.
"""

from __future__ import annotations

import threading
import time

from crashmq.engine.host.runtime import Lock

_NS_A_MS = 1_000_000


class ThreadEvent:
    """An event that is set once; other threads wait for it."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Set the event and wake every waiter."""
        self._event.set()

    def is_set(self) -> bool:
        """Whether the event was set."""
        return self._event.is_set()

    def wait(self, timeout_ms: int) -> bool:
        """Wait until the event is set; False if ``timeout_ms`` passed first."""
        return self._event.wait(timeout_ms / 1000)


class ThreadRuntime:
    """The runtime of a store in a real process with threads."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, by the system's clock."""
        return time.time_ns() // _NS_A_MS

    def sleep_ms(self, ms: int) -> None:
        """Sleep for ``ms`` milliseconds; other threads run meanwhile."""
        time.sleep(ms / 1000)

    def lock(self) -> Lock:
        """A new lock, free and not reentrant."""
        return threading.Lock()

    def event(self) -> ThreadEvent:
        """A new event, not yet set."""
        return ThreadEvent()
