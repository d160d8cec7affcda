"""Disk profiles: what a file system promises about unsynced data, as data.

Each rule that differs between disks is one attribute; no code depends on a profile's
name. ``MILDER_THAN`` is the partial order of profiles by which a failure is labelled:
what happens on a milder disk needs fewer things to go wrong. The letters P1 to P15 and
E1 to E9 name the rules of the disk fault model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

PERCENT = 100
SECTOR_SIZE = 512  # of which one alone may be unreadable

Metadata = Literal["prefix", "log_tree", "subset"]
Tail = Literal["zero", "any"]
SyncFailure = Literal["clean", "late", "revert"]


@dataclass(frozen=True, slots=True)
class DiskProfile:
    """One kind of disk and file system.

    Attributes:
        name: on the command line and in reports.
        loses_unsynced: whether a power loss takes more than a process kill does.
        metadata: in which order directory changes become durable (P9). ``prefix``: in
            their own order; any sync commits all of them. ``log_tree``: in their own
            order, but a sync commits those of its file or directory before the others.
            ``subset``: in no order; a sync commits those of its directory, a rename is
            two changes, and a name is lost while its directory is (P8).
        fsync_new_file_persists_name: whether the sync of a file makes its names durable
            too; with ``prefix`` it always does (P8).
        keeps_write_order: whether bytes written by calls, not through a mapping,
            survive as a prefix of their order, together with the directory changes;
            then any sync makes all of them durable (P1).
        sector_size: the bytes that reach the medium whole or not at all (P3).
        store_size: a store into a mapping may reach the medium up to any multiple of
            this many bytes, since write-back takes a page while a copy into it goes on;
            0: as a whole or not at all (P2).
        shorn_sectors: whether a sector may also be half new and half old, or neither
            (P4).
        torn_block: the bytes of a physical sector. A power loss during its write may
            leave any sector in it as garbage, or unreadable, even a durable one that
            was not written; 0: that does not happen (P4).
        tail: what may be in space that a file was given and nobody has synced since:
            zeros, or also garbage, or what another file had there (P6).
        splits_truncation: whether a file shrinks page by page (P7).
        honours_sync: whether a sync that succeeds has made anything durable (P15).
        sync_failure: what a failed sync leaves, besides clean pages (E1). ``clean``:
            readers see the new bytes until the pages leave the cache. ``late``: the
            same, and the error is reported by the file's next sync, not by this one.
            ``revert``: readers see the old bytes again.
        auto_da_alloc: whether a rename over a file commits after the new file's data,
            so that the name never shows less than was written before the rename (P10).
        everything_percent: share of hashed survivors that lose nothing (P13).
        nothing_percent: share of them that keep nothing pending.
        runs_percent: share of the others in which neighbouring sectors survive or are
            lost together.
        run_sectors: how many neighbouring sectors that are.
    """

    name: str
    loses_unsynced: bool
    metadata: Metadata = "prefix"
    fsync_new_file_persists_name: bool = True
    keeps_write_order: bool = False
    sector_size: int = SECTOR_SIZE
    store_size: int = 0
    shorn_sectors: bool = False
    torn_block: int = 0
    tail: Tail = "zero"
    splits_truncation: bool = False
    honours_sync: bool = True
    sync_failure: SyncFailure = "clean"
    auto_da_alloc: bool = False
    everything_percent: int = 10
    nothing_percent: int = 10
    runs_percent: int = 20
    run_sectors: int = 8

    def __post_init__(self) -> None:
        assert self.sector_size > 0
        assert self.store_size >= 0
        assert self.run_sectors > 0
        assert self.torn_block % self.sector_size == 0
        assert not self.torn_block or self.sector_size == SECTOR_SIZE
        assert not (self.torn_block and self.keeps_write_order)
        assert self.everything_percent + self.nothing_percent <= PERCENT
        assert 0 <= self.runs_percent <= PERCENT
        assert self.fsync_new_file_persists_name or self.metadata != "prefix"
        assert not self.keeps_write_order or self.metadata == "prefix"
        assert not self.auto_da_alloc or self.metadata == "prefix"

    @property
    def keeps_promises(self) -> bool:
        """Whether synced data survives a power loss exactly as it was written."""
        return self.honours_sync and not self.tears

    @property
    def tears(self) -> bool:
        """Whether a power loss can leave bytes that were never written."""
        return self.shorn_sectors or bool(self.torn_block)


KILL9 = DiskProfile(name="kill9", loses_unsynced=False)
EXT4_ORDERED = DiskProfile(
    name="ext4_ordered", loses_unsynced=True, store_size=64, auto_da_alloc=True
)
EXT4_DATA = replace(
    EXT4_ORDERED, name="ext4_data", keeps_write_order=True, sync_failure="late"
)
XFS = DiskProfile(name="xfs", loses_unsynced=True, store_size=64)
BTRFS = DiskProfile(
    name="btrfs",
    loses_unsynced=True,
    metadata="log_tree",
    store_size=64,
    sync_failure="revert",
)
POSIX_MIN = DiskProfile(
    name="posix_min",
    loses_unsynced=True,
    metadata="subset",
    fsync_new_file_persists_name=False,
    store_size=64,
    tail="any",
    splits_truncation=True,
)
NVME_TORN = replace(EXT4_ORDERED, name="nvme_torn", shorn_sectors=True)
PHYSICAL_4K = replace(EXT4_ORDERED, name="physical_4k", torn_block=4096)
LYING_DISK = replace(EXT4_ORDERED, name="lying_disk", honours_sync=False)

_ALL = (
    *(KILL9, EXT4_DATA, EXT4_ORDERED, XFS, BTRFS),
    *(POSIX_MIN, NVME_TORN, PHYSICAL_4K, LYING_DISK),
)
PROFILES: Mapping[str, DiskProfile] = MappingProxyType({p.name: p for p in _ALL})
"""Every profile by its name; no milder one comes after a wilder one."""

_BETWEEN = ("ext4_data", "ext4_ordered", "xfs", "btrfs")
MILDER_THAN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "kill9": frozenset(
            {*_BETWEEN, "posix_min", "nvme_torn", "physical_4k", "lying_disk"}
        ),
        **{name: frozenset({"posix_min"}) for name in _BETWEEN},
        "posix_min": frozenset(),
        "nvme_torn": frozenset(),
        "physical_4k": frozenset(),
        "lying_disk": frozenset(),
    }
)
"""Of each profile the wilder ones: whatever it leaves, each of them may leave too."""


def mildest(names: Iterable[str]) -> tuple[str, ...]:
    """Of these profiles, those to which none of the others is milder."""
    given = set(names)
    return tuple(
        name
        for name in PROFILES
        if name in given and not any(name in MILDER_THAN[other] for other in given)
    )
