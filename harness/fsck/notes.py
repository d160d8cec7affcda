"""What fsck notes of a store directory: worth knowing, and no breach of any law."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.harness.fsck.config_notes import config_notes
from crashmq.harness.fsck.next_start import some_of
from crashmq.models.files.log import LogImage, first_nonzero
from crashmq.models.files.oddity import are_odd
from crashmq.models.files.record import FILLER_SIZE_MIN, written_part
from crashmq.models.files.store_image import StoreImage
from crashmq.models.laws.commit_log import clock_steps, fields_are_in_range
from crashmq.models.laws.consume_queue import units_past_the_end
from crashmq.models.laws.file_laws import FILE_LAWS
from crashmq.models.laws.index import is_passed_over
from crashmq.models.laws.judged import Judged, tail_is_excused

_NOTES_A_LAW_MAX = 20


def notes_on(judged: Judged) -> Iterator[str]:
    """What is worth knowing of a store and breaks no law, a sentence each."""
    image = judged.image
    yield from some_of(_strangers(judged), "files that nothing reads")
    yield from some_of(_expired(image), "queues with such units")
    for path, file in image.index().files:
        is_breach = judged.stale_allowed and file.has_unknown_slots
        if file.data and not file.slot_num and not is_breach:
            yield f"{path}: not judged, since it does not show how many slots it has."
    steps = (
        f"{image.commit_log.where(record.phy_offset)}: the clock was set back here; "
        f"times are not judged."
        for record in clock_steps(image)
    )
    yield from some_of(steps, "such steps")
    for position in image.checkpoint.torn_slots:
        yield f"checkpoint byte {position}: a torn durable mark; the other one counts."
    if not image.has_checkpoint:
        yield "There is no checkpoint; the next start after a crash replays all."
    yield from some_of(_odd_properties(judged), "such properties")
    yield from some_of(_behind_fillers(image.commit_log), "such fillers")
    yield from some_of(config_notes(image), "such places in config files")
    if judged.clean:
        yield from some_of(_left_over(judged), "queues with units left over")
    else:
        yield from _unproven(judged)


def _strangers(judged: Judged) -> Iterator[str]:
    for path in judged.image.foreign:
        yield f"{path} is no part of a store; nothing reads it."
    for path in judged.image.index().odd_paths:
        if is_passed_over(judged, path):
            yield f"{path} is no index file; nothing reads it."


def _expired(image: StoreImage) -> Iterator[str]:
    for queue, live in image.live_units:
        expired = queue.count(queue.units) - queue.count(live)
        if expired:
            yield (
                f"consumequeue/{queue.name}: {expired} units are pre-blank or point "
                f"below the log's min, {image.commit_log.min_phy_offset}."
            )


def _odd_properties(judged: Judged) -> Iterator[str]:
    """What no client writes, and nothing shows to be damage."""
    log = judged.image.commit_log
    told = {breach.where for breach in fields_are_in_range.violations(judged)}
    for file in log.files:
        for record in file.odd_records:
            where = log.where(record.phy_offset)
            raw = written_part(record.properties_raw)
            if are_odd(raw) and where not in told:
                yield f"{where}: properties that no client writes: {raw[:60]!r}."


def _behind_fillers(log: LogImage) -> Iterator[str]:
    """RocketMQ writes a filler's head alone, and leaves what was after it."""
    for file in log.files:
        if file.flaw is None:
            at = first_nonzero(file.data, file.end + FILLER_SIZE_MIN)
            if at < file.limit:
                yield f"{file.path} byte {at}: bytes left over inside a filler."


def _left_over(judged: Judged) -> Iterator[str]:
    """Bytes past the ends of a store at rest that break no law."""
    if not tail_is_excused(judged):
        return
    log = judged.image.commit_log
    if log.breaks:
        yield (
            f"{log.stop.where}: bytes past the log's end, left over from an earlier "
            f"cut; {log.count_beyond} whole records are among them."
        )
    for queue in judged.image.consume_queues:
        if queue.stray_units:
            where = queue.where(queue.stray_units[0].queue_offset)
            count = queue.count(queue.stray_units)
            yield f"{where}: {count} units past the queue's end, left over from a cut."
    for queue, live in judged.image.suspect_queues:
        stale = units_past_the_end(queue, live, judged.image)
        if stale:
            where = queue.where(stale[0].queue_offset)
            yield (
                f"{where}: {queue.count(stale)} units past the log's end, left over "
                f"from an earlier cut; or the log lost its tail."
            )


def _unproven(judged: Judged) -> Iterator[str]:
    """What would be a breach at rest; after a crash it may be the crash's doing."""
    image = judged.image
    if image.checkpoint.mark is None:
        yield (
            "No durable mark says how much of the log was on the medium, so damage "
            "cannot be told from what a crash may leave."
        )
    proven = {str(breach) for law in FILE_LAWS for breach in law.violations(judged)}
    strict = Judged(image, monotonic_clock=judged.monotonic_clock)
    for law in FILE_LAWS:
        breaches = [b for b in law.violations(strict) if str(b) not in proven]
        for breach in breaches[:_NOTES_A_LAW_MAX]:
            yield f"Not {law.id}, be it by the crash or by damage: {breach}"
        if len(breaches) > _NOTES_A_LAW_MAX:
            yield f"Not {law.id}: {len(breaches) - _NOTES_A_LAW_MAX} places more."
