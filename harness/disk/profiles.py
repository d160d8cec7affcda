"""What a file system promises of unsynced data, as data.

Common to all profiles so far: metadata becomes durable as a prefix of its order, any
sync commits all metadata made before it, bytes within the durable size that have no
durable data read as zeros, and a failed sync leaves its pages clean. A parameter is
added here with the first profile that differs in it. The letters P1 to P15 name the
rules of the disk fault model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

PERCENT = 100


@dataclass(frozen=True, slots=True)
class DiskProfile:
    """One kind of disk and file system.

    Attributes:
        name: as it is given on the command line and written in reports.
        loses_unsynced: whether a power loss takes more than a process kill does.
        sector_size: the bytes that reach the medium whole or not at all (P3).
        auto_da_alloc: a rename over a file commits after the data of the new file,
            so that the name never shows less than was written before it (P10).
        everything_percent: share of hashed survivors that lose nothing (P13).
        nothing_percent: share of them that keep nothing pending.
        runs_percent: share of the others in which sectors stand or fall in runs.
        run_sectors: neighbouring sectors in such a run.
    """

    name: str
    loses_unsynced: bool
    sector_size: int = 512
    auto_da_alloc: bool = False
    everything_percent: int = 10
    nothing_percent: int = 10
    runs_percent: int = 20
    run_sectors: int = 8

    def __post_init__(self) -> None:
        assert self.sector_size > 0
        assert self.run_sectors > 0
        assert self.everything_percent + self.nothing_percent <= PERCENT
        assert 0 <= self.runs_percent <= PERCENT


KILL9 = DiskProfile(name="kill9", loses_unsynced=False)
EXT4_ORDERED = DiskProfile(name="ext4_ordered", loses_unsynced=True, auto_da_alloc=True)

PROFILES: Mapping[str, DiskProfile] = MappingProxyType(
    {profile.name: profile for profile in (KILL9, EXT4_ORDERED)}
)
