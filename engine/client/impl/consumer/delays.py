"""Delays: whether a wait is over, by a clock that may be set back.

If the clock is before the begin of a wait, it was set back: then the wait is over,
since it is unknown how much of it has passed. So a wait may end early, and never hangs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


def has_passed(since_ms: int, delay_ms: int, now_ms: int) -> bool:
    """Whether ``delay_ms`` have passed since ``since_ms``, as far as is known."""
    return not 0 <= now_ms - since_ms < delay_ms


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[T]):
    what: T
    since_ms: int
    delay_ms: int

    @property
    def due_ms(self) -> int:
        return self.since_ms + self.delay_ms


class Delays(Generic[T]):
    """Items that wait for their time; not guarded by a lock."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting[T]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[T]:
        return (each.what for each in self._waiting)

    def add(self, what: T, delay_ms: int, now_ms: int) -> None:
        """Let an item wait for ``delay_ms`` from now on."""
        self._waiting.append(_Waiting(what, now_ms, delay_ms))

    def take_due(self, now_ms: int) -> list[T]:
        """Remove and return the items that are due, by due time, then by age."""
        due = [w for w in self._waiting if has_passed(w.since_ms, w.delay_ms, now_ms)]
        if due:
            self._waiting = [w for w in self._waiting if w not in due]
        return [each.what for each in sorted(due, key=lambda each: each.due_ms)]
