"""Chance: the source of random choices for generating programs.

The generator asks a ``Chance`` and does not know its source. There are two: the stream
of a seed, here, and what Hypothesis draws (``strategies``). Odds are written as words:
``chance.one_in(4)``, ``chance.coin()``, ``chance.pick(often((STOP, 3), (KILL, 1)))``.

A seed's stream is the raw one of PCG64, which numpy keeps the same over its versions;
the methods of ``Generator`` are not kept so. A block is drawn at a time, since a single
draw by numpy costs more than a whole op.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeVar

from numpy.random import PCG64, SeedSequence

from crashmq.scenarios.programs.space import Numbers

T = TypeVar("T")

BLOCK_SIZE = 256
WORD_BITS = 32


class Chance(ABC):
    """Random choices, each made by one request to the source.

    The simplest choice is the first one listed, and False for ``coin``. The programs of
    all seeds depend on the order of the requests and on their bounds, so changing
    either changes all programs.
    """

    __slots__ = ()

    @abstractmethod
    def below(self, bound: int) -> int:
        """A random number in [0, bound), uniformly."""

    @abstractmethod
    def number(self, of: Numbers) -> int:
        """A number drawn from the ranges and odds of ``of``."""

    def integer(self, least: int, most: int) -> int:
        """An integer in [least, most], uniformly."""
        return least + self.below(most - least + 1)

    def word(self) -> int:
        """An integer of 32 bits, to derive many choices from."""
        return self.below(1 << WORD_BITS)

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices; each is as likely as it is often listed."""
        return choices[self.below(len(choices))]

    def one_in(self, count: int) -> bool:
        """True one time in ``count``."""
        return self.below(count) == 0

    def coin(self) -> bool:
        """True half of the time."""
        return self.below(2) == 1


class SeededChance(Chance):
    """The random choices of one episode; they depend only on run and episode number."""

    __slots__ = ("_next",)

    def __init__(self, run: int, episode: int) -> None:
        self._next = draws(run, episode).__next__

    def below(self, bound: int) -> int:
        """The next random number, below ``bound``."""
        return self._next() % bound

    def number(self, of: Numbers) -> int:
        """The next random value of the distribution ``of``."""
        return of.choose(self._next())


def draws(run: int, episode: int) -> Iterator[int]:
    """An endless stream of 32-bit integers, the high halves of PCG64's output."""
    bits = PCG64(SeedSequence([run, episode]))
    while True:
        yield from (bits.random_raw(BLOCK_SIZE) >> WORD_BITS).tolist()
