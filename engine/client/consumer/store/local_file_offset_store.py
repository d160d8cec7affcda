"""LocalFileOffsetStore: the offsets of a broadcasting consumer, in a file of its own.

The file is ``<client_id>/<group>/offsets.json`` below the directory of all clients, in
fastjson's format for maps whose keys are objects. Two consumers of one group and one
client id share it, and overwrite each other's offsets.

Source: org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore, RocketMQ 5.3.
Differs: the file is replaced as a whole (``ConfigFile``), there written in place; two
empty files refuse the start, where RocketMQ begins without offsets; and a second table,
which RocketMQ ignores, has the broker life in which each offset was answered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from crashmq.engine.client.consumer.store.offset_store import (
    NOT_FOUND,
    OffsetTable,
    ReadOffsetType,
    read_offset_of,
)
from crashmq.engine.common.config_file import ConfigFile
from crashmq.engine.common.fastjson import (
    Json,
    JsonKey,
    in_hash_order,
    pretty,
    read_json,
)
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.errors import StoreCorrupted

_TABLE_BINS = 16

Offsets = dict[MessageQueue, int]


class _Kept(NamedTuple):
    """The file's contents: offsets, and the broker lives they are from, if known."""

    offsets: Offsets
    lives: Offsets


class LocalFileOffsetStore:
    """The offsets of one consumer of ``group`` in the client ``client_id``."""

    def __init__(
        self, disk: Disk, client_id: str, group: str, runtime: Runtime
    ) -> None:
        self._file = ConfigFile(disk, f"{client_id}/{group}/offsets.json", runtime)
        self._table = OffsetTable(runtime)
        self._writing = runtime.lock()
        self._kept = _Kept({}, {})

    @property
    def kept(self) -> Mapping[MessageQueue, int]:
        """The offsets in the file."""
        return self._kept.offsets

    def load(self) -> None:
        """Read the file, or its backup, into memory.

        Raises:
            StoreCorrupted: neither can be read; the consumer must not start.

        Source: LocalFileOffsetStore#load, #readLocalOffset.
        """
        self._kept = self._file.load(_decode) or _Kept({}, {})
        for queue in self._kept.offsets:
            self._take_over(queue, self._kept)

    def _take_over(self, queue: MessageQueue, kept: _Kept) -> None:
        self._table.heard_of(queue, kept.lives.get(queue, 0))
        self._table.update(queue, kept.offsets[queue], increase_only=False)

    def update_offset(
        self, queue: MessageQueue, offset: int, *, increase_only: bool
    ) -> None:
        """Set an offset in memory; with ``increase_only`` never to a lower one."""
        self._table.update(queue, offset, increase_only=increase_only)

    def update_and_freeze_offset(self, queue: MessageQueue, offset: int) -> None:
        """Set an offset that no update changes until the queue is removed."""
        self._table.freeze(queue, offset)

    def read_offset(self, queue: MessageQueue, read_type: ReadOffsetType) -> int:
        """The offset of a queue; one read from the file is also set in memory.

        It never fails: a file that cannot be read counts as without offsets.
        """
        in_memory = read_offset_of(self._table, queue, read_type)
        if in_memory is not None:
            return in_memory
        try:
            found = self._file.load(_decode) or _Kept({}, {})
        except StoreCorrupted:
            return NOT_FOUND
        if queue not in found.offsets:
            return NOT_FOUND
        self._take_over(queue, found)
        return found.offsets[queue]

    def persist(self, queue: MessageQueue) -> int:
        """Write the offset of one queue, if there is one; returns it.

        Raises:
            OSError: the disk failed; the file has the old offsets or the new ones.
        """
        self.persist_all((queue,))
        return self._kept.offsets.get(queue, NOT_FOUND)

    def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Write the offsets of these queues; others stay as they are in the file.

        Raises:
            OSError: the disk failed; the file has the old offsets or the new ones.

        Source: LocalFileOffsetStore#persistAll, which reads the file again before.
        """
        with self._writing:
            now = self._table.of_topic()
            told = {queue: now[queue] for queue in queues if queue in now}
            if not told:
                return
            lives = {queue: self._table.broker_life_of(queue) for queue in told}
            kept = _Kept(self._kept.offsets | told, self._kept.lives | lives)
            self._file.persist(_encode(kept))
            self._kept = kept

    def remove_offset(self, queue: MessageQueue) -> None:
        """Forget a queue's offset in memory; the file keeps it."""
        self._table.remove(queue)

    def clone_offset_table(self, topic: str) -> Mapping[MessageQueue, int]:
        """The offsets in memory of a topic's queues; "": of all topics."""
        return self._table.of_topic(topic)

    def heard_of(self, queue: MessageQueue, broker_life: int) -> None:
        """Record the broker life (``RecoveredEnds``) that answered an offset."""
        self._table.heard_of(queue, broker_life)

    def broker_life_of(self, queue: MessageQueue) -> int:
        """The broker life in which a queue's offset was last answered; 0: none."""
        return self._table.broker_life_of(queue)


def _encode(kept: _Kept) -> str:
    """The file's text. Source: OffsetSerializeWrapper."""
    table: dict[JsonKey, Json] = {"offsetTable": _table_of(kept.offsets)}
    lives = {queue: life for queue, life in kept.lives.items() if life}
    if lives:
        table["brokerLifeTable"] = _table_of(lives)
    return pretty(table)


def _table_of(numbers: Offsets) -> dict[JsonKey, Json]:
    queues = in_hash_order(numbers, lambda queue: queue.java_hash, _TABLE_BINS)
    return {_key_of(queue): numbers[queue] for queue in queues}


def _key_of(queue: MessageQueue) -> JsonKey:
    return (
        ("brokerName", queue.broker_name),
        ("queueId", queue.queue_id),
        ("topic", queue.topic),
    )


def _decode(text: str) -> _Kept:
    found = read_json(text)
    fields = found if isinstance(found, dict) else {"offsetTable": None}
    offsets, lives = (
        _numbers_of(fields.get(name, {})) for name in ("offsetTable", "brokerLifeTable")
    )
    return _Kept(offsets, lives)


def _numbers_of(table: Json) -> Offsets:
    if not isinstance(table, dict):
        raise ValueError("offsets.json has tables of numbers")
    return dict(_entry_of(key, number) for key, number in table.items())


def _entry_of(key: JsonKey, offset: Json) -> tuple[MessageQueue, int]:
    fields = dict(key) if isinstance(key, tuple) else {}
    topic, broker_name = fields.get("topic"), fields.get("brokerName")
    queue_id = fields.get("queueId")
    is_queue = isinstance(topic, str) and isinstance(broker_name, str)
    if not (is_queue and isinstance(queue_id, int) and isinstance(offset, int)):
        raise ValueError(f"{key!r} with {offset!r} is no queue with its offset")
    return MessageQueue(f"{topic}", f"{broker_name}", queue_id), offset
