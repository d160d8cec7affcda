"""ScheduleMessageService: delivers delayed messages, level by level, when they are due.

Each level is a queue of the schedule topic, whose messages fall due in order. For each
level it keeps the offset of the next message to deliver; ``config/delayOffset.json``
has these offsets, written every ten seconds and at a shutdown. A written offset passes
a message only once its delivered copy is synced. A crash takes back what was delivered
since the last write, and that is delivered again: at least once.

Source: org.apache.rocketmq.broker.schedule.ScheduleMessageService, RocketMQ 5.3.0, and
its file byte for byte. Differs: RocketMQ writes an offset as soon as the copy is put,
so that a power loss may take the copy and keep the offset; it delivers rotten messages
with a new CRC; and a level whose read fails waits ten seconds there, 100 ms here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from crashmq.engine.broker.schedule.delayed_message import delivered_message
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
from crashmq.engine.store.message.message import SCHEDULE_TOPIC, Message
from crashmq.engine.store.message.message_reader import ListedMessage
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import PutMessageResult

PATH = "config/delayOffset.json"
UPDATE_VERSION_STEP = 200  # BrokerConfig#delayOffsetUpdateVersionStep
UNITS_AT_ONCE = 32
_TABLE_BINS = 64  # what RocketMQ gives its map room for

DELIVERED = probe("schedule.delivered", "a delayed message was put into its real queue")
WAITS = probe("schedule.waits", "a round met a message that is not due yet")
CLOCK_WENT_BACK = probe(
    "schedule.clock_went_back", "a message is due more than one full delay ahead"
)
FAILED = probe("schedule.failed", "a message that is due could not be put")
UNREADABLE = probe("schedule.unreadable", "a delayed message cannot be read any more")
UNADDRESSED = probe(
    "schedule.unaddressed", "a message of the schedule topic names no real queue"
)
CORRECTED = probe("schedule.corrected", "an offset lay beyond its queue, or before it")
HELD_BACK = probe(
    "schedule.persist.held_back", "a persist left out deliveries that are not durable"
)

PutDelivered = Callable[[Message], PutMessageResult]


class Delivery(NamedTuple):
    """An offset of a level, and where the delivered copy before it ends."""

    offset: int
    end_offset: int


class ScheduleMessageService:
    """The offsets of all levels, in memory, their file, and the rounds of delivery.

    Invariants:
        levels begin at 1; no offset is negative
        the deliveries of a level are in the order of their offsets
    """

    def __init__(self, store: MessageStore, disk: Disk, runtime: Runtime) -> None:
        self._store = store
        self._levels = store.config.delay_levels
        self._file = ConfigFile(disk, PATH, runtime)
        self._runtime = runtime
        self._lock = runtime.lock()
        self._offset_table: dict[int, int] = {}
        self._durable_table: dict[int, int] = {}
        self._deliveries: dict[int, deque[Delivery]] = {}
        self._version_changes = 0
        self.put: PutDelivered = store.put_accepted
        self.is_stopping = False
        self.data_version = DataVersion(runtime.now_ms())

    def _check(self) -> None:
        for level, offset in self._offset_table.items():
            assert level > 0, level
            assert 0 <= self._durable_table.get(level, 0) <= offset, (level, offset)
        for level, deliveries in self._deliveries.items():
            offsets = [one.offset for one in deliveries]
            assert offsets == sorted(offsets), (level, offsets)

    @property
    def offset_table(self) -> Mapping[int, int]:
        """A copy of the table: by level, the next offset to deliver."""
        with self._lock:
            return dict(self._offset_table)

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

    def correct_delay_offset(self) -> None:
        """Move each offset into the bounds of its queue, after the store has started.

        Source: ScheduleMessageService#correctDelayOffset. Differs: a queue ends where
        the log says, even if dispatch has not come that far yet.
        """
        for level in sorted(self.offset_table):
            least = self._store.get_min_offset_in_queue(SCHEDULE_TOPIC, level - 1)
            end = self._end_of(level)
            offset = min(max(self._offset_table[level], least), end)
            if offset != self._offset_table[level]:
                CORRECTED.hit()
                with self._lock:
                    self._offset_table[level] = self._durable_table[level] = offset

    def _end_of(self, level: int) -> int:
        return self._store.get_next_offset_in_queue(SCHEDULE_TOPIC, level - 1)

    def deliver(self) -> int:
        """Deliver what is due on every level; returns how many messages it passed.

        A level that fails does not delay the others; the next round continues it.

        Raises:
            OSError: the medium could not be read: the first such error.

        Source: DeliverDelayedMessageTimerTask#executeOnTimeUp, one task per level.
        """
        passed = 0
        failed: OSError | None = None
        for level in range(1, self._levels.level_max + 1):
            try:
                passed += self._deliver_level(level)
            except OSError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return passed

    def _deliver_level(self, level: int) -> int:
        offset = first = self._first_of(level)
        while not self.is_stopping:
            listed = self._store.listed_messages(
                SCHEDULE_TOPIC, level - 1, offset, UNITS_AT_ONCE
            )
            if not listed:
                break
            for unit in listed:
                if self.is_stopping or not self._pass(level, unit):
                    return offset - first
                offset = unit.queue_offset + 1
        return offset - first

    def _first_of(self, level: int) -> int:
        """A level's next offset that exists; earlier messages may have expired."""
        offset = self._offset_table.get(level, 0)
        least = self._store.get_min_offset_in_queue(SCHEDULE_TOPIC, level - 1)
        # A queue that counts less than was delivered of it has begun anew.
        if least <= offset <= self._end_of(level):
            return offset
        CORRECTED.hit()
        with self._lock:
            self._offset_table[level] = self._durable_table[level] = least
            self._deliveries.pop(level, None)
        return least

    def _pass(self, level: int, unit: ListedMessage) -> bool:
        """Deliver one message if due; returns whether the level goes on behind it."""
        if not self._is_due(level, unit):
            WAITS.hit()
            self._update_offset(level, unit.queue_offset, 0)
            return False
        message = self._message_of(unit)
        end_offset = 0
        if message is not None:
            result = self.put(message)
            if not result.is_appended:
                FAILED.hit()
                return False
            DELIVERED.hit()
            end_offset = result.end_offset
        self._update_offset(level, unit.queue_offset + 1, end_offset)
        return True

    def _is_due(self, level: int, unit: ListedMessage) -> bool:
        """Whether a message is due by the clock.

        If its time is more than its whole delay ahead, the clock was set back: it is
        due.

        Source: DeliverDelayedMessageTimerTask#correctDeliverTimestamp.
        """
        delay_ms = self._levels.delay_ms(level)
        due = unit.tags_code
        if due is None:
            stored = self._store.commit_log.store_timestamp_at(unit.phy_offset)
            due = stored + delay_ms
        now = self._runtime.now_ms()
        if due > now + delay_ms:
            CLOCK_WENT_BACK.hit()
            return True
        return due <= now

    def _message_of(self, unit: ListedMessage) -> Message | None:
        """The message to deliver; None: it is damaged, and is skipped."""
        log = self._store.commit_log
        record = log.get_message(unit.phy_offset, unit.size)
        if record is None or not log.is_record(unit.phy_offset, record):
            UNREADABLE.hit()
            return None
        message = delivered_message(record)
        if message is None:
            UNADDRESSED.hit()
        return message

    def _update_offset(self, level: int, offset: int, end_offset: int) -> None:
        """Record how far a level is delivered. Source: #updateOffset."""
        with self._lock:
            if offset != self._offset_table.get(level):
                waiting = self._deliveries.setdefault(level, deque())
                waiting.append(Delivery(offset, end_offset))
            self._offset_table[level] = offset
            self._version_changes += 1
            if self._version_changes % UPDATE_VERSION_STEP == 0:
                self.data_version.next_version(self._runtime.now_ms())

    def persist(self) -> None:
        """Write the durable offsets to their file, durably.

        Raises:
            OSError: the disk failed; the file has the previous table or this one.

        Source: ConfigManager#persist, which only logs an error.
        """
        self._file.persist(self.encode())

    def encode(self) -> str:
        """The table as its file has it. Source: DelayOffsetSerializeWrapper."""
        with self._lock:
            table = self._durable_offsets()
        keys = in_hash_order(table, lambda level: level, _TABLE_BINS)
        offsets: dict[JsonKey, Json] = {level: table[level] for level in keys}
        return pretty(
            {"dataVersion": self.data_version.to_json(), "offsetTable": offsets}
        )

    def _durable_offsets(self) -> dict[int, int]:
        """The offset up to which each level's deliveries are durable."""
        flushed = self._store.commit_log.flushed_where
        for level, waiting in self._deliveries.items():
            while waiting and waiting[0].end_offset <= flushed:
                self._durable_table[level] = waiting.popleft().offset
            if waiting:
                HELD_BACK.hit()
        durable = self._durable_table
        return {level: durable.get(level, 0) for level in self._offset_table}

    def decode(self, text: str) -> None:
        """Adopt a table that was written; one from before 5.0 has no version.

        Raises:
            ValueError: it is not a complete table; nothing has changed.

        Source: ScheduleMessageService#decode, for which empty text is a table too.
        """
        found = read_json(text)
        if not isinstance(found, dict):
            raise ValueError("a table of offsets is an object")
        table = _table_of(found.get("offsetTable", {}))
        version = DataVersion(self.data_version.timestamp)
        if "dataVersion" in found:
            version.assign(found["dataVersion"])
        with self._lock:
            self._offset_table, self._durable_table = table, dict(table)
            self.data_version = version


def _table_of(found: Json) -> dict[int, int]:
    if not isinstance(found, dict):
        raise ValueError(f"offsetTable is {found!r}, not an object")
    table: dict[int, int] = {}
    for key, offset in found.items():
        level = number_of(key)
        if level < 1 or type(offset) is not int or offset < 0:
            raise ValueError(f"level {level!r} has offset {offset!r}")
        table[level] = offset
    return table
