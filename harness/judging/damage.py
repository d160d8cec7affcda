"""Judging a start of a log that was damaged from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.interpreter import Report
from harness.judging.promises import SPOILT, Promises
from models.appended import Appended, differs, differs_from_message
from models.image.deleted import DELETED_PATH
from models.image.log import LogImage
from models.image.oddity import oddities
from models.image.queue import UNIT_SIZE
from models.image.record import MAGIC_V1, MAGIC_V2, Record
from models.image.rot import rotten_records
from models.invariants.around import refuses_what_cannot_be_located
from models.invariants.recovery import (
    mark_vouches_for_an_orderly_end,
    recovered_log_is_a_prefix,
    refusal_changes_nothing,
    refusal_names_what_is_damaged,
    refuses_only_damage,
)
from models.messages import MessageToPut
from models.observations import Damaged, Refused, Started
from models.program import Setup
from models.reference import ReferenceModel
from models.store_image import StoreImage, read_store


def takes_rot(
    checks: dict[str, int],
    log: LogImage,
    model: ReferenceModel,
    damages: Sequence[Damaged],
    *,
    tears: bool,
) -> bool:
    """Whether a start took over a record that has rotted, and could not know.

    No mark vouched for it, and no CRC covers what has changed of it. Every other record
    must be what it was; what the store makes of this one, nobody can say. If the
    disk ``tears`` sectors, nobody says either which bytes it spoilt.
    """
    rotten = rotten_records(log, damages)
    if tears and SPOILT in damages:
        rotten |= _torn_records(log, model)
    if not rotten:
        return False
    places = {record.phy_offset for record in rotten}
    messages = model.live_messages(log.min_phy_offset)
    recovered_log_is_a_prefix.hold(
        checks,
        [record for record in log.records if record.phy_offset not in places],
        [appended for appended in messages if appended.phy_offset not in places],
        model.in_flight,
    )
    return True


def _torn_records(log: LogImage, model: ReferenceModel) -> frozenset[Record]:
    """Records of a known body, for whose header and names no CRC speaks.

    That may be the CRC itself that was torn: what is left of it is no property, so the
    others can be right and the record odd all the same.
    """
    messages = model.live_messages(log.min_phy_offset)
    known = {appended.phy_offset: appended for appended in messages}
    return frozenset(
        record
        for record in log.records
        if not record.has_property_crc
        and _is_torn(record, known.get(record.phy_offset), model.in_flight)
    )


def _is_torn(
    record: Record, appended: Appended | None, in_flight: Sequence[MessageToPut]
) -> bool:
    if appended is not None and record.body == appended.message.body:
        return bool(differs(record, appended)) or _is_odd(record)
    alike = [message for message in in_flight if message.body == record.body]
    differ = all(differs_from_message(record, message) for message in alike)
    return bool(alike) and (differ or _is_odd(record))


def _is_odd(record: Record) -> bool:
    return any(True for _ in oddities(record))


def rots_beside_queues(damages: Sequence[Damaged]) -> bool:
    """Whether bit maps may have rotted, or what leads there: nothing proves either."""
    return any(damage.path.startswith("consumequeue") for damage in damages)


RECORD_MAGICS = tuple(magic.to_bytes(4, "big") for magic in (MAGIC_V1, MAGIC_V2))
_WHOLE_WINDOW = Setup().start_window
HEAD_SIZE = 8  # length and magic of a record or filler


class Unread(NamedTuple):
    """What a start could not read.

    Attributes:
        places: that nobody could.
        may_be_any: calls were made to fail meanwhile, so it may have been anything.
    """

    places: Sequence[Damaged] = ()
    may_be_any: bool = False


def judge_refusal(
    checks: dict[str, int],
    setup: Setup,
    found: StoreImage,
    start: Started | Refused,
    files: Callable[[], Mapping[str, bytes]],
    damages: Sequence[Damaged],
    unread: Unread,
    *,
    is_around: bool,
) -> StoreImage:
    """Judge whether a start refused, or lists damage, as it must.

    The files it ``found``, short log files of a damaged log made up to their size.
    """
    is_damaged = is_around or any(d.path.startswith("commitlog") for d in damages)
    is_foreign = bool(damages) and found.checkpoint.mark is None and not setup.adopt
    misfit = _misfit(found, setup, {damage.path for damage in damages})
    at_full_size = extended(found, setup.log_file_size) if is_damaged else found
    lost = _lost(at_full_size, unread.places, is_around=setup.on_damage == "serve")
    if is_foreign and at_full_size.commit_log.records_beyond:
        misfit = misfit or "whole records lie behind an end that no mark tells"
    is_plain = not (misfit or lost or unread.may_be_any)
    has_lost_its_mark = _has_lost_its_mark(found, damages)
    if is_damaged and setup.on_damage == "serve" and is_plain:
        refuses_what_cannot_be_located.hold(checks, found, at_full_size, start)
    if not (isinstance(start, Started) and start.damaged):
        refusal = start.reason if isinstance(start, Refused) else ""
        refuses_only_damage.hold(
            checks,
            found,
            at_full_size,
            refusal,
            log_is_damaged=is_damaged,
            misfit=misfit or ("" if _is_windowed(setup) else lost),
            may_refuse=bool(lost)
            or unread.may_be_any
            or _is_short(found, setup)
            or has_lost_its_mark
            or is_foreign,
        )
    mark, end = found.checkpoint.mark, at_full_size.commit_log.max_phy_offset
    knows = bool(damages) and is_plain and not _is_windowed(setup)  # else REC-13
    if isinstance(start, Started) and mark is not None and knows and not start.damaged:
        law = mark_vouches_for_an_orderly_end
        law.hold(checks, start, mark.durable_offset, end)
    if isinstance(start, Refused):
        refusal_changes_nothing.hold(checks, found.files, files())
        if damages and not unread.may_be_any and not is_foreign:
            named = {damage.path for damage in (*damages, *unread.places)}
            if has_lost_its_mark:
                named.add("commitlog")
            refusal_names_what_is_damaged.hold(checks, start.reason, named)
    return at_full_size


def may_raise(report: Report, promises: Promises, setup: Setup) -> bool:
    """Whether calls to the disk may have failed, so that an op may have raised it.

    What no start has read may turn out to be unreadable later.
    """
    is_unread = report.is_unreadable and _is_windowed(setup)
    return report.fault_armed or promises.errors_come_late or is_unread


def _has_lost_its_mark(found: StoreImage, damages: Sequence[Damaged]) -> bool:
    """Whether an older mark is left, by which files are gone that had expired."""
    mark, log = found.checkpoint.mark, found.commit_log
    if mark is None or not any(damage.path == "checkpoint" for damage in damages):
        return False
    return log.min_phy_offset > mark.log_min_offset


def _is_short(found: StoreImage, setup: Setup) -> bool:
    """Whether an old file that a start leaves unread is cut, be it amid its filler."""
    size, files = setup.log_file_size, found.commit_log.files
    return _is_windowed(setup) and any(len(file.data) < size for file in files)


def _is_windowed(setup: Setup) -> bool:
    """Whether a start may leave old files unread, and what is wrong with them."""
    return setup.start_window < _WHOLE_WINDOW


def _lost(image: StoreImage, places: Sequence[Damaged], *, is_around: bool) -> str:
    """What a start needs and nobody can read; "" if there is nothing of it.

    Of the log that is all up to its end, and there what says that it ends.
    """
    log, end = image.commit_log, image.commit_log.max_phy_offset
    ends = [end]
    mark = image.checkpoint.mark
    if is_around and mark is not None and end < mark.durable_offset:
        # The log goes on behind other damage.
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
    """How long a record says it is that may begin where the log ends."""
    for file in image.commit_log.files:
        at = offset - file.base
        if 0 <= at <= len(file.data) - HEAD_SIZE:
            head = bytes(file.data[at : at + HEAD_SIZE])
            size = int.from_bytes(head[:4], "big", signed=True)
            is_record = head[4:] in RECORD_MAGICS
            return size if is_record and size <= len(file.data) - at else 0
    return 0


def _misfit(found: StoreImage, setup: Setup, damaged: set[str]) -> str:
    """Which file of those changed from outside is none of such a store; "" if none.

    It is longer than the store's files, or begins where none of them would.
    """
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
    deleted = found.commit_log.deleted
    if DELETED_PATH in damaged and deleted.flaw:
        return f"{DELETED_PATH} {deleted.flaw}"
    for path in sorted(damaged):
        if path.startswith("consumequeue_ext/") and setup.queue_ext_size:
            size, data = setup.queue_ext_size, found.files.get(path, b"")
            if len(data) > size or int(path.rpartition("/")[2]) % size:
                return f"{path} is of a store with other sizes"
    return ""


def extended(found: StoreImage, log_file_size: int) -> StoreImage:
    """The image with what short log files lack as zeros, as a start may read them."""
    short = [f for f in found.commit_log.files if len(f.data) < log_file_size]
    if not short:
        return found
    files = dict(found.files)
    for file in short:
        files[file.path] = bytes(file.data).ljust(log_file_size, b"\0")
    return read_store(files)
