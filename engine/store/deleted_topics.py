"""DeletedTopics: from where on a deleted topic's records count, durably.

The log keeps a deleted topic's records until their files expire, and dispatch would
list them again. So a side file, ``deletedTopics``, says of a topic or of one queue:
records before this place of the log are dead. Its text is a line that names the format,
``phy_offset queue_id topic`` for each, queue_id -1 for the whole topic, and a line with
the CRC-32 of all before. It is replaced as a whole: a temporary file, synced, renamed.

Source: ours. RocketMQ keeps nothing of a deletion, and does not look at this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from engine.host.disk import Disk
from engine.host.probe import probe
from engine.store.errors import StoreCorrupted

PATH = "deletedTopics"
_TEMPORARY = "deletedTopics.tmp"
_FORMAT = "crashmq deleted topics 1"
ALL_QUEUES = -1

LOADED = probe("deleted_topics.load", "a start found that topics were deleted")
CLAMPED = probe("deleted_topics.clamp", "the log lost its end behind a deletion")
FORGOTTEN = probe("deleted_topics.forget", "a deleted topic's last record expired")

TopicOrQueue = tuple[str, int]


class DeletedTopics:
    """What was deleted, in memory as it is durable.

    Invariants:
        no entry lies beyond the log's end while puts are taken
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._entries: dict[TopicOrQueue, int] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def dead_below(self, topic: str, queue_id: int) -> int:
        """Records of this queue before this place of the log are dead; 0: none is."""
        entries = self._entries
        if not entries:
            return 0
        of_topic = entries.get((topic, ALL_QUEUES), 0)
        return max(of_topic, entries.get((topic, queue_id), 0))

    def load(self) -> None:
        """Read the file, if there is one; changes nothing on the disk.

        Raises:
            StoreCorrupted: it is not whole.
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
                f"{PATH}: it is damaged, so nobody knows which topics were deleted. "
                f"Put it back from a copy, or remove it to have every topic again "
                f"that the log still has. Nothing was changed."
            )
        LOADED.hit()
        self._entries = entries

    def settle(self, log_min: int, log_end: int, *, is_certain: bool) -> None:
        """Let the entries fit the log that a start found.

        What is put beyond ``log_end`` from now on is alive. What lies before
        ``log_min`` has expired. Unless it ``is_certain`` that what was read is
        durable, it is written again.

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
        """The entries once these topics or queues are deleted too."""
        topics = {topic for topic, queue_id in keys if queue_id == ALL_QUEUES}
        entries = {key: at for key, at in self._entries.items() if key[0] not in topics}
        return entries | dict.fromkeys(keys, log_end)

    def prepare(self, entries: Mapping[TopicOrQueue, int]) -> None:
        """Make them durable beside the file, which stays as it is.

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
        """Let what was prepared hold, durably.

        Raises:
            OSError: the next start may find the one or the other.
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
    first, *lines = text.decode().splitlines()
    if first != _FORMAT:
        return None
    entries: dict[TopicOrQueue, int] = {}
    for line in lines:
        at, queue_id, topic = line.split(" ", 2)
        entries[topic, int(queue_id)] = int(at)
    return entries
