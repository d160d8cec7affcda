"""Parts of a large store that were found to be right, and need not be decoded again.

If a run of a queue's messages is whole, in sequence and has the right units, the laws
need only their number. So an image can be decoded without the middle of such a run: it
has the records that matter, both ends of each run, and how many records lie between.
Code that counts records, or asks whether two follow each other, must use the image's
methods for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

Skips: TypeAlias = Mapping[int, "Skip"]
NO_SKIPS: Mapping[Any, Any] = MappingProxyType({})


class Skip(NamedTuple):
    """Whole records of a log file that are not decoded.

    Attributes:
        end: the first byte after them in the file.
        records: how many they are.
    """

    end: int
    records: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a reader does not decode.

    Attributes:
        records: for each log file by path, the skips by the byte at which they begin.
        runs: how many messages of a queue lie undecoded between two of its records, by
            the phy_offsets of these two. All bytes between are whole records.
        units: for each queue, by the first queue_offset not decoded the one at which to
            go on.
    """

    records: Mapping[str, Skips] = field(default_factory=dict)
    runs: Mapping[tuple[int, int], int] = field(default_factory=dict)
    units: Mapping[tuple[str, int], Mapping[int, int]] = field(default_factory=dict)


NOTHING = LeftOut()
