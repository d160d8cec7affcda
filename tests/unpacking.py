"""Unpacking an archive with what every Python from 3.11.0 on has.

``TarFile.extractall(filter=...)`` came with 3.11.4, and Debian 12 has 3.11.2; without a
filter it would follow an archive's links and paths out of the directory. So regular
files and directories are written here, and anything else is refused.
"""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath


class UnsafeArchive(ValueError):
    """An archive holds what must not be unpacked."""


def unpacked(archive: Path, target: Path) -> Path:
    """Write the archive's files and directories below ``target``, which may be new.

    Modes, owners and times of the archive are not taken over.

    Raises:
        UnsafeArchive: a member leads out of ``target``, or is neither file nor
            directory.
    """
    with tarfile.open(archive) as tar:
        for member in tar:
            path = target / _inside(archive, member)
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            content = tar.extractfile(member)
            assert content is not None, member
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())
    return target


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
