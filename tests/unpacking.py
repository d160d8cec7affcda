"""Unpacking an archive with what every Python from 3.11.0 on has.

``TarFile.extractall(filter=...)`` came with 3.11.4, and Debian 12 has 3.11.2; without a
filter it would follow an archive's links and paths out of the directory. So regular
files and directories are written here, and anything else is refused.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath


class UnsafeArchive(ValueError):
    """An archive holds what must not be unpacked."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A file of an archive, without the zeros at its end; or a directory."""

    path: PurePosixPath
    content: bytes
    size: int | None  # None: a directory


def unpacked(archive: Path, target: Path) -> Path:
    """Write the archive's files and directories below ``target``, which may be new.

    Modes, owners and times of the archive are not taken over. Zeros at the end of a
    file, as RocketMQ makes them in advance, are a hole.

    Raises:
        UnsafeArchive: a member leads out of ``target``, or is neither file nor
            directory.
    """
    for member in _members(archive, archive.stat().st_mtime_ns):
        path = target / member.path
        if member.size is None:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.write(member.content)
            file.truncate(member.size)
    return target


@cache
def _members(archive: Path, made_at: int) -> tuple[_Member, ...]:
    """What an archive holds, read once: many tests unpack the same."""
    found = []
    with tarfile.open(archive) as tar:
        for member in tar:
            path = _inside(archive, member)
            if member.isdir():
                found.append(_Member(path, b"", None))
                continue
            opened = tar.extractfile(member)
            assert opened is not None, member
            content = opened.read()
            found.append(_Member(path, content.rstrip(b"\0"), len(content)))
    return tuple(found)


def _inside(archive: Path, member: tarfile.TarInfo) -> PurePosixPath:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        raise UnsafeArchive(
            f"{archive}: {member.name!r} leads out of the directory it is unpacked to; "
            f"pack it with relative names."
        )
    if not (member.isfile() or member.isdir()):
        raise UnsafeArchive(
            f"{archive}: {member.name!r} is neither a file nor a directory; pack what "
            f"it leads to."
        )
    return path
