"""Sectors that a medium cannot give: what of a file can be read around them.

A read that fails says nothing of the bytes beside those it cannot give. So it is done
again sector by sector: what lies before the first bad one is as good as ever, and what
a store can make again (queues, their extensions) it may take for zeros and have cut.
Of the log nothing is ever taken for zeros, or a read that fails would end it.

Source: latent sector errors, Bairavasundaram et al., SIGMETRICS 2007. RocketMQ reads
through a mapping; there the process gets SIGBUS, which is an InternalError in the JVM.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any, TypeAlias

from engine.host.disk import T, Terms
from engine.host.probe import probe

SECTOR_SIZE = 512

MET = probe("unreadable.met", "a start met sectors that the medium could not give")
TAKEN_FOR_ZEROS = probe("unreadable.zeros", "what can be made again was cut there")

Read: TypeAlias = Callable[[int, int], bytes]


def is_unreadable(error: OSError) -> bool:
    """Whether the medium could not give the bytes, so that others may be fine."""
    return error.errno == errno.EIO


def sectors_of(position: int, size: int) -> set[int]:
    """Numbers of the sectors in which bytes [position, position + size) lie."""
    return {*range(position // SECTOR_SIZE, (position + size - 1) // SECTOR_SIZE + 1)}


def pieces(
    read: Read, position: int, size: int
) -> Iterator[tuple[range, bytes | None]]:
    """Each sector's part of [position, position + size): where, and its bytes.

    None where they cannot be read.

    Raises:
        OSError: another one than EIO.
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
    """The bytes up to the first that cannot be read; all of them, if all can.

    Raises:
        OSError: another one than EIO.
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
    """What ``of`` says of what ``readable`` gives, by ``examine`` if all can be read.

    Raises:
        OSError: another one than EIO.
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
    """The bytes, zeros for those that cannot be read, and where these lie.

    The ranges count from ``position``.

    Raises:
        OSError: another one than EIO.
    """
    try:
        return read(position, size), []
    except OSError as error:
        if not is_unreadable(error):
            raise
    data, holes = bytearray(size), []
    for where, piece in pieces(read, position, size):
        begin, end = where.start - position, where.stop - position
        if piece is None:
            holes.append(range(begin, end))
        else:
            data[begin:end] = piece
    return bytes(data), holes
