"""DeletedTopics: the durable list of deleted topics and queues.

The log keeps a deleted topic's records until their files expire, and dispatch would
list them again. So a side file, ``deletedTopics``, names for a topic or for one queue
the phy_offset below which its records are dead. It is text: a line with the format's
name, one line ``phy_offset queue_id topic`` each (queue_id -1 for the whole topic), and
a line with the CRC-32 of everything before. It is replaced as a whole: a temporary
file, synced, renamed.

Source: ours. RocketMQ keeps no trace of a deletion and ignores this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.store.errors import Place, StoreCorrupted

PATH = "deletedTopics"
_TEMPORARY = "deletedTopics.tmp"
_FORMAT = "crashmq deleted topics 1"
ALL_QUEUES = -1

LOADED = probe("deleted_topics.load", "a start found that topics were deleted")
CLAMPED = probe(
    "deleted_topics.clamp", "the log lost its end before the offset of a deletion"
)
FORGOTTEN = probe("deleted_topics.forget", "a deleted topic's last record expired")

TopicOrQueue = tuple[str, int]


class DeletedTopics:
    """The deleted topics and queues, in memory and on disk alike.

    While the store takes puts, no entry lies beyond the log's end.

    Invariants:
        each entry is a phy_offset, at least 0
        each names one queue, or all queues of a topic by ``ALL_QUEUES``
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._entries: dict[TopicOrQueue, int] = {}
        self._loaded: Mapping[TopicOrQueue, int] = {}

    def _check(self) -> None:
        for (topic, queue_id), dead_below in self._entries.items():
            assert dead_below >= 0, (topic, queue_id, dead_below)
            assert queue_id >= 0 or queue_id == ALL_QUEUES, (topic, queue_id)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def dead_below(self, topic: str, queue_id: int) -> int:
        """The phy_offset below which a queue's records are dead; 0 if none is dead."""
        entries = self._entries
        if not entries:
            return 0
        of_topic = entries.get((topic, ALL_QUEUES), 0)
        return max(of_topic, entries.get((topic, queue_id), 0))

    @property
    def dead_topics(self) -> Mapping[str, int]:
        """By topic that was deleted as a whole, where its records die."""
        entries = self._entries.items()
        return {name: at for (name, queue_id), at in entries if queue_id == ALL_QUEUES}

    def load(self) -> None:
        """Read the file, if it exists, without changing the disk.

        Raises:
            StoreCorrupted: the file is damaged.
        """
        if not self._disk.exists(PATH):
            return
        size = self._disk.file_size(PATH)
        file = self._disk.open(PATH, size, create=False, mapped=False)
        try:
            data = file.read_at(0, size)
        finally:
            file.close()
        entries = _decode(data)
        if entries is None:
            raise StoreCorrupted(
                "it is damaged, so it is unknown which topics were deleted. Put it "
                "back from a copy, or remove it to have every topic again that the "
                "log still has. Nothing was changed.",
                Place(PATH),
            )
        LOADED.hit()
        self._entries = entries
        self._loaded = dict(entries)

    def presume(self, entries: Mapping[TopicOrQueue, int]) -> None:
        """Add deletions that another program seems to have made, in memory only."""
        self._entries = {**self._loaded, **entries}

    def settle(self, log_min: int, log_end: int, *, is_certain: bool) -> None:
        """Adapt the entries to the log that a start found.

        An entry beyond ``log_end`` is lowered to it, since what is put there later is
        alive. Entries before ``log_min`` are dropped: those records have expired.
        Unless it ``is_certain`` that the file was durable, it is written again.

        Raises:
            OSError: the disk failed; another start does it.
        """
        if self._disk.exists(_TEMPORARY):
            self._disk.remove(_TEMPORARY)
        if not self._entries:
            return
        kept = {key: min(at, log_end) for key, at in self._entries.items()}
        if kept != self._entries:
            CLAMPED.hit()
        alive = {key: at for key, at in kept.items() if at > log_min}
        if alive != kept:
            FORGOTTEN.hit()
            if self._disk.is_dir("commitlog"):
                # A log file that came back would bring the topic back.
                self._disk.sync_dir("commitlog")
        if alive != self._entries or not is_certain:
            self.prepare(alive)
            self.publish(alive)

    def with_dead(
        self, keys: list[TopicOrQueue], log_end: int
    ) -> Mapping[TopicOrQueue, int]:
        """The entries after these topics or queues are deleted too."""
        topics = {topic for topic, queue_id in keys if queue_id == ALL_QUEUES}
        entries = {key: at for key, at in self._entries.items() if key[0] not in topics}
        return entries | dict.fromkeys(keys, log_end)

    def prepare(self, entries: Mapping[TopicOrQueue, int]) -> None:
        """Write and sync the entries to a temporary file; the real one stays.

        Raises:
            OSError: nothing has changed.
        """
        data = _encode(entries)
        if self._disk.exists(_TEMPORARY):
            self._disk.remove(_TEMPORARY)
        file = self._disk.open(_TEMPORARY, len(data), create=True, mapped=False)
        try:
            file.write_at(0, data)
            file.sync()
        finally:
            file.close()

    def publish(self, entries: Mapping[TopicOrQueue, int]) -> None:
        """Replace the file durably by the one that was prepared.

        Raises:
            OSError: the next start may find either version.
        """
        self._disk.rename(_TEMPORARY, PATH)
        self._disk.sync_dir("")
        self._entries = dict(entries)


def _encode(entries: Mapping[TopicOrQueue, int]) -> bytes:
    lines = [_FORMAT]
    lines += [f"{at} {key[1]} {key[0]}" for key, at in sorted(entries.items())]
    text = "".join([f"{line}\n" for line in lines]).encode()
    return text + f"{crc32(text):08x}\n".encode()


def _decode(data: bytes) -> dict[TopicOrQueue, int] | None:
    text, crc = data[:-9], data[-9:]
    if crc != f"{crc32(text):08x}\n".encode():
        return None
    first, *lines = text.decode().removesuffix("\n").split("\n")
    if first != _FORMAT:
        return None
    entries: dict[TopicOrQueue, int] = {}
    for line in lines:
        at, queue_id, topic = line.split(" ", 2)
        entries[topic, int(queue_id)] = int(at)
    return entries
