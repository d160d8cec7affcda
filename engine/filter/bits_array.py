"""BitsArray: bits in bytes; bit p is in byte p // 8, the lowest bit of a byte first.

Source: org.apache.rocketmq.filter.util.BitsArray, RocketMQ 5.3. Differs: a position
just past the end is refused here; there it passes the check and fails on the access.
"""

from __future__ import annotations

_BYTE = 8


class BitsArray:
    """A fixed number of bits.

    Invariants:
        the bits fill whole bytes, and are not fewer than the length says
    """

    def __init__(self, bit_length: int) -> None:
        self._bytes = bytearray(-(-bit_length // _BYTE))
        self.bit_length = bit_length

    def _check(self) -> None:
        assert len(self._bytes) * _BYTE >= self.bit_length, self.bit_length

    @classmethod
    def of(cls, data: bytes) -> BitsArray:
        """The bits of ``data``.

        Raises:
            ValueError: ``data`` is empty.
        """
        if not data:
            raise ValueError("an array of bits has one byte at least, this one none.")
        bits = cls(len(data) * _BYTE)
        bits._bytes[:] = data
        return bits

    def to_bytes(self) -> bytes:
        """The bytes that hold the bits."""
        return bytes(self._bytes)

    def set_bit(self, position: int) -> None:
        """Set one bit; raises ValueError if the position is out of range."""
        self._refuse_outside(position)
        self._bytes[position // _BYTE] |= 1 << position % _BYTE

    def get_bit(self, position: int) -> bool:
        """Whether a bit is set; raises ValueError if the position is out of range."""
        self._refuse_outside(position)
        return bool(self._bytes[position // _BYTE] >> position % _BYTE & 1)

    def _refuse_outside(self, position: int) -> None:
        if not 0 <= position < self.bit_length:
            raise ValueError(f"bit {position} is not in [0, {self.bit_length}).")
