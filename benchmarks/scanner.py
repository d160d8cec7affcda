"""How fast the scanner reads a log, beside zlib.crc32 over the same bytes.

    python benchmarks/scanner.py [--size MIB] [--workers N]

Writes a store of records of 300 B and one of records of 16 KiB, with their queues, into
a temporary directory; reads each once so that it lies in the page cache; then measures,
in turns, the scanner with the queues, a CRC-32 of all bytes, and the reader that the
laws use, a record at a time. Times are CPU seconds of the process, the least of
three; memory is the highest resident set. With workers, wall time of all of them.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import struct
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from zlib import crc32

import numpy as np

from crashmq.harness.fsck.scanner import scan_store
from crashmq.harness.fsck.store_files import read_files
from crashmq.harness.reading.stream import records_in

LOG_FILE_SIZE = 256 << 20
QUEUE_FILE_SIZE = 6_000_000
QUEUES = 4
ROUNDS = 3
HOST = bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))
PROPERTIES = b"KEYS\x01order-17\x02TAGS\x01paid\x02UNIQ_KEY\x017F0000010000AC10\x02"


def record(size: int) -> bytes:
    """One record of so many bytes, of topic ``bench``, at phy_offset 0."""
    topic = b"bench"
    body = bytes(range(256)) * (size // 256 + 1)
    body = body[: size - 91 - len(topic) - len(PROPERTIES)]
    head = struct.pack(
        ">iIIiiqqiq8sq8siqi",
        *(size, 0xDAA320A7, crc32(body) & 0x7FFFFFFF, 0, 0, 0, 0, 0),
        *(1_700_000_000_000, HOST, 1_700_000_000_000, HOST, 0, 0, len(body)),
    )
    tail = bytes([len(topic)]) + topic + struct.pack(">h", len(PROPERTIES))
    return head + body + tail + PROPERTIES


def write_store(root: Path, record_size: int, mib: int) -> None:
    """A store of so many mebibytes of log, its records in turn of four queues."""
    (root / "commitlog").mkdir(parents=True)
    template = np.frombuffer(record(record_size), np.uint8)
    per_file = (LOG_FILE_SIZE - 8) // record_size
    units: list[list[bytes]] = [[] for _ in range(QUEUES)]
    for number in range(max(1, (mib << 20) // LOG_FILE_SIZE)):
        base = number * LOG_FILE_SIZE
        rows = np.tile(template, (per_file, 1))
        index = np.arange(number * per_file, (number + 1) * per_file, dtype=np.int64)
        phys = base + np.arange(per_file, dtype=np.int64) * record_size
        rows[:, 12:16] = bytes_of((index % QUEUES).astype(">i4"), 4)
        rows[:, 20:28] = bytes_of((index // QUEUES).astype(">i8"), 8)
        rows[:, 28:36] = bytes_of(phys.astype(">i8"), 8)
        left = LOG_FILE_SIZE - per_file * record_size
        blank = struct.pack(">iI", left, 0xCBD43194).ljust(left, b"\0")
        path = root / "commitlog" / f"{base:020d}"
        path.write_bytes(rows.tobytes() + blank)
        for queue in range(QUEUES):
            mine = phys[index % QUEUES == queue]
            unit = np.zeros(len(mine), [("p", ">i8"), ("s", ">i4"), ("c", ">i8")])
            unit["p"], unit["s"] = mine, record_size
            units[queue].append(unit.tobytes())
    for queue, parts in enumerate(units):
        raw = b"".join(parts)
        folder = root / "consumequeue/bench" / str(queue)
        folder.mkdir(parents=True)
        for at in range(0, len(raw), QUEUE_FILE_SIZE):
            part = raw[at : at + QUEUE_FILE_SIZE].ljust(QUEUE_FILE_SIZE, b"\0")
            (folder / f"{at:020d}").write_bytes(part)


def bytes_of(numbers: np.ndarray, width: int) -> np.ndarray:
    """Each number's bytes, a row each."""
    return np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, width)


def crc_of_all(root: Path) -> None:
    """A CRC-32 of every byte of the log, a mebibyte at a time."""
    for path in sorted((root / "commitlog").iterdir()):
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                crc32(part)


def parsed(root: Path) -> None:
    """Every record by the reader that the laws use."""
    for _ in records_in(read_files(root)):
        pass


def scanned(root: Path, workers: int) -> None:
    """The scanner, which must agree."""
    scan = scan_store(root / "commitlog", root / "consumequeue", workers=workers)
    assert not scan.differs, scan.differs


def least(work: Callable[[], None], *, wall: bool = False) -> float:
    """Seconds of CPU, or of the wall's clock, of the fastest of some rounds."""
    clock = time.perf_counter if wall else time.process_time
    found = []
    for _ in range(ROUNDS):
        begun = clock()
        work()
        found.append(clock() - begun)
    return min(found)


def main() -> None:
    """Measure both stores, and print a line each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=512, help="of each log, in MiB")
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    print(f"{'record':>8} {'scanner':>9} {'crc32':>9} {'parsed':>9}   MB/s a core")
    for record_size in (300, 16 << 10):
        folder = Path(tempfile.mkdtemp(prefix="scanner-"))
        try:
            # Another process writes: its arrays are none of the scanner's memory.
            args = (folder, record_size, asked.size)
            writer = get_context("spawn").Process(target=write_store, args=args)
            writer.start()
            writer.join()
            crc_of_all(folder)  # into the page cache
            works = (partial(scanned, folder, 1), partial(crc_of_all, folder))
            size = asked.size << 20
            seconds = [least(work) for work in (*works, partial(parsed, folder))]
            rates = " ".join(f"{size / one / 1e6:9,.0f}" for one in seconds)
            print(f"{record_size:8,} {rates}")
            if asked.workers > 1:
                wall = least(partial(scanned, folder, asked.workers), wall=True)
                print(f"{'':8} {size / wall / 1e6:9,.0f} with {asked.workers} workers")
        finally:
            shutil.rmtree(folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"at most {peak:,} MiB resident, with the pages of mapped files")


if __name__ == "__main__":
    main()
