"""DelayLevels: how long a delayed message waits, by its level.

Source: MessageStoreConfig#messageDelayLevel, ScheduleMessageService#parseDelayLevel,
#computeDeliverTimestamp, RocketMQ 5.3.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

DEFAULT_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DIGITS_MAX = 9


class DelayLevels(NamedTuple):
    """The delay of each level in milliseconds; level 1 is the first."""

    delays_ms: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> DelayLevels:
        """Parse a text such as ``1s 5m 2h 3d``.

        Raises:
            ValueError: the text is not of this form; RocketMQ's broker does not start
                then.
        """
        return _parsed(text)

    @property
    def level_max(self) -> int:
        """The highest level; a message that asks for more gets this one."""
        return len(self.delays_ms)

    def delay_ms(self, level: int) -> int:
        """How long a message of ``level`` waits, in milliseconds."""
        assert level > 0, level
        return self.delays_ms[min(level, self.level_max) - 1]

    def delivery_time(self, level: int, store_timestamp: int) -> int:
        """When a message of ``level`` is due, in milliseconds: its unit's tags code."""
        return store_timestamp + self.delay_ms(level)


@lru_cache(maxsize=64)
def _parsed(text: str) -> DelayLevels:
    delays: list[int] = []
    for part in text.split(" "):
        number, unit = part[:-1], part[-1:]
        is_number = number.isascii() and number.isdecimal()
        if unit not in _UNITS_MS or not is_number or len(number) > _DIGITS_MAX:
            raise ValueError(
                f"message_delay_level is {text!r}: {part!r} is no delay. Give numbers "
                f"with a unit, s, m, h or d, and one space between two of them."
            )
        delays.append(int(number) * _UNITS_MS[unit])
    return DelayLevels(tuple(delays))
