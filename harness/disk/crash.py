"""The exceptions that end a life of the store: a process kill, a power loss.

::

    StoreCrashed          BaseException: no ``except Exception`` outlives it
    +-- ProcessKilled     what calls have done stays
    +-- PowerLost         what was not synced may be gone

Every later call on a disk, file or lock of an ended life raises the same class again,
so no ``finally`` of the engine can touch what the next life will read.
"""

from __future__ import annotations

from crashmq.models.ops import CrashKind


class StoreCrashed(BaseException):
    """This life of the store is over."""


class Hang(BaseException):
    """An op used so many disk actions, reads or clock steps that it will never end."""


class ProcessKilled(StoreCrashed):
    """The process was killed, or has unmounted the disk."""


class PowerLost(StoreCrashed):
    """The machine lost its power."""


def crash_class(kind: CrashKind) -> type[StoreCrashed]:
    """The exception class of one kind of crash."""
    return PowerLost if kind == "power_loss" else ProcessKilled
