"""Bugs of the catalogue that are not planted, each with the reason."""

from __future__ import annotations

LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(
        ("R65", "R66", "R68", "R69", "R70", "X19"), "consumer's side, built later"
    ),
}
