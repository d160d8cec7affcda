"""Judging a start of a log that was damaged from outside."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from models.image.log import LogImage
from models.image.rot import rotten_records
from models.invariants.recovery import recovered_log_is_a_prefix
from models.observations import Damaged
from models.reference import ReferenceModel
from models.store_image import StoreImage, read_store


def takes_rot(
    checks: dict[str, int],
    log: LogImage,
    model: ReferenceModel,
    damages: Sequence[Damaged],
) -> bool:
    """Whether a start took over a record that has rotted, and could not know.

    No mark vouched for it, and no CRC covers what has changed of it. Every other record
    must be what it was; what the store makes of this one, nobody can say.
    """
    rotten = rotten_records(log, damages)
    if not rotten:
        return False
    pairs = zip_longest(log.records, model.live_messages(log.min_phy_offset))
    whole = [pair for pair in pairs if pair[0] not in rotten]
    recovered_log_is_a_prefix.hold(
        checks,
        [record for record, _ in whole if record is not None],
        [appended for _, appended in whole if appended is not None],
        model.in_flight,
    )
    return True


def extended(found: StoreImage, log_file_size: int) -> StoreImage:
    """The image with what short log files lack as zeros, as a start may read them."""
    files = dict(found.files)
    for file in found.commit_log.files:
        if len(file.data) < log_file_size:
            files[file.path] = bytes(file.data).ljust(log_file_size, b"\0")
    return read_store(files)
