"""A disk after a power loss, made from what is left of it: nothing pends any more.

It is the disk that ``SimDisk.crash`` leaves, for whoever has worked out already which
names and bytes survive.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.disk.inode import InodeImage
from harness.disk.sim_disk import DiskSnapshot
from harness.disk.units import Left, LeftFile


def settled(
    before: DiskSnapshot, left: Left, contents: Iterable[bytes]
) -> DiskSnapshot:
    """The disk ``before`` a power loss after it, with ``contents`` in the files."""
    assert before.profile.loses_unsynced, "whatever pends goes on pending"
    births: dict[int, str] = {}
    for path, number in left.names.items():
        births.setdefault(number, path)
    inodes = {
        file.number: _settled_file(file, births[file.number], content)
        for file, content in zip(left.files, contents, strict=True)
    }
    medium = before.medium._replace(
        names=left.names, committed=left.names, effects=(), inodes=inodes
    )
    return DiskSnapshot(before.profile, medium, before.actions, before.last)


def _settled_file(file: LeftFile, birth_path: str, content: bytes) -> InodeImage:
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
        late_errno=0,
        content=content,
        bad=inode.still_bad(content),
    )
