"""Clocks about the end of a time limit: a little before it, at it, and a little behind.

A clock that moves by round numbers hardly ever tells a limit from one that is a little
longer or shorter. So a limit's time passes in two parts, and who acts at its end looks
after each: just before it nothing is due, and just behind it everything is.
"""

from __future__ import annotations

from typing import Final

from crashmq.models.limits import (
    CLIENT_SILENT_MS,
    FILTERS_KEPT_MS,
    PAUSE_MS,
    PULL_MAX_IDLE_MS,
    PUT_OFF_MS,
    QUEUE_LOCK_MS,
)
from crashmq.models.ops import AdvanceClock, Op
from crashmq.models.program import COMMIT_THOROUGH_MS, FLUSH_THOROUGH_MS, HOUR_MS, Setup
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.space import often

NEAR_MS: Final = often((1, 4), (10, 2), (200, 1), (1000, 2), (60_000, 1))
"""So far from a limit's end a clock stands."""
OF_STORES: Final = (COMMIT_THOROUGH_MS, FLUSH_THOROUGH_MS)
OF_BROKERS: Final = (
    *(FILTERS_KEPT_MS, QUEUE_LOCK_MS, CLIENT_SILENT_MS),
    *(PULL_MAX_IDLE_MS, PUT_OFF_MS, PAUSE_MS),
)


def limits_of(setup: Setup) -> tuple[int, ...]:
    """The time limits of a store, and of the broker around it, in milliseconds."""
    limits = list(OF_STORES)
    if setup.keeps_progress:
        limits += OF_BROKERS
        limits.append(setup.patience_ms)
    if setup.delivers_delayed:
        limits += [setup.delay_levels.delay_ms(level) for level in (1, 2, 3)]
    if setup.cleans:
        limits.append(setup.reserved_hours * HOUR_MS)
    return tuple(limits)


def lapse(chance: Chance, limit_ms: int, looks: tuple[Op, ...]) -> tuple[Op, ...]:
    """Ops in which a limit's time passes, with ``looks`` on both sides of its end."""
    near_ms = min(chance.pick(NEAR_MS), limit_ms)
    behind_ms = near_ms * chance.below(2)
    if chance.coin():
        return AdvanceClock(limit_ms + behind_ms), *looks
    before, after = AdvanceClock(limit_ms - near_ms), AdvanceClock(near_ms + behind_ms)
    return before, *looks, after, *looks
