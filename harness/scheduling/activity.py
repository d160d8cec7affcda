"""Activity: a body of blocking code that takes turns with others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from greenlet import greenlet

from crashmq.harness.scheduling.turns import Turns

T = TypeVar("T")


class Waits(Protocol):
    """The part of a runtime with which activities wait and wake each other.

    Attributes:
        current: the activity that runs.
        turns_taken: the schedule that may switch at a pause; None without one.
    """

    current: Activity[Any]
    turns_taken: Turns | None

    def pause(self) -> None:
        """A switch point: a schedule may let another activity run here."""
        ...

    def wait_in(
        self, queue: deque[Activity[Any]], what: str, timeout_ms: int | None
    ) -> None:
        """Let the current activity wait in ``queue`` until woken or timed out."""
        ...

    def wake(self, activity: Activity[Any]) -> Activity[Any]:
        """Make a waiting activity runnable; it runs when its turn comes."""
        ...


class Activity(Generic[T]):
    """A call of blocking code on a greenlet, from its start to its result."""

    __slots__ = (
        "_error",
        "_result",
        "_runtime",
        "asked",
        "body",
        "crash",
        "deadline",
        "done",
        "fiber",
        "name",
        "number",
        "queue",
        "waiters",
        "waits_for",
    )

    def __init__(self, runtime: Waits | None, name: str) -> None:
        """Make an activity of ``runtime``; None: the main activity, without waiters."""
        self.name = name
        self.done = False
        self.asked = False
        self.crash: BaseException | None = None
        self.fiber: greenlet | None = None
        self.body: Callable[[], T] | None = None
        self.number = -1
        self.waiters: deque[Activity[Any]] = deque()
        self.waits_for = ""
        self.deadline: int | None = None
        self.queue: deque[Activity[Any]] | None = None
        self._runtime = runtime
        self._result: list[T] = []
        self._error: Exception | None = None

    @property
    def error(self) -> Exception | None:
        """The exception that the body raised, or None."""
        return self._error

    def result(self) -> T:
        """Wait for the end of the body; return its result, or raise its exception."""
        self.asked = True
        if not self.done:
            assert self._runtime is not None, "nobody waits for the main activity"
            self._runtime.wait_in(self.waiters, f"the end of {self.name}", None)
        if self._error is not None:
            raise self._error
        return self._result[0]

    def run(self, body: Callable[[], T]) -> None:
        """Run the body to its end and keep its result or exception."""
        try:
            self._result.append(body())
        except Exception as error:  # kept for whoever asks, and raised if nobody does
            self._error = error
        finally:
            self.done = True
        while self.waiters and self._runtime is not None:
            self._runtime.wake(self.waiters[0])
