"""Certificate: how much of a space was tried, and what that is worth.

At each crash point of a history the states that a crash can leave are counted. The
crash point is *closed* if each state was tried, or is one that starts read exactly like
a tried one (``read_classes``). It is *open* if only some were; so is a recovery in
which no second crash was tried. For states drawn at random, the share of classes that
were met only once estimates how likely the next draw shows a new class (Good and
Turing). A class is the kind of op and disk action that the crash met, the start's
result, and the branches that it took.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Certificate:
    """Counts of explored states; certificates of several histories add up.

    Attributes:
        histories: programs that were run, and whose crash points were explored.
        closed_histories: those in which nothing is open.
        space: how many states there are, as far as they were counted.
        visited: states judged, or equal to a judged one.
        distinct: visited states that differ in their files or in what must hold.
        starts: stores started on a state, and judged.
        healed: started stores that were taken to the healed end; equal ones count once.
        closed: crash points of which each state was tried, or read like a tried one.
        open: crash points of which only some states were.
        open_recoveries: recoveries in which no second crash was tried.
        stopped_early: whether the budget ended first.
        violations: states in which a law was violated.
        unknown: states in which a law could not be judged.
        classes: how often each class was met.
        drawn: the same for states drawn at random only.
        seconds: processor time.
    """

    histories: int = 0
    closed_histories: int = 0
    space: int = 0
    visited: int = 0
    distinct: int = 0
    starts: int = 0
    healed: int = 0
    closed: int = 0
    open: int = 0
    open_recoveries: int = 0
    stopped_early: bool = False
    violations: int = 0
    unknown: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    states_per_history: list[int] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_closed(self) -> bool:
        """Whether every state was tried."""
        return not (self.open or self.open_recoveries or self.stopped_early)

    @property
    def unseen_estimate(self) -> float:
        """The chance that the next random state shows a class not met before.

        It is the share of draws whose class was met once; 0 if nothing was drawn.
        """
        draws = self.drawn.total()
        singles = sum(1 for times in self.drawn.values() if times == 1)
        return singles / draws if draws else 0.0

    def add(self, other: Certificate) -> None:
        """Add the counts of another certificate."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.stopped_early = self.stopped_early or other.stopped_early
        self.classes.update(other.classes)
        self.drawn.update(other.drawn)
        self.states_per_history += other.states_per_history


_SUMS = (
    "histories",
    "closed_histories",
    "space",
    "visited",
    "distinct",
    "starts",
    "healed",
    "closed",
    "open",
    "open_recoveries",
    "violations",
    "unknown",
    "seconds",
)
