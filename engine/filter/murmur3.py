"""MurmurHash3, the variant for 64-bit machines with 128 bits, and seed 0.

Source: Austin Appleby's MurmurHash3_x64_128, which Guava has as murmur3_128.
"""

from __future__ import annotations

import struct

_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_BLOCK = struct.Struct("<QQ")


def murmur3_128(data: bytes) -> tuple[int, int]:
    """The two words of the hash, each in [0, 2^64)."""
    h1 = h2 = 0
    whole = len(data) - len(data) % _BLOCK.size
    for k1, k2 in _BLOCK.iter_unpack(data[:whole]):
        h1 ^= _mixed_1(k1)
        h1 = (_rotated(h1, 27) + h2) * 5 + 0x52DCE729 & _MASK
        h2 ^= _mixed_2(k2)
        h2 = (_rotated(h2, 31) + h1) * 5 + 0x38495AB5 & _MASK
    k1, k2 = _BLOCK.unpack(data[whole:].ljust(_BLOCK.size, b"\0"))
    h1 ^= _mixed_1(k1) ^ len(data)
    h2 ^= _mixed_2(k2) ^ len(data)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    h1, h2 = _final(h1), _final(h2)
    h1 = h1 + h2 & _MASK
    return h1, h2 + h1 & _MASK


def _mixed_1(word: int) -> int:
    return _rotated(word * _C1 & _MASK, 31) * _C2 & _MASK


def _mixed_2(word: int) -> int:
    return _rotated(word * _C2 & _MASK, 33) * _C1 & _MASK


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & _MASK


def _final(word: int) -> int:
    word ^= word >> 33
    word = word * 0xFF51AFD7ED558CCD & _MASK
    word ^= word >> 33
    word = word * 0xC4CEB9FE1A85EC53 & _MASK
    return word ^ word >> 33
