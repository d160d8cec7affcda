"""Deterministic numbers and bytes that look random."""

from __future__ import annotations

from functools import lru_cache

GOLDEN = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def mixed(value: int) -> int:
    """A 64-bit hash of ``value`` (the splitmix64 mixer)."""
    word = (value + GOLDEN) & _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


@lru_cache(maxsize=64)
def garbage(size: int) -> bytes:
    """``size`` bytes that look random and are always the same."""
    words = range((size + 7) // 8)
    return b"".join(mixed(word).to_bytes(8, "big") for word in words)[:size]
