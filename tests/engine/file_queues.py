"""Runs of small files to test with."""

from __future__ import annotations

from crashmq.engine.store.logfile.mapped_file import file_name
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue
from crashmq.harness.disk.sim_disk import SimDisk

SIZE = 1000


def name(base: int) -> str:
    return f"log/{file_name(base)}"


def filled(disk: SimDisk, files: int, start: int = 0) -> MappedFileQueue:
    """A queue of full files, and one more byte's room asked for by nobody."""
    queue = MappedFileQueue(disk.mount(), "log", SIZE)
    for _ in range(files):
        queue.get_or_create_last_mapped_file(start).append_message(b"x" * SIZE)
    return queue


def loaded(disk: SimDisk, files: dict[str, bytes]) -> MappedFileQueue:
    disk.load(files)
    queue = MappedFileQueue(disk.mount(), "log", SIZE)
    queue.load()
    return queue


def bases(queue: MappedFileQueue) -> list[int]:
    return [file.file_from_offset for file in queue.files]
