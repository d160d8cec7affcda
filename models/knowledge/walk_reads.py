"""The walk through the reads of a step: pulls, queries, lookups and searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from crashmq.models.appended import Appended
from crashmq.models.history import Life
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.knowledge.matching import fitting_records, is_indexed
from crashmq.models.knowledge.moments import (
    At,
    FilteredPullOver,
    FilterMissed,
    LookOver,
    Moment,
    PullAround,
    PullOver,
    PutAround,
    QueryAround,
    QueryOver,
    SearchAround,
    SearchOver,
)
from crashmq.models.knowledge.walk_beside import bounded_alone, forget_seen, walk_beside
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


def walk_reads_of(
    at: At, life: Life, rivals: Sequence[MessageToPut]
) -> Iterator[Moment]:
    """Walk the reads of one run of the store that overlapped other ops.

    ``rivals`` are the puts of that run which got no answer.
    """
    if life.reads:
        yield from walk_beside(at, life.reads, rivals)
    if at.step.crash is not None:
        forget_seen(at.step, at.known)


def walk_reads(at: At) -> Iterator[Moment]:
    """Walk the reads of a step; they change only the bounds shown to readers."""
    step, known = at.step, at.known
    forget_seen(step, known)
    if known.is_degraded:
        yield from _around(at)
        return
    if not step.reads:
        return
    model = known.model
    for read, answer in step.reads:
        if isinstance(read, PullMessage) and isinstance(answer, Pulled):
            key = (read.topic, read.queue_id)
            yield PullOver(*at, read, answer, behind_gaps(model.queues.get(key, [])))
            if step.is_alone:
                known.debts.seen.saw(key, answer.min_offset, answer.max_offset)
        elif isinstance(read, PullFiltered):
            possible = known.progress.filters.now.get((read.group, read.topic))
            if isinstance(answer, FilteredPull):
                queue = behind_gaps(model.queues.get((read.topic, read.queue_id), []))
                yield FilteredPullOver(*at, read, answer, queue, possible)
                if step.is_alone:
                    yield bounded_alone(at, read, answer.pulled)
            else:
                yield FilterMissed(*at, read, possible)
    for read, answer in step.reads:
        if isinstance(read, QueryMessage) and isinstance(answer, Queried):
            yield QueryOver(*at, read, answer)
    for read, answer in step.reads:
        if isinstance(read, LookMessage) and isinstance(answer, Looked):
            yield LookOver(*at, read, answer, _in_files(known))
    for read, answer in step.reads:
        if isinstance(read, SearchOffset) and isinstance(answer, Searched):
            yield _search_over(at, read, answer)


def _in_files(known: Knowledge) -> list[Appended]:
    """The messages of the log that no write buffer keeps from readers."""
    messages, stands = known.model.live_messages(known.model.log_min), known.positions
    if stands is None or not known.setup.transient_store_pool:
        return messages
    return [one for one in messages if one.end <= stands.committed_where]


def _search_over(at: At, search: SearchOffset, searched: Searched) -> SearchOver:
    key = (search.topic, search.queue_id)
    records = at.look.image().commit_log.indexed_records.get(key, [])
    visible = at.known.model.visible(key)
    times = [r.store_timestamp for r in records[: len(visible.messages)]]
    return SearchOver(*at, search, searched, visible.min_offset, times)


def behind_gaps(queue: list[Appended]) -> list[Appended]:
    """The last messages of a queue, without a gap between their queue_offsets.

    There is a gap where damage took expired messages, and the queue's next offset
    followed from the size of its last file.
    """
    if not queue or queue[-1].queue_offset - queue[0].queue_offset == len(queue) - 1:
        return queue
    begins = [n for n, (a, b) in enumerate(pairwise(queue), 1) if not _follows(a, b)]
    return queue[begins[-1] :]


def _follows(before: Appended, after: Appended) -> bool:
    return after.queue_offset == before.queue_offset + 1


def _around(at: At) -> Iterator[Moment]:
    """Walk the reads and puts of a store with on_damage=serve."""
    step, known, look, _ = at
    model = known.model
    for read, answer in step.reads:
        if isinstance(read, PullMessage) and isinstance(answer, Pulled):
            yield PullAround(*at, read, answer)
    if step.starts:
        return
    for _, put in step.puts:
        if put is not None:
            yield PutAround(*at, put)
    for read, answer in step.reads:
        if isinstance(read, LookMessage) and isinstance(answer, Looked):
            yield LookOver(*at, read, answer, _in_files(known))
    if not any(isinstance(r, SearchOffset | QueryMessage) for r, _ in step.reads):
        return
    log = look.image().commit_log
    whole = {
        record.phy_offset: record
        for record in (*log.records, *log.records_beyond)
        if record.phy_offset >= model.log_min
    }
    messages = model.live_messages(model.log_min)
    records = [whole[m.phy_offset] for m in messages if m.phy_offset in whole]
    earliest = records[0].store_timestamp if records else -1
    for read, answer in step.reads:
        if isinstance(read, SearchOffset) and isinstance(answer, Searched):
            queue = model.queues.get((read.topic, read.queue_id), [])
            times = {
                m.queue_offset: whole[m.phy_offset].store_timestamp
                for m in queue
                if m.phy_offset in whole
            }
            ready = [
                m.queue_offset
                for m in queue
                if m.queue_offset in times and m.end <= model.reput_from_offset
            ]
            yield SearchAround(*at, read, answer, times, ready, earliest)
    reput = model.reput_from_offset
    for read, answer in step.reads:
        if isinstance(read, QueryMessage) and isinstance(answer, Queried):
            bounds = (look.epoch_ms + read.begin_ms, look.epoch_ms + read.end_ms)
            fitting = fitting_records(log, records, read, bounds)
            indexed = [r for r in fitting if is_indexed(r, read.key, model, reput)]
            yield QueryAround(*at, read, answer, indexed)
