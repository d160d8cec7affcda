"""The records of one window of a log file, as columns, and how they are read.

Two walks fill them: ``numpy_walk.py``, and ``compiled.py`` where numba is installed.
Both say the same of every record.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Raw: TypeAlias = NDArray[np.uint8]

UNPROVEN, PLAIN, ODD = 0, 1, 2
WINDOW_RECORDS: Final = 1 << 17
PLAIN_FLAGS: Final = 0x3CF
"""No IPv6 host, no bit that nobody sets."""
ENDS_HALF: Final = 0x8
HEAD_SIZE: Final = 88
PROPERTIES_MAX: Final = 32767
PLAIN_TOPIC_MAX: Final = 127


@dataclass(slots=True)
class Window:
    """Bytes [start, end) of a log file, in which the records begin.

    ``base`` is the phy_offset of the file's first byte, ``limit`` the first byte that
    is not read.
    """

    data: mmap.mmap
    view: memoryview
    base: int
    limit: int
    start: int
    end: int


class Stop(NamedTuple):
    """Where a walk ended, and whether the next record may begin there."""

    at: int
    goes_on: bool


@dataclass(slots=True)
class Records:
    """Records that follow each other, a column each field.

    Attributes:
        places, sizes: bytes of the file.
        numbers: their queue_offsets.
        hosts: a number for the store's address and port.
        kinds: ``UNPROVEN``, ``PLAIN`` (whole, with nothing odd) or ``ODD`` (whole, and
            the laws have to see it).
        topic_of: the number of each one's topic in ``topics``.
        codes: the tags codes that their properties say.
        stop: where the next record begins, and whether there may be one.
    """

    places: Ints
    sizes: Ints
    numbers: Ints
    queue_ids: Ints
    stored: Ints
    hosts: Ints
    flags: Ints
    kinds: Raw
    topic_of: Ints
    codes: Ints
    stop: Stop
    topics: dict[bytes, int] = field(default_factory=dict)

    def up_to(self, number: int) -> Records:
        """Those before a record that is not whole: the chain ends there."""
        columns = {
            name: getattr(self, name)[:number]
            for name in self.__slots__
            if name not in ("stop", "topics")
        }
        stop = Stop(int(self.places[number]), goes_on=False)
        return replace(self, **columns, stop=stop)


Walk: TypeAlias = Callable[[Window], Records]
