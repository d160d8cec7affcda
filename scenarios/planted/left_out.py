"""Bugs of the catalogue that cannot exist in this engine, each with the reason."""

from __future__ import annotations

LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(
        ("R65", "R66", "R68", "R69", "R70", "X19"), "consumer's side, built later"
    ),
    "X03": (
        "a full truncation makes no mark that could stay behind: the log's first file "
        "begins at 0, and the queues' flushed mark falls back to their first file"
    ),
    "X21": (
        "a start of stores as small as the harness's reads every byte and refuses such "
        "damage, and a cleaner reads nothing but one time"
    ),
}
