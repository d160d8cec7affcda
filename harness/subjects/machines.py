"""Machines: those of the clients, each with a disk that outlives their processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import DiskSnapshot, SimDisk
from crashmq.models.ops import ConsumerEnd, Crash
from crashmq.models.program import Setup

_ENDS: Final[dict[ConsumerEnd, Crash]] = {
    "stop": Crash("process_kill"),
    "kill": Crash("process_kill"),
    "vanish": Crash("power_loss"),
}
"""What a client's own disk sees of its end: whoever vanishes has lost power."""


class Machines:
    """The disks of the clients, by the client's name."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._disks: dict[str, SimDisk] = {}

    def disk_of(self, client: str) -> SimDisk:
        """The disk of a client's machine."""
        disk = self._disks.get(client)
        if disk is None:
            disk = self._disks[client] = SimDisk(PROFILES[self._setup.disk_profile])
        return disk

    def process_ended(self, client: str, how: ConsumerEnd) -> None:
        """Let the disk of a client see that its process has ended."""
        self.disk_of(client).crash(_ENDS[how])

    @property
    def disks(self) -> dict[str, DiskSnapshot]:
        """The disks as they are now."""
        return {client: disk.snapshot() for client, disk in self._disks.items()}

    def find_disks(self, disks: Mapping[str, DiskSnapshot]) -> None:
        """Give each client the disk that its killed process left."""
        for client, snapshot in disks.items():
            self._disks[client] = SimDisk.fork(snapshot)
            self.process_ended(client, "kill")
