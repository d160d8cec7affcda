"""What a ``Damage`` op does to a store's files: pure, from bytes to bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from models.ops import Damage

_SELECTOR = re.compile(r"(commitlog|consumequeue|consumequeue_ext|index)\[(-?\d+)\]")


def selected(files: Mapping[str, bytes], selector: str) -> str | None:
    """The path a selector names among ``files``, if there is one.

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
    """The file's path, its new content (None: gone), and the range that differs.

    None where no file is selected, or the file has no byte to change.
    """
    path = selected(files, damage.file)
    if path is None:
        return None
    data = files[path]
    if damage.kind == "delete":
        return path, None, 0, len(data)
    if not data or damage.kind == "touch":
        return None
    at = damage.at % len(data)
    match damage.kind:
        case "truncate":
            return path, data[:at], at, len(data)
        case "zero":
            end = min(len(data), at + damage.size) if damage.size else len(data)
            changed = data[:at] + bytes(end - at) + data[end:]
        case "flip":
            end = min(len(data), at + max(1, damage.size))
            inverted = bytes(byte ^ 0xFF for byte in data[at:end])
            changed = data[:at] + inverted + data[end:]
    start, end = _difference(data, changed, at, end)
    return path, changed, start, end


def _difference(before: bytes, after: bytes, at: int, end: int) -> tuple[int, int]:
    """The bounds of what differs in [at, end); (0, 0) if nothing does."""
    differs = [n for n in range(at, end) if before[n] != after[n]]
    return (differs[0], differs[-1] + 1) if differs else (0, 0)
