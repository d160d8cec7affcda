"""DiskSpace: decides when the disk is too full for puts, or for unexpired files.

Source: DefaultMessageStore.CleanCommitLogService#isSpaceToDelete, RocketMQ 5.3.
Differs: puts stop before a file is created that would fill the disk, not only at the
next round; and log and queues lie on one disk, so it is checked once.
"""

from __future__ import annotations

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.running_flags import Flag, RunningFlags

FILLED = probe("disk_space.full", "the disk is so full that puts stop")
NEARLY = probe("disk_space.nearly", "the disk is so full that puts are not resumed")
RELIEVED = probe("disk_space.relieved", "puts are resumed: the disk has room")
NO_ROOM = probe("disk_space.no_room", "the next log file would fill the disk")


class DiskSpace:
    """Measures the disk and sets the flag that stops puts."""

    def __init__(self, config: StoreConfig, disk: Disk, flags: RunningFlags) -> None:
        self._config = config
        self._disk = disk
        self._flags = flags

    def watch(self) -> int:
        """Set or clear DISK_FULL; returns the percentage in use.

        Between the two ratios the flag stays as it is, so that it does not flicker.
        """
        percent = self._disk.usage().percent
        if percent > self._config.disk_space_warning_level_ratio:
            FILLED.hit()
            self._flags.set(Flag.DISK_FULL)
        elif percent > self._config.disk_space_clean_forcibly_ratio:
            NEARLY.hit()
        elif self._flags.has(Flag.DISK_FULL):
            RELIEVED.hit()
            self._flags.clear(Flag.DISK_FULL)
        return percent

    def has_room_for(self, size: int) -> bool:
        """Whether a file of ``size`` more bytes keeps the disk below the limit.

        If not, puts stop now: the remaining space is for the queues, so that the log
        can still be dispatched, and then deleted.
        """
        used, total = self._disk.usage()
        if not total:
            return True
        if (used + size) * 100 <= total * self._config.disk_space_warning_level_ratio:
            return True
        NO_ROOM.hit()
        self._flags.set(Flag.DISK_FULL)
        return False
