"""How a life of the store ends when the world ends it.

::

    StoreCrashed          BaseException: no ``except Exception`` outlives it
    +-- ProcessKilled     what calls had done stays
    +-- PowerLost         what was not synced may be gone

Every later call on a disk, file or lock of an ended life raises the same class again,
so no ``finally`` of the engine can touch what the next life will read.
"""

from __future__ import annotations

from models.ops import CrashKind


class StoreCrashed(BaseException):
    """This life of the store is over."""


class Hang(BaseException):
    """An op has asked so much of the disk or the clock that it will never end."""


class ProcessKilled(StoreCrashed):
    """The process was killed, or has given the disk back."""


class PowerLost(StoreCrashed):
    """The machine lost its power."""


def crash_class(kind: CrashKind) -> type[StoreCrashed]:
    """The exception class of one kind of crash."""
    return PowerLost if kind == "power_loss" else ProcessKilled
