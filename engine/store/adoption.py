"""Adoption: what a start makes of a directory that other programs wrote, or wrote to.

Without a durable mark a directory is another program's, and with one RocketMQ may have
run on it since. Whose the records are decides what counts as loss: RocketMQ takes a NUL
in a property, an orderly start of RocketMQ reads the last three log files and serves
what lies before them as it is, and its deletion of a topic leaves no trace but the
folder that is gone. A layout that this store does not know is refused by its name.

Source: DefaultMessageStore#deleteTopics, CommitLog#recoverNormally,
StorePathConfigHelper, CompactionStore, DLedgerCommitLog, RocketMQ 5.3 and 5.5.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from crashmq.engine.common.fastjson import read_json
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.store.abort_file import AbortFile
from crashmq.engine.store.clean.deleted_topics import ALL_QUEUES
from crashmq.engine.store.errors import Place
from crashmq.engine.store.log_scan import NONE_OURS, OFFSET_MAX
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue
from crashmq.engine.store.message.message import LIGHT_PREFIX, is_system_topic
from crashmq.engine.store.store_checkpoint import DurableMark, StoreCheckpoint

if TYPE_CHECKING:
    from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore
    from crashmq.engine.store.queue.queue_audit import QueueAudit, QueueKey

RECOVERED_FILES = 3  # of the log, by an orderly start of RocketMQ
_TOPICS = ("config/topics.json", "config/topics.json.bak")
_CONFIG_DIR = "config"
# A store without a broker keeps how far delays came, and its timer wheel, too.
_OF_STORE = ("delayOffset.json", "timermetrics", "timercheck")
_TOPICS_SIZE_MAX = 64 * 1024 * 1024
_BATCH_DIR = "batchconsumequeue"
_EXT_DIR = "consumequeue_ext"
_COMPACTION_DIRS = ("compaction/compactionLog", "compaction/compactionCq")

UNKNOWN = probe("adoption.layout", "a directory of an unknown layout was met")
GONE = probe("adoption.deleted", "a topic was found deleted by another program")
ANEW = probe("adoption.deleted.anew", "a topic was found deleted and made again")


def unknown_layout(disk: Disk) -> tuple[Place, str] | None:
    """The first part of a layout that this store does not know; None without one.

    Returns:
        where it lies, and what it is.
    """
    found = _unknown(disk)
    if found is not None:
        UNKNOWN.hit()
    return found


def _unknown(disk: Disk) -> tuple[Place, str] | None:
    names = disk.list_dir("") if disk.is_dir("") else []
    for name in sorted(names):
        if not disk.is_dir(name):
            continue
        if name.startswith("dledger-"):
            return Place(name), "a DLedger group keeps the log here, in another layout"
        if name.startswith("consumequeue_rocksdb") and disk.list_dir(name):
            return Place(name), "RocksDB keeps the queues here"
    if disk.exists("consumequeue/CURRENT"):
        return Place("consumequeue/CURRENT"), "RocksDB keeps the queues here"
    if path := _first_file_below(disk, _BATCH_DIR):
        return Place(path), "a queue of inner batches (BatchConsumeQueue)"
    for folder in _COMPACTION_DIRS:
        if path := _first_file_below(disk, folder):
            return Place(path), "a topic whose log is compacted (CompactionLog)"
    return None


def _first_file_below(disk: Disk, folder: str) -> str:
    if not disk.is_dir(folder):
        return ""
    for name in sorted(disk.list_dir(folder)):
        path = f"{folder}/{name}"
        found = _first_file_below(disk, path) if disk.is_dir(path) else path
        if found:
            return found
    return ""


def ours(mark: DurableMark | None) -> range:
    """Where the records begin that only this store can have written.

    Another program may have written behind its mark.
    """
    if mark is None:
        return NONE_OURS
    return range(mark.others_until, max(mark.others_until, mark.durable_offset))


def wrote_since(checkpoint: StoreCheckpoint, abort: AbortFile, log_end: int) -> bool:
    """Whether another program ran on the directory after its mark was written.

    It shut down in order behind the mark, or, as of 5.0, it said up to where the log
    was confirmed, which this store never says.
    """
    mark = checkpoint.mark
    if mark is None:
        return False
    says_confirmed = not mark.others_until and checkpoint.confirm_phy_offset > 0
    return says_confirmed or (not abort.exists() and log_end > mark.durable_offset)


def served_as_found(
    mark: DurableMark | None, abort: AbortFile, files: MappedFileQueue
) -> int:
    """Up to which phy_offset damage was there before this store, and is left alone.

    Where nothing is known, it is the first of the files that an orderly start of
    RocketMQ reads.
    """
    if mark is not None:
        return mark.damaged_until
    is_run = files.first_gap() is None and len(files.files) > RECOVERED_FILES
    if abort.exists() or not is_run:
        return 0
    return files.files[-RECOVERED_FILES].file_from_offset


def deletions_of_others(
    disk: Disk, queues: ConsumeQueueStore, audit: QueueAudit, *, crashed: bool
) -> dict[QueueKey, int]:
    """The deletions that RocketMQ has left behind, as ``DeletedTopics`` has it.

    All records of a topic are dead whose folder is gone, unless the broker still has
    the topic or a crash may have come before the folder. Where a queue begins again,
    those of its records before its first unit are dead, crash or not: RocketMQ never
    lists a record again under a number that its queue has.
    """
    found: dict[QueueKey, int] = {}
    folders = _folders_with_queues(disk)
    told: Collection[str] | None = _topics_told(disk)
    for key, phy_offset in sorted(audit.first_wrong_places.items()):
        topic, queue_id = key
        if topic not in folders:
            if not crashed and _may_be_deleted(disk, topic, folders, told):
                GONE.hit()
                found[topic, ALL_QUEUES] = OFFSET_MAX
            continue
        queue = queues.find(topic, queue_id)
        first = queue.unit_place(0) if queue is not None else -1
        if first > phy_offset:
            ANEW.hit()
            found[key] = first
    return found


def _folders_with_queues(disk: Disk) -> Collection[str]:
    """The topics in ``consumequeue``; RocketMQ 4.9 leaves a deleted one's empty."""
    root = "consumequeue"
    names = disk.list_dir(root) if disk.is_dir(root) else []
    return {
        name
        for name in names
        if disk.is_dir(f"{root}/{name}") and disk.list_dir(f"{root}/{name}")
    }


def _may_be_deleted(
    disk: Disk, topic: str, folders: Collection[str], told: Collection[str] | None
) -> bool:
    """By the broker's list, where there is one; else by all that it had being gone.

    Neither system topics nor light queues are deleted. RocketMQ lists all topics again
    if no queue is left at all.
    """
    is_kept = is_system_topic(topic) or topic.startswith(LIGHT_PREFIX)
    if is_kept or not folders:
        return False
    if told is not None:
        return topic not in told
    is_left = disk.is_dir(f"{_EXT_DIR}/{topic}") or _is_kept_as_file(disk, topic)
    return not (is_left or _has_broker(disk))


def _is_kept_as_file(disk: Disk, topic: str) -> bool:
    """Whether a file beside the queues has the topic's name, as an archive has."""
    return any(
        (name == topic or name.startswith(f"{topic}."))
        and not disk.is_dir(f"consumequeue/{name}")
        for name in disk.list_dir("consumequeue")
    )


def _has_broker(disk: Disk) -> bool:
    """Whether a broker kept its tables here, whose list of topics then is lost.

    A missing folder alone then says nothing: what the log still has is listed again.
    """
    names = disk.list_dir(_CONFIG_DIR) if disk.is_dir(_CONFIG_DIR) else []
    return any(
        not name.startswith(_OF_STORE) and _has_file(disk, f"{_CONFIG_DIR}/{name}")
        for name in names
    )


def _has_file(disk: Disk, path: str) -> bool:
    return not disk.is_dir(path) or bool(_first_file_below(disk, path))


def _topics_told(disk: Disk) -> Collection[str] | None:
    for path in _TOPICS:
        if not disk.exists(path) or disk.file_size(path) > _TOPICS_SIZE_MAX:
            continue
        topics = _topics_in(_content(disk, path))
        if topics is not None:
            return topics
    return None


def _content(disk: Disk, path: str) -> bytes:
    size = disk.file_size(path)
    if not size:
        return b""
    file = disk.open(path, size, create=False, mapped=False)
    try:
        return file.read_at(0, size)
    finally:
        file.close()


def _topics_in(data: bytes) -> Collection[str] | None:
    try:
        found = read_json(data.decode())
    except (ValueError, RecursionError):
        return None
    table = found.get("topicConfigTable") if isinstance(found, dict) else None
    if not isinstance(table, dict):
        return None
    return frozenset(name for name in table if isinstance(name, str))
