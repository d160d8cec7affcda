"""What the simulated disk and runtime cost, in microseconds a call.

Run ``python benchmarks/disk.py`` from the checkout. Each figure is the best of several
rounds on one core; compare figures of one run only.
"""

from __future__ import annotations

import itertools
import sys
import timeit
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".ci" / "checkout"))

from crashmq.engine.host.disk import PAGE_SIZE
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.disk.sim_file import SimFile
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.ops import Crash, Survivors

ROUNDS = 7
FILES = 6
MESSAGE = b"m" * 150


def cost_us(call: Callable[[], object], number: int) -> float:
    return min(timeit.repeat(call, number=number, repeat=ROUNDS)) / number * 1e6


def tiny_store() -> tuple[SimDisk, Mount, list[SimFile]]:
    disk = SimDisk(PROFILES["ext4_ordered"])
    mount = disk.mount()
    mount.make_dir("d")
    files = [
        mount.open(f"d/{n}", PAGE_SIZE, create=True, mapped=True) for n in range(FILES)
    ]
    mount.sync_dir("d")
    return disk, mount, files


def write_and_sync(file: SimFile, writes: int) -> None:
    for n in range(writes):
        file.write_at(n * len(MESSAGE), MESSAGE)
    file.sync()


def crash_and_reopen(pending: int, survivors: Survivors) -> Callable[[], None]:
    def life() -> None:
        disk, mount, files = stores.pop()
        for n in range(pending):
            files[n % FILES].write_at(n * 64, MESSAGE[:64])
        disk.crash(Crash("power_loss", survivors))
        mount = disk.mount()
        for name in mount.list_dir("d"):
            mount.open(f"d/{name}", PAGE_SIZE, create=False, mapped=True)

    stores = [tiny_store() for _ in range(ROUNDS * 300)]
    return life


def fork_after_write() -> Callable[[], None]:
    disk, _, files = tiny_store()
    numbers = itertools.count()

    def fork() -> None:
        number = next(numbers)
        files[0].write_at(number % 1000, b"x")
        SimDisk.fork(disk.snapshot())
        if number % 20 == 0:
            files[0].sync()

    return fork


def main() -> None:
    disk, mount, files = tiny_store()
    file = files[0]
    runtime = SimRuntime(0)
    ten_writes = cost_us(lambda: write_and_sync(file, 10), 2000)
    no_writes = cost_us(lambda: write_and_sync(file, 0), 2000)
    one_write = cost_us(lambda: write_and_sync(file, 1), 2000)
    file.write_at(0, MESSAGE)
    read_changed = cost_us(lambda: file.read_at(50, 150), 20000)
    disk.files()
    none, hashed = Survivors("none"), Survivors("hashed", 3)
    figures = {
        "write_at, 150 B": (ten_writes - one_write) / 9,
        "read_at, 150 B, of a changed file": read_changed,
        "read_at, 150 B, of an unchanged file": cost_us(
            lambda: file.read_at(50, 150), 20000
        ),
        "write and sync, 150 B": one_write,
        "sync of nothing": no_writes,
        "files(), 6 of them": cost_us(disk.files, 5000),
        "snapshot, 6 files": cost_us(disk.snapshot, 5000),
        "write, snapshot and fork, 6 files": cost_us(fork_after_write(), 2000),
        "crash and reopen, 0 pending": cost_us(crash_and_reopen(0, none), 300),
        "crash and reopen, 12 pending, none": cost_us(crash_and_reopen(12, none), 300),
        "crash and reopen, 12 pending, hashed": cost_us(
            crash_and_reopen(12, hashed), 300
        ),
        "run() of a body that does not wait": cost_us(
            lambda: runtime.run(lambda: 1), 20000
        ),
        "run(), spawn and result": cost_us(
            lambda: runtime.run(lambda: runtime.spawn(lambda: 1).result()), 5000
        ),
        "list_dir": cost_us(lambda: mount.list_dir("d"), 20000),
        "exists": cost_us(lambda: mount.exists("d/3"), 20000),
    }
    for what, cost in figures.items():
        print(f"{what:40} {cost:8.2f} us")


if __name__ == "__main__":
    main()
