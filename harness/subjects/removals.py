"""What is known of a file at the moment at which a store takes it away."""

from __future__ import annotations

from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.places import is_of_a_store
from crashmq.models.history import TakenAway


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
        durable.get("checkpoint", b""),
        durable.get(DELETED_PATH, b""),
        tuple([path for path in log if is_of_a_store(path, has_index=False)]),
    )
