"""The port to time, waiting and mutual exclusion.

The engine is blocking code: it takes a lock, waits for an event, sleeps. The host
decides whether that suspends a thread or switches to another greenlet.
"""

from __future__ import annotations

from types import TracebackType
from typing import Protocol


class Lock(Protocol):
    """Mutual exclusion, not reentrant, as a context manager."""

    def __enter__(self) -> object:
        """Wait until the lock is free, and hold it."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lock."""


class Event(Protocol):
    """An event that is set once; others wait for it."""

    def set(self) -> None:
        """Set the event and wake every waiter."""

    def is_set(self) -> bool:
        """Whether the event was set."""

    def wait(self, timeout_ms: int) -> bool:
        """Wait until the event is set; False if ``timeout_ms`` passed first."""


class Runtime(Protocol):
    """The host's replacement for ``time`` and ``threading``."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch; the wall clock, which may step back."""

    def sleep_ms(self, ms: int) -> None:
        """Let ``ms`` milliseconds pass."""

    def lock(self) -> Lock:
        """A new lock, free."""

    def event(self) -> Event:
        """A new event, not yet set."""
