"""Tiny programs on a simulated disk, and every state a power loss may leave of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.disk.units import PendingUnits
from crashmq.models.ops import Crash, DiskFault, Survivors

Call: TypeAlias = tuple[str | int | bytes, ...]
Files: TypeAlias = dict[str, bytes]


def do(mount: Mount, call: Call) -> None:
    """Do one call; ``store`` writes through a mapping, ``write`` does not."""
    match call:
        case ("create", str(path), int(size)):
            mount.open(path, size, create=True, mapped=False).close()
        case ("write" | "store" as how, str(path), int(offset), bytes(data)):
            size = mount.file_size(path)
            file = mount.open(path, size, create=False, mapped=how == "store")
            file.write_at(offset, data)
            file.close()
        case ("sync", str(path)):
            size = mount.file_size(path)
            file = mount.open(path, size, create=False, mapped=False)
            file.sync()
            file.close()
        case ("sync_dir", str(path)):
            mount.sync_dir(path)
        case ("mkdir", str(path)):
            mount.make_dir(path)
        case ("rename", str(source), str(target)):
            mount.rename(source, target)
        case ("remove", str(path)):
            mount.remove(path)
        case ("truncate", str(path), int(size)):
            mount.truncate(path, size)
        case _:
            raise AssertionError(f"no call is {call}")


def after(profile: str, start: Files, calls: tuple[Call | DiskFault, ...]) -> SimDisk:
    """A disk of one profile with ``start`` on it for certain, after ``calls``.

    A fault among them is set off there; what it lets fail may fail.
    """
    disk = SimDisk(PROFILES[profile])
    disk.load(start)
    mount = disk.mount()
    for call in calls:
        if isinstance(call, DiskFault):
            disk.fail(call)
            continue
        try:
            do(mount, call)
        except OSError:
            if not any(isinstance(other, DiskFault) for other in calls):
                raise
    return disk


STATES_MAX = 20_000
SEEDS = 600


def states(disk: SimDisk) -> list[Files]:
    """Every state a power loss may leave now; of very many, those chance draws.

    Each sector of a block may be torn by itself, so that a page has 65,536 states.
    """
    snapshot = disk.snapshot()
    found: list[Files] = []
    pending = PendingUnits.of(snapshot)
    choices: Iterable[Survivors] = pending.choices()
    if disk.profile.torn_block and pending.count().states > STATES_MAX:
        choices = (Survivors("hashed", seed) for seed in range(SEEDS))
    for survivors in choices:
        fork = SimDisk.fork(snapshot)
        fork.crash(Crash("power_loss", survivors))
        found.append(fork.files())
    return found
