"""The walk through commits of consumer offsets, and their persists.

It follows the events of a step in order. If ops overlapped, one commit may have come
before or after another, and a persist may have written either.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence

from crashmq.models.files.offsets import OffsetKey, OffsetRows
from crashmq.models.history import (
    BrokerPullAnswered,
    BrokerPullAsked,
    BrokerPullHeld,
    DeletionAsked,
    DeletionEnded,
    Entry,
    FileDamaged,
    FilePlanted,
    LifeEnded,
    OffsetRead,
    OffsetSent,
    OffsetsLoaded,
    ProgressAnswered,
    ProgressAsked,
    PullReceived,
    RoundsEnded,
    StartBegan,
    Step,
    StopEnded,
)
from crashmq.models.knowledge.commits_beside import (
    Beside,
    answers_in,
    consumers_act,
    key_of,
    settle_single_commits,
)
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.knowledge.members import Members
from crashmq.models.knowledge.moments import (
    At,
    CommitAnswered,
    LowestAnswered,
    Moment,
    OffsetAnswered,
    OffsetCommitted,
    OffsetsFound,
    OffsetsPersisted,
    OffsetsRecovered,
    QueueBegun,
    ResetAnswered,
)
from crashmq.models.knowledge.moments_of_pulls import OffsetBehindPull
from crashmq.models.knowledge.progress import NO_OFFSET, Ends, Recovered
from crashmq.models.knowledge.walk_consumers import (
    MOVED,
    OF_CONSUMERS,
    walk_consumers,
)
from crashmq.models.knowledge.walk_members import saw_clients_unseen
from crashmq.models.knowledge.walk_questions import SEPARATOR, first_since, saw_answer
from crashmq.models.knowledge.walk_waiting import saw_work
from crashmq.models.observations import (
    CODES_OF_READS,
    Committed,
    Deleted,
    Done,
    LowestOffsets,
    NamesTold,
    NumberTold,
    Observation,
    OffsetKept,
    OffsetReset,
    QueueTaken,
    Ran,
    Stopped,
)
from crashmq.models.ops import (
    AskBroker,
    ChangeTopic,
    CleanOffsets,
    CloneOffset,
    CommitOffset,
    Crash,
    DeleteGroup,
    DeleteTopic,
    DiskFault,
    During,
    ProgressOp,
    PullThroughBroker,
    QueryLowestOffsets,
    QueryOffset,
    QueueOp,
    ResetOffset,
    TakeQueue,
)

_OF_PROGRESS = frozenset(
    {
        *(ProgressAsked, ProgressAnswered, DeletionAsked, DeletionEnded),
        *(BrokerPullAsked, BrokerPullHeld, BrokerPullAnswered),
        *(RoundsEnded, StopEnded, LifeEnded, FileDamaged, FilePlanted),
        *(StartBegan, OffsetsLoaded),
    }
)
ANY_QUEUE = -1
_MEETS_RESETS = frozenset({BrokerPullHeld, BrokerPullAnswered, PullReceived})
_OF_PROGRESS_OR_CONSUMERS = _OF_PROGRESS | OF_CONSUMERS


def walk_progress(at: At) -> Generator[Moment, None, Sequence[Recovered]]:
    """Update the known offsets by a step's events; yield a moment for each check.

    Returns the starts that succeeded; ``walk_recovered`` yields their moments once it
    is known what they recovered of the log.
    """
    step, progress = at.step, at.known.progress
    at.known.consumption.owed.step_begins(at.known.model)
    if step.sets_back:
        _clock_was_set_back(at)
    recovered = list[Recovered]()
    before, pending_before = dict(progress.now), dict(progress.pending)
    told, is_loaded, beside = dict[int, int](), False, Beside(at)
    found: Mapping[str, bytes] = {}
    if at.known.promises.reverts:
        progress.is_doubtful = True
    answers = answers_in(step)
    _commits_are_told_late(at)
    for number, entry in _events_of_progress(step):
        match entry.event:
            case other if type(other) in OF_CONSUMERS:
                yield from walk_consumers(at, other, entry.at_ms)
            case ProgressAsked(op):
                _saw_asked(at, number, op)
            case ProgressAnswered(asked, _):
                yield from _answered(at, *answers[asked], entry.at_ms)
            case BrokerPullAsked(pulled, pull, offset):
                told[pulled] = offset
                _saw_pull_asked(at, pull, offset)
            case BrokerPullAnswered(pulled, pull) | BrokerPullHeld(
                pulled, pull
            ) as seen:
                yield from _saw_pull(at, seen, told.pop(pulled, None))
            case DeletionAsked(deletion):
                _deletion_asked(at, deletion)
            case DeletionEnded(asked, seen):
                _deletion_ended(at, asked, seen)
            case RoundsEnded("persist_consumer_offset", Ran(work)):
                if step.must_have_written(work):
                    yield from _persisted(at, before, beside.sure_before(entry))
            case StopEnded(seen=Stopped()):
                _stopped(at, before)
            case LifeEnded(crash):
                _saw_crash(at.known, crash)
                _saw_what_is_cut_short(at)
            case FileDamaged() | FilePlanted():
                progress.is_doubtful = True
                progress.pulls.lives.forget()
            case StartBegan(found, _):
                yield OffsetsFound(*at, found)
            case OffsetsLoaded(rows):
                recovered.append(_recovered(at, found, rows))
                progress.loaded(rows)
                before, is_loaded = dict(progress.now), True
                at.known.consumption.broker_started(recovered[-1])
                progress.members = Members()
        beside.saw(entry)
    yield from saw_work(at)
    if step.sets_back:  # maybe behind what happened in the step, too
        _clock_was_set_back(at)
    if at.known.promises.reverts and not is_loaded:
        progress.is_doubtful = True
    _settle(at, before, pending_before, beside)
    return recovered


def _clock_was_set_back(at: At) -> None:
    at.known.consumption.clock_was_set_back()
    at.known.progress.members.clock_was_set_back()


def _commits_are_told_late(at: At) -> None:
    """Record what consumers commit in the step, which they tell only afterwards."""
    known, progress = at.known.consumption, at.known.progress
    if at.step.is_alone:
        return
    progress.pulls.told.clear()  # a reset may have been followed meanwhile
    for _, _, event in at.step.entries:
        if isinstance(event, OffsetSent):
            progress.set(known.key_of(event.queue), event.offset, is_certain=False)
        elif isinstance(event, OffsetRead) and event.kept >= 0:
            progress.set(known.key_of(event.queue), event.kept, is_certain=False)


def _settle(
    at: At,
    before: Mapping[OffsetKey, frozenset[int]],
    pending_before: Mapping[OffsetKey, bool],
    beside: Beside,
) -> None:
    """Record what the step as a whole says of commits, deletions and heartbeats."""
    step = at.step
    saw_clients_unseen(at)
    removals = _failed_removals(step)
    if removals:
        _removed_nothing(at, removals, before, pending_before)
    elif not (step.is_alone or step.crash or step.starts or step.is_stopping):
        settle_single_commits(at, before)
        at.known.progress.gone(beside.removed)


def _events_of_progress(step: Step) -> list[tuple[int, Entry]]:
    """The events of a step that matter here, each with its number."""
    if step.kinds.isdisjoint(_OF_PROGRESS_OR_CONSUMERS):
        return []
    numbered = enumerate(step.entries)
    return [one for one in numbered if type(one[1].event) in _OF_PROGRESS_OR_CONSUMERS]


def _persisted(
    at: At,
    before: dict[OffsetKey, frozenset[int]],
    sure: Mapping[OffsetKey, frozenset[int]],
) -> Iterator[Moment]:
    """Record a persist; it wrote what was committed ``before`` it, or later.

    Of ``sure`` offsets it is known that nobody has written them since it began.
    """
    at.known.progress.persisted(before)
    at.known.progress.kept.update(sure)
    if at.step.is_alone and not at.step.fails_calls:
        yield OffsetsPersisted(*at, at.look.files())


def _stopped(at: At, before: dict[OffsetKey, frozenset[int]]) -> None:
    """Record that a stop has persisted, if no call failed and the disk had room."""
    has_room = at.known.expiry.has_room_for_tables(at.step.world)
    if not at.step.fails_calls and has_room:
        at.known.progress.persisted(before)
    at.known.consumption.missed_resets(at.known.progress.pulls.behind)
    at.known.progress.ended()


def walk_recovered(at: At, recovered: Sequence[Recovered]) -> Iterator[Moment]:
    """Yield a moment for each start of a step that succeeded."""
    for one in recovered:
        damaged = one.log_was_damaged or at.known.tampering.log_has_hidden_rot
        ends = _ends(at, log_was_damaged=damaged)
        least = {key: first for key, (first, _) in ends.of_queue.items()}
        run, lives = at.known.consumption.life, at.known.progress.pulls.lives
        lives.began(run, least if ends.is_known else None)
        yield OffsetsRecovered(*at, one, ends)


def _recovered(at: At, found: Mapping[str, bytes], rows: OffsetRows) -> Recovered:
    progress, damaged = at.known.progress, at.known.tampering.damaged
    paths = [damage.path for damage in (*damaged, *at.step.damaged)]
    return Recovered(
        found,
        rows,
        progress.kept,
        progress.is_doubtful or bool(damaged),
        any(not path.startswith("config/") for path in paths),
    )


def bound_by_deletions(at: At) -> None:
    """Record that no offset of a deleted queue is past the queue's new end.

    Called once the puts of the step are known. Of the commits that overlapped a
    deletion only those after it count, and the broker checked these against the queue's
    new end.
    """
    progress, model = at.known.progress, at.known.model
    for op, seen in at.step.deletions:
        at.known.consumption.may_be_deleted(op.topic, op.queue_id)
        if not isinstance(seen, Deleted) or at.step.crash is not None:
            continue
        for key in progress.keys_of(topic=op.topic, queue_id=op.queue_id):
            end = model.next_queue_offset(key[1:])
            for table in (progress.now, progress.kept):
                left = {one for one in table.get(key, ()) if one <= end}
                table[key] = frozenset(left or {NO_OFFSET})


def _ends(at: At, *, log_was_damaged: bool) -> Ends:
    """The ends of the queues that a start of this step has recovered."""
    known, model = at.known, at.known.model
    if log_was_damaged or known.is_degraded or not at.step.is_alone:
        return Ends({}, is_known=False)
    keys = sorted({*model.queues, *model.numbered})
    ends = {key: model.next_queue_offset(key) for key in keys}
    return Ends({key: (end, end) for key, end in ends.items()})


def _saw_what_is_cut_short(at: At) -> None:
    """Record what may have been done amid a crash by those who did not come to tell.

    So it is with requests, commits, and the files of consumers that broadcast.
    """
    is_untold = not at.step.is_alone and consumers_act(at.step)
    at.known.progress.is_doubtful |= is_untold or _is_unanswered(at.step)
    names = {getattr(one, "client", "") for one in at.step.acts}
    for client in sorted(names - {""}):
        at.known.consumption.may_have_written(client)


def _is_unanswered(step: Step) -> bool:
    """Whether a request of a consumer got no answer in the step."""
    kinds = [type(entry.event) for entry in step.entries]
    return kinds.count(ProgressAsked) > kinds.count(ProgressAnswered)


def _saw_asked(at: At, number: int, op: ProgressOp) -> None:
    """Record what a request may change from now on."""
    progress = at.known.progress
    if isinstance(op, DeleteGroup | CleanOffsets):
        progress.pulls.told.clear()
    if isinstance(op, DeleteGroup):
        progress.may_be_gone(progress.keys_of(group=op.group))
    if isinstance(op, ChangeTopic):
        progress.tables.topics = None  # its version rises, whatever is changed
    if isinstance(op, CleanOffsets):
        progress.may_be_gone(progress.keys_of(topic=op.topic))
    if at.step.is_alone:
        return
    match op:
        case CommitOffset():
            # A commit tells what the consumer knows, which is not less.
            key = key_of(op)
            higher = [one for one in progress.of(key) if one > op.offset]
            for offset in (op.offset, *higher):
                progress.set(key, offset, is_certain=False)
        case ResetOffset():
            _, seen = answers_in(at.step).get(number, (op, None))
            if isinstance(seen, OffsetReset) and seen.offset >= 0:
                progress.set(key_of(op), seen.offset, is_certain=False)
                progress.pending[key_of(op)] = False
                # Its consumers may be told before whoever resets it is answered.
                at.known.consumption.owed.may_be_told(key_of(op), seen.offset)
        case TakeQueue():
            progress.pending[key_of(op)] = False
        case _:
            pass
    _spread(at)


def _spread(at: At) -> None:
    """Record that offsets may have been cloned between groups in this step."""
    asked = [one.event for one in at.step.entries]
    clones = [
        event.op
        for event in asked
        if isinstance(event, ProgressAsked) and isinstance(event.op, CloneOffset)
    ]
    for _ in clones:
        for op in clones:
            progress = at.known.progress
            progress.copied(op.group, op.target, op.topic, is_certain=False)


def _deletion_asked(at: At, op: DeleteTopic) -> None:
    progress = at.known.progress
    progress.pulls.lives.may_be_deleted(op.topic)
    progress.tables.topics = None  # one may go now, and be made again
    progress.pulls.told.clear()
    progress.may_be_gone(progress.keys_of(topic=op.topic, queue_id=op.queue_id))


def _deletion_ended(at: At, asked: int, seen: Observation) -> None:
    its = at.step.entries[asked].event
    assert isinstance(its, DeletionAsked), its
    op = its.op
    progress, is_sure = at.known.progress, at.step.is_alone and not at.step.fails_calls
    if isinstance(seen, Deleted) and is_sure:
        progress.gone(progress.keys_of(topic=op.topic, queue_id=op.queue_id))


def _failed_removals(step: Step) -> list[tuple[str, int]]:
    """The topics of a failed removal, if the step has nothing but its disk fault.

    Each comes with the id of the queue that was to be deleted, or with that of all. A
    deletion of a group may have failed once its offsets were gone.
    """
    if not step.raised or step.crash is not None or step.starts:
        return []
    kinds = (During, DeleteTopic, CleanOffsets, DiskFault)
    has_failed = all(seen is None for _, seen in step.deletions)
    has_failed &= step.kinds.isdisjoint({*_MEETS_RESETS, ProgressAnswered})
    if not (has_failed and all(isinstance(act, kinds) for act in step.acts)):
        return []
    asked = [one.event for one in step.entries if isinstance(one.event, ProgressAsked)]
    cleaned = [one.op.topic for one in asked if isinstance(one.op, CleanOffsets)]
    deleted = [(op.topic, op.queue_id) for op, _ in step.deletions]
    return [*deleted, *[(topic, ANY_QUEUE) for topic in cleaned]]


def _removed_nothing(
    at: At,
    removals: Sequence[tuple[str, int]],
    before: Mapping[OffsetKey, frozenset[int]],
    pending: Mapping[OffsetKey, bool],
) -> None:
    """Restore the offsets and resets that could not be removed.

    It stays unknown what the file has of them.
    """
    progress = at.known.progress
    for topic, queue_id in removals:
        for key in progress.keys_of(topic=topic, queue_id=queue_id):
            if key in before:
                progress.now[key] = before[key]
            if key in pending:
                progress.pending[key] = pending[key]


def _answered(at: At, op: ProgressOp, seen: object, at_ms: int) -> Iterator[Moment]:
    progress, is_alone = at.known.progress, at.step.is_alone
    match op, seen:
        case DeleteGroup(group), Done():
            if is_alone and not at.step.fails_calls:
                progress.gone(progress.keys_of(group=group))
        case CleanOffsets(topic), Done():
            if is_alone and not at.step.fails_calls:
                progress.gone(progress.keys_of(topic=topic))
        case CloneOffset(source, target, topic), Done():
            progress.pulls.told.clear()
            progress.copied(source, target, topic, is_certain=is_alone)
            for key in progress.keys_of(group=target, topic=topic):
                told = max(progress.of(key))
                at.known.consumption.owed.may_be_told(key, told)
        case AskBroker(), (NamesTold() | NumberTold()):
            yield from saw_answer(at, op, seen, at_ms)
        case QueryLowestOffsets(group, topic), LowestOffsets(rows):
            if is_alone:
                yield LowestAnswered(*at, topic, rows, _lowest(at, group, topic))
        case ((CommitOffset() | QueryOffset() | ResetOffset() | TakeQueue()), _):
            yield from _answered_of_queue(at, op, seen)
        case _:
            pass


def _answered_of_queue(at: At, op: QueueOp, seen: object) -> Iterator[Moment]:
    progress, key, is_alone = at.known.progress, key_of(op), at.step.is_alone
    pending, possible = progress.pending.get(key), progress.of(key)
    match op, seen:
        case CommitOffset(), Committed(told, accepted):
            is_certain = is_alone and not progress.may_drop(key)
            if is_certain:
                if op.group not in at.known.consumption.newest:  # who may be further
                    yield OffsetCommitted(*at, key, told, op.offset, possible)
                yield CommitAnswered(*at, key, told, accepted, _end(at, op))
            followed = progress.pulls.told.get(key, told)
            if followed == told:
                progress.pulls.told.pop(key, None)
            is_dropped = is_alone and (pending or followed != told)
            if accepted and not is_dropped:
                progress.set(key, told, is_certain=is_certain)
                at.known.consumption.owed.may_be_told(key, told)
        case QueryOffset(), OffsetKept(offset):
            yield OffsetAnswered(*at, key, offset, possible, bool(pending))
            if is_alone and pending is None and offset in possible:
                progress.now[key] = frozenset({offset})
        case ResetOffset(), OffsetReset(offset):
            progress.pulls.told.pop(key, None)
            if is_alone:
                yield ResetAnswered(*at, key, offset, _targets(at, op))
            if offset >= 0:
                progress.set(key, offset, is_certain=is_alone)
                progress.pending[key] = is_alone
                at.known.consumption.was_reset(key, offset)
        case TakeQueue(), QueueTaken(offset):
            progress.pulls.told.pop(key, None)
            begins = _begins(at, op)
            yield QueueBegun(*at, key, offset, possible, begins)
            if is_alone:
                progress.pending.pop(key, None)
            if begins is not None and possible != {NO_OFFSET}:
                meant = {offset, NO_OFFSET} if offset in begins else {offset}
                progress.now[key] = (possible & meant) or possible
        case _:
            pass


def _end(at: At, op: QueueOp) -> int:
    return at.known.model.next_queue_offset((op.topic, op.queue_id))


def _targets(at: At, op: ResetOffset) -> frozenset[int]:
    """The offsets that a reset may set; -1: it must be refused."""
    if op.queue_id < 0:
        return frozenset({NO_OFFSET})
    queue = at.known.model.visible((op.topic, op.queue_id))
    match op.to:
        case "offset":
            is_there = queue.min_offset <= op.offset <= queue.max_offset
            return frozenset({op.offset if is_there else NO_OFFSET})
        case "end":
            return frozenset({queue.max_offset})
        case "time":
            return frozenset({first_since(at, op.topic, op.queue_id, op.offset)})


def _begins(at: At, op: TakeQueue) -> frozenset[int] | None:
    """Where a group without an offset may begin; None: anywhere in the queue.

    A broker may answer 0 for a queue whose first message is in memory.
    """
    if not at.step.is_alone:
        return None
    queue = at.known.model.visible((op.topic, op.queue_id))
    begin = 0
    if op.where == "last":
        begin = queue.max_offset
    elif op.where == "timestamp":
        begin = first_since(at, op.topic, op.queue_id, op.at_ms)
    return frozenset({begin} if queue.min_offset > 0 else {0, begin})


def _lowest(at: At, but_for: str, topic: str) -> dict[int, frozenset[int]]:
    """By queue, what may be the lowest offset of other groups; -1: none has any."""
    progress, found = at.known.progress, dict[int, frozenset[int]]()
    for key in progress.keys_of(topic=topic):
        if key[0] == but_for or SEPARATOR in key[0] + key[1]:
            continue
        least = at.known.model.visible(key[1:]).min_offset
        told = {one if one >= least else NO_OFFSET for one in progress.of(key)}
        others = found.get(key[2], frozenset({NO_OFFSET}))
        found[key[2]] = frozenset(
            max(one, other) if NO_OFFSET in (one, other) else min(one, other)
            for one in told
            for other in others
        )
    return found


def _saw_pull_asked(at: At, pull: PullThroughBroker, told: int) -> None:
    """Record what a pull may change from now on."""
    progress, key = at.known.progress, key_of(pull)
    if at.step.is_alone:
        return
    if told >= 0:
        progress.set(key, told, is_certain=False)
    if key in progress.pending:
        progress.pending[key] = False


def _saw_pull(
    at: At, seen: BrokerPullAnswered | BrokerPullHeld, told: int | None
) -> Iterator[Moment]:
    """Walk a pull that was answered or is held now.

    ``told`` is None if it was held before: it is read again then, and may get a reset,
    but commits nothing.
    """
    progress, key, is_alone = at.known.progress, key_of(seen.op), at.step.is_alone
    is_read = True
    if isinstance(seen, BrokerPullAnswered):
        is_read = seen.answer.code in CODES_OF_READS
    elif told is None:
        return  # it was answered meanwhile
    pending = progress.pending.get(key)
    if is_read:
        _saw_read(at, seen, key)
    known, model, queue = at.known, at.known.model, key[1:]
    has_told = told is not None and 0 <= told <= model.next_queue_offset(queue)
    if is_read and has_told and is_alone and not pending:  # else it is refused
        # It may be unknown whether a reset is pending, or where the queue ends.
        is_sure = not (model.is_unsettled(queue) or model.in_flight)
        is_certain = pending is None and is_sure and not known.is_degraded
        progress.set(key, told or 0, is_certain=is_certain)
        at.known.consumption.owed.may_be_told(key, told or 0)
    yield OffsetBehindPull(*at, key, seen.kept, progress.of(key), told)
    if not is_read:
        return
    progress.pulls.told.pop(key, None)
    if pending is None:
        if is_alone:
            progress.pulls.behind.pop(key, None)
        return
    progress.pulls.was_told(key)
    target = min(progress.of(key)) if len(progress.of(key)) == 1 else -1
    progress.pulls.resets[seen.number] = target if pending and is_alone else -1
    is_moved = isinstance(seen, BrokerPullAnswered) and seen.answer.code == MOVED
    if is_moved and is_alone and pending and target >= 0:
        progress.pulls.told[key] = target
    if is_alone:
        del progress.pending[key]
    else:
        progress.pending[key] = False


def _saw_read(
    at: At, seen: BrokerPullAnswered | BrokerPullHeld, key: OffsetKey
) -> None:
    """Record where a group pulls next after the broker has read its queue."""
    offset = seen.op.queue_offset  # a pull that is held has found nothing there
    if isinstance(seen, BrokerPullAnswered):
        offset = seen.answer.next_begin_offset
    is_certain = at.step.is_alone and offset >= 0
    at.known.progress.pulls_next(key, offset, is_certain=is_certain)


def _saw_crash(known: Knowledge, crash: Crash) -> None:
    progress, promises = known.progress, known.promises
    known.consumption.missed_resets(progress.pulls.behind)
    progress.ended()
    progress.tables.topics = None
    is_lost = crash.kind == "power_loss" and not promises.keeps_what_is_synced
    if is_lost or promises.is_broken_by(crash.kind) or promises.reverts:
        progress.is_doubtful = True
        progress.pulls.lives.forget()
