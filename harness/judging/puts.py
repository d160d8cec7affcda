"""What the judge asks of puts: where they lie, why they were refused, what is flushed.

The model learns of each put once it was judged; what got no answer is given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from harness.interpreter import Report
from harness.judging.topics import may_be_emptied
from models.invariants import deletion, marks, putting
from models.messages import FILLER_SIZE_MIN, MessageToPut
from models.observations import Positions, Put
from models.program import Setup
from models.reference import QueueKey, ReferenceModel

Puts: TypeAlias = list[tuple[MessageToPut, Put | None]]


class Putting(NamedTuple):
    """Puts of one step that belong to one life of the store.

    Attributes:
        puts: each message with its answer.
        report: of the step.
        before: what the store reported before the step; None if it was down.
        after: what it reports after it.
        may_refuse: the disk failed, or puts may have been stopped.
        lacks_room: a log file more would fill the disk.
        must_refuse: a cleaner has stopped puts.
        end: where the log ended in front of the next put, if others only put as well.
        used_before: bytes of the disk in use in front of the step.
        stored_ms: a time not after that of their storing, where it matters.
        deletions: of topics and queues, and the places below which records are dead.
    """

    puts: Puts
    report: Report
    before: Positions | None
    after: Positions
    may_refuse: bool
    lacks_room: bool = False
    must_refuse: bool = False
    used_before: int = 0
    stored_ms: int = 0
    end: int = -1
    deletions: Sequence[tuple[QueueKey, int]] = ()


def puts_around_the_start(report: Report) -> tuple[Puts, Puts]:
    """Puts of the life that ended, or of the only one, and those of the new one."""
    if report.crash is not None or report.started_end < 0:
        return report.puts, []
    count = report.puts_before_start
    return report.puts[:count], report.puts[count:]


def judge_batches(
    checks: dict[str, int], setup: Setup, report: Report, *, may_refuse: bool
) -> None:
    """Judge each batch as a whole, and how long puts have waited."""
    if report.puts and not (report.crash or report.is_stopping):
        wait_ms, stalled_ms = report.longest_wait_ms, report.stalled_ms
        putting.who_waits_is_answered.hold(checks, wait_ms, stalled_ms)
    for messages, answer in report.batches:
        if answer.status != "UNKNOWN_ERROR":
            excused = may_refuse or is_excused(answer, report)
            putting.batch_is_put_as_one.hold(
                checks, messages, answer, setup, may_refuse=excused
            )


def is_excused(answer: Put, report: Report) -> bool:
    """Whether a put was not acknowledged for a reason that is not the disk's.

    A store that stops refuses puts; those it took it makes durable, and answers.
    """
    stops = report.is_stopping and answer.status != "FLUSH_DISK_TIMEOUT"
    return stops or putting.gave_up(answer, report.stalled_ms)


def judge_puts(
    checks: dict[str, int], setup: Setup, model: ReferenceModel, step: Putting
) -> list[MessageToPut]:
    """Judge each put in the log's order; those that got no answer."""
    report = step.report
    in_flight: list[MessageToPut] = []
    answered: list[tuple[MessageToPut, Put]] = []
    for message, answer in step.puts:
        if answer is None or answer.status == "UNKNOWN_ERROR":
            in_flight.append(message)
        else:
            answered.append((message, answer))
    if len(answered) > 1:
        answered.sort(key=lambda pair: pair[1].phy_offset)
    is_alone = report.together and not in_flight and not report.fault_armed
    place = step.before.max_phy_offset if step.before and is_alone else -1
    deletions = sorted(step.deletions, key=lambda ended: ended[1])
    for message, answer in answered:
        while deletions and deletions[0][1] <= answer.phy_offset:
            model.delete(*deletions.pop(0))
        key = (message.topic, message.queue_id)
        rivals = [m for m in in_flight if key in _places(m)]
        if place >= 0 and (message.batch is None or message.batch.number == 0):
            place = max(place, model.end)
        step = step._replace(end=place)
        is_first = answer.phy_offset >= 0 and answer.queue_offset == 0
        if is_first and may_be_emptied(report, key):
            model.empty(key, answer.phy_offset)
        _judge_put(checks, setup, model, step, message, answer, len(rivals))
        _judge_room(checks, setup, step, answer)
        if answer.phy_offset >= 0:
            model.put(message, answer, step.stored_ms)
        waited = model.flush_mode == "SYNC_FLUSH" and message.wait_store_ok
        is_told = answer.flushed_where >= 0
        if waited and (is_told or not (report.crash or report.is_stopping)):
            marks.acknowledged_is_flushed.hold(checks, answer, step.after)
    if report.together:
        putting.puts_lie_in_the_order_they_were_made.hold(
            checks,
            [
                (answer, span)
                for (_, answer), span in zip(report.puts, report.spans, strict=True)
                if answer is not None
            ],
        )
    for key, dead_below in deletions:
        model.delete(key, dead_below)
    if report.crash is None:
        model.in_flight += in_flight
    return in_flight


def _judge_room(
    checks: dict[str, int], setup: Setup, step: Putting, answer: Put
) -> None:
    """Judge what a put does on a disk that is full, or would be with a file more."""
    report, world, before = step.report, step.report.world, step.before
    if report.interrupted:
        return
    if step.must_refuse:
        deletion.a_full_disk_takes_no_put.hold(checks, answer)
    has_grown = world.used - step.used_before >= setup.log_file_size
    if has_grown and world.total and before is not None:
        deletion.no_put_fills_the_disk.hold(
            checks,
            answer,
            before.max_phy_offset,
            setup.log_file_size,
            world.used,
            world.total,
        )


def _judge_put(
    checks: dict[str, int],
    setup: Setup,
    model: ReferenceModel,
    step: Putting,
    message: MessageToPut,
    answer: Put,
    rivals: int,
) -> None:
    key, report = (message.topic, message.queue_id), step.report
    next_offset = model.next_queue_offset(key) if message.has_place else 0
    unseen = rivals if report.crash is not None else 0
    if message.has_place and answer.phy_offset >= 0:
        unseen += model.trusted.pop(key, 0)
    size = model.record_size(message)
    place = -1
    if step.before is not None and not report.interrupted:
        place = _place_of(message, size, step.before.max_phy_offset, setup)
    elif step.end >= 0 and answer.phy_offset >= 0:
        place = _place_of(message, size, step.end, setup)
    begins_a_file = place < 0 or place % setup.log_file_size == 0
    is_behind = step.before is not None and place == step.before.max_phy_offset
    lacks_room = step.lacks_room and (begins_a_file or not is_behind)
    putting.put_takes_the_next_place.hold(
        checks,
        answer,
        model.end,
        place,
        next_offset,
        size,
        unseen,
    )
    if message.batch is None:
        putting.put_is_told_its_id.hold(checks, message, answer)
        putting.put_is_refused_for_a_reason.hold(
            checks,
            message,
            answer,
            setup,
            (size, model.properties_size(message)),
            may_refuse=step.may_refuse or lacks_room or is_excused(answer, report),
        )


def _place_of(message: MessageToPut, record_size: int, end: int, setup: Setup) -> int:
    """Where the record of the next put must lie."""
    batch = message.batch
    before, total = (batch.before, batch.total) if batch else (0, record_size)
    left = setup.log_file_size - end % setup.log_file_size
    return before + (end if total + FILLER_SIZE_MIN <= left else end + left)


def _places(message: MessageToPut) -> list[QueueKey]:
    """The queues in which it may count."""
    light = [(name, 0) for name in message.light_queues]
    return [(message.topic, message.queue_id), *light]
