"""QueueAudit: compares every unit with its record while a start reads the log.

Source: none in RocketMQ, which trusts all units but those of the last files.
"""

from __future__ import annotations

from typing import NamedTuple

from crashmq.engine.host.probe import probe
from crashmq.engine.store.clean.deleted_topics import DeletedTopics
from crashmq.engine.store.damage import Damage
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.message.message_codec import FIXED_SIZE
from crashmq.engine.store.queue.consume_queue import ConsumeQueue

QueueKey = tuple[str, int]

DISAGREED = probe("queue_audit.disagreed", "a unit does not point at its record")
LACKED = probe("queue_audit.lacked", "a record has no unit")
STRAY = probe("queue_audit.stray", "a unit before a queue's first record is none's")


class Wrong(NamedTuple):
    """Where a queue disagrees with the log: a queue_offset, and the record it lacks."""

    queue_offset: int
    phy_offset: int


class QueueAudit:
    """The result of comparing the queues with the log, gathered during a scan.

    A queue *lacks* a record if it has no unit, or a wrong one, in the record's place.

    Attributes:
        damage: the damage of the log found so far; it grows during the scan.
        durable_offset: units of records before this phy_offset are known to be durable.
        first_offsets: the queue_offset of each queue's first record.
        next_offsets: the queue_offset after each queue's last record.
        first_wrong: where each queue that disagrees with the log does so first.
        first_unflushed: each queue's first queue_offset whose unit is not known to be
            durable.
        first_wrong_phy_offset: the first record that any queue lacks; -1 if none does.
        first_unsure_timestamp: the store time of the first record that a queue lacks or
            whose unit is not known to be durable; -1 if there is none.
        dispatched_timestamp: the store time of the last record before the first that a
            queue lacks.
        lacks_unread: whether a queue lacks units of records that were not read.
        first_misnumbered: the first record whose queue_offset leaves out more than the
            log before it has room for; -1 if there is none.
    """

    def __init__(
        self,
        queues: dict[QueueKey, ConsumeQueue],
        durable_offset: int,
        damage: Damage,
        deleted: DeletedTopics,
        *,
        trusts_bit_maps: bool = False,
    ) -> None:
        self._queues = queues
        self._trusts_bit_maps = trusts_bit_maps
        self.damage = damage
        self._deleted = deleted
        self.durable_offset = durable_offset
        self.first_offsets: dict[QueueKey, int] = {}
        self.next_offsets: dict[QueueKey, int] = {}
        self.first_wrong: dict[QueueKey, Wrong] = {}
        self.first_unflushed: dict[QueueKey, int] = {}
        self.first_wrong_phy_offset = -1
        self.first_unsure_timestamp = -1
        self.dispatched_timestamp = 0
        self.lacks_unread = False
        self.first_misnumbered = -1
        self._read_from = -1

    def visit(self, request: DispatchRequest) -> None:
        """Compare one record with its queue; records come in log order."""
        if self._read_from < 0:
            self._read_from = request.commit_log_offset
        if not request.has_unit:
            return
        places = self._places_of(request)
        for place in places:
            self._visit_place(place)
        if self.first_wrong_phy_offset == request.commit_log_offset:
            for place in places:  # of a record that a queue lacks no unit is proven
                self._compare(place, place.consume_queue_offset)
        if not self.first_wrong:
            self.dispatched_timestamp = request.store_timestamp

    def _places_of(self, request: DispatchRequest) -> tuple[DispatchRequest, ...]:
        """The record in its own queue and in light ones, but for deleted queues."""
        places = (request, *request.in_light_queues())
        if not self._deleted:
            return places
        return tuple([place for place in places if not self._is_dead(place)])

    def _is_dead(self, request: DispatchRequest) -> bool:
        dead_below = self._deleted.dead_below(request.topic, request.queue_id)
        return request.commit_log_offset < dead_below

    def _visit_place(self, request: DispatchRequest) -> None:
        key = (request.topic, request.queue_id)
        queue = self._queues.get(key)
        known = self.next_offsets.get(key)
        is_first = known is None
        if known != request.consume_queue_offset:
            self._note_skipped(request, known, queue)
        agreed = request.consume_queue_offset
        if self.damage.ranges:
            agreed = self._agreed_until(request)
        elif is_first and queue is not None:
            agreed = self._stray_before(request, queue)
        if is_first:
            self.first_offsets[key] = request.consume_queue_offset
        self.next_offsets[key] = request.consume_queue_offset + 1
        if request.commit_log_offset >= self.durable_offset:
            self.first_unflushed.setdefault(key, request.consume_queue_offset)
            self._is_unsure_from(request)
        if self._compare(request, agreed) and is_first:
            units = queue.recovered_units if queue is not None else 0
            self.lacks_unread |= units < request.consume_queue_offset

    def _compare(self, request: DispatchRequest, agreed: int) -> bool:
        """Note that a queue lacks the record, or units after ``agreed``, if it does.

        Returns whether this is the first that it lacks.
        """
        key = (request.topic, request.queue_id)
        if key in self.first_wrong:
            return False
        is_next = agreed == request.consume_queue_offset
        if is_next and self._has_this_unit(request):
            return False
        (DISAGREED if key in self._queues else LACKED).hit()
        self.first_wrong[key] = Wrong(agreed, request.commit_log_offset)
        self._is_unsure_from(request)
        if self.first_wrong_phy_offset < 0:
            self.first_wrong_phy_offset = request.commit_log_offset
        return True

    def _stray_before(self, request: DispatchRequest, queue: ConsumeQueue) -> int:
        """The first unit before the queue's first record that is no expired record's.

        Without one, the record's queue_offset. Such a unit points into what was read,
        where this queue has no record before: its file was another queue's. A pull
        would get that one's message.
        """
        end = request.consume_queue_offset
        if queue.first_offset >= end:
            return end
        dead_below = self._deleted.dead_below(request.topic, request.queue_id)
        stray = queue.first_message_at_or_past(max(self._read_from, dead_below), end)
        if stray < end:
            STRAY.hit()
        return stray

    def _note_skipped(
        self, request: DispatchRequest, known: int | None, queue: ConsumeQueue | None
    ) -> None:
        """Note a record with an impossible queue_offset.

        Its queue's offsets before it are not in the log, and the log before it is too
        short to have ever had records with all of them.
        """
        if known is None:
            # A new queue begins with its first record; one that is there goes on.
            known = queue.recovered_units if queue else request.consume_queue_offset
        skipped = request.consume_queue_offset - known
        has_room = skipped * FIXED_SIZE <= request.commit_log_offset
        is_one = request.consume_queue_offset >= 0 and has_room
        if not is_one and self.first_misnumbered < 0:
            self.first_misnumbered = request.commit_log_offset

    def _agreed_until(self, request: DispatchRequest) -> int:
        """How far the units before this record's can be those of damaged records."""
        key, end = (request.topic, request.queue_id), request.consume_queue_offset
        queue = self._queues.get(key)
        if queue is None:
            return end
        known = self.next_offsets.get(key, queue.first_offset)
        log_end = request.commit_log_offset
        return queue.end_of_damaged(known, end, self.damage, log_end)

    def has_unit(self, request: DispatchRequest) -> bool:
        """Whether every queue of the record has its unit, or it needs none."""
        if not request.has_unit:
            return True
        return all(self._has_this_unit(place) for place in self._places_of(request))

    def _has_this_unit(self, request: DispatchRequest) -> bool:
        # Where a queue lacks a unit the mark goes back to it, and proves no more.
        lacks = self.first_wrong_phy_offset
        proven = self.durable_offset if lacks < 0 else min(lacks, self.durable_offset)
        queue = self._queues.get((request.topic, request.queue_id))
        is_proven = self._trusts_bit_maps or request.commit_log_offset < proven
        log_min = self.damage.log_min_offset
        return queue is not None and queue.agrees_with(request, is_proven, log_min)

    def unit_of(self, request: DispatchRequest) -> bytes:
        """The unit that dispatch would build of a record; its queue has files."""
        return self._queues[request.topic, request.queue_id].unit_of(request)

    def has_queue(self, key: QueueKey) -> bool:
        """Whether the queue has files."""
        return key in self._queues

    def _is_unsure_from(self, request: DispatchRequest) -> None:
        if self.first_unsure_timestamp < 0:
            self.first_unsure_timestamp = request.store_timestamp
