"""ConsumerOffsetManager: how far each group has consumed each queue.

The table maps ``topic@group`` to the offset of each queue: the next message to consume.
Clients commit; a lower offset is accepted, as in RocketMQ, and one past the queue's end
is refused: it belongs to messages that a crash or a deletion took, and new messages
would be skipped for it.

The table is written to ``config/consumerOffset.json`` every five seconds, changed or
not. A crash takes what was committed since, and those messages are consumed again.
``ConfigFile`` replaces the file.

A crash may take messages that groups had consumed, and new ones get their offsets. So a
start lowers offsets past the ends of the recovered queues, in file and backup, before a
message can get such an offset.

When a topic or group is deleted, its offsets are removed durably before it, and commits
are refused meanwhile; so no message of a new topic is skipped because of an old offset.

A reset on the server stays pending until the client's next pull picks it up. Until the
client has followed it, that is until the pull after that one or a commit of its offset,
commits are answered and dropped. Pending resets are not written.

Source: org.apache.rocketmq.broker.offset.ConsumerOffsetManager, RocketMQ 5.3.0, and its
file byte for byte. Differs: a start lowers offsets, commits past a queue's end are
refused, and so are those of a client that has not followed a reset; a removal is
durable, and a query removes nothing. A lock guards the table, so that concurrent first
commits are not lost, and a persist writes a consistent snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from crashmq.engine.common.bean import number_of
from crashmq.engine.common.config_file import ConfigFile
from crashmq.engine.common.data_version import DataVersion
from crashmq.engine.common.fastjson import (
    Json,
    JsonKey,
    in_hash_order,
    pretty,
    read_json,
)
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.errors import StoreError
from crashmq.engine.store.message.message import java_string_hash

PATH = "config/consumerOffset.json"
SEPARATOR = "@"
NO_OFFSET = -1
UPDATE_VERSION_STEP = 500  # BrokerConfig#consumerOffsetUpdateVersionStep

# What RocketMQ gives its maps room for, in bins.
_TABLE_BINS, _QUEUES_BINS, _GROUPS_BINS, _TOPICS_BINS = 1024, 64, 128, 8

LOWER = probe("consumer_offset.commit.lower", "a commit was lower than the one before")
PENDING = probe("consumer_offset.reset.pending", "a query met a reset that is pending")
MET = probe("consumer_offset.reset.met", "a client met the reset of its queue")
BEHIND = probe(
    "consumer_offset.reset.behind", "a commit came before its client followed a reset"
)
REMOVED = probe("consumer_offset.removed", "the offsets of a topic or group went")
KEPT = probe("consumer_offset.removal.failed", "a deletion failed and kept the offsets")
TOO_HIGH = probe(
    "consumer_offset.commit.too_high", "a commit past its queue's end was refused"
)
RESET_TOO_HIGH = probe(
    "consumer_offset.reset.too_high", "a queue was deleted before a reset of it"
)
DELETED_MEANWHILE = probe(
    "consumer_offset.commit.deleted", "a commit met a deletion of its topic or group"
)
CORRECTED = probe(
    "consumer_offset.corrected", "a start met offsets past the ends of their queues"
)

OffsetTable = dict[str, dict[int, int]]


class ConsumerOffsetManager:
    """The offsets of all groups, in memory, and their file.

    Invariants:
        no offset and no queue_id is negative
    """

    def __init__(
        self, disk: Disk, runtime: Runtime, version_step: int = UPDATE_VERSION_STEP
    ) -> None:
        self._file = ConfigFile(disk, PATH, runtime)
        self._runtime = runtime
        self._lock = runtime.lock()
        self._offset_table: OffsetTable = {}
        self._reset_offset_table: OffsetTable = {}
        self._told_offset_table: OffsetTable = {}
        self._pull_offset_table: OffsetTable = {}
        self._under_removal: list[Part] = []
        self._end_of: Callable[[str, int], int] | None = None
        self._version_step = version_step
        self._version_changes = 0
        self.data_version = DataVersion(runtime.now_ms())

    def _check(self) -> None:
        for table in (self._offset_table, self._reset_offset_table):
            for key, offsets in table.items():
                for queue_id, offset in offsets.items():
                    assert queue_id >= 0, (key, queue_id)
                    assert offset >= 0, (key, queue_id, offset)

    def bound_by(self, end_of: Callable[[str, int], int]) -> None:
        """Refuse commits past the end of a queue, which ``end_of`` returns."""
        self._end_of = end_of

    @property
    def offset_table(self) -> Mapping[str, Mapping[int, int]]:
        """A copy of the table: by ``topic@group`` the offset of each queue."""
        with self._lock:
            return {key: dict(table) for key, table in self._offset_table.items()}

    def load(self) -> None:
        """Read the file, or its backup; changes nothing on the disk.

        Raises:
            StoreCorrupted: there was a table, and no copy of it can be read.
        """
        self._file.load(self.decode)

    def settle(self) -> None:
        """Make durable what was loaded, so that no later crash takes it back.

        Raises:
            OSError: the disk failed.
        """
        self._file.settle()

    def persist(self) -> None:
        """Write the table to its file, durably.

        Raises:
            OSError: the disk failed; the file has the previous table or this one.
            StoreStopped: the broker is shutting down; the file has the previous
                table.

        Source: ConfigManager#persist, which only logs an error.
        """
        self._file.persist_newest(self.encode)

    def end(self) -> None:
        """Stop writing; later writes raise ``StoreStopped``."""
        self._file.end()

    def correct_offsets(self, ends: Mapping[tuple[str, int], int]) -> int:
        """Lower each offset past the end of its queue to that end, durably.

        The file is written twice, so that the backup is lowered as well: once new
        messages lie there, a group loaded from an old backup would skip them.

        Args:
            ends: the next queue_offset by topic and queue_id; any other queue ends
                at 0.

        Returns:
            How many offsets were lowered.

        Raises:
            OSError: the disk failed; the next start lowers them again.
        """
        count = 0
        with self._lock:
            for key, offsets in self._offset_table.items():
                topic = key.partition(SEPARATOR)[0]
                for queue_id, offset in offsets.items():
                    end = ends.get((topic, queue_id), 0)
                    if offset > end:
                        offsets[queue_id] = end
                        count += 1
        if count:
            CORRECTED.hit()
            self.persist()
            self.persist()
        return count

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Store the offset up to which a group has consumed a queue.

        Returns:
            Whether it was accepted: not past the queue's end, nor while the topic
                or group is being deleted.

        Raises:
            ValueError: ``queue_id`` or ``offset`` is negative.

        Source: ConsumerOffsetManager#commitOffset, which accepts any.
        """
        _refuse_negative(queue_id, offset)
        with self._lock:
            if self._is_under_removal(topic, group, queue_id):
                DELETED_MEANWHILE.hit()
                return False
            if self._is_past_the_end(topic, queue_id, offset):
                TOO_HIGH.hit()
                return False
            offsets = self._offset_table.setdefault(_key(topic, group), {})
            if offset < offsets.get(queue_id, 0):
                LOWER.hit()
            offsets[queue_id] = offset
            self._version_changes += 1
            if self._version_changes % self._version_step == 0:
                self.data_version.next_version(self._runtime.now_ms())
        return True

    def commit_pull_offset(
        self, group: str, topic: str, queue_id: int, offset: int
    ) -> None:
        """Store the offset of a group's next pull; it is kept in memory only.

        Raises:
            ValueError: ``queue_id`` or ``offset`` is negative.

        Source: ConsumerOffsetManager#commitPullOffset.
        """
        _refuse_negative(queue_id, offset)
        with self._lock:
            table = self._pull_offset_table.setdefault(_key(topic, group), {})
            table[queue_id] = offset

    def query_pull_offset(self, group: str, topic: str, queue_id: int) -> int:
        """The offset of a group's next pull, else its committed offset; -1: neither.

        Source: ConsumerOffsetManager#queryPullOffset.
        """
        with self._lock:
            table = self._pull_offset_table.get(_key(topic, group), {})
            if queue_id in table:
                return table[queue_id]
        return self.query_offset(group, topic, queue_id)

    def query_offset(self, group: str, topic: str, queue_id: int) -> int:
        """The offset of a group on a queue; a pending reset takes precedence; -1: none.

        Source: ConsumerOffsetManager#queryOffset.
        """
        key = _key(topic, group)
        with self._lock:
            pending = self._reset_offset_table.get(key, {}).get(queue_id)
            if pending is not None:
                PENDING.hit()
                return pending
            return self._offset_table.get(key, {}).get(queue_id, NO_OFFSET)

    def assign_reset_offset(
        self, topic: str, group: str, queue_id: int, offset: int
    ) -> bool:
        """Set a group's offset; its client picks the reset up with its next pull.

        Returns:
            Whether it was set: not while the topic or group is being deleted, nor
                past the queue's end, which a deletion may have moved since it was
                chosen.

        Raises:
            ValueError: ``queue_id`` or ``offset`` is negative.

        Source: ConsumerOffsetManager#assignResetOffset, which ignores such a request.
        """
        _refuse_negative(queue_id, offset)
        key = _key(topic, group)
        with self._lock:
            if self._is_under_removal(topic, group, queue_id):
                DELETED_MEANWHILE.hit()
                return False
            if self._is_past_the_end(topic, queue_id, offset):
                RESET_TOO_HIGH.hit()
                return False
            self._reset_offset_table.setdefault(key, {})[queue_id] = offset
            self._told_offset_table.get(key, {}).pop(queue_id, None)
            self._offset_table.setdefault(key, {})[queue_id] = offset
        return True

    def has_offset_reset(self, topic: str, group: str, queue_id: int) -> bool:
        """Whether a reset of the queue is pending. Source: #hasOffsetReset."""
        with self._lock:
            return queue_id in self._reset_offset_table.get(_key(topic, group), {})

    def is_behind_a_reset(
        self, topic: str, group: str, queue_id: int, offset: int
    ) -> bool:
        """Whether whoever commits an offset has not followed a reset yet.

        The commit of the reset's own offset follows it. Any other one comes from
        before: its client has not handled the answer that tells it to go on elsewhere.
        """
        key = _key(topic, group)
        with self._lock:
            if queue_id in self._reset_offset_table.get(key, {}):
                return True
            told = self._told_offset_table.get(key, {})
            if told.get(queue_id, offset) != offset:
                BEHIND.hit()
                return True
            told.pop(queue_id, None)
        return False

    def query_then_erase_reset_offset(
        self, topic: str, group: str, queue_id: int
    ) -> int | None:
        """Take the pending reset of a queue; None: there is none.

        Whoever asks again has followed the reset that it was told.

        Source: ConsumerOffsetManager#queryThenEraseResetOffset.
        """
        key = _key(topic, group)
        with self._lock:
            pending = self._reset_offset_table.get(key, {}).pop(queue_id, None)
            told = self._told_offset_table.setdefault(key, {})
            if pending is None:
                told.pop(queue_id, None)
            else:
                told[queue_id] = pending
        if pending is not None:
            MET.hit()
        return pending

    def clone_offset(self, source: str, target: str, topic: str) -> None:
        """Copy the offsets of ``source`` on a topic, if any, to group ``target``.

        A pending reset of ``target`` on the topic is dropped.

        Source: ConsumerOffsetManager#cloneOffset, after which a pending reset stays,
        and which also copies an edited table's row without offsets.
        """
        if source == target:
            return
        with self._lock:
            offsets = self._offset_table.get(_key(topic, source))
            is_going = self._is_under_removal(topic, target)
            if offsets and not is_going:
                self._offset_table[_key(topic, target)] = dict(offsets)
                self._reset_offset_table.pop(_key(topic, target), None)
                self._told_offset_table.pop(_key(topic, target), None)

    def clean_offset_by_topic(self, topic: str) -> None:
        """Remove all groups' offsets on a topic, durably.

        Raises:
            OSError: the disk failed; the offsets are as before.

        Source: ConsumerOffsetManager#cleanOffsetByTopic.
        """
        with self.removal(Part(topic=topic)):
            pass

    def remove_offset(self, group: str) -> None:
        """Remove a group's offsets on all topics, durably.

        Raises:
            OSError: the disk failed; the offsets are as before.

        Source: ConsumerOffsetManager#removeOffset.
        """
        with self.removal(Part(group=group)):
            pass

    @contextmanager
    def removal(self, part: Part) -> Iterator[None]:
        """Remove offsets durably; while the context lasts, commits to them are refused.

        If the context ends by an error, what was to be deleted with them may still
        exist: then the offsets are back in memory, and the next start has those that
        fit in their queues.

        Raises:
            OSError: the disk failed; the context is not entered.
        """
        with self._lock:
            self._under_removal.append(part)
            gone = _take(self._offset_table, part)
            gone_resets = _take(self._reset_offset_table, part)
            gone_told = _take(self._told_offset_table, part)
            _take(self._pull_offset_table, part)
        try:
            if gone or self._is_kept(part):
                REMOVED.hit()
                self.persist()
            yield
        except (OSError, StoreError):
            KEPT.hit()
            with self._lock:
                _put_back(self._offset_table, gone)
                _put_back(self._reset_offset_table, gone_resets)
                _put_back(self._told_offset_table, gone_told)
                self._under_removal.remove(part)
            raise
        with self._lock:
            self._under_removal.remove(part)

    def _is_kept(self, part: Part) -> bool:
        """Whether the file has offsets of a part, be they gone from memory.

        A group that is given another's offsets loses its own in memory alone.
        """
        text = self._file.kept.decode()
        return bool(text) and bool(_take(_offsets_in(text)[0], part))

    def _is_past_the_end(self, topic: str, queue_id: int, offset: int) -> bool:
        return self._end_of is not None and offset > self._end_of(topic, queue_id)

    def _is_under_removal(self, topic: str, group: str, queue_id: int = -1) -> bool:
        parts = self._under_removal
        return any(part.has(topic, group, queue_id) for part in parts)

    def query_min_offset_in_all_group(
        self, topic: str, but_for: Collection[str], min_of: Callable[[str, int], int]
    ) -> dict[int, int]:
        """The lowest offset of all groups on each queue of a topic.

        Args:
            topic: the topic.
            but_for: groups that are left out.
            min_of: where a queue begins; groups whose offset is lower are left out.

        Source: ConsumerOffsetManager#queryMinOffsetInAllGroup, which removes all
        offsets of the groups of ``but_for``, on every topic.
        """
        lowest: dict[int, int] = {}
        for key, offsets in self.offset_table.items():
            pairs = [*_pairs([key])]
            if not pairs or pairs[0][0] != topic or pairs[0][1] in but_for:
                continue
            for queue_id, offset in offsets.items():
                if offset >= min_of(topic, queue_id):
                    lowest[queue_id] = min(offset, lowest.get(queue_id, offset))
        return {queue_id: lowest[queue_id] for queue_id in sorted(lowest)}

    def which_topic_by_consumer(self, group: str) -> list[str]:
        """The topics a group has offsets on, sorted. Source: #whichTopicByConsumer."""
        with self._lock:
            pairs = [*_pairs(self._offset_table)]
        return sorted(topic for topic, name in pairs if name == group)

    def which_group_by_topic(self, topic: str) -> list[str]:
        """The groups with offsets on a topic, sorted. Source: #whichGroupByTopic."""
        with self._lock:
            pairs = [*_pairs(self._offset_table)]
        return sorted(group for name, group in pairs if name == topic)

    def encode(self) -> str:
        """The table as its file has it. Source: ConsumerOffsetManager#encode."""
        with self._lock:
            table = {key: dict(found) for key, found in self._offset_table.items()}
        keys = in_hash_order(table, java_string_hash, _TABLE_BINS)
        offsets: dict[JsonKey, Json] = {key: _queues(table[key]) for key in keys}
        return pretty(
            {
                "dataVersion": self.data_version.to_json(),
                "groupTopicMap": _topics_by_group(keys),
                "offsetTable": offsets,
            }
        )

    def decode(self, text: str) -> None:
        """Adopt a table that was written; one from before 5.0 has no version.

        Raises:
            ValueError: it is not a complete table; nothing has changed.

        Source: ConsumerOffsetManager#decode, for which empty text is a table too.
        """
        table, found = _offsets_in(text)
        version = DataVersion(self.data_version.timestamp)
        if "dataVersion" in found:
            version.assign(found["dataVersion"])
        with self._lock:
            self._offset_table, self.data_version = table, version


@dataclass(frozen=True, slots=True)
class Part:
    """The offsets of a topic, one of its queues, or a group; "" and -1 mean any."""

    topic: str = ""
    group: str = ""
    queue_id: int = -1

    def has(self, topic: str, group: str, queue_id: int) -> bool:
        """Whether such offsets belong to the part; queue_id -1: of any queue."""
        is_of = self.topic in ("", topic) and self.group in ("", group)
        return is_of and (-1 in (self.queue_id, queue_id) or self.queue_id == queue_id)


def _offsets_in(text: str) -> tuple[OffsetTable, dict[JsonKey, Json]]:
    """The offsets in the text of a file, and all that it holds."""
    found = read_json(text)
    if not isinstance(found, dict):
        raise ValueError("a table of offsets is an object")
    return _table_of(found.get("offsetTable", {})), found


def _take(table: OffsetTable, part: Part) -> OffsetTable:
    """Remove the offsets of a part from a table; returns what was removed.

    Source: in RocketMQ, keys that only have a pending reset survive.
    """
    gone: OffsetTable = {}
    for topic, group in [*_pairs(table)]:
        key = _key(topic, group)
        offsets = table[key]
        taken = {one: at for one, at in offsets.items() if part.has(topic, group, one)}
        if taken or (not offsets and part.has(topic, group, -1)):
            gone[key] = taken
            table[key] = {one: at for one, at in offsets.items() if one not in taken}
            if not table[key]:
                del table[key]
    return gone


def _put_back(table: OffsetTable, gone: OffsetTable) -> None:
    for key, offsets in gone.items():
        table[key] = {**offsets, **table.get(key, {})}


def _key(topic: str, group: str) -> str:
    return f"{topic}{SEPARATOR}{group}"


def _pairs(table: OffsetTable | list[str]) -> Iterator[tuple[str, str]]:
    """Topic and group of each key; a broadcast's key, with two ``@``, is skipped."""
    for key in table:
        parts = key.split(SEPARATOR)
        if len(parts) == 2:
            yield parts[0], parts[1]


def _refuse_negative(queue_id: int, offset: int) -> None:
    if queue_id < 0 or offset < 0:
        raise ValueError(
            f"cannot keep offset {offset} of queue {queue_id}: both must be >= 0. "
            f"Commit the offset of the next message to consume."
        )


def _queues(offsets: dict[int, int]) -> Json:
    order = in_hash_order(offsets, lambda queue_id: queue_id, _QUEUES_BINS)
    return {queue_id: offsets[queue_id] for queue_id in order}


def _topics_by_group(keys: list[str]) -> Json:
    """The topics of each group. Source: #getGroupTopicMap, which no load reads."""
    topics: dict[str, list[str]] = {}
    for topic, group in _pairs(keys):
        topics.setdefault(group, []).append(topic)
    groups = in_hash_order(topics, java_string_hash, _GROUPS_BINS)
    return {
        group: [*in_hash_order(topics[group], java_string_hash, _TOPICS_BINS)]
        for group in groups
    }


def _table_of(found: Json) -> OffsetTable:
    if not isinstance(found, dict):
        raise ValueError(f"offsetTable is {found!r}, not an object")
    return {f"{key}": _offsets_of(offsets) for key, offsets in found.items()}


def _offsets_of(found: Json) -> dict[int, int]:
    if not isinstance(found, dict):
        raise ValueError(f"the offsets of a group are {found!r}, not an object")
    offsets: dict[int, int] = {}
    for key, offset in found.items():
        if type(offset) is not int or offset < 0:
            raise ValueError(f"queue {key!r} has offset {offset!r}")
        offsets[number_of(key)] = offset
    return offsets
