"""The errors of the store, as a tree.

::

    StoreError
    +-- StoreCorrupted   files say what they must not; nothing was changed
    |   +-- StoreForeign   no mark says that the files are this store's to cut
    +-- StoreLocked      another store holds the directory
    +-- StoreStopped     the store is not started, or no longer
"""

from __future__ import annotations


class StoreError(Exception):
    """Any refusal of the store; the message says what, where and what to do."""


class StoreCorrupted(StoreError):
    """Primary data is damaged; the store refuses rather than lose what it kept."""


class StoreForeign(StoreCorrupted):
    """A start would lose what lies in a directory without this store's durable mark.

    With ``StoreConfig.adopt`` it is lost.
    """


class StoreLocked(StoreError):
    """The directory belongs to another running store."""


class StoreStopped(StoreError):
    """The request needs a started store, and this one is not started."""
