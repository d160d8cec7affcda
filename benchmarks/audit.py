"""How fast fsck judges a big damaged store, and whether it finds all that was planted.

    python benchmarks/audit.py [--gib N] [--damages N] [--folder DIR] [--workers N]
        [--rocketmq VERSION]

Writes a store of records of 300 B and one of 16 KiB with planted damage
(``big_store.py``), takes a CRC-32 of every byte of the log, which is what the speed is
compared with, and judges the store in a process of its own. Times are CPU seconds of
all processes; memory is what the judge had at most, the pages of mapped files included,
and what of it was its own.
With ``--rocketmq`` that version first starts on the store as after a crash, without a
checkpoint, so that it reads the whole log; of that the time that passes is told.
Exit code 1 if a damage was missed, or something was found that nobody planted.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import shutil
import sys
import threading
import time
from collections import Counter
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from zlib import crc32

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".ci" / "checkout"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "corpus"))

from benchmarks.big_store import (
    LOG_FILE_SIZE,
    QUEUE_FILE_SIZE,
    Planted,
    Shape,
    plant,
    unexpected,
    write_store,
)
from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.survey import Manner, by_processes, here


def crc_of_all(root: Path) -> float:
    """CPU seconds of a CRC-32 of every byte of the log, a mebibyte at a time."""
    begun = time.process_time()
    for path in sorted((root / "commitlog").iterdir()):
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                crc32(part)
    return time.process_time() - begun


def started_by_rocketmq(root: Path, version: str) -> float:
    """Seconds that RocketMQ takes to start on links to the files of a whole store."""
    from rocketmq import Broker, Settings

    links = root.with_name(f"{root.name}-started")
    for path in [path for path in sorted(root.rglob("*")) if path.is_file()]:
        target = links / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.name != "checkpoint":  # without one every record is read
            os.link(path, target)
    (links / "abort").touch()
    sizes = {
        "mappedFileSizeCommitLog": str(LOG_FILE_SIZE),
        "mappedFileSizeConsumeQueue": str(QUEUE_FILE_SIZE),
    }
    try:
        with Broker(version, "-Xmx2g") as broker:
            broker.take(links, Settings(sizes))
            begun = time.monotonic()
            broker.open()
            return time.monotonic() - begun
    finally:
        shutil.rmtree(links, ignore_errors=True)


def judge(root: Path, workers: int, answer: Connection) -> None:
    """Judge a store, and send (findings, verdict, CPU seconds, MiB at most).

    Of the memory it sends what was resident, and what was the process's own.
    """
    gc.disable()  # as the command does
    Path("/proc/self/clear_refs").write_text("5")  # else the parent's peak counts
    done, sampled = threading.Event(), [0]
    threading.Thread(target=sample, args=(sampled, done), daemon=True).start()
    manner = Manner(by_processes(workers) if workers > 1 else here)
    report = fsck(root, manner=manner)
    done.set()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, -1)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    most = kib_of("VmHWM") >> 10, max(sampled) >> 10
    found = [(one.law, one.path, one.byte) for one in report.violations]
    answer.send((found, report.verdict, seconds, most))


def sample(sampled: list[int], done: threading.Event) -> None:
    """Note the process's own memory in KiB, five times a second."""
    while not done.wait(0.2):
        sampled.append(kib_of("RssAnon"))


def kib_of(name: str) -> int:
    """A row of /proc/self/status."""
    status = Path("/proc/self/status").read_text("utf-8")
    rows = dict(row.split(":", 1) for row in status.splitlines())
    return int(rows[name].split()[0])


def measured(root: Path, workers: int) -> tuple[Any, ...]:
    """What ``judge`` sends."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=judge, args=(root, workers, theirs))
    process.start()
    theirs.close()
    said: tuple[Any, ...] = ours.recv()
    process.join()
    return said


def audited(root: Path, shape: Shape, planted: list[Planted], workers: int) -> bool:
    """Measure one store and print it; whether all was found and nothing else."""
    of_crc = crc_of_all(root)
    found, verdict, seconds, most = measured(root, workers)
    missed, more = unexpected(planted, found)
    size = shape.log_files * shape.log_file_size / 1e6
    print(
        f"{shape.record_size:8,} B  {shape.records:12,} records  "
        f"{size / seconds:7,.0f} MB/s  crc32 {size / of_crc:7,.0f} MB/s  "
        f"{of_crc / seconds:.3f} of it  {most[0]:,} MiB, its own {most[1]:,}"
    )
    print(f"{'':10}  {verdict}")
    print(
        f"{'':10}  {len(planted):,} planted, {len(missed):,} missed, {len(more):,} "
        f"found beside them",
        flush=True,
    )
    for one in (*missed[:5], *more[:5]):
        print(f"{'':10}    {one}")
    for kind, times in Counter(one.kind for one in missed).items():
        print(f"{'':10}    missed {times} of: {kind}")
    return not (missed or more)


def main() -> None:
    """Measure both stores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=int, default=2, help="log files of 1 GiB each")
    parser.add_argument("--damages", type=int, default=1000, help="a multiple of ten")
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rocketmq", help="a version to start on it, too")
    parser.add_argument("--record", type=int, nargs="*", default=[300, 16 << 10])
    asked = parser.parse_args()
    is_right = True
    for record_size in asked.record:
        root = asked.folder / f"audited-{os.getpid()}"
        shape = Shape(record_size, asked.gib)
        try:
            write_store(root, shape)
            if asked.rocketmq:
                seconds = started_by_rocketmq(root, asked.rocketmq)
                size = shape.log_files * shape.log_file_size / 1e6
                print(
                    f"RocketMQ {asked.rocketmq} starts with {size / seconds:,.0f} MB/s"
                )
            planted = plant(root, shape, asked.damages, 1)
            is_right &= audited(root, shape, planted, asked.workers)
        finally:
            shutil.rmtree(root, ignore_errors=True)
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
