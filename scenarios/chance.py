"""Chance: the drawn integers from which seeded programs are made.

The raw stream of PCG64, which is the same in all versions of numpy; the methods of
``Generator`` are not. One block is drawn at a time, since a single draw by numpy costs
more than a whole op.
"""

from __future__ import annotations

from collections.abc import Iterator

from numpy.random import PCG64, SeedSequence

BLOCK_SIZE = 256


def draws(run: int, episode: int) -> Iterator[int]:
    """Endless 32-bit integers; the high halves are PCG64's better ones."""
    bits = PCG64(SeedSequence([run, episode]))
    while True:
        yield from (bits.random_raw(BLOCK_SIZE) >> 32).tolist()
