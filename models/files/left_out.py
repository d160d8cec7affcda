"""What of a large store was proven to be right, and need not be decoded again.

Of a queue's messages that are whole, follow each other and have the units they must
have, nothing is to be said but how many there are. So an image can be made without
them: it holds what differs, both ends of every run that is left out, and how many lie
between. Who counts records or asks whether two follow each other asks the image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

Skips: TypeAlias = Mapping[int, "Skip"]
NO_SKIPS: Mapping[Any, Any] = MappingProxyType({})


class Skip(NamedTuple):
    """Whole records of a log file that are left out: where they end, how many."""

    end: int
    records: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a reader leaves out.

    Attributes:
        records: by a log file's path, the skips by the byte that they begin at.
        runs: how many messages of one queue are left out between two records of it,
            by the phy_offsets of those two. All bytes between are whole records.
        units: by topic and queue_id, the queue_offset to go on at, by the first one
            that is left out.
    """

    records: Mapping[str, Skips] = field(default_factory=dict)
    runs: Mapping[tuple[int, int], int] = field(default_factory=dict)
    units: Mapping[tuple[str, int], Mapping[int, int]] = field(default_factory=dict)


NOTHING = LeftOut()
