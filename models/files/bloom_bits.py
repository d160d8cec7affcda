"""The Bloom filter bits of a group on a topic, computed independently of the engine.

``group#topic`` is hashed by MurmurHash3 to 128 bits with seed 0. The lower and the
upper half of the first 64 bits, as signed 32-bit numbers, give all positions: the i-th
is lower + i * upper in 32 bits, its complement if negative, modulo the number of bits.

Source: org.apache.rocketmq.filter.util.BloomFilter#calcBitPositions, RocketMQ 5.3, and
Austin Appleby's MurmurHash3_x64_128.
"""

from __future__ import annotations

from functools import lru_cache

_WORD = 1 << 64
_FACTORS = (0x87C37B91114253D5, 0x4CF5AD432745937F)
_TURNS_IN = (31, 33)
_TURNS_ON = (27, 31)
_ADDENDS = (0x52DCE729, 0x38495AB5)
_FINAL = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)


@lru_cache(maxsize=4096)
def bits_of(group: str, topic: str, count: int, bit_num: int) -> tuple[int, ...]:
    """The ``count`` bit positions of a group on a topic, each in [0, bit_num)."""
    word = _murmur(f"{group}#{topic}".encode())
    lower, upper = word % (1 << 32), word >> 32
    found = []
    for number in range(1, count + 1):
        position = (lower + number * upper) % (1 << 32)
        if position >= 1 << 31:
            position = (1 << 32) - 1 - position
        found.append(position % bit_num)
    return tuple(found)


def _murmur(data: bytes) -> int:
    """The first 64 bits of the hash."""
    state = [0, 0]
    rest = len(data) % 16
    for start in range(0, len(data) - rest, 16):
        for half in (0, 1):
            word = data[start + 8 * half : start + 8 * half + 8]
            state[half] ^= _scrambled(int.from_bytes(word, "little"), half)
            turned = _turned(state[half], _TURNS_ON[half]) + state[1 - half]
            state[half] = (turned * 5 + _ADDENDS[half]) % _WORD
    tail = data[len(data) - rest :]
    for half, word in enumerate((tail[:8], tail[8:])):
        state[half] ^= _scrambled(int.from_bytes(word, "little"), half) ^ len(data)
    first = (state[0] + state[1]) % _WORD
    second = (state[1] + first) % _WORD
    return (_avalanche(first) + _avalanche(second)) % _WORD


def _scrambled(word: int, half: int) -> int:
    word = _turned(word * _FACTORS[half] % _WORD, _TURNS_IN[half])
    return word * _FACTORS[1 - half] % _WORD


def _turned(word: int, by: int) -> int:
    return (word << by) % _WORD | word >> (64 - by)


def _avalanche(word: int) -> int:
    for factor in _FINAL:
        word = (word ^ word >> 33) * factor % _WORD
    return word ^ word >> 33
