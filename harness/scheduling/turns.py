"""Turns: which activity runs at each switch point of ops that run at the same time.

A ``Schedule`` is data; here it is turned into a choice at each switch point. The
choices are recorded as preemptions, with which a run can be repeated. ``SimRuntime``
has the activities and switches between them.
"""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.harness.disk.hashing import mixed
from crashmq.models.ops import Schedule

_BITS = 64  # a seed times this leaves room for what is drawn by it


class Turns:
    """The choices of one schedule, made one after the other.

    Attributes:
        taken: switch points at which another activity ran than without a schedule.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.grain = schedule.grain
        self.taken: list[tuple[int, int]] = []
        self._met: list[tuple[int, Sequence[int]]] = []
        self._is_pct = schedule.kind == "pct"
        self._told = dict(schedule.preemptions)
        self._seed = schedule.seed
        self._lowered: dict[int, int] = {}
        steps = max(1, schedule.steps)
        self._changes = {
            1 + mixed(mixed(self._seed) ^ (n + 1) << 32) % steps
            for n in range(schedule.depth - 1)
        }

    @property
    def points(self) -> int:
        """The number of switch points so far."""
        return len(self._met)

    @property
    def others(self) -> list[tuple[int, ...]]:
        """At each of them, who could have run instead of who runs by itself."""
        return [
            tuple([one for one in others if one != by_itself])
            for by_itself, others in self._met
        ]

    def next(self, current: int, others: Sequence[int], *, goes_on: bool) -> int:
        """Choose the activity that runs now.

        Args:
            current: the number of the activity that ran until here.
            others: those that can run besides, at least one.
            goes_on: whether ``current`` could run on as well.
        """
        by_itself = current if goes_on else _after(current, others)
        self._met.append((by_itself, others))
        chosen = by_itself
        if self._is_pct:
            if self.points in self._changes:
                self._lowered[current] = -self.points
            able = [*others, current] if goes_on else others
            chosen = max(able, key=self._priority)
        else:
            told = self._told.get(self.points, by_itself)
            if told in others:
                chosen = told
        if chosen != by_itself:
            self.taken.append((self.points, chosen))
        return chosen

    def _priority(self, number: int) -> tuple[int, int]:
        lowered = self._lowered.get(number, 0)
        return lowered, mixed(mixed(self._seed * _BITS) + number)


def _after(current: int, others: Sequence[int]) -> int:
    """The next number after ``current``, cyclically."""
    return min(others, key=lambda number: (number <= current, number))
