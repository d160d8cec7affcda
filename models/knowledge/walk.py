"""The walk: it updates ``Knowledge`` for one step and yields the moments to judge.

Only this changes ``Knowledge`` (with its helpers in the ``walk_`` modules). A step is
walked run by run of the store. Within a run the order is that in which effects build on
each other, and differs from the order of events in two points: puts that ran together
are taken by their places in the log, and reads are judged once all writes of the run
are known.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from crashmq.models.files.deleted import ALL_QUEUES
from crashmq.models.files.store_image import StoreImage
from crashmq.models.history import Deletion, Life, Step
from crashmq.models.knowledge.expiry import CLEANERS
from crashmq.models.knowledge.knowledge import (
    CONFIG,
    EVERYWHERE,
    LOG,
    QUEUES,
    End,
    Knowledge,
)
from crashmq.models.knowledge.moments import (
    AfterFailedFlush,
    At,
    CheckedReads,
    CleanerOver,
    DelaysFound,
    DeletionOver,
    DeletionRefused,
    FilesAtRest,
    FilesFound,
    LogShortened,
    MediumSeen,
    Moment,
    OpOver,
    PositionsSeen,
    PutOver,
    PutsOrdered,
    PutsOver,
    RoundDue,
    RoundOver,
    StepOver,
    StopOver,
    TopicGone,
    TopicsGone,
)
from crashmq.models.knowledge.moments_of_pulls import DispatchSeen
from crashmq.models.knowledge.progress import Recovered
from crashmq.models.knowledge.reference import QueueKey, ReferenceModel
from crashmq.models.knowledge.walk_delays import (
    saw_what_else,
    walk_delivery,
    walk_loaded,
    walk_rounds,
    walk_stop,
)
from crashmq.models.knowledge.walk_filters import walk_filters
from crashmq.models.knowledge.walk_progress import (
    bound_by_deletions,
    walk_progress,
    walk_recovered,
)
from crashmq.models.knowledge.walk_pulls import walk_pulls
from crashmq.models.knowledge.walk_reads import walk_reads, walk_reads_of
from crashmq.models.knowledge.walk_rounds import (
    saw_replicas,
    walk_asked,
    walk_hindered,
    walk_index_files,
    walk_told,
    walk_turned,
)
from crashmq.models.knowledge.walk_start import walk_start
from crashmq.models.messages import FILLER_SIZE_MIN, MessageToPut
from crashmq.models.observations import (
    Deleted,
    Put,
    Ran,
    Refused,
    Skipped,
    Started,
    Stopped,
    TopicsCleaned,
)
from crashmq.models.ops import (
    CleanTopics,
    Consume,
    DeleteTopic,
    Event,
    RunService,
    TurnConsumer,
)
from crashmq.models.program import Setup

_ANYWHERE = 1 << 62
NOT_THERE = -1
"""Where the records of a topic die that was not there to be deleted."""
InFlight: TypeAlias = list[MessageToPut]
EndedDeletions: TypeAlias = list[tuple[QueueKey, int]]


def walk(at: At) -> Iterator[Moment]:
    """Update what is known by each event of a step; yields moments for the judge."""
    yield from _walk_step(at)
    at.known.saw_changes(at.step.changes)


def _walk_step(at: At) -> Iterator[Moment]:
    """Walk all but changes of options."""
    step, known = at.step, at.known
    had_failed, stood = known.disk_failed or step.fails_calls, known.positions
    lacked_abort = known.tampering.abort_taken
    if step.raised or step.starts:
        yield OpOver(*at)
    if step.reads and known.setup.checks_crc and not step.changes:
        yield CheckedReads(*at)
    if not step.is_alone:
        known.saw_faults(step, at.look.unsynced_from)
    if known.setup.duplicates:
        saw_replicas(at)
    if known.tampering.log_has_hidden_rot:
        known.progress.topics.is_doubtful = True
        known.progress.groups.forget()
        return
    recovered: Sequence[Recovered] = ()
    if known.setup.keeps_progress:
        known.progress.topics.may_be_asked_for(step)
        recovered = yield from walk_progress(at)
    if known.setup.filters:
        yield from walk_filters(at)
    if known.setup.delivers_delayed:
        saw_what_else(at)
    known.expiry.begin_step(step)
    yield from _walk_lives(at)
    if known.setup.keeps_progress:
        yield from walk_recovered(at, recovered)
        bound_by_deletions(at)
        yield from walk_pulls(at)
    if step.services and at.now.max_phy_offset >= 0:
        yield from walk_asked(at)
        if "reput" in step.services:
            yield DispatchSeen(*at)
    if step.turned or step.starts or step.has_put or step.raised:
        yield from walk_turned(at)
    elif step.crash is not None or at.now.max_phy_offset < 0:
        known.rounds.end_life()
    if step.met:
        yield from walk_hindered(at, stood)
    if step.disk_actions:
        yield from walk_told(at, had_failed=had_failed, lacked_abort=lacked_abort)
    if known.setup.has_index and (step.disk_actions or step.starts or step.crash):
        yield from walk_index_files(at)
    known.expiry.end_step(step)
    yield from walk_debts(at)
    has_changed = any(not isinstance(one.seen, Refused) for one in step.starts)
    if step.crash is not None or has_changed:
        known.tampering.undoable = []  # what a start has changed no copy fits any more
    if known.tampering.foreign:
        yield StepOver(*at)


def _walk_lives(at: At) -> Iterator[Moment]:
    step, known, look, now = at
    if step.is_quiet and now == known.positions:
        _see_nothing_begin_later(at)
        yield from walk_reads(at)
        return
    if step.batches or step.has_put:
        yield PutsOver(*at)
    in_flight = yield from _walk_run(at, step.runs[0])
    _see_changes(at, 0)
    known.saw_failures(step)
    if len(step.starts) > 1:
        known.end = End.UNKNOWN  # what ended before which of them
    found = [look.image_of(start.found) for start in step.starts]
    if found:
        yield from _found(at, 0, found)
    if step.starts and (step.fails_reads or known.checkpoint_is_torn):
        # It may have lowered its mark for what it missed, or a time that was torn.
        known.checkpoint = None
    if step.starts and step.crash is not None and known.checkpoint is not None:
        # It may have found none of the entries that the index's time stood for.
        known.checkpoint = known.checkpoint._replace(index_msg_timestamp=0)
    _see_cut_short(known, step)
    has_put_since = any(run.puts or run.deletions for run in step.runs[1:])
    if step.crash is None or has_put_since:
        in_flight = yield from _walk_starts(at, found, in_flight)
    else:
        for number in range(1, len(found)):
            yield from _found(at, number, found)
    if step.starts:
        _see_changes(at, len(step.starts))
    if step.crash is not None:
        known.crashed(step, in_flight)
        return
    if step.starts and not step.is_alone:
        known.saw_faults(step, at.look.unsynced_from)  # it may have met that start too
        if known.promises.errors_come_late:
            known.failed_parts |= EVERYWHERE
    if step.begun is not None:
        yield from _walk_puts(at, step.begun)
        if step.begun.stops:
            yield from _walk_stops(at, step.begun.stops, known.model.end)
    if known.setup.delivers_delayed:
        yield from walk_rounds(at)
    yield from _walk_services(at)
    if now.max_phy_offset >= 0:
        yield from _walk_running(at)
    if step.begun is not None:
        yield from walk_reads_of(at, step.begun, ())
    yield from walk_reads(at)


def _found(at: At, number: int, found: Sequence[StoreImage]) -> Iterator[Moment]:
    """The moments of what a start of the step has found.

    Before a later one than the first, files may have been changed from outside again.
    """
    if number:
        _see_changes(at, number)
    yield FilesFound(*at, found[number])
    if at.known.setup.delivers_delayed:
        yield DelaysFound(*at, at.step.starts[number].found)


def _walk_run(at: At, run: Life) -> Generator[Moment, None, InFlight]:
    """Walk one run that is over; returns the puts without an answer."""
    end_before = at.known.model.end
    in_flight = yield from _walk_puts(at, run)
    yield from walk_reads_of(at, run, in_flight)
    if run.stops:
        yield from _walk_stops(at, run.stops, end_before)
    return in_flight


def _walk_starts(
    at: At, found: Sequence[StoreImage], in_flight: InFlight
) -> Generator[Moment, None, InFlight]:
    """Walk the starts, and the runs after them but for one that goes on.

    ``found`` are the files that they found, and ``in_flight`` the puts without an
    answer before the first; returns those of the newest run.
    """
    step, known = at.step, at.known
    runs = iter(step.runs[1:])
    for number, (start, image) in enumerate(zip(step.starts, found, strict=True)):
        if number:
            known.end = End.UNKNOWN
            yield from _found(at, number, found)
        known.saw_changes([one for one in step.changes if one[0] <= number])
        yield from walk_start(at, start, image)
        if known.setup.delivers_delayed:
            yield from walk_loaded(at, start, number)
        run = next(runs) if isinstance(start.seen, Started) else None
        if run is not None and run is not step.begun:
            in_flight = yield from _walk_run(at, run)
            _see_cut_short(known, step)
    return in_flight


def _see_changes(at: At, starts: int) -> None:
    """Note what was changed from outside after so many starts of the step."""
    step, known, look, _ = at
    if (step.damaged or step.planted) and starts in step.changed_after:
        known.tampering.saw(
            step,
            look.all_files(),
            has_index=known.setup.has_index,
            ended_in_order=known.end is End.ORDERLY,
        )


def _walk_puts(at: At, life: Life) -> Generator[Moment, None, InFlight]:
    """Walk the puts and deletions of one run; returns the puts without an answer."""
    step, known = at.step, at.known
    if not (life.puts or life.deletions):
        return []
    deletions = yield from _walk_deletions(at, life.deletions)
    model = known.model
    in_flight: InFlight = []
    before = frozenset(model.put_by_topic)
    answered: list[tuple[MessageToPut, Put]] = []
    for message, answer in life.puts:
        if answer is None or answer.status == "UNKNOWN_ERROR":
            in_flight.append(message)
        else:
            answered.append((message, answer))
    answered.sort(key=lambda pair: pair[1].phy_offset)
    deletions.sort(key=lambda ended: ended[1])
    is_orderly = step.is_together and not in_flight and not step.fails_calls
    stood = known.positions
    place = stood.max_phy_offset if stood is not None and is_orderly else -1
    for message, answer in answered:
        while deletions and deletions[0][1] <= answer.phy_offset:
            model.delete(*deletions.pop(0))
        if place >= 0 and (message.batch is None or message.batch.number == 0):
            place = max(place, model.end)
        counts = message.has_place and answer.phy_offset >= 0
        is_first = counts and answer.queue_offset == 0
        if is_first and _may_be_emptied(step, (message.topic, message.queue_id)):
            model.empty((message.topic, message.queue_id), answer.phy_offset)
        yield _put_over(at, message, answer, place, in_flight)
        if message.is_delivered:
            yield from walk_delivery(at, message, answer)
        if answer.phy_offset >= 0:
            timed = _timed(at, before, message, answer)
            rivals = _rivals_of(message, in_flight) if _may_be_put_unanswered(at) else 0
            earliest_ms = known.expiry.now_ms - step.set_back_ms
            model.put(message, timed, earliest_ms, rivals)
    if step.is_together and life.puts:
        spans = [
            (answer, span)
            for (_, answer), span in zip(life.puts, life.spans, strict=True)
            if answer is not None
        ]
        yield PutsOrdered(*at, spans)
    for key, dead_below in deletions:
        model.delete(key, dead_below)
    if step.crash is None or life is not step.runs[-1]:
        model.in_flight += in_flight
    return in_flight


def _may_be_put_unanswered(at: At) -> bool:
    """Whether a put without an answer may have its place in the log before others.

    A crash came over it, or its broker failed to write its topics once it was put.
    """
    fails_behind = at.known.setup.keeps_progress and at.step.fails_calls
    return at.step.crash is not None or fails_behind


def _rivals_of(message: MessageToPut, in_flight: InFlight) -> int:
    """How many of the unanswered puts name a light queue of the message."""
    lights = {*message.light_queues}
    return sum(not lights.isdisjoint(one.light_queues) for one in in_flight)


def _timed(at: At, before: frozenset[str], message: MessageToPut, answer: Put) -> Put:
    """The answer, without its duration if the broker may have written topics in it.

    A broker writes its topics before it asks the store, and the store's statistics
    count only its own time. It writes a new topic, and all of them again after a write
    that failed. ``before``: the topics of puts before the step. If several puts name a
    new topic at once, each may have created it, or waited for the one that did.

    Source: AbstractSendMessageProcessor#msgCheck, DefaultMessageStore#asyncPutMessage.
    """
    step, known = at.step, at.known
    setup, topic, model = known.setup, message.destination[0], known.model
    if not (setup.keeps_progress or setup.delivers_delayed):
        return answer
    is_known = topic in before and (topic, ALL_QUEUES) not in model.deleted
    works = known.works(CONFIG, amid=step) and known.expiry.had_room(step.world)
    is_timed = is_known and works
    return answer if is_timed else replace(answer, took_ms=-1)


def _put_over(
    at: At, message: MessageToPut, answer: Put, end_among_others: int, rivals: InFlight
) -> PutOver:
    """The moment of a put's answer, with what must be true of it.

    ``end_among_others`` is the log's end before it if only other puts overlapped; else
    -1.
    """
    step, known = at.step, at.known
    model, setup, stood = known.model, known.setup, known.positions
    key = (message.topic, message.queue_id)
    next_offset = model.next_queue_offset(key) if message.has_place else 0
    unseen = 0
    if _may_be_put_unanswered(at):
        unseen = sum(key in _queues_of(rival) for rival in rivals)
    if message.has_place and answer.phy_offset >= 0:
        unseen += model.trusted.pop(key, 0)
    size = model.record_size(message)
    place = -1
    if stood is not None and step.is_alone:
        # A round may deliver several, and a consumer give several back.
        gives_back = isinstance(step.op, Consume | TurnConsumer)
        is_one_of_several = message.is_delivered or gives_back
        behind = model.end if is_one_of_several else 0
        is_after_others = is_one_of_several and len(step.puts) > 1
        if answer.phy_offset >= 0 or not is_after_others:  # else behind some of them
            place = _place_of(message, size, max(stood.max_phy_offset, behind), setup)
    elif end_among_others >= 0 and answer.phy_offset >= 0:
        place = _place_of(message, size, end_among_others, setup)
    begins_a_file = place < 0 or place % setup.log_file_size == 0
    is_behind = stood is not None and place == stood.max_phy_offset
    lacks_room = known.expiry.is_tight(step.world) and (begins_a_file or not is_behind)
    may_refuse = known.may_refuse_puts(step) or lacks_room
    return PutOver(
        *at,
        message,
        answer,
        place,
        next_offset,
        unseen,
        size,
        may_refuse,
    )


def _place_of(message: MessageToPut, record_size: int, end: int, setup: Setup) -> int:
    """The phy_offset that the record of the next put must get."""
    batch = message.batch
    before, total = (batch.before, batch.total) if batch else (0, record_size)
    left = setup.log_file_size - end % setup.log_file_size
    return before + (end if total + FILLER_SIZE_MIN <= left else end + left)


def _queues_of(message: MessageToPut) -> list[QueueKey]:
    """The queue and the light queues that list a message."""
    light = [(name, 0) for name in message.light_queues]
    return [(message.topic, message.queue_id), *light]


def _may_be_emptied(step: Step, key: QueueKey) -> bool:
    """Whether a deletion in the step emptied a queue, at an unknown place in the log.

    It is unknown for a deletion without an answer, and for several of one topic, which
    all answer the last place. Then a put that gets queue_offset 0 shows it.
    """
    deletions = [(op, seen) for op, seen in step.deletions if op.topic == key[0]]
    return any(
        op.queue_id in (ALL_QUEUES, key[1]) and (seen is None or len(deletions) > 1)
        for op, seen in deletions
    )


def _walk_deletions(
    at: At, deletions: Sequence[Deletion]
) -> Generator[Moment, None, EndedDeletions]:
    """Walk the deletions of one run; returns those that ended.

    The caller records them in the model once it knows which puts came before.
    """
    if not deletions:
        return []
    step, known, _, now = at
    model, stood = known.model, known.positions
    lowest = stood.max_phy_offset if stood is not None else 0
    is_up = step.crash is None and now.max_phy_offset >= 0
    highest = now.max_phy_offset if is_up else _ANYWHERE
    ended: EndedDeletions = []
    for op, seen in deletions:
        key = (op.topic, op.queue_id)
        if seen is None:
            model.may_have_deleted(key, lowest, max(lowest, highest))
        keeps = known.setup.keeps_progress and known.progress.topics.is_kept(op.topic)
        if isinstance(seen, Skipped) and not keeps:
            yield DeletionRefused(*at, seen.reason)
        if isinstance(seen, Deleted):
            is_sure = step.is_alone and not model.is_unsettled(key)
            had_messages = is_sure and _has_messages(model, key)
            yield DeletionOver(*at, seen.dead_below, lowest, highest, had_messages)
            if seen.dead_below >= 0:
                ended.append((key, seen.dead_below))
    return ended


def _has_messages(model: ReferenceModel, key: QueueKey) -> bool:
    topic, queue_id = key
    return any(
        known[0] == topic and queue_id in (ALL_QUEUES, known[1])
        for known in model.queues
    )


def _walk_stops(at: At, stops: Sequence[Stopped], end: int) -> Iterator[Moment]:
    """Walk the stops of one run; ``end``: where the log ended before them."""
    step, known = at.step, at.known
    for stop in stops:
        yield StopOver(*at, stop)
        if known.setup.delivers_delayed:
            yield from walk_stop(at)
        known.model.stopped(end, clean=stop.clean)
        known.end = End.ABORT_STAYS
        if stop.clean:
            taken = known.tampering.abort_taken
            known.end = End.UNKNOWN if taken else End.ORDERLY
        elif known.disk_failed or step.fails_calls:
            known.end = End.UNKNOWN
            known.failed_parts |= step.failed_parts  # a write may be there in part
    is_at_rest = not (step.damaged or step.planted)
    if is_at_rest and not step.starts and step.crash is None:
        yield FilesAtRest(*at, at.look.image(), known.model.reput_from_offset)
    known.positions = None


def _see_cut_short(known: Knowledge, step: Step) -> None:
    """Note that a crash, an error or a stop may have interrupted a cleaner.

    Then it is unknown how much it deleted.
    """
    is_whole = step.crash is None and not (step.starts or step.raised)
    if is_whole and not step.is_stopping:
        return
    if "clean_commit_log" in step.services and known.setup.cleans:
        model = known.model
        model.may_expire = max(model.may_expire, known.expirable_in(step))


def _walk_services(at: At) -> Iterator[Moment]:
    """Walk the work of services, and what is on the medium after it."""
    step, known, look, now = at
    op, seen = step.op, step.seen
    is_round = isinstance(op, RunService) and isinstance(seen, Ran)
    if isinstance(op, RunService) and isinstance(seen, Ran):
        yield RoundOver(*at, op.service, seen.work)
    if known.tampering.abort_taken:
        return  # such a start believes what it found, synced or not
    if now.max_phy_offset < 0 or not known.promises.keeps_what_is_synced:
        return
    yield MediumSeen(*at)
    is_checkpoint = isinstance(op, RunService) and op.service == "checkpoint"
    if is_round and is_checkpoint and not known.promises.reverts:
        # Its times stay, for they tell of records that a power loss may take from the
        # log, and a start lowers them.
        mark = look.image().checkpoint.mark
        known.checkpoint = known.checkpoint and known.checkpoint._replace(mark=mark)
        known.checkpoint_is_torn = False


def _walk_running(at: At) -> Iterator[Moment]:
    """Walk what has changed in a store that is up after the step."""
    step, known, look, now = at
    op, seen, model = step.op, step.seen, known.model
    if isinstance(op, RunService) and op.service == "reput":
        if isinstance(seen, Ran):
            settled = not model.may_be_deleted
            yield FilesAtRest(*at, look.image(), now.reput_from_offset, settled)
    elif isinstance(seen, Deleted | TopicsCleaned):
        yield FilesAtRest(*at, look.image(), now.reput_from_offset)
        yield from _topics_gone(at, op, seen)
    if not step.starts and now.min_phy_offset > model.log_min:
        yield LogShortened(*at)
    _see_nothing_begin_later(at)
    cleans = isinstance(op, RunService) and op.service in CLEANERS
    if known.setup.cleans and cleans and isinstance(seen, Ran):
        assert isinstance(op, RunService)
        yield CleanerOver(*at, op.service, seen.work)
    yield PositionsSeen(*at)
    model.saw_positions(now)
    known.positions = now


def _topics_gone(
    at: At, op: Event, seen: Deleted | TopicsCleaned
) -> Iterator[TopicGone | TopicsGone]:
    if isinstance(op, CleanTopics) and isinstance(seen, TopicsCleaned):
        yield TopicsGone(*at, op, seen)
        for topic, _ in seen.rows:
            yield TopicGone(*at, topic, ALL_QUEUES)
    elif isinstance(op, DeleteTopic) and seen != Deleted(NOT_THERE):
        yield TopicGone(*at, op.topic, op.queue_id)


def _see_nothing_begin_later(at: At) -> None:
    """Note that the log does not begin after the store's min_phy_offset."""
    if at.known.setup.cleans and at.step.is_alone and at.known.works(LOG):
        at.known.model.min_certain = max(0, at.now.min_phy_offset)


def walk_debts(at: At) -> Iterator[Moment]:
    """Walk what had to be synced by now, and note what waits from now on."""
    step, known, _, now = at
    debts = known.debts
    if debts.failed:
        yield AfterFailedFlush(*at, debts.failed)
    life_ended = step.crash is not None or now.max_phy_offset < 0
    debts.saw_failures(step, life_ended=life_ended)
    promises = known.promises
    is_kept = promises.keeps_what_is_synced and not promises.reverts
    worked = known.works((*LOG, *QUEUES))
    if not worked or not is_kept or life_ended or step.sets_back:
        debts.forgive()
        return
    op, waits = step.op, None
    if isinstance(op, RunService) and isinstance(step.seen, Ran):
        waits = debts.due(op.service, step.world.now_ms)
        if waits is not None:
            yield RoundDue(*at, op.service, waits)
    flushed = isinstance(op, RunService) and op.service == "flush_consume_queue"
    debts.saw_positions(now, queues_flushed=flushed and waits is not None)
