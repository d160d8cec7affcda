"""What RocketMQ's start keeps of the queues, and from where on it dispatches again.

Source: ConsumeQueue#recover, #truncateDirtyLogicFiles, DefaultMessageStore#start,
CommitLog#recoverNormally.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from crashmq.harness.fsck.releases import Release
from crashmq.models.files.queue import UNIT_SIZE, QueueImage, Unit
from crashmq.models.files.store_image import StoreImage

_RECOVERED_FILES = 3
_NONE = -1


class QueueLeft(NamedTuple):
    """A queue after the start has cut it.

    Attributes:
        units: those that are left.
        end: the number of the unit that is appended next; -1: that of its record, since
            there is no file.
        newest: where the record of the last unit ends, as far as the last three files
            tell (``maxPhysicOffset``); -1 if they have none.
    """

    units: tuple[Unit, ...] = ()
    end: int = _NONE
    newest: int = _NONE


def queues_left(image: StoreImage, cut: int) -> dict[tuple[str, int], QueueLeft]:
    """Each queue after a start that ends the log at ``cut``."""
    left = {
        queue.key: _left_of(queue, _units_left(queue, live, cut))
        for queue, live in image.live_units
    }
    if highest(left.values()) < cut:
        return left
    # Then each queue's last file is read again, and its first unit counts as it is.
    for key, one in left.items():
        if empty_file_at(image.queue_at[key], one.end):
            left[key] = one._replace(end=one.end + 1)
    return left


def empty_file_at(queue: QueueImage, end: int) -> str:
    """The path of a file that begins where a queue ends; "" without one."""
    at = end * UNIT_SIZE
    return next((file.path for file in queue.files if file.base == at), "")


def highest(left: Iterable[QueueLeft]) -> int:
    """Where the newest record ends that any queue lists; -1 if none does."""
    return max([one.newest for one in left], default=_NONE)


def dispatched_from(release: Release, cut: int, left: Iterable[QueueLeft]) -> int:
    """The phy_offset from which a start after an orderly end dispatches.

    ``cut`` is the log's end then.
    """
    if release == "5.1":
        return cut
    if release == "4.9":
        return max(0, highest(left))
    return highest(left) + 1  # the record that begins there is left out


def _left_of(queue: QueueImage, units: tuple[Unit, ...]) -> QueueLeft:
    recovered = _recovered_from(queue)
    if units:
        last = units[-1]
        is_read = last.queue_offset >= recovered
        newest = last.phy_offset + last.size if is_read else _NONE
        return QueueLeft(units, last.queue_offset + 1, newest)
    has_begun = queue.files and not _has_unit(queue, recovered)
    return QueueLeft((), recovered if has_begun else _NONE)


def _units_left(
    queue: QueueImage, live: tuple[Unit, ...], cut: int
) -> tuple[Unit, ...]:
    """A queue's units after #recover and #truncateDirtyLogicFiles.

    The last three files are read up to the first unit of zeros; then files are removed
    from the end whose first unit points past the log, and the last one left is cut at
    its first such unit. Of earlier files nothing is looked at, nor for files that are
    missing.
    """
    units = [*live, *queue.stray_units]
    bases = [file.base // UNIT_SIZE for file in queue.files]
    recovered = _recovered_from(queue)
    end = recovered
    if _has_unit(queue, recovered):
        end = next(
            (n for n in _holes(queue, units) if n >= recovered),
            units[-1].queue_offset + 1 if units else 0,
        )
    units = [unit for unit in units if unit.queue_offset < end]
    for base in reversed(bases):
        of_file = [unit for unit in units if unit.queue_offset >= base]
        if not of_file:
            continue
        wrong = next((u.queue_offset for u in of_file if u.phy_offset >= cut), None)
        if wrong is None:
            break
        units = [unit for unit in units if unit.queue_offset < wrong]
        if wrong > base:
            break
    return tuple(units)


def _has_unit(queue: QueueImage, number: int) -> bool:
    """Whether there is a unit of that number, be it one of an expired record."""
    if queue.units and queue.units[0].queue_offset <= number < queue.end:
        return True
    if any(first <= number < end for first, end in queue.skips.items()):
        return True
    return any(unit.queue_offset == number for unit in queue.stray_units)


def _holes(queue: QueueImage, units: list[Unit]) -> Iterable[int]:
    """The numbers at which units of zeros begin; a missing file has none."""
    for before, after in pairwise(units):
        number = before.queue_offset + 1
        if not queue.follow(before, after) and _has_file(queue, number):
            yield number


def _has_file(queue: QueueImage, number: int) -> bool:
    at = number * UNIT_SIZE
    return any(file.base <= at < file.base + len(file.data) for file in queue.files)


def _recovered_from(queue: QueueImage) -> int:
    """The first number that a start looks at, of the last three files."""
    files = queue.files[-_RECOVERED_FILES:]
    return files[0].base // UNIT_SIZE if files else 0
