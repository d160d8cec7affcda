"""The walk through what consumers do: assignments, pulls, consumption, commits."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.record import (
    RETRY_PREFIX,
    BadRecord,
    Record,
    decode_record,
)
from crashmq.models.history import (
    Consumed,
    ConsumerBegan,
    ConsumerEnded,
    ExpiredCleaned,
    Happening,
    ListenerReturned,
    LocksAnswered,
    LocksReturned,
    OffsetRead,
    OffsetSent,
    OneQueue,
    PullReceived,
    PullSent,
    QueuesHeld,
    ResetTold,
    Resubscribed,
    SendAnswered,
    SendBackRefused,
    SentBack,
)
from crashmq.models.knowledge.beginnings import (
    NOT_KNOWN,
    taken_at,
    where_it_must_go,
    where_moved,
)
from crashmq.models.knowledge.consumption import (
    NOTHING_TOLD,
    AnsweredPull,
    Share,
    Taken,
)
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.knowledge.moments import At, Moment, OffsetAnswered, QueueBegun
from crashmq.models.knowledge.moments_of_consumers import (
    ConsumerAnswered,
    ConsumerCommitted,
    ConsumerIdle,
    ConsumerStopped,
    ElsewhereNeeded,
    GroupIsAt,
    LockingConsumerStopped,
    LockNeeded,
    MessageConsumed,
    MessagesPulled,
    PullGoesOn,
    PullMoved,
    QueueBegunAnew,
    QueueGivenBack,
    ResetObeyed,
)
from crashmq.models.knowledge.names import key_in, name_of
from crashmq.models.knowledge.progress import NO_OFFSET
from crashmq.models.knowledge.subscriptions import (
    EVERYTHING,
    Asked,
    Passing,
    wants_record,
)
from crashmq.models.knowledge.walk_expired import (
    begins_beside,
    is_to_end,
    saw_failed,
    saw_given,
    walk_expired,
)
from crashmq.models.knowledge.walk_locks import (
    granted_beside,
    saw_locks,
    saw_returned,
)
from crashmq.models.knowledge.walk_members import OF_MEMBERS, walk_members
from crashmq.models.knowledge.walk_sent import walk_sent
from crashmq.models.knowledge.walk_tasks import stops_amid_its_listeners, walk_change

_NO_OFFSET = frozenset({NO_OFFSET})
_NO_MESSAGE: frozenset[str] = frozenset()
MOVED = "PULL_OFFSET_MOVED"
"""The answer to a pull that has to begin elsewhere."""
READ = ("SUCCESS", "PULL_NOT_FOUND", "PULL_RETRY_IMMEDIATELY")
"""The answers to a pull for which the broker has read the queue."""


_OF_THEIRS = frozenset(
    {
        *(ConsumerBegan, ConsumerEnded, Resubscribed, QueuesHeld),
        *(LocksAnswered, LocksReturned, OffsetRead, PullSent, PullReceived),
        *(Consumed, SentBack, SendBackRefused, SendAnswered, OffsetSent),
        *(ListenerReturned, ExpiredCleaned, ResetTold),
    }
)
OF_CONSUMERS = _OF_THEIRS | OF_MEMBERS
"""The kinds of events of which anything comes to be known here."""


def walk_consumers(at: At, event: Happening, at_ms: int) -> Iterator[Moment]:
    """Update what is known by a consumer's events; yield moments for the judge."""
    known = at.known.consumption
    if type(event) in OF_MEMBERS:
        yield from walk_members(at, event, at_ms)
    match event:
        case ConsumerBegan(op):
            known.began(op)
            at.known.progress.due.began(op.client, at_ms if at.step.is_alone else None)
        case ConsumerEnded(client, how, work):
            if how == "stop":
                yield from _gives_back(at, client, ())
                yield from _stopped(at, client, at_ms, work)
            if not at.step.is_alone:
                known.may_have_written(client)
            known.ended(client, how)
        case Resubscribed(op, is_done):
            known.resubscribed(op, is_done=is_done)
        case QueuesHeld(client, queues):
            yield from _gives_back(at, client, queues)
            yield from walk_change(at, client, queues)
            known.holds(client, queues, granted_beside(at, client))
        case LocksAnswered():
            yield from saw_locks(at, event, at_ms)
        case LocksReturned(client, group, queues):
            for topic, queue_id in queues:
                queue = OneQueue(client, group, topic, queue_id)
                yield from _hands_over(at, queue, at_ms)
            saw_returned(at, event)
        case OffsetRead(queue, offset, kept):
            if not (queue in known.shares and known.shares[queue].was_moved):
                yield from _needs_lock(at, queue)  # else to give it up
            known.shares.pop(queue, None)
            known.leaving.pop(queue, None)
            at.known.progress.due.told.pop(queue, None)
            known.taken[queue] = taken_at(at, queue, offset, kept)
            if kept == offset == 0:  # of a group without one: it has one from now on
                at.known.progress.set(known.key_of(queue), kept, is_certain=False)
        case PullSent(queue, queue_offset, commit_offset):
            yield from _needs_lock(at, queue)
            yield from _saw_pull(at, queue, queue_offset)
            if commit_offset >= 0:
                _saw_commit(at, queue, commit_offset)
        case PullReceived():
            yield from _saw_answer(at, event)
            if event.kept != NOT_KNOWN:
                yield from _saw_kept(at, event.queue, event.kept)
        case Consumed():
            yield from _saw_consumed(at, event, at_ms)
        case ListenerReturned() | ExpiredCleaned():
            yield from walk_expired(at, event, at_ms)
        case SentBack() | SendBackRefused() | SendAnswered():
            yield from walk_sent(at, event, at_ms)
        case ResetTold(queue, offset):
            known.told_to_begin(queue, offset)
            at.known.progress.due.told[queue] = offset
        case OffsetSent():
            yield from _saw_offset_sent(at, event)
        case _:
            pass


def _span_of(at: At, queue: OneQueue, share: Share) -> int:
    """How far apart the waiting messages certainly lie that a consumer counts."""
    known = at.known.consumption
    op = known.living.get(queue.client)
    if op is None or op.is_orderly or share.reach <= at.known.setup.max_span:
        return 0
    places = known.places_of(queue, share.waiting, at.known.model)
    return max(places) - min(places) if places else 0


def _saw_pull(at: At, queue: OneQueue, queue_offset: int) -> Iterator[Moment]:
    # If the broker holds it, there is nothing at its offset.
    at.known.progress.pulls_next(queue[1:], queue_offset, is_certain=False)
    known = at.known.consumption
    at.known.progress.pulls.pulls_on(known.key_of(queue))
    share = known.shares.get(queue)
    is_unsure = _may_be_answered_as_before(at, queue)
    wanted = None if is_unsure else _wanted(at, queue)
    if share is not None:
        goes_on = share.pulls(queue_offset)
        expected = (share.asked, *share.ends)
        span = _span_of(at, queue, goes_on)
        waiting = len(goes_on.waiting)
        yield PullGoesOn(*at, queue, queue_offset, expected, waiting, span)
        if queue_offset == share.asked and not share.answers and wanted != share.wanted:
            wanted = None  # the pull before may be answered still
        known.shares[queue] = goes_on._replace(wanted=wanted)
        return
    taken, life, is_anew = known.taken.pop(queue, None), known.life, False
    was_reset = taken is not None and taken.was_reset
    if taken is not None:
        key = known.key_of(queue)
        possible, begins, life, *_ = taken
        yield QueueBegun(*at, key, queue_offset, possible, begins)
        is_anew = taken.is_anew(queue_offset)
        _owes_from(at, queue, queue_offset, taken)
        if possible == _NO_OFFSET and life == known.life and not was_reset:
            yield QueueBegunAnew(*at, queue, taken.told)
    began = Share(
        queue_offset,
        life=life,
        wanted=wanted,
        begun=queue_offset,
        begins_group=is_anew,
        was_reset=was_reset,
    )
    if taken is not None and begins_beside(at, queue):
        began = _began_perhaps(began, taken)
    known.shares[queue] = began


def _may_be_answered_as_before(at: At, queue: OneQueue) -> bool:
    """Whether a pull of before the queue was given up may be answered instead.

    Its consumer may have subscribed something else then.
    """
    is_awaited = at.known.progress.due.unanswered.get(queue, 0) > 0
    return is_awaited and queue.client in at.known.consumption.subscriptions.changed


def _began_perhaps(began: Share, taken: Taken) -> Share:
    """What is known of a queue whose first pull may be one of before.

    Then the next one begins at the group's offset.
    """
    places = {taken.told, *taken.possible} - {NO_OFFSET, began.asked}
    answers = [AnsweredPull(one, _NO_MESSAGE) for one in sorted(places)]
    return Share(began.asked, tuple(answers), life=began.life, wanted=began.wanted)


def _owes_from(at: At, queue: OneQueue, begin: int, taken: Taken) -> None:
    """Record where a consumer begins in a queue, be it that its group had no offset.

    If it has asked an earlier life of the broker where to begin, and that is lost, its
    group may have begun at a higher offset since. Whoever has the queue besides, or
    had it until now, may tell where it has begun itself.
    """
    known = at.known.consumption
    key, owed = known.key_of(queue), known.owed
    is_second = taken.is_second or known.has_another(queue)
    is_first = taken.life == known.life and not is_second
    owed.begins(key, begin, is_anew=taken.is_anew(begin) and is_first)
    if taken.may_be_anew:
        owed.began_again_at(key, begin)


def _wanted(at: At, queue: OneQueue) -> Asked | None:
    """What a consumer subscribes of a queue's topic now; None: unknown."""
    return at.known.consumption.subscriptions.asked_by(queue.client, queue.topic)


def _saw_answer(at: At, answer: PullReceived) -> Iterator[Moment]:
    known, queue = at.known.consumption, answer.queue
    yield ConsumerAnswered(*at, queue, answer.code, known.broadcasts(queue.group))
    is_alone = at.step.is_alone
    if answer.code in (*READ, MOVED):
        offset = answer.next_begin_offset
        at.known.progress.pulls_next(queue[1:], offset, is_certain=is_alone)
    share = known.shares.get(queue)
    if share is None or share.asked != answer.queue_offset:
        if answer.code == MOVED:
            _saw_moved(at, queue)
        return  # it has given the queue back since
    if answer.code in (*READ, MOVED):
        places = where_it_must_go(at, answer, share)
        if places is not None:
            told = answer.next_begin_offset if answer.code == MOVED else NO_OFFSET
            yield ElsewhereNeeded(*at, queue, answer.queue_offset, told, places)
    if answer.code == MOVED:
        end = at.known.model.next_queue_offset((queue.topic, queue.queue_id))
        told = answer.next_begin_offset
        yield PullMoved(*at, queue, told, end, where_moved(at, answer, share))
        _saw_moved(at, queue)
        again = share.begins_again(answer.next_begin_offset)
        # It may have given that pull up by now, and go on from where it asked, or from
        # where a later pull has ended; then it has not heard of a reset either.
        is_taken = is_alone and at.known.progress.due.is_awaited(queue)
        known.shares[queue] = again._replace(
            asked=share.asked,
            answers=share.answers,
            was_reset=share.was_reset and not is_taken,
        )
        return
    if answer.code not in READ:
        return
    at.known.progress.pulls.was_read(known.key_of(queue))
    wanted = share.wanted
    if wanted is None:  # it changes what it asks for, and may have asked for this
        share = share.may_take(frozenset(map(key_in, answer.messages)))
    elif wanted != _wanted(at, queue):
        return  # it asks for something else by now, and takes no answer to that
    is_torn = is_owed_nothing(at.known, queue.group)
    is_torn |= _is_asked_elsewhere(at, queue.topic, wanted)
    yield MessagesPulled(*at, answer, None if is_torn else wanted)
    begin, end = answer.queue_offset, answer.next_begin_offset
    asked_for = frozenset(
        [key_in(data) for data in answer.messages if wants_record(wanted, data)]
    )
    is_partial = is_torn or at.known.promises.reverts  # units may read as none
    if is_partial or wanted != EVERYTHING:
        passing = Passing(begin, end, wanted, asked_for if is_partial else None)
        known.owed.passing.append((known.key_of(queue), passing))
    if is_torn and wanted is not None and wanted[1] != "TAG":
        # A client looks at tags itself, and takes all else that comes.
        asked_for = frozenset(map(key_in, answer.messages))
    if asked_for:
        there = at.known.model.queues.get(known.key_of(queue)[1:], [])
        known.owed.pulled(asked_for, there)
    known.shares[queue] = share._replace(
        answers=(*share.answers, AnsweredPull(end, asked_for)), life=known.life
    )


def _is_asked_elsewhere(at: At, topic: str, wanted: Asked | None) -> bool:
    """Whether a broker filters retries by what their group asks for the first topic.

    Whose retries they are, the name of their topic says, whoever pulls them.
    """
    by_tags = wanted is not None and wanted[1] == "TAG"
    group = topic.removeprefix(RETRY_PREFIX)
    may_ask = not by_tags or group in at.known.consumption.subscriptions.had
    return may_ask and at.known.setup.filters_retries_of(topic)


def _saw_moved(at: At, queue: OneQueue) -> None:
    """Record that an answer has told of its group's reset, if one was pending.

    Beside others the reset may have come after the answer.
    """
    progress, key = at.known.progress, queue[1:]
    if key in progress.pending:
        progress.pulls.was_told(key)
        if at.step.is_alone:
            del progress.pending[key]
        else:
            progress.pending[key] = False


def is_owed_nothing(known: Knowledge, group: str) -> bool:
    """Whether a group's filter is unknown, so that it need not consume anything."""
    filters = known.setup.filters
    return known.consumption.subscriptions.is_torn(group, filters=filters)


def _saw_commit(at: At, queue: OneQueue, offset: int) -> None:
    """Record a committed offset, which the broker may have accepted or not."""
    known, progress = at.known.consumption, at.known.progress
    key = known.key_of(queue)
    known.committed(queue, offset)
    if known.is_broadcast(queue.client):
        known.local[key] = offset
        return
    progress.pulls.told.pop(key, None)
    progress.set(key, offset, is_certain=False)
    if known.has_missed_a_reset(queue) and not progress.pending.get(key):
        # Two consumers may hold a queue at a rebalance. Once the pull of one has picked
        # the reset up, the broker takes what the other has committed before it.
        known.owed.began_again_at(key, offset)


def _saw_offset_sent(at: At, event: OffsetSent) -> Iterator[Moment]:
    yield from _saw_reset(at, event)
    known = at.known.consumption
    queue, offset, kept = event.queue, event.offset, event.kept
    if queue in known.taken:  # it tells where it begins before it pulls
        _owes_from(at, queue, offset, known.taken[queue])
    _saw_commit(at, queue, offset)
    if kept != NOT_KNOWN:
        yield from _saw_kept(at, queue, kept)
        yield from _stop_at_commit(at, queue, offset, kept)


def _saw_reset(at: At, event: OffsetSent) -> Iterator[Moment]:
    """Yield the moment of the first commit after the broker told of a reset."""
    told = at.known.progress.due.told.pop(event.queue, None)
    if told is not None and at.step.is_alone:
        yield ResetObeyed(*at, event.queue, told, event.offset)


def _saw_kept(at: At, queue: OneQueue, kept: int) -> Iterator[Moment]:
    progress, known = at.known.progress, at.known.consumption
    if known.is_broadcast(queue.client):
        return  # it cannot know that the log has lost its end
    key, model = known.key_of(queue), at.known.model
    passed = list(known.passed_over(key, model, kept))
    yield GroupIsAt(*at, key, kept, passed, model.next_queue_offset(key[1:]))
    if not at.step.is_alone:
        return
    is_pending = bool(progress.pending.get(key))
    yield OffsetAnswered(*at, key, kept, progress.of(key), is_pending)
    if key not in progress.pending and kept in progress.of(key):
        progress.now[key] = frozenset({kept})


def _stop_at_commit(
    at: At, queue: OneQueue, offset: int, kept: int
) -> Iterator[Moment]:
    """Yield the moment of a commit, if the offset came from this run of the broker."""
    known = at.known.consumption
    share = known.shares.get(queue)
    if share is None or share.life != known.life or known.is_broadcast(queue.client):
        return  # it may name an offset of a log that has lost its end since
    if at.known.progress.may_drop(known.key_of(queue)):
        return  # until it has followed a reset, what it tells is dropped
    end = at.known.model.next_queue_offset((queue.topic, queue.queue_id))
    yield ConsumerCommitted(*at, queue, offset, kept, end)


def _record_in(data: bytes) -> Record | None:
    try:
        return decode_record(data)
    except BadRecord:
        return None


def _saw_consumed(at: At, event: Consumed, at_ms: int) -> Iterator[Moment]:
    known, queue = at.known.consumption, event.queue
    key, share = known.key_of(queue), known.shares.get(queue)
    op = known.living.get(queue.client)
    unique_key = key_in(event.record)
    is_orderly = op is not None and op.is_orderly
    may_be_of_before = not known.is_locking(queue.client) and begins_beside(at, queue)
    if may_be_of_before:
        share = None
        known.was_cut_short(queue, unique_key)
    passed = known.passed_over(key, at.known.model, event.queue_offset)
    pulled = _NO_MESSAGE
    if share is not None:
        taken = share.uncommitted | share.cut_short  # of these it may have taken any
        pulled = (share.newest | share.waiting) - taken
    locked_ms = known.locks.of_clients.get(queue)
    yield MessageConsumed(
        *at,
        event,
        share,
        unique_key,
        [one for one in passed if name_of(one) in pulled],
        is_orderly,
        at_ms - locked_ms if locked_ms is not None else None,
        at_ms,
        None if share is None else share.failed_before(unique_key, event.queue_offset),
        _record_in(event.record),
    )
    saw_given(at, event, at_ms)
    if at.step.crash is not None:
        known.was_cut_short(queue, unique_key)
    if is_to_end(at, event):
        known.committed_all(queue, unique_key)
    elif may_be_of_before and event.status == "uncommitted":
        known.done_uncommitted(queue, unique_key)
    elif share is None or event.status == "hangs":
        return
    elif event.status == "uncommitted":
        known.shares[queue] = known.shares[queue].takes(unique_key)
    elif event.status == "rollback":
        share = known.shares[queue]
        known.shares[queue] = share.rolls_back(unique_key, event.queue_offset)
    else:
        saw_failed(at, event, at_ms)


def _gives_back(
    at: At, client: str, stays: tuple[tuple[str, int], ...]
) -> Iterator[Moment]:
    """Yield a moment for each queue that a non-locking consumer gives up."""
    known = at.known.consumption
    is_sole = at.step.is_alone or stops_amid_its_listeners(at, client)
    if known.is_locking(client) or not is_sole or at.now.max_phy_offset < 0:
        return  # others may have been at work on it, or nobody could be told
    for queue in sorted(known.shares):
        if queue.client == client and (queue.topic, queue.queue_id) not in stays:
            yield _given_back(at, queue)


def _stopped(at: At, client: str, at_ms: int, work: int) -> Iterator[Moment]:
    """Yield how a consumer has stopped, and if it locks, what it had to unlock."""
    known = at.known.consumption
    if not at.step.is_undisturbed:
        return
    yield ConsumerStopped(*at, client, at_ms - at.step.entries[0].at_ms)
    yield ConsumerIdle(*at, client, work)
    if not known.is_locking(client):
        return
    if at.now.max_phy_offset >= 0:
        # It may have been granted others before it failed to begin with them.
        held = known.held.get(client, ())
        its = [one for one in known.locks.of_clients if one.client == client]
        its = [one for one in sorted(its) if (one.topic, one.queue_id) in held]
        kept = [one for one in its if known.locks.is_kept(one, at_ms)]
        yield LockingConsumerStopped(*at, client, kept)


def _hands_over(at: At, queue: OneQueue, at_ms: int) -> Iterator[Moment]:
    """Yield a moment if a consumer unlocks a queue whose lock it certainly holds."""
    known = at.known.consumption
    if known.is_locking(queue.client):
        if known.locks.is_kept(queue, at_ms):
            yield _given_back(at, queue)
        known.leaving.pop(queue, None)


def _given_back(at: At, queue: OneQueue) -> QueueGivenBack:
    known = at.known.consumption
    until = known.worked_until(queue, at.known.model)
    return QueueGivenBack(*at, queue, known.told.get(queue, NOTHING_TOLD), until)


def _needs_lock(at: At, queue: OneQueue) -> Iterator[Moment]:
    known = at.known.consumption
    if queue in at.known.progress.due.unsure_locks:
        return  # an answer that it was granted may have come after a later refusal
    if known.is_locking(queue.client):
        yield LockNeeded(*at, queue, queue in known.locks.of_clients)
