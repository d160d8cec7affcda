"""The walk through reads that overlap other ops: what each of them may have seen.

It goes run by run of the store: after all puts of a run are known, and before a start
or a crash changes what is known. So every answer is judged, whatever else the step did.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from crashmq.models.appended import Appended
from crashmq.models.history import ReadSpan, Step
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.knowledge.matching import fitting_records, is_indexed
from crashmq.models.knowledge.moments import (
    At,
    FilteredPullBounded,
    LookBeside,
    Moment,
    PullBeside,
    PullSeenBefore,
    QueryBeside,
    SearchBeside,
)
from crashmq.models.knowledge.reads_beside import LogBetween, QueueBetween, bounds
from crashmq.models.knowledge.reference import QueueKey, ReferenceModel
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import (
    FilteredPull,
    Looked,
    Pulled,
    Queried,
    Searched,
)
from crashmq.models.ops import (
    LookMessage,
    PullFiltered,
    PullMessage,
    QueryMessage,
    SearchOffset,
)

_ANYWHERE = 1 << 62
_CLEANER = "clean_commit_log"


def walk_beside(
    at: At, spans: Sequence[ReadSpan], rivals: Sequence[MessageToPut]
) -> Iterator[Moment]:
    """Walk the reads of one run of the store that overlapped other ops.

    ``rivals`` are the puts of that run which got no answer.
    """
    known = at.known
    if known.is_degraded:
        return
    yield from seen_before(at, spans)
    unanswered = [*known.model.in_flight, *rivals]
    for span in spans:
        log = _log_between(at, span)
        match span.read, span.answer:
            case PullMessage() as pull, Pulled() as pulled:
                key = (pull.topic, pull.queue_id)
                queues = _queues_between(at, key, log, unanswered)
                yield PullBeside(*at, pull, pulled, queues)
            case PullFiltered() as narrowed, FilteredPull(filtered):
                key = (narrowed.topic, narrowed.queue_id)
                queues = _queues_between(at, key, log, unanswered)
                yield FilteredPullBounded(*at, narrowed, filtered, queues)
            case LookMessage() as look_up, Looked() as looked:
                yield LookBeside(*at, look_up, looked, log, known.model, unanswered)
            case SearchOffset() as search, Searched() as searched:
                yield _search_beside(at, search, searched, log, unanswered)
            case QueryMessage() as query, Queried() as queried:
                yield _query_beside(at, query, queried, log, unanswered)


def bounded_alone(at: At, pull: PullFiltered, pulled: Pulled) -> FilteredPullBounded:
    """A filtered pull that ran alone: the bounds at its begin and its end are equal."""
    now = at.now
    span = ReadSpan(pull, FilteredPull(pulled, "", "TAG"), 0, 0, now, now)
    key, rivals = (pull.topic, pull.queue_id), at.known.model.in_flight
    queues = _queues_between(at, key, _log_between(at, span), rivals)
    return FilteredPullBounded(*at, pull, pulled, queues)


def _log_between(at: At, span: ReadSpan) -> LogBetween:
    step, before, after = at.step, span.before, span.after
    is_up = after.max_phy_offset >= 0
    first, last = max(0, before.min_phy_offset), max(0, after.min_phy_offset)
    if _CLEANER in step.services:
        # Queues pass over a file before it goes.
        last = last + at.known.setup.log_file_size if is_up else _ANYWHERE
        now = at.now.min_phy_offset
        if is_up and now >= 0 and not (step.fails_calls or step.is_stopping):
            last = min(last, max(now, after.min_phy_offset))
    least, most = before.committed_where, after.committed_where
    confirmed = after.confirm_offset if after.confirm_offset >= 0 else most
    return LogBetween(
        (first, max(first, last)),
        (least, most if is_up else _ANYWHERE),
        (before.reput_from_offset, after.reput_from_offset if is_up else _ANYWHERE),
        confirmed if is_up else _ANYWHERE,
    )


def _queues_between(
    at: At, key: QueueKey, log: LogBetween, rivals: Sequence[MessageToPut]
) -> list[QueueBetween]:
    """The possible bounds of a queue during a read; the read saw one of them."""
    model, step = at.known.model, at.step
    listed = [one for one in rivals if key in _queues_of(one)]
    memory_from = _memory_from(at, log)
    if not _stays(step, model, key):
        met = [_part_of(part, log, listed, memory_from) for part in _counts(model, key)]
        nothing = QueueBetween([], (0, 0), (0, len(listed)), 0, memory_from, listed)
        return [*met, nothing]
    queue = model.queues.get(key, [])
    built = model.built.get(key, 0)
    first = bisect_left(queue, built, key=_queue_offset)
    sure, possible = _dispatched(queue, log, first)
    least = bounds(queue, built, log.begins[0], sure)
    most = bounds(queue, built, log.begins[1], possible)
    return [
        QueueBetween(
            queue[:possible],
            (least[0], max(least[0], most[0])),
            (least[1], max(least[1], most[1]) + len(listed)),
            log.begins[1],
            memory_from,
            listed,
        )
    ]


def _dispatched(
    queue: Sequence[Appended], log: LogBetween, first: int
) -> tuple[int, int]:
    """The lowest and highest possible index up to which a queue was dispatched."""
    sure = first
    while sure < len(queue) and log.was_dispatched(queue[sure]):
        sure += 1
    possible = sure
    while possible < len(queue) and log.may_be_dispatched(queue[possible]):
        possible += 1
    return sure, possible


def _counts(model: ReferenceModel, key: QueueKey) -> list[list[Appended]]:
    """All messages ever put to a queue, split where its offsets began again at 0."""
    parts: list[list[Appended]] = []
    for message in model.messages:
        listed = _listed_in(message, key)
        if listed is None:
            continue
        if not parts or listed.queue_offset <= parts[-1][-1].queue_offset:
            parts.append([])
        parts[-1].append(listed)
    return parts


def _listed_in(appended: Appended, key: QueueKey) -> Appended | None:
    """A message as a (light) queue lists it; None if the queue does not."""
    message = appended.message
    if (message.topic, message.queue_id) == key:
        return appended if message.has_place else None
    if not appended.light_offsets or key not in _queues_of(message):
        return None
    offsets = dict(
        zip(message.light_queues, appended.light_offsets.split(","), strict=True)
    )
    return appended.in_light_queue(int(offsets[key[0]]))


def _part_of(
    queue: Sequence[Appended],
    log: LogBetween,
    rivals: Sequence[MessageToPut],
    memory_from: tuple[int, int],
) -> QueueBetween:
    """The bounds of a queue that a deletion ends or begins during a read.

    Before the deletion it shows all that was dispatched; after it, any part.
    """
    sure, possible = _dispatched(queue, log, 0)
    low, least = bounds(queue, 0, log.begins[0], sure or possible)
    last, most = bounds(queue, 0, log.begins[1], possible)
    return QueueBetween(
        queue[:possible],
        (low, max(low, last)),
        (least if sure else min(low + 1, most), max(least, most) + len(rivals)),
        log.begins[1],
        memory_from,
        rivals,
        vanishes=True,
    )


def _memory_from(at: At, log: LogBetween) -> tuple[int, int]:
    size = at.known.setup.in_memory_size
    return log.ends[0] - size, log.ends[1] - size


def _stays(step: Step, model: ReferenceModel, key: QueueKey) -> bool:
    """Whether no deletion of the queue overlapped the step or is still unsettled."""
    return not (
        model.is_unsettled(key) or any(op.topic == key[0] for op, _ in step.deletions)
    )


def _queues_of(message: MessageToPut) -> list[QueueKey]:
    light = [(name, 0) for name in message.light_queues]
    return [(message.topic, message.queue_id), *light]


def _search_beside(
    at: At,
    search: SearchOffset,
    searched: Searched,
    log: LogBetween,
    rivals: Sequence[MessageToPut],
) -> SearchBeside:
    key = (search.topic, search.queue_id)
    record_at = at.look.image().commit_log.record_at
    queues = _queues_between(at, key, log, rivals)

    def stored_at(message: Appended) -> int:
        record = record_at.get(message.phy_offset)
        return -1 if record is None else record.store_timestamp

    times = [{m.queue_offset: stored_at(m) for m in q.messages} for q in queues]
    model = at.known.model
    first = bisect_left(model.messages, log.begins[0], key=_begin_of)
    firsts: list[int] = []
    for message in model.messages[first:]:
        if message.end > log.ends[1]:
            break
        firsts.append(stored_at(message))
        if message.phy_offset >= log.begins[1]:
            break
    may_lack = first == len(model.messages) or model.messages[first].end > log.ends[0]
    if may_lack:
        firsts.append(-1)
    met = [*zip(queues, times, strict=True)]
    return SearchBeside(*at, search, searched, met, firsts)


def _query_beside(
    at: At,
    query: QueryMessage,
    queried: Queried,
    log: LogBetween,
    rivals: Sequence[MessageToPut],
) -> QueryBeside:
    known, image = at.known, at.look.image().commit_log
    times = (at.look.epoch_ms + query.begin_ms, at.look.epoch_ms + query.end_ms)
    fitting = fitting_records(image, image.records, query, times)
    sure = [
        record.phy_offset
        for record in fitting
        if record.phy_offset >= log.begins[1]
        and is_indexed(record, query.key, known.model, log.dispatched[0])
    ]
    return QueryBeside(*at, query, queried, sure, times, known.model, log, rivals)


def seen_again(at: At, pull: PullMessage, pulled: Pulled) -> Iterator[Moment]:
    """Walk a pull that ran alone, with what earlier answers showed."""
    key, seen = (pull.topic, pull.queue_id), at.known.debts.seen
    if at.known.doubts(key):
        seen.forget(key)
        return
    if key in seen.bounds:
        yield PullSeenBefore(*at, pull, pulled, seen.bounds[key])
    seen.saw(key, pulled.min_offset, pulled.max_offset)


def seen_before(at: At, spans: Sequence[ReadSpan]) -> Iterator[Moment]:
    """Walk overlapping pulls, each with what earlier answers showed of its queue.

    An answer is earlier if it came before the pull began, even to another caller.
    """
    step, known = at.step, at.known
    shown: dict[QueueKey, list[tuple[int, int, int]]] = {}
    for span in spans:
        if not (isinstance(span.read, PullMessage) and isinstance(span.answer, Pulled)):
            continue
        pull, pulled = span.read, span.answer
        key = (pull.topic, pull.queue_id)
        if known.doubts(key) or not _stays(step, known.model, key):
            known.debts.seen.forget(key)
            continue
        low, high = known.debts.seen.bounds.get(key, (0, 0))
        for answered, its_low, its_high in shown.get(key, ()):
            if answered < span.asked:
                low, high = max(low, its_low), max(high, its_high)
        if high or low:
            yield PullSeenBefore(*at, pull, pulled, (low, high))
        told = (span.answered, pulled.min_offset, pulled.max_offset)
        shown.setdefault(key, []).append(told)
    for key, answers in shown.items():
        for _, low, high in answers:
            known.debts.seen.saw(key, low, high)


def forget_seen(step: Step, known: Knowledge) -> None:
    """Forget bounds that answers have shown and that need not hold from now on."""
    if step.crash is not None or step.starts or step.is_stopping:
        known.debts.seen.bounds.clear()
        return
    for op, _ in step.deletions:
        for key in [key for key in known.debts.seen.bounds if key[0] == op.topic]:
            known.debts.seen.forget(key)
    if step.fails_calls:
        # Queues count what a file had that did not go after all.
        known.debts.seen.forget_lows()


def _queue_offset(appended: Appended) -> int:
    return appended.queue_offset


def _begin_of(appended: Appended) -> int:
    return appended.phy_offset
