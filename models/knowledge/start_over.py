"""What a start found: what its files called for, and each reason to refuse them.

A directory may be another program's, damaged, or of a store with another setup.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.index import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE
from crashmq.models.files.layouts import of_another_layout
from crashmq.models.files.oddity import is_misnamed
from crashmq.models.files.places import is_of_a_store
from crashmq.models.files.queue import UNIT_SIZE
from crashmq.models.files.record import MAGIC_V1, MAGIC_V2
from crashmq.models.files.store_image import StoreImage, read_store
from crashmq.models.history import Start
from crashmq.models.knowledge.knowledge import End
from crashmq.models.knowledge.moments import (
    At,
    StartOver,
)
from crashmq.models.observations import Damaged, Refused, Started
from crashmq.models.program import Setup

RECORD_MAGICS = tuple(magic.to_bytes(4, "big") for magic in (MAGIC_V1, MAGIC_V2))
HEAD_SIZE = 8  # length and magic of a record or filler
SEEN_BEHIND = 4  # bytes that a record's last NUL is told from a loss by
RECOVERED_FILES = 3  # of the log, by an orderly start of RocketMQ
_READ_AT_WILL = ("config/consumerFilter.json", "config/delayOffset.json")
_WHOLE_WINDOW = Setup().start_window


def reads_in_a_window(setup: Setup) -> bool:
    """Whether a start may leave old files unread, and so their damage unseen."""
    return setup.start_window < _WHOLE_WINDOW


def start_over(
    at: At, start: Start, seen: Started | Refused, found: StoreImage
) -> StartOver:
    """The moment of a start that has ended, with what its files called for.

    That is whether the directory counts as another program's, whether anything in it
    gives a reason to refuse, and what the start must therefore have kept.

    Args:
        at: where the walk is.
        start: its events.
        seen: whether it came up or refused.
        found: the files before it, decoded.
    """
    known = at.known
    setup, damaged = known.setup, known.tampering.damaged
    log_is_damaged = known.is_degraded or known.tampering.log_is_damaged
    if found.checkpoint.mark is not None:
        log_is_damaged |= known.tampering.mark_may_be_of_before
    at_full_size = extended(found, setup.log_file_size) if log_is_damaged else found
    is_windowed = reads_in_a_window(setup)
    is_foreign = bool(damaged) and not setup.adopt
    is_foreign = is_foreign and (at_full_size.is_of_others or known.is_degraded)
    is_sound = not (known.disk_failed or known.is_degraded)
    if is_foreign and known.end is End.ORDERLY and is_sound:
        is_foreign = not _is_as_an_orderly_end_leaves(found, setup, damaged)
    misfit = "" if setup.is_usable else f"it is to have {setup.wrong_value}"
    misfit = misfit or _misfit(found, setup, {damage.path for damage in damaged})
    if found.checkpoint.mark is None and not setup.adopt:
        misnamed = [path for path in start.found if is_misnamed(path)]
        other = of_another_layout(start.found)
        # The folder of a file that was taken away is there still.
        emptied = of_another_layout(known.tampering.taken_away)
        is_foreign = is_foreign or bool(misnamed or other or emptied)
        misfit = misfit or (f"{misnamed[0]} is named by a number" if misnamed else "")
        misfit = misfit or (f"{other} is of another kind of store" if other else "")
        misfit = misfit or _misfit_index(found, setup)
    if is_foreign and _cuts_whole_records(at_full_size, setup):
        misfit = misfit or "whole records lie behind an end that no mark tells"
    if setup.keeps_progress and not misfit:
        misfit = _lost_offsets(found, start.unreadable) or _lost_configs(found)
    if setup.filters and not misfit and found.filters is None:
        misfit = "no table of the groups' filters is whole"
    if setup.delivers_delayed and not misfit:
        misfit = _lost_delays(found, start.unreadable) or _lost_configs(found)
    return StartOver(
        *at,
        found,
        seen,
        at_full_size,
        log_is_damaged,
        misfit,
        _lost(at_full_size, start.unreadable, is_around=setup.on_damage == "serve"),
        is_foreign,
        _has_lost_its_mark(found, damaged),
        is_windowed and _has_short_file(found, setup),
        is_windowed,
        start.unreadable,
    )


def _is_as_an_orderly_end_leaves(
    found: StoreImage, setup: Setup, damages: Sequence[Damaged]
) -> bool:
    """Whether the files look like an orderly end of RocketMQ, which loses nothing.

    Apart from the mark, only log files may be changed that RocketMQ does not read at an
    orderly start, and none may have another length.
    """
    if found.abort or found.checkpoint.mark is not None:
        return False
    log, size = found.commit_log, setup.log_file_size
    is_run = all(b.base - a.base == size for a, b in pairwise(log.files))
    is_full = all(len(file.data) == size for file in log.files)
    changed = [damage for damage in damages if damage.path != "checkpoint"]
    unread = {file.path: file.base for file in log.files[:-RECOVERED_FILES]}
    if not (is_run and is_full and {damage.path for damage in changed} <= {*unread}):
        return False
    ranges = [(unread[d.path] + d.start, unread[d.path] + d.end) for d in changed]
    # No CRC says so where a record is whole all the same.
    return not any(
        start < record.end and record.phy_offset < end
        for record in (*log.records, *log.records_beyond)
        for start, end in ranges
    )


def _cuts_whole_records(found: StoreImage, setup: Setup) -> bool:
    """Whether a start would cut off whole records that are not known to be its own.

    They are if a mark has been written since, but for those behind an orderly end. As
    RocketMQ after such an end, a start without a mark does not read the log before its
    last three files, if all files are there.
    """
    log = found.commit_log
    mark = found.checkpoint.mark
    if mark is not None:
        is_refused = setup.on_damage == "refuse" and not found.abort
        return is_refused and log.goes_on_behind(mark.durable_offset)
    bases = [file.base for file in log.files]
    is_run = all(after - base == log.file_size for base, after in pairwise(bases))
    if found.abort or not is_run or len(bases) <= RECOVERED_FILES:
        return bool(log.records_beyond)
    until = bases[-RECOVERED_FILES]
    return log.max_phy_offset >= until and bool(log.records_beyond)


def _lost_offsets(found: StoreImage, unreadable: Sequence[Damaged]) -> str:
    """Why consumer offsets are unknown; "" if a start can know them."""
    if _lacks_table(unreadable):
        return "the consumers' offsets cannot be read"
    is_lost = found.offsets is None
    return "no table of the consumers' offsets is whole" if is_lost else ""


def _lost_configs(found: StoreImage) -> str:
    """Which table that every broker reads is lost; "" if none."""
    lost = [path for path in found.lost_tables if path not in _READ_AT_WILL]
    return f"neither {lost[0]} nor its backup is whole" if lost else ""


def _lacks_table(unreadable: Sequence[Damaged]) -> bool:
    """Whether a table or its backup cannot be read; no start reads a temporary file."""
    paths = [place.path for place in unreadable]
    return any(one.startswith("config/") and not one.endswith(".tmp") for one in paths)


def _lost_delays(found: StoreImage, unreadable: Sequence[Damaged]) -> str:
    """Why delay offsets are unknown; "" if a start can know them."""
    if _lacks_table(unreadable):
        return "the offsets of the delay levels cannot be read"
    is_lost = found.delays is None or found.offsets is None
    return "no table of the delay levels is whole" if is_lost else ""


def extended(found: StoreImage, log_file_size: int) -> StoreImage:
    """The image with short log files filled with zeros, as a start may read them."""
    short = [f for f in found.commit_log.files if len(f.data) < log_file_size]
    if not short:
        return found
    files = dict(found.files)
    for file in short:
        files[file.path] = bytes(file.data).ljust(log_file_size, b"\0")
    return read_store(files, None, found.levels)


def _has_lost_its_mark(found: StoreImage, damages: Sequence[Damaged]) -> bool:
    """Whether a mark of an earlier log is left.

    It names files that have expired since, or an end that was cut off since.
    """
    mark, log = found.checkpoint.mark, found.commit_log
    if mark is None or not any(damage.path == "checkpoint" for damage in damages):
        return False
    begins_later = log.min_phy_offset > mark.log_min_offset
    return begins_later or log.max_phy_offset < mark.durable_offset


def _has_short_file(found: StoreImage, setup: Setup) -> bool:
    """Whether a log file is shorter than its full size."""
    return any(len(file.data) < setup.log_file_size for file in found.commit_log.files)


def _lost(image: StoreImage, places: Sequence[Damaged], *, is_around: bool) -> str:
    """Which unreadable place a start needs to read; "" if none.

    It needs the log up to its end, and there the bytes that show that it ends.
    """
    if not places:
        return ""
    log, end = image.commit_log, image.commit_log.max_phy_offset
    ends = [end]
    mark = image.checkpoint.mark
    if is_around and mark is not None and end < mark.durable_offset:
        # The log goes on after other damage.
        ends += [mark.durable_offset, *[record.end for record in log.records_beyond]]
    until = max([at + max(HEAD_SIZE, _claimed(image, at)) for at in ends])
    base_of = {file.path: file.base for file in log.files}
    for place in places:
        base = base_of.get(place.path, -1)
        is_met = base >= log.min_phy_offset and base + place.start < until
        if (base >= 0 and is_met) or place.path == "checkpoint":
            return f"{place.path} cannot be read at byte {place.start}"
    return ""


def _claimed(image: StoreImage, offset: int) -> int:
    """What a start reads of a record at the log's end, by its head; 0: there is none.

    Where others may have written, bytes behind a NUL tell whether it was lost.
    """
    for file in image.commit_log.files:
        at = offset - file.base
        if 0 <= at <= len(file.data) - HEAD_SIZE:
            head = bytes(file.data[at : at + HEAD_SIZE])
            size = int.from_bytes(head[:4], "big", signed=True)
            left = len(file.data) - at
            if head[4:] not in RECORD_MAGICS or size > left:
                return 0
            takes_nul = file.by_rocketmq or offset not in file.ours
            is_open = takes_nul and size > 0 and not file.data[at + size - 1]
            return min(size + SEEN_BEHIND, left) if is_open else size
    return 0


def _misfit_index(found: StoreImage, setup: Setup) -> str:
    """Which index file is of a store with other sizes; "" if none.

    A start would remove it, and without a mark it may be another program's. One of no
    length has nothing that could be lost.
    """
    size = HEADER_SIZE + SLOT_SIZE * setup.index_slots
    size += ENTRY_SIZE * setup.index_entries
    for path in sorted(found.files) if setup.has_index else ():
        is_one = path.startswith("index/") and is_of_a_store(path, has_index=True)
        if is_one and len(found.files[path]) not in (0, size):
            return f"{path} is of a store with other sizes"
    return ""


def _misfit(found: StoreImage, setup: Setup, damaged: set[str]) -> str:
    """Which damaged file cannot belong to a store of this setup; "" if none.

    It is longer than the setup's files, or begins at an offset where none of them does.
    """
    if not damaged:
        return ""
    queue_file_size = setup.queue_file_units * UNIT_SIZE
    placed = [
        (file.path, file.base, len(file.data), setup.log_file_size)
        for file in found.commit_log.files
    ]
    placed += [
        (file.path, file.base, len(file.data), queue_file_size)
        for queue in found.consume_queues
        for file in queue.files
    ]
    for path, base, length, size in placed:
        if path in damaged and (length > size or base % size):
            return f"{path} is of a store with other sizes"
    if found.checkpoint.mark is None:
        lengths = {
            len(file.data) for queue in found.consume_queues for file in queue.files
        }
        is_full = queue_file_size in lengths and (found.abort or setup.adopt)
        if not is_full and any(0 < length < queue_file_size for length in lengths):
            return "queue files may be of a store with smaller ones"
    deleted = found.commit_log.deleted
    if deleted.flaw:
        return f"{DELETED_PATH} {deleted.flaw}"
    for path in sorted(damaged):
        if path.startswith("consumequeue_ext/") and setup.queue_ext_size:
            size, data = setup.queue_ext_size, found.files.get(path, b"")
            if len(data) > size or int(path.rpartition("/")[2]) % size:
                return f"{path} is of a store with other sizes"
    return ""
