"""Limits: how far one history is explored."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a history is tried.

    Attributes:
        depth: crashes in a row, each in the recovery from the one before.
        exact_max: a crash point with at most so many states has all of them tried; of
            one with more, the ``promising`` that find most, and ``draws`` at random.
        exact_max_nested: the same at crash points of a recovery.
        promising: see ``exact_max``.
        draws: see ``exact_max``.
        nested_max: in the recoveries of how many states of a history a second crash is
            tried, the first state of each class first. 0: of all.
        nested_draws: in the recoveries of how many of these states a third is tried.
        states_max: after so many states at one depth of a history, no further crash
            point is tried; 0: no limit.
        classes_max: if a crash point has more states than ``exact_max``, but its states
            fall into at most so many classes that starts read alike
            (``read_classes``), one of each class is tried; 0: off.
        cuts: whether crashes are also tried halfway through a store into a mapping.
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
    """The byte counts at which a store of ``size`` bytes is cut.

    Within the first fields, after each 64 bytes, which a copy moves at once, and before
    the last byte.
    """
    cuts = {*HEADS, *range(GRID, size, GRID), size - 1}
    return tuple(sorted(cut for cut in cuts if 0 < cut < size))
