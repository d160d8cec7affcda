"""Locks and events for the activities of a ``SimRuntime``.

Each call is a switch point, where a schedule may let another activity run: before a
lock is taken and after it is released, before an event is waited for and after it is
set.
"""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Any

from crashmq.harness.scheduling.activity import Activity, Waits


class SimLock:
    """Mutual exclusion among activities, first come, first served."""

    __slots__ = ("_owner", "_runtime", "_waiters")

    def __init__(self, runtime: Waits) -> None:
        self._runtime = runtime
        self._owner: Activity[Any] | None = None
        self._waiters: deque[Activity[Any]] | None = None  # few locks are ever awaited

    def __enter__(self) -> SimLock:
        runtime = self._runtime
        if runtime.turns_taken is not None:
            runtime.pause()
        asker = runtime.current
        # A crash may end an activity right before it releases what it holds.
        if self._owner is None or self._owner.done:
            self._owner = asker
            return self
        is_mine = False
        try:
            what = f"a lock that {self._owner.name} holds"
            if self._waiters is None:
                self._waiters = deque()
            self._runtime.wait_in(self._waiters, what, None)
            is_mine = self._owner is asker
            assert is_mine
        finally:
            # It may have been given to an activity whose wait ends by an error.
            if not is_mine and self._owner is asker:
                self._release()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._waiters:
            self._release()
        else:
            self._owner = None
        if error is None and self._runtime.turns_taken is not None:
            self._runtime.pause()

    def _release(self) -> None:
        if self._waiters:
            self._owner = self._runtime.wake(self._waiters[0])
        else:
            self._owner = None


class SimEvent:
    """An event that is set once; activities wait for it."""

    __slots__ = ("_is_set", "_runtime", "_waiters")

    def __init__(self, runtime: Waits) -> None:
        self._runtime = runtime
        self._is_set = False
        self._waiters: deque[Activity[Any]] = deque()

    def set(self) -> None:
        """Set the event; every waiter becomes runnable."""
        self._is_set = True
        while self._waiters:
            self._runtime.wake(self._waiters[0])
        self._runtime.pause()

    def is_set(self) -> bool:
        """Whether the event was set."""
        return self._is_set

    def wait(self, timeout_ms: int) -> bool:
        """Wait until the event is set; False if ``timeout_ms`` passed first."""
        self._runtime.pause()
        if not self._is_set and timeout_ms > 0:
            self._runtime.wait_in(self._waiters, "an event", timeout_ms)
        return self._is_set
