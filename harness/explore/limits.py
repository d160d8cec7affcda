"""Limits: how far one history is explored, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What is tried of a history.

    Attributes:
        depth: crashes in a row, each in the recovery from the one before.
        exact_max: a moment with at most so many states has each of them tried; of one
            with more, the ``told`` that find most, and ``draws`` by chance.
        exact_max_nested: the same at moments of a recovery.
        told: see ``exact_max``.
        draws: see ``exact_max``.
        nested_max: of how many states of a history the recovery is crashed too; the
            first of each class come first. 0: of all.
        nested_draws: of how many states at depth 2 the recovery is crashed again.
        states_max: after so many states at one depth of a history, no other moment is
            looked at; 0: all are.
        cuts: whether a store into a mapping is also stopped halfway, on a grid.
    """

    depth: int = 2
    exact_max: int = 4096
    exact_max_nested: int = 256
    told: int = 256
    draws: int = 64
    nested_max: int = 8
    nested_draws: int = 4
    states_max: int = 5000
    cuts: bool = True


WHOLE = Limits(exact_max_nested=4096, nested_max=0, states_max=0)
"""For one program, or a small world: as much as can be closed."""

HEADS = (4, 8, 20, 48)
GRID = 64


def cuts_of(size: int) -> tuple[int, ...]:
    """After how many bytes a store of ``size`` bytes is stopped.

    Within its first fields, at each 64 bytes, which a copy moves at once, and before
    its last byte.
    """
    cuts = {*HEADS, *range(GRID, size, GRID), size - 1}
    return tuple(sorted(cut for cut in cuts if 0 < cut < size))
