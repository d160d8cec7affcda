"""ThreadRuntime: the port to time, waiting and mutual exclusion, over threads.

A wait parks the calling thread and nothing else: whoever answers it runs in a thread
of its own (``service_threads``). Bounds are counted by a clock that never steps back;
``now_ms`` is the wall clock, which may.
"""

from __future__ import annotations

import threading
import time

from engine.host.runtime import Lock

_NS_A_MS = 1_000_000


class ThreadEvent:
    """Something that happens once, and that other threads wait for."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Let it have happened; wakes every waiter."""
        self._event.set()

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._event.is_set()

    def wait(self, timeout_ms: int) -> bool:
        """Wait until it has happened; False if ``timeout_ms`` passed first."""
        return self._event.wait(timeout_ms / 1000)


class ThreadRuntime:
    """What a store gets that runs in the threads of a real process."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, by the system's clock."""
        return time.time_ns() // _NS_A_MS

    def sleep_ms(self, ms: int) -> None:
        """Let ``ms`` milliseconds pass; other threads run meanwhile."""
        time.sleep(ms / 1000)

    def lock(self) -> Lock:
        """A new lock, free; a thread that holds it must not ask for it again."""
        return threading.Lock()

    def event(self) -> ThreadEvent:
        """A new event, not yet set."""
        return ThreadEvent()
