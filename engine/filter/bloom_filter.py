"""BloomFilter: which names may have been added to an array of bits.

A name has ``k`` positions among ``m`` bits. A name that was added is always found; one
that was not is found by mistake in ``f`` of 100 cases once ``n`` names were added.

Source: org.apache.rocketmq.filter.util.BloomFilter, BloomFilterData, RocketMQ 5.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from crashmq.engine.filter.bits_array import BitsArray
from crashmq.engine.filter.murmur3 import murmur3_128

_INT_MASK, _INT_SIGN = (1 << 32) - 1, 1 << 31


class BloomFilterData(NamedTuple):
    """The positions of one name, among ``bit_num`` bits."""

    bit_pos: tuple[int, ...]
    bit_num: int


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """A bloom filter with an error rate of ``f`` percent for ``n`` names.

    Raises:
        ValueError: f is not in [1, 100), or n is not positive.
    """

    f: int = 20
    n: int = 32
    k: int = field(init=False)
    m: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute the positions of a name (k), and the number of bits (m).

        The bits fill whole bytes.
        """
        if not (1 <= self.f < 100 and self.n >= 1):
            raise ValueError(
                f"a bloom filter has an error rate in [1, 100) percent and one name at "
                f"least; not {self.f} percent and {self.n} names."
            )
        rate = self.f / 100.0
        bits = math.ceil(self.n * _log(2, 1 / rate) * _log(2, math.e))
        object.__setattr__(self, "k", math.ceil(_log(0.5, rate)))
        object.__setattr__(self, "m", 8 * math.ceil(bits / 8))

    def calc_bit_positions(self, name: str) -> tuple[int, ...]:
        """The positions of a name.

        Source: BloomFilter#calcBitPositions, after Kirsch and Mitzenmacher 2006.
        """
        word, _ = murmur3_128(name.encode())
        first, second = word & _INT_MASK, word >> 32
        found = []
        for number in range(1, self.k + 1):
            combined = first + number * second & _INT_MASK
            if combined & _INT_SIGN:
                combined ^= _INT_MASK
            found.append(combined % self.m)
        return tuple(found)

    def generate(self, name: str) -> BloomFilterData:
        """The positions of a name, together with the number of bits."""
        return BloomFilterData(self.calc_bit_positions(name), self.m)

    def is_valid(self, data: BloomFilterData | None) -> bool:
        """Whether positions fit this filter's bits. Source: BloomFilter#isValid."""
        return (
            data is not None and data.bit_num == self.m and len(data.bit_pos) == self.k
        )

    def hash_to(self, data: BloomFilterData, bits: BitsArray) -> None:
        """Add a name. Raises ValueError if a position is out of range of ``bits``."""
        for position in data.bit_pos:
            bits.set_bit(position)

    def is_hit(self, data: BloomFilterData, bits: BitsArray) -> bool:
        """Whether a name may have been added. Raises ValueError as ``hash_to``."""
        return all(bits.get_bit(position) for position in data.bit_pos)


def _log(base: float, value: float) -> float:
    return math.log(value) / math.log(base)
