"""The reference model: what was appended, what must survive, what a reader may see.

A log with one writer loses only its tail. So the model keeps the messages in log order
and two floors, in bytes: what must survive a process kill, and what must survive power
loss. After a crash any prefix between the floor and everything appended is right, and
the model adopts the one it finds.

The cleaner deletes the log's first files in time; their messages have *expired*. The
model keeps expired messages, since a queue's next offset follows from them, and since a
power loss may bring a deleted file back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from crashmq.models.appended import Appended
from crashmq.models.files.deleted import ALL_QUEUES, DeletedImage
from crashmq.models.files.store_image import Record
from crashmq.models.messages import MULTI_QUEUE_OFFSET, MessageToPut
from crashmq.models.observations import Positions, Put
from crashmq.models.ops import CrashKind
from crashmq.models.plain_state import Forked
from crashmq.models.program import FlushMode
from crashmq.models.quickly_made import quickly_made

QueueKey = tuple[str, int]


@dataclass(slots=True)
class ReferenceModel(Forked):
    """What one store must hold.

    Invariants:
        messages lie in the log's order, none overlaps the next
        a queue's messages follow each other in queue_offset
        floors, may_expire and min_certain are phy_offsets, at least 0

    Attributes:
        queues: every message of each queue, with the expired ones and without the
            deleted.
        buffers_appends: appends go to write buffers first, which a kill empties.
        log_min: the log's min_phy_offset; the messages before have expired.
        may_expire: the phy_offset up to which an interrupted cleaner may have deleted.
        min_certain: the lowest min_phy_offset that a power loss can bring back.
        built: the queue_offset at which each queue's units ended at the last start, or
            must end at least, since a message before it has expired.
        indexed: how far the index reached at the last start: the phy_offset of its
            newest entry, and how many entries that record has.
        in_flight: puts that got no answer; each may be in the log or not.
        deleted: the phy_offsets below which records of a queue, or with queue_id -1
            of a topic, are dead.
        may_be_deleted: the same for deletions that did not finish: the phy_offsets
            between which that one lies, if they count.
        floor: the bytes that the next start must recover; None while the store runs.
        multi_dispatch: light queues list messages that ask for it.
        prop_crc: every record ends with a CRC of its own.
        put_by_topic: messages and bytes appended since the store started.
        puts: how many puts that were; a batch counts as one.
        put_times_ms: how many of those took how many ms, where that is known.
        numbered: first free queue_offset of a queue whose messages were lost: in a
            store that skips damaged records, and for empty queues as damage left them;
            ``trusted``: how many more the latter may have.
        forgotten: for queues that were damaged after their messages had expired, pairs
            of (min_phy_offset, first queue_offset) of messages that no queue lists now.
    """

    flush_mode: FlushMode
    messages: list[Appended] = field(default_factory=list)
    queues: dict[QueueKey, list[Appended]] = field(default_factory=dict)
    in_flight: list[MessageToPut] = field(default_factory=list)
    deleted: dict[QueueKey, int] = field(default_factory=dict)
    may_be_deleted: dict[QueueKey, tuple[int, int]] = field(default_factory=dict)
    floor_kill: int = 0
    memory_reverted: bool = False
    floor_power: int = 0
    floor: int | None = None
    reput_from_offset: int = 0
    log_min: int = 0
    may_expire: int = 0
    min_certain: int = 0
    buffers_appends: bool = False
    built: dict[QueueKey, int] = field(default_factory=dict)
    multi_dispatch: bool = False
    prop_crc: bool = False
    # Forgotten at each start, so that they tell no two crashed stores apart.
    put_by_topic: dict[str, tuple[int, int]] = field(
        default_factory=dict, compare=False
    )
    puts: int = field(default=0, compare=False)
    put_times_ms: dict[int, int] = field(default_factory=dict, compare=False)
    indexed: tuple[int, int] = (-1, 0)
    numbered: dict[QueueKey, int] = field(default_factory=dict)
    trusted: dict[QueueKey, int] = field(default_factory=dict)
    forgotten: dict[QueueKey, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def _check(self) -> None:
        for before, after in pairwise(self.messages[-3:]):
            assert before.end <= after.phy_offset, (before, after)
        assert self.floor_power >= 0, self.floor_power
        assert self.floor_kill >= 0, self.floor_kill
        for key, queue in self.queues.items():
            for before, after in pairwise(queue[-2:]):
                assert before.queue_offset < after.queue_offset, (key, before, after)
        assert self.may_expire >= 0, self.may_expire
        assert self.min_certain >= 0, self.min_certain

    @property
    def end(self) -> int:
        """First byte after the newest message."""
        return self.messages[-1].end if self.messages else 0

    def next_queue_offset(self, key: QueueKey) -> int:
        """The queue offset the next message of a queue must get."""
        queue = self.queues.get(key)
        taken = self.numbered.get(key, 0) if self.numbered else 0
        return max(taken, queue[-1].queue_offset + 1 if queue else 0)

    def light_offsets(self, message: MessageToPut) -> str:
        """The offsets in light queues that a message gets if it is put next."""
        if not self.multi_dispatch or message.asks_for_no_light_queue:
            return ""
        names = message.light_queues
        return ",".join([str(self.next_queue_offset((name, 0))) for name in names])

    def properties_size(self, message: MessageToPut) -> int:
        """The size in bytes of a message's properties in the log if it is put next."""
        size = message.properties_size
        if message.multi_dispatch and (offsets := self.light_offsets(message)):
            size += len(MULTI_QUEUE_OFFSET) + len(offsets) + 2
        return size + message.prop_crc_size if self.prop_crc else size

    def record_size(self, message: MessageToPut) -> int:
        """The size in bytes of a message's record if it is put next."""
        added = self.properties_size(message) - message.properties_size
        return message.record_size + added

    def put(
        self, message: MessageToPut, answer: Put, stored_ms: int = 0, rivals: int = 0
    ) -> None:
        """Record a put that was appended and answered.

        ``rivals``: how many puts to the same light queues got no answer, and may lie
        before it.
        """
        appended = Appended(
            message,
            answer.phy_offset,
            answer.size,
            answer.queue_offset,
            light_offsets=self.light_offsets(message) if message.multi_dispatch else "",
            stored_ms=stored_ms,
            rivals=rivals,
        )
        self.messages.append(appended)
        self._list(appended)
        times, size = self.put_by_topic.get(message.topic, (0, 0))
        self.put_by_topic[message.topic] = (times + 1, size + answer.size)
        if message.batch is None or message.batch.number == 0:
            self.puts += 1
            if answer.took_ms >= 0:
                alike = self.put_times_ms.get(answer.took_ms, 0)
                self.put_times_ms[answer.took_ms] = alike + 1
        if answer.status != "PUT_OK":
            return
        if not self.buffers_appends:
            self.floor_kill = appended.end
        if self.flush_mode == "SYNC_FLUSH" and message.waits_for_sync:
            self.floor_power = max(self.floor_power, appended.end)
            self.floor_kill = max(self.floor_kill, appended.end)

    def delete(self, key: QueueKey, dead_below: int) -> None:
        """Record the deletion of a queue, or with queue_id -1 of a topic."""
        topic, queue_id = key
        if queue_id == ALL_QUEUES:
            for known in [known for known in self.deleted if known[0] == topic]:
                del self.deleted[known]
        self.deleted[key] = dead_below
        for known in {**self.queues, **self.numbered}:
            if known[0] == topic and queue_id in (ALL_QUEUES, known[1]):
                self.empty(known, dead_below)

    def empty(self, key: QueueKey, dead_below: int) -> None:
        """Record that a deletion, finished or not, has emptied a queue."""
        self.numbered.pop(key, None)
        self.trusted.pop(key, None)
        if (queue := self.queues.pop(key, None)) is None:
            return
        self.built.pop(key, None)
        if alive := queue[bisect_left(queue, dead_below, key=_phy_offset) :]:
            self.queues[key] = alive

    def may_have_deleted(self, key: QueueKey, lowest: int, highest: int) -> None:
        """Record a deletion without an answer, and the bounds of its phy_offset."""
        known = self.may_be_deleted.get(key, (lowest, highest))
        self.may_be_deleted[key] = (min(known[0], lowest), max(known[1], highest))

    def is_unsettled(self, key: QueueKey) -> bool:
        """Whether it is unknown if a queue was deleted."""
        unknown = self.may_be_deleted
        return bool(unknown) and (key in unknown or (key[0], ALL_QUEUES) in unknown)

    def dead_below(self, key: QueueKey) -> int:
        """Records of a queue below this phy_offset are dead; 0: none is."""
        of_topic = self.deleted.get((key[0], ALL_QUEUES), 0)
        return max(of_topic, self.deleted.get(key, 0))

    def list_all(self) -> None:
        """Build ``queues`` again from all messages."""
        self.queues = {}
        for appended in self.messages:
            self._list(appended)

    def _list(self, appended: Appended) -> None:
        """Add a message to every queue that lists it; there may be none."""
        message = appended.message
        if not message.has_place:
            return
        key = (message.topic, message.queue_id)
        self._list_in(key, appended)
        if appended.light_offsets:
            offsets = appended.light_offsets.split(",")
            for name, offset in zip(message.light_queues, offsets, strict=True):
                self._list_in((name, 0), appended.in_light_queue(int(offset)))

    def _list_in(self, key: QueueKey, appended: Appended) -> None:
        is_dead = self.deleted and appended.phy_offset < self.dead_below(key)
        if not (is_dead or self._is_forgotten(key, appended)):
            self.queues.setdefault(key, []).append(appended)

    def _is_forgotten(self, key: QueueKey, appended: Appended) -> bool:
        return any(
            appended.phy_offset < log_min and appended.queue_offset >= first
            for log_min, first in self.forgotten.get(key, ())
        )

    def saw_positions(self, positions: Positions) -> None:
        """Record the positions that a running store reports; they are promises."""
        self.floor_power = max(self.floor_power, positions.flushed_where)
        kept = max(positions.flushed_where, positions.committed_where)
        self.floor_kill = max(self.floor_kill, min(kept, self.end))
        self.reput_from_offset = positions.reput_from_offset
        if positions.min_phy_offset > self.log_min:
            self._expire(positions.min_phy_offset)

    def _expire(self, log_min: int) -> None:
        """Record that a cleaner deleted the log's first files."""
        was, self.log_min = self.log_min, log_min
        self.may_expire = max(self.may_expire, log_min)
        for key, queue in self.queues.items():
            expired = bisect_left(queue, log_min, key=_phy_offset)
            if expired and queue[expired - 1].phy_offset >= was:
                # Nothing expires undispatched, so the queue reaches at least so far.
                # Of what had expired before damage may have taken the units since.
                end = queue[expired - 1].queue_offset + 1
                self.built[key] = max(self.built.get(key, 0), end)

    def stopped(self, end: int, *, clean: bool) -> None:
        """Record the end of a run: bytes in files stay until a crash.

        ``end`` is where the log ended before; after an orderly shutdown all was synced.
        """
        if clean:
            self.floor_power = max(self.floor_power, end)
            self.floor_kill = max(self.floor_kill, end)
        self._lower_floor(self._spared_by_kill)

    def crashed(self, kind: CrashKind, in_flight: list[MessageToPut]) -> None:
        """Record a crash, and the puts that got no answer."""
        self.in_flight += in_flight
        self._lower_floor(
            self._spared_by_kill if kind == "process_kill" else self.floor_power
        )

    def lose_what_was_not_synced(self) -> None:
        """Record that a failed sync took back what only memory held."""
        self.memory_reverted = True
        if self.floor is not None:  # the store is down: that may spare less than then
            self._lower_floor(self._spared_by_kill)

    @property
    def _spared_by_kill(self) -> int:
        if self.memory_reverted:
            return min(self.floor_kill, self.floor_power)
        return self.floor_kill

    def log_damaged(self, found_end: int) -> None:
        """Record damage of the log's files, which are intact up to ``found_end``."""
        self._lower_floor(found_end)

    def _lower_floor(self, survives: int) -> None:
        self.floor = survives if self.floor is None else min(self.floor, survives)

    def stored_between(self, begin: int, end: int) -> list[int]:
        """The earliest possible store times of the messages in [begin, end)."""
        messages = self.messages[self._expired_count(begin) : self._expired_count(end)]
        return [appended.stored_ms for appended in messages]

    def expirable_until(
        self, file_size: int, old_ms: int | None, *, dispatches: bool = False
    ) -> int:
        """The phy_offset up to which a cleaner may delete.

        Whole files only, never the last one, and only dispatched messages, stored at or
        before ``old_ms``; None: whenever they were stored.
        """
        until = self.end if dispatches else self.reput_from_offset
        if self.messages:
            # A start dispatches from the next record on, after any filler.
            first = min(self._expired_count(until), len(self.messages) - 1)
            until = self.messages[first].phy_offset
        for appended in self.live_messages(self.log_min):
            if old_ms is not None and appended.stored_ms > old_ms:
                until = min(until, appended.phy_offset)
                break
        return until - until % file_size

    def ends_of_empty_queues(self) -> dict[QueueKey, int]:
        """The ends of the queues whose messages have all expired."""
        log_min = self.log_min
        if not log_min:
            return {}
        return {
            key: queue[-1].queue_offset + 1
            for key, queue in self.queues.items()
            if queue and queue[-1].phy_offset < log_min
        }

    def forget_lost_numbers(self) -> None:
        """Let empty queues continue where their files end after some were removed."""
        for key, end in self.ends_of_empty_queues().items():
            lost = end - self.built.get(key, 0)
            if lost > 0:
                del self.queues[key][-lost:]
                gone = (self.log_min, end - lost)
                self.forgotten[key] = (*self.forgotten.get(key, ()), gone)

    def number_empty_queues(self, ends: dict[QueueKey, int]) -> None:
        """Let empty queues continue where their files end, foreign queues too.

        Where only the last file must be read, they continue at its end, in ``ends``.
        """
        empty, queues = self.ends_of_empty_queues(), self.queues
        left = [k for k in self.built if k in empty or not queues.get(k)]
        self.numbered = {k: self.built[k] for k in left}
        self.trusted = {k: ends[k] - self.built[k] for k in left}

    def keys_ever_put(self) -> dict[tuple[str, str], None]:
        """The topic and key of every message so far, even if expired or deleted."""
        return {
            (appended.message.topic, key): None
            for appended in self.messages
            for key in (appended.message.unique_key, *appended.message.keys.split())
            if key
        }

    def live_messages(self, log_min: int) -> list[Appended]:
        """The messages from ``log_min`` on."""
        return self.messages[self._expired_count(log_min) :]

    def _expired_count(self, log_min: int) -> int:
        return bisect_left(self.messages, log_min, key=_phy_offset)

    def adopt(
        self,
        records: Sequence[Record],
        built: dict[QueueKey, int],
        log_min: int,
        deleted: DeletedImage | None = None,
    ) -> None:
        """Replace the messages by the recovered log, which was judged right.

        Args:
            records: the recovered log.
            built: where each queue's units end; they may be read before dispatch, which
                goes on from the first record that any queue lacks.
            log_min: where the recovered log begins.
            deleted: the deletions that the store knows; None: those known here.
        """
        was = self.deleted
        if deleted is not None:
            self.deleted = dict(deleted.places)
            self.may_be_deleted = {}
        expired = self._expired_count(log_min)
        kept = self.messages[expired : expired + len(records)]
        if self.in_flight:
            kept = self._with_unanswered(kept, records)
        kept = [
            _without_rivals(one, record) if one.rivals else one
            for one, record in zip(kept, records, strict=True)
        ]
        for appended, record in zip(kept, records, strict=True):
            appended.found = record
        self.messages = self.messages[:expired] + kept
        self.log_min = self.may_expire = log_min
        self.list_all()
        for key in [key for key in self.queues if was and key not in built]:
            # A deletion may be forgotten once all that was deleted has expired.
            dead = max(was.get((key[0], ALL_QUEUES), 0), was.get(key, 0))
            first = bisect_left(self.queues[key], min(dead, log_min), key=_phy_offset)
            del self.queues[key][:first]
        for key in [key for key in self.numbered if key not in built]:
            if self.dead_below(key):  # its files went with it, and so did its number
                del self.numbered[key]
        self.floor_kill = self.end
        self.memory_reverted = False
        self.floor_power = min(self.floor_power, self.end)
        self.built = built
        self.begin_life()

    def begin_life(self) -> None:
        """Record that a start has recovered the store; statistics begin again."""
        self.floor, self.in_flight = None, []
        self.put_by_topic, self.puts, self.put_times_ms = {}, 0, {}

    def _with_unanswered(
        self, answered: Sequence[Appended], records: Sequence[Record]
    ) -> list[Appended]:
        """The records' messages, including unanswered puts among them."""
        known = {appended.phy_offset: appended for appended in answered}
        unanswered = {(one.unique_key, one.topic): one for one in self.in_flight}
        found: list[Appended] = []
        for record in records:
            appended = known.get(record.phy_offset)
            if appended is None:
                message = unanswered[record.properties["UNIQ_KEY"], record.topic]
                appended = Appended(
                    message,
                    record.phy_offset,
                    record.size,
                    record.queue_offset,
                    light_offsets=record.properties.get(MULTI_QUEUE_OFFSET, ""),
                    stored_ms=record.store_timestamp,
                )
            found.append(appended)
        return found

    def visible(self, key: QueueKey) -> VisibleQueue:
        """The messages of a queue that can be read: dispatched, and not expired."""
        queue = self.queues.get(key, [])
        end = len(queue)
        built = self.built.get(key, 0)
        while end and queue[end - 1].queue_offset >= built:
            if queue[end - 1].end <= self.reput_from_offset:
                break
            end -= 1
        begin = bisect_left(queue, self.log_min, hi=end, key=_phy_offset)
        messages = queue[begin:end] if begin else queue[:end]
        max_offset = messages[-1].queue_offset + 1 if messages else built
        min_offset = messages[0].queue_offset if messages else built
        return VisibleQueue(messages, min_offset, max_offset)


@quickly_made
@dataclass(frozen=True, slots=True)
class VisibleQueue:
    """A queue as a reader must find it.

    ``min_offset`` is the queue_offset of the first readable message, or ``max_offset``
    if there is none.
    """

    messages: list[Appended]
    min_offset: int
    max_offset: int


def _without_rivals(appended: Appended, record: Record) -> Appended:
    """A message of which it is known by now where its light queues list it."""
    light_offsets = record.properties.get(MULTI_QUEUE_OFFSET, "")
    return replace(appended, light_offsets=light_offsets, rivals=0)


def _phy_offset(appended: Appended) -> int:
    return appended.phy_offset
