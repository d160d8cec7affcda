"""DelayLevels: how long a delayed message waits, by its level, as a broker is told.

The text is that of RocketMQ's ``messageDelayLevel``: numbers with a unit, s, m, h or d,
and one space between two of them. Levels count from 1. A message that asks for a level
past the last one gets the last one.

Source: MessageStoreConfig#messageDelayLevel, ScheduleMessageService#parseDelayLevel,
#computeDeliverTimestamp, RocketMQ 5.3.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

DEFAULT_TEXT: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DELAY: Final = re.compile(r"([0-9]+)([smhd])")


class DelayLevels(NamedTuple):
    """The delay of each level in milliseconds, that of level 1 first."""

    delays_ms: tuple[int, ...]

    @property
    def level_max(self) -> int:
        """The highest level."""
        return len(self.delays_ms)

    @property
    def longest_ms(self) -> int:
        """The longest delay of any level, in milliseconds."""
        return max(self.delays_ms)

    def level_of(self, asked: int) -> int:
        """The level of a message that asks for level ``asked``, which is at least 1."""
        return min(asked, self.level_max)

    def delay_ms(self, level: int) -> int:
        """How long a message of ``level`` waits, in milliseconds."""
        return self.delays_ms[min(level, self.level_max) - 1]


@lru_cache(maxsize=256)
def parse_delay_levels(text: str) -> DelayLevels:
    """The levels of a text such as ``1s 5m 2h 3d``.

    Raises:
        ValueError: the text is not of this form.
    """
    found = []
    for part in text.split(" "):
        delay = _DELAY.fullmatch(part)
        if delay is None:
            raise ValueError(f"{text!r}: {part!r} is no delay, such as 10s or 5m")
        found.append(int(delay[1]) * _UNITS_MS[delay[2]])
    return DelayLevels(tuple(found))


DEFAULT_LEVELS: Final = parse_delay_levels(DEFAULT_TEXT)
"""RocketMQ's own."""
