"""Releases of RocketMQ, as far as their starts differ, and which one wrote a store."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from crashmq.models.files.store_image import StoreImage

Release: TypeAlias = Literal["4.9", "5.1", "5.3.2", "5.4"]
"""The first of the releases that share their rules of a start."""
RELEASES: Final[dict[Release, str]] = {
    "4.9": "4.9",
    "5.1": "5.1 to 5.3.1",
    "5.3.2": "5.3.2 and 5.3.3",
    "5.4": "5.4 and later",
}
"""Which releases these are."""


def release_of(image: StoreImage) -> Release:
    """The releases that the files show traces of; without any, 5.1 to 5.3.1."""
    raw = bytes(image.files.get("checkpoint", b"")[24:48])
    if any(raw[16:]):
        return "5.4"
    entries = {(e.key_hash, e.phy_offset) for *_, e in image.index().entries}
    if entries and not image.tag_keys.isdisjoint(entries):
        return "5.4"
    return "5.1"
