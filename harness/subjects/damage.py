"""Applies damage, and puts foreign files into a store's directories."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from crashmq.harness.disk.hashing import garbage
from crashmq.harness.disk.profiles import SECTOR_SIZE
from crashmq.models.files.rewording import reworded
from crashmq.models.observations import RESTORED, Damaged, Planted, Skipped
from crashmq.models.ops import Damage, PlantFile

_OFFSET = re.compile("[0-9]{20}")
_SELECTOR = re.compile(r"(commitlog|consumequeue|consumequeue_ext|index)\[(-?\d+)\]")


def selected(files: Mapping[str, bytes], selector: str) -> str | None:
    """The path that a selector names among ``files``; None if there is none.

    ``commitlog[n]``, ``consumequeue[n]`` and ``index[n]`` count the files below that
    directory in sorted order, modulo their number; any other selector is a path.
    """
    match = _SELECTOR.fullmatch(selector)
    if match is None:
        return selector if selector in files else None
    below = sorted(path for path in files if path.startswith(match[1] + "/"))
    return below[int(match[2]) % len(below)] if below else None


def damaged(
    files: Mapping[str, bytes], damage: Damage
) -> tuple[str, bytes | None, int, int] | None:
    """The file's path, its new content (None: removed), and the range that differs.

    None if no file is selected, or the file has no byte to change.
    """
    path = selected(files, damage.file)
    if path is None:
        return None
    data = files[path]
    if damage.kind == "delete":
        return path, None, 0, len(data)
    if not data or damage.kind in ("touch", "restore"):
        return None
    at = damage.at % len(data)
    match damage.kind:
        case "truncate":
            return path, data[:at], at, len(data)
        case "zero":
            end = min(len(data), at + damage.size) if damage.size else len(data)
            changed = data[:at] + bytes(end - at) + data[end:]
        case "reword":
            return _reworded(path, data, damage)
        case "flip":
            end = min(len(data), at + max(1, damage.size))
            inverted = bytes(byte ^ 0xFF for byte in data[at:end])
            changed = data[:at] + inverted + data[end:]
        case "repeat":
            behind = at + max(1, damage.size)
            said = data[behind : behind + max(1, damage.size)]
            end = at + len(said)
            changed = data[:at] + said + data[end:]
        case "unreadable":
            # What nobody can read is zeros to those who look from outside.
            at -= at % SECTOR_SIZE
            end = min(len(data), at + max(1, damage.size))
            end = min(len(data), end + -end % SECTOR_SIZE)
            return path, data[:at] + bytes(end - at) + data[end:], at, end
    start, end = _difference(data, changed, at, end)
    return path, changed, start, end


def _reworded(
    path: str, data: bytes, damage: Damage
) -> tuple[str, bytes, int, int] | None:
    try:
        text = reworded(data.decode(), damage.at, damage.size)
    except UnicodeDecodeError:
        return None
    return None if text is None else (path, text.encode(), 0, len(data))


class Damageable(Protocol):
    """The methods that a disk needs so that its files can be damaged and restored."""

    def files(self) -> Mapping[str, bytes]:
        """Every file by path."""

    def replace_file(self, path: str, data: bytes | None) -> None:
        """Change one file from outside; None removes it."""

    def renew_file(self, path: str, data: bytes) -> None:
        """Restore one file; all of it can be read again."""

    def make_unreadable(self, path: str, start: int, end: int) -> None:
        """Make the sectors of those bytes unreadable."""


class Damages:
    """Damage to the files of a store that is down, with copies to restore them."""

    def __init__(self) -> None:
        self._copies: dict[str, bytes] = {}

    def do(self, disk: Damageable, damage: Damage) -> Damaged | Skipped:
        """Damage a file, or restore all that were damaged."""
        if damage.kind == "restore":
            return self._restore(disk)
        files = disk.files()
        change = damaged(files, damage)
        if change is None:
            return Skipped(f"no file {damage.file} to {damage.kind}")
        path, data, start, end = change
        self._copies.setdefault(path, files[path])
        if start < end or damage.kind == "delete":
            disk.replace_file(path, data)
        if damage.kind == "unreadable":
            disk.make_unreadable(path, start, end)
        return Damaged(path, start, end)

    def _restore(self, disk: Damageable) -> Damaged | Skipped:
        if not self._copies:
            return Skipped("nothing was damaged")
        for path, data in self._copies.items():
            disk.renew_file(path, data)
        self._copies = {}
        return RESTORED


class Placed(Protocol):
    """The methods that a disk needs so that foreign files can be put on it."""

    def files(self) -> Mapping[str, bytes]:
        """Every file by path."""

    def place_new(self, path: str, data: bytes | None) -> bool:
        """Create a file, or with None a directory; False if the path is taken."""


def plant(disk: Placed, op: PlantFile) -> Planted | Skipped:
    """Put the foreign file on the disk."""
    foreign = foreign_file(disk.files(), op)
    if foreign is None or not disk.place_new(*foreign):
        return Skipped(f"nothing can be put at {op.path}")
    path, data = foreign
    return Planted(path, -1 if data is None else len(data))


def foreign_file(
    files: Mapping[str, bytes], op: PlantFile
) -> tuple[str, bytes | None] | None:
    """The path of a foreign file, and its bytes (None: a directory).

    None if the op has no meaning on these files: no such file to copy.
    """
    folder, _, name = op.path.rpartition("/")
    ends = [
        (int(number), len(data))
        for path, data in files.items()
        if (number := _offset_name_in(path, folder))
    ]
    last, size = max(ends, default=(0, 0))
    names = {"{next}": last + size, "{far}": last + 4 * size}
    path = f"{folder}/{names[name]:020d}" if name in names else op.path
    match op.content:
        case "directory":
            return path, None
        case "empty":
            return path, b""
        case "zeros":
            return path, bytes(op.size)
        case "garbage":
            return path, garbage(op.size)
        case "copy":
            source = selected(files, op.source)
            return None if source is None else (path, files[source])


def _offset_name_in(path: str, folder: str) -> str:
    """The file's name if the path lies in that directory and the name is an offset."""
    above, _, name = path.rpartition("/")
    return name if above == folder and _OFFSET.fullmatch(name) else ""


def _difference(before: bytes, after: bytes, at: int, end: int) -> tuple[int, int]:
    """The bounds of the differing bytes in [at, end); (0, 0) if there are none."""
    differs = [n for n in range(at, end) if before[n] != after[n]]
    return (differs[0], differs[-1] + 1) if differs else (0, 0)
