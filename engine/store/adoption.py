"""Adoption: how a start treats a directory that another program wrote to.

Without a durable mark, which this store keeps in its checkpoint, the directory counts
as another program's. With a mark, RocketMQ may have run on it since. It matters who
wrote a record, because RocketMQ's rules are weaker than this store's: it allows NULs in
properties; after an orderly shutdown it checks only the last three log files, and
serves the older ones even if damaged; and it keeps no list of deleted topics, so that a
missing queue directory is all that shows a deletion. A layout that this store cannot
read (DLedger, RocksDB ...) is refused.

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
    """Search for a layout that this store cannot read, such as RocksDB's queues.

    Returns:
        the first file or directory that belongs to one, and a sentence part that names
        the layout; None if there is none.
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
    """The phy_offsets at which only this store can have begun a record.

    Empty without a mark. Past ``durable_offset`` another program may have appended
    since the mark was written.
    """
    if mark is None:
        return NONE_OURS
    return range(mark.others_until, max(mark.others_until, mark.durable_offset))


def wrote_since(checkpoint: StoreCheckpoint, abort: AbortFile, log_end: int) -> bool:
    """Whether another program ran on the directory after the mark was written.

    Two signs: the log goes on past ``durable_offset`` although the last shutdown was
    orderly; or the checkpoint has a confirmPhyOffset above 0, which RocketMQ writes as
    of 5.0 and this store never does.
    """
    mark = checkpoint.mark
    if mark is None:
        return False
    is_past = not abort.exists() and log_end > mark.durable_offset
    return is_past or has_confirmed(checkpoint)


def has_confirmed(checkpoint: StoreCheckpoint) -> bool:
    """Whether the checkpoint is RocketMQ's, written as of 5.0 after the mark was."""
    mark = checkpoint.mark
    is_ours_alone = mark is not None and not mark.others_until
    return is_ours_alone and checkpoint.confirm_phy_offset > 0


def served_as_found(
    mark: DurableMark | None, abort: AbortFile, files: MappedFileQueue
) -> int:
    """The phy_offset before which damage is older than this store, and left as it is.

    The mark says it. Without a mark it is the start of the last three log files, the
    only ones that RocketMQ checks after an orderly shutdown; 0 if the shutdown was not
    orderly, a file is missing, or there are not more files than that.
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
    """Infer which topics and queues RocketMQ has deleted.

    A topic without a queue directory is deleted, unless the broker's list of topics
    still has it; after a crash nothing is inferred from that, since the directory may
    not have been created yet. A queue whose first unit points past the queue's first
    record was deleted and created again, and its records before that unit are dead.

    Returns:
        by topic and queue id (``ALL_QUEUES`` for the whole topic) the phy_offset below
        which records are dead, as in ``DeletedTopics``.
    """
    found: dict[QueueKey, int] = {}
    folders = _folders_with_queues(disk)
    told: Collection[str] | None = _topics_told(disk)
    for key, (_, phy_offset) in sorted(audit.first_wrong.items()):
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
    """The topics whose directory below ``consumequeue`` is not empty.

    RocketMQ 4.9 leaves a deleted topic's directory behind, empty.
    """
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
    """Whether a topic without a queue directory can have been deleted.

    The broker's list of topics decides, where there is one. Without one, nothing of the
    topic may be left and no broker may have run here. System topics and light queues
    are never deleted; and if no topic has a queue at all, RocketMQ lists them all
    again.
    """
    is_kept = is_system_topic(topic) or topic.startswith(LIGHT_PREFIX)
    if is_kept or not folders:
        return False
    if told is not None:
        return topic not in told
    is_left = disk.is_dir(f"{_EXT_DIR}/{topic}") or _is_kept_as_file(disk, topic)
    return not (is_left or _has_broker(disk))


def _is_kept_as_file(disk: Disk, topic: str) -> bool:
    """Whether a file in ``consumequeue`` has the topic's name, as an archive has."""
    return any(
        (name == topic or name.startswith(f"{topic}."))
        and not disk.is_dir(f"consumequeue/{name}")
        for name in disk.list_dir("consumequeue")
    )


def _has_broker(disk: Disk) -> bool:
    """Whether ``config`` has a broker's files, although its list of topics is missing.

    Then a missing queue directory does not show a deletion, and the topic's records are
    listed again.
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
