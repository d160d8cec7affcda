"""Unreadable sectors: how to read the rest of a file around them.

A failed read says nothing about the bytes beside the bad sectors. So the read is
repeated sector by sector: what lies before the first bad sector is good, and data that
a store can build again (queues, consumequeue_ext) may be read as zeros and cut. Log
bytes are never replaced by zeros: a failed read would look like the end of the log.

Source: latent sector errors, Bairavasundaram et al., SIGMETRICS 2007. RocketMQ reads
through a mapping; there the process gets SIGBUS, which is an InternalError in the JVM.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any, TypeAlias

from crashmq.engine.host.disk import T, Terms
from crashmq.engine.host.probe import probe

SECTOR_SIZE = 512

MET = probe("unreadable.met", "a start met unreadable sectors")
TAKEN_FOR_ZEROS = probe(
    "unreadable.zeros", "unreadable data that can be rebuilt was cut"
)

Read: TypeAlias = Callable[[int, int], bytes]


def is_unreadable(error: OSError) -> bool:
    """Whether the error is EIO, so that other bytes of the file may be readable."""
    return error.errno == errno.EIO


def sectors_of(position: int, size: int) -> set[int]:
    """The numbers of the sectors that hold bytes [position, position + size)."""
    return {*range(position // SECTOR_SIZE, (position + size - 1) // SECTOR_SIZE + 1)}


def pieces(
    read: Read, position: int, size: int
) -> Iterator[tuple[range, bytes | None]]:
    """Each sector of [position, position + size): its position in that, and its bytes.

    The bytes are None where they cannot be read.

    Raises:
        OSError: the read failed with another error than EIO.
    """
    at, end = position, position + size
    while at < end:
        until = min(end, at - at % SECTOR_SIZE + SECTOR_SIZE)
        try:
            yield range(at, until), read(at, until - at)
        except OSError as error:
            if not is_unreadable(error):
                raise
            yield range(at, until), None
        at = until


def readable(read: Read, position: int, size: int) -> bytes:
    """The bytes up to the first unreadable one.

    Raises:
        OSError: the read failed with another error than EIO.
    """
    try:
        return read(position, size)
    except OSError as error:
        if not is_unreadable(error):
            raise
    return _before_hole(read, position, size)


def examined(
    examine: Callable[..., Any],
    read: Read,
    position: int,
    size: int,
    of: Callable[[bytes, *Terms], T],
    /,
    *terms: *Terms,
) -> T:
    """Return ``of(data, *terms)``, where ``data`` is what ``readable`` returns.

    If all can be read, by ``examine``, which need not give out the bytes.

    Raises:
        OSError: the read failed with another error than EIO.
    """
    try:
        said: T = examine(position, size, of, *terms)
    except OSError as error:
        if not is_unreadable(error):
            raise
        return of(_before_hole(read, position, size), *terms)
    return said


def _before_hole(read: Read, position: int, size: int) -> bytes:
    MET.hit()
    found = takewhile(lambda piece: piece[1] is not None, pieces(read, position, size))
    return b"".join([data or b"" for _, data in found])


def with_zeros(read: Read, position: int, size: int) -> tuple[bytes, list[range]]:
    """Read the bytes with zeros for unreadable ones; also return the ranges of these.

    The ranges count from ``position``.

    Raises:
        OSError: the read failed with another error than EIO.
    """
    try:
        return read(position, size), []
    except OSError as error:
        if not is_unreadable(error):
            raise
    return _around_holes(read, position, size)


def examined_with_zeros(
    examine: Callable[..., Any],
    read: Read,
    position: int,
    size: int,
    of: Callable[[bytes, tuple[range, ...], *Terms], T],
    /,
    *terms: *Terms,
) -> T:
    """Return ``of(data, ranges, *terms)`` of what ``with_zeros`` returns.

    If all can be read, by ``examine``, which need not give out the bytes.

    Raises:
        OSError: the read failed with another error than EIO.
    """
    try:
        said: T = examine(position, size, _of_all, of, *terms)
    except OSError as error:
        if not is_unreadable(error):
            raise
        data, holes = _around_holes(read, position, size)
        return of(data, tuple(holes), *terms)
    return said


def _of_all(data: bytes, of: Callable[..., T], *terms: object) -> T:
    return of(data, (), *terms)


def _around_holes(read: Read, position: int, size: int) -> tuple[bytes, list[range]]:
    data, holes = bytearray(size), []
    for where, piece in pieces(read, position, size):
        begin, end = where.start - position, where.stop - position
        if piece is None:
            holes.append(range(begin, end))
        else:
            data[begin:end] = piece
    return bytes(data), holes
