"""Limits: how far one history is explored, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a history is tried.

    Attributes:
        depth: crashes in a row, each in the recovery from the one before.
        exact_max: a crash point with at most so many states has each of them tried; of
            one with more, the ``promising`` that find most, and ``draws`` at random.
        exact_max_nested: the same at crash points of a recovery.
        promising: see ``exact_max``.
        draws: see ``exact_max``.
        nested_max: from how many states of a history the recovery is crashed too; the
            first of each class come first. 0: from all.
        nested_draws: from how many states at depth 2 the recovery is crashed again.
        states_max: after so many states at one depth of a history, no other crash
            point is tried; 0: no limit.
        classes_max: of a crash point with more states than are tried one by one, every
            class that starts read alike has a state tried, if there are at most so many
            (``read_classes``); 0: none is.
        cuts: whether a store into a mapping is also stopped halfway, on a grid.
    """

    depth: int = 2
    exact_max: int = 4096
    exact_max_nested: int = 256
    promising: int = 256
    draws: int = 64
    nested_max: int = 8
    nested_draws: int = 4
    states_max: int = 5000
    classes_max: int = 0
    cuts: bool = True


WHOLE = Limits(exact_max_nested=4096, nested_max=0, states_max=0)
"""For one program, or a small world: as much as can be closed."""

CLASSES_MAX = 4096
"""To close crash points: ``Limits.classes_max``."""

HEADS = (4, 8, 20, 48)
GRID = 64


def cuts_of(size: int) -> tuple[int, ...]:
    """The byte counts after which a store of ``size`` bytes is stopped.

    Within its first fields, after each 64 bytes, which a copy moves at once, and before
    its last byte.
    """
    cuts = {*HEADS, *range(GRID, size, GRID), size - 1}
    return tuple(sorted(cut for cut in cuts if 0 < cut < size))
