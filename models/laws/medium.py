"""Laws of the medium: what a running store reports as safe must survive a power loss.

They look at what the medium holds, without a power loss. ``unsynced`` is what
``Subject.unsynced_from`` returns: each file that a power loss could change or take,
with the first byte that it could change; -1 for a removed file that could come back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from crashmq.models.files.checkpoint import CheckpointImage, read_checkpoint
from crashmq.models.files.places import is_of_a_store
from crashmq.models.files.queue import PRE_BLANK_SIZE, UNIT_SIZE
from crashmq.models.files.queue_ext import EXT_ADDRESS_MAX, ext_place, ext_unit_size
from crashmq.models.files.record import RECORD_SIZE_MIN
from crashmq.models.files.store_image import Bytes, StoreImage
from crashmq.models.history import CheckpointWritten
from crashmq.models.laws.registry import law
from crashmq.models.observations import HalfMade
from crashmq.models.verdict import Place, Violation

_RUNS_OF_FILES = ("commitlog/", "consumequeue/", "consumequeue_ext/")
_DERIVED = ("consumequeue", "consumequeue_ext", "index")
_END_TIMESTAMP = slice(8, 16)  # of an index file's header


@law(
    "REC-18",
    "after a start, only queue and index files that it found and left unchanged may "
    "still have unsynced bytes, and the abort file's name is synced",
    catalogue="I8 I10",
)
def start_leaves_nothing_to_lose(
    unsynced: Mapping[str, int],
    found: Mapping[str, Bytes],
    now: Mapping[str, Bytes],
    names: Collection[str] = (),
    *,
    ended: bool,
    damaged: bool,
) -> Iterator[Violation]:
    """Compares ``unsynced`` with the files before and after a start that ran alone.

    Dispatch can rebuild queue and index files, but a queue file with room for more
    units must be synced all the same. After an orderly shutdown nothing may be
    unsynced. Of the abort file only the name counts, since a start looks at nothing
    else. Not checked: CommitLog files of a damaged log, where a BLANK that closes one
    is flushed later.

    Args:
        unsynced: as ``Subject.unsynced_from``.
        found: the files before the start.
        now: the files after it.
        names: the files whose directory entry is not synced.
        ended: the start took the previous shutdown for orderly.
        damaged: the start listed damage.
    """
    for path, first in unsynced.items():
        top = path.partition("/")[0]
        is_named = path == "abort" and path not in names
        if is_named or (damaged and top == "commitlog"):
            continue
        data = now.get(path, b"")
        was_so = not ended and top in _DERIVED and found.get(path) == data
        has_room = top == "consumequeue" and not _size_of(data[-UNIT_SIZE:])
        if first >= 0 and not (was_so and not has_room):
            yield Violation(Place(path, first), "a power loss could take it")


@law(
    "CP-12",
    "ConsumeQueue units of records below dispatched_offset, and index files whose "
    "end_timestamp is below index_msg_timestamp, are synced",
    catalogue="I4 I8",
)
def what_the_checkpoint_tells_of_is_on_the_medium(
    unsynced: Mapping[str, int], image: StoreImage
) -> Iterator[Violation]:
    """Compares ``unsynced`` with the checkpoint after a round of its service.

    ``unsynced`` has the first byte of each file that a power loss could take. The
    consumequeue_ext entries of units below dispatched_offset are checked as well.

    Source: StoreCheckpoint#setIndexMsgTimestamp, IndexService#flush.
    """
    yield from _told_and_unsynced(unsynced.items(), image.checkpoint, image)


@law(
    "DUR-7",
    "a mark or time is written to the checkpoint only after what it tells of is "
    "synced: CommitLog bytes and names of files below durable_offset, ConsumeQueue "
    "units of records below dispatched_offset, index files below index_msg_timestamp",
    catalogue="I7 I8",
)
def what_the_checkpoint_will_tell_of_is_on_the_medium(
    written: CheckpointWritten, image: StoreImage
) -> Iterator[Violation]:
    """Asked at each write, whatever ran beside it; ``image`` is that after the step.

    The file is a mapping, so any write to it may reach the medium at once. What a write
    leaves as it was, a crash may have torn, and a start has yet to correct.

    Source: StoreCheckpoint#flush; that a time moves only after its sync is our own.
    """
    told = read_checkpoint(written.content)
    if written.position:
        told = told._replace(index_msg_timestamp=0)
    if told.mark is not None and told.mark.position != written.position:
        told = told._replace(mark=None)
    durable = told.mark.durable_offset if told.mark else 0
    for path, first in written.unsynced:
        folder, _, name = path.rpartition("/")
        is_log = folder == "commitlog" and name.isdecimal() and first >= 0
        if is_log and int(name) + first < durable:
            expected = f"synced: durable_offset is {durable}"
            yield Violation(Place(path, first), "a power loss could take it", expected)
    yield from _told_and_unsynced(written.unsynced, told, image)


def _told_and_unsynced(
    unsynced: Iterable[tuple[str, int]], told: CheckpointImage, image: StoreImage
) -> Iterator[Violation]:
    """Units and index files of which a checkpoint tells, though they may be lost."""
    dispatched = told.mark.dispatched_offset if told.mark else 0
    index_said = told.index_msg_timestamp
    for path, first in unsynced:
        if first < 0:
            continue
        match path.split("/"):
            case ["consumequeue", _, _, _]:
                expected = f"synced: dispatched_offset is {dispatched}"
                is_told = _is_unit_of(image, path, first, dispatched)
            case ["consumequeue_ext", topic, queue_id, _]:
                expected = f"synced: dispatched_offset is {dispatched}"
                name = f"{topic}/{queue_id}"
                is_told = _is_beside_a_unit(image, name, path, first, dispatched)
            case ["index", _]:
                expected = f"synced: index_msg_timestamp is {index_said}"
                ended = image.files.get(path, b"")[_END_TIMESTAMP]
                is_told = 0 < int.from_bytes(bytes(ended), "big") < index_said
            case _:
                continue
        if is_told:
            where = Place(path, first)
            yield Violation(where, "a power loss could take it", expected)


@law(
    "FL-12",
    "a ConsumeQueue flush round syncs units, however few, once they have waited at "
    "least flushConsumeQueueThoroughInterval",
    catalogue="I4 I7",
)
def waiting_units_are_on_the_medium(
    unsynced: Mapping[str, int], image: StoreImage, until: int
) -> Iterator[Violation]:
    """Checks units of records below ``until``, dispatched at least the interval ago.

    Source: FlushConsumeQueueService, flushConsumeQueueThoroughInterval.
    """
    for path, first in unsynced.items():
        is_queue = path.startswith("consumequeue/") and first >= 0
        if is_queue and _is_unit_of(image, path, first, until):
            where = Place(path, first)
            yield Violation(where, "a power loss could take it", "synced")


@law(
    "DUR-1",
    "a new CommitLog or ConsumeQueue file is created only after the directory entry "
    "of the one before it is synced",
    catalogue="I7 I18",
)
def names_are_durable_in_order(
    half_made: HalfMade, files: Iterable[str]
) -> Iterator[Violation]:
    """Looks for a file with an unsynced directory entry that has a successor.

    A power loss could leave a log, or a queue, without such a file. ``half_made.names``
    are the files whose directory entry is not synced.
    """
    ours = {path for path in files if is_of_a_store(path, has_index=False)}
    last = {path.rpartition("/")[0]: path for path in sorted(ours)}
    for path in sorted(ours.intersection(half_made.names)):
        behind = last[path.rpartition("/")[0]]
        if path.startswith(_RUNS_OF_FILES) and path != behind:
            seen = f"a power loss could take it, and leave {behind}"
            yield Violation(path, seen, "its name synced before that one was made")


@law(
    "DUR-2",
    "a CommitLog, ConsumeQueue or consumequeue_ext file is used only after it has "
    "been completely filled with zeros and synced",
    catalogue="I2 I7",
)
def room_is_durable(half_made: HalfMade) -> Iterator[Violation]:
    """A record torn there could end in old bytes, and no CRC covers a whole record.

    Source: AllocateMappedFileService#mmapOperation, DefaultMappedFile#warmMappedFile.
    """
    for path in half_made.rooms:
        if path.startswith(_RUNS_OF_FILES):
            yield Violation(path, "room that was never synced", "zeros on the medium")


def _is_unit_of(image: StoreImage, path: str, first: int, dispatched: int) -> bool:
    """Whether the byte belongs to a unit of a record before ``dispatched``."""
    data, begin = image.files.get(path, b""), first - first % UNIT_SIZE
    unit = bytes(data[begin : begin + UNIT_SIZE])
    if not RECORD_SIZE_MIN <= _size_of(unit) < PRE_BLANK_SIZE:
        return False
    lowest = _alive_from(image, path.split("/")[1:3])
    return lowest <= int.from_bytes(unit[:8]) < dispatched


def _is_beside_a_unit(
    image: StoreImage, name: str, path: str, first: int, dispatched: int
) -> bool:
    """Whether such a unit's address points at or past this byte of the file."""
    lowest = _alive_from(image, name.split("/"))
    for queue in image.consume_queues:
        if queue.name != name:
            continue
        for unit in reversed(queue.units):
            is_told = lowest <= unit.phy_offset < dispatched
            if is_told and unit.tags_code <= EXT_ADDRESS_MAX:
                place = ext_place(image.files, name, unit.tags_code)
                if place is None or place[0] != path:
                    return False
                end = place[1] + ext_unit_size(image.files[path], place[1])
                return first < end
    return False


def _alive_from(image: StoreImage, queue: Sequence[str]) -> int:
    """The phy_offset from which a queue's records are neither expired nor deleted."""
    log, (topic, queue_id) = image.commit_log, queue
    dead_below = log.deleted.dead_below(topic, int(queue_id))
    return max(log.min_phy_offset, dead_below)


def _size_of(unit: Bytes) -> int:
    return int.from_bytes(bytes(unit[8:12]), "big", signed=True)
