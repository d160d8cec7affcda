"""What is known when a store takes a file away, or vouches for what is durable."""

from __future__ import annotations

from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.places import is_of_a_store
from crashmq.models.history import CheckpointWritten, TakenAway

CHECKPOINT_PATH = "checkpoint"


def taken_away(disk: SimDisk, verb: str, path: str) -> TakenAway:
    """What is known of a file that the store is about to remove or rename."""
    durable = disk.durable_files()
    log = [one for one in durable if one.startswith("commitlog/")]
    return TakenAway(
        verb,
        path,
        disk.files().get(path, b""),
        disk.is_synced(path),
        tuple(disk.unsynced_from(durable).items()),
        durable.get(CHECKPOINT_PATH, b""),
        durable.get(DELETED_PATH, b""),
        tuple([path for path in log if is_of_a_store(path, has_index=False)]),
    )


def checkpoint_written(disk: SimDisk, position: int, data: bytes) -> CheckpointWritten:
    """What is known of the checkpoint into which the store is about to write."""
    durable, content = disk.durable_files(), disk.files()[CHECKPOINT_PATH]
    medium = bytearray(durable.get(CHECKPOINT_PATH, b""))
    for bad in disk.unreadable():
        if bad.path == CHECKPOINT_PATH:
            lost = medium[bad.start : bad.end]
            medium[bad.start : bad.end] = bytes(len(lost))
    return CheckpointWritten(
        position,
        data,
        content[:position] + data + content[position + len(data) :],
        bytes(medium),
        tuple(disk.unsynced_from(durable).items()),
    )
