"""Builds disks as they are after a power loss, with nothing pending.

Each is the disk that ``SimDisk.crash`` leaves; for callers that have computed already
which names and bytes survive.
"""

from __future__ import annotations

from collections.abc import Mapping

from crashmq.harness.disk.inode import InodeImage
from crashmq.harness.disk.profiles import DiskProfile
from crashmq.harness.disk.sim_disk import DiskSnapshot
from crashmq.harness.disk.survivors import bad_sectors
from crashmq.harness.disk.units import Left, LeftFile


class Settling:
    """The disks that one choice of names and sizes can leave."""

    __slots__ = ("_births", "_files", "_inodes", "_left")

    def __init__(self, before: DiskSnapshot, left: Left) -> None:
        """Settle the disk ``before`` a power loss; ``left`` are the surviving names."""
        births: dict[int, str] = {}
        for path, number in left.names.items():
            births.setdefault(number, path)
        self._births = births
        self._files = left.files
        self._inodes = {
            file.number: _settled(
                before.profile, file, births[file.number], file.content
            )
            for file in left.files
        }
        medium = before.medium._replace(
            names=left.names, committed=left.names, effects=(), inodes={}
        )
        self._left = DiskSnapshot(before.profile, medium, before.actions, before.last)

    def disk(self, contents: Mapping[int, bytes]) -> DiskSnapshot:
        """The disk with these bytes in the files that have units.

        The keys are the files' indexes in ``Left.files``.
        """
        assert self._left.profile.loses_unsynced, "whatever pends goes on pending"
        inodes = self._inodes.copy()
        for place, content in contents.items():
            file = self._files[place]
            number = file.number
            inodes[number] = _settled(
                self._left.profile, file, self._births[number], content
            )
        medium = self._left.medium._replace(inodes=inodes)
        return self._left._replace(medium=medium)


def _settled(
    profile: DiskProfile, file: LeftFile, birth_path: str, content: bytes
) -> InodeImage:
    inode = file.inode
    if file.is_certain:
        return inode.share()._replace(durable_size=len(inode.cache))
    both = bytearray(content)
    return InodeImage(
        birth_path=birth_path,
        base=both,
        stores=[],
        since=0,
        end=0,
        durable=both,
        durable_size=len(content),
        cuts=[],
        mapped=False,
        mtime_ms=inode.mtime_ms,
        unwritten=(),
        content=content,
        bad=bad_sectors(profile, inode, content),
    )
