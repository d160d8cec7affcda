"""The walk through what consumers committed, and what of it is kept.

It goes by the events of a step, in their order. Where others acted amid the step, a
commit may have come before or after another one, and a persist may have written either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence

from crashmq.models.files.offsets import OffsetKey, OffsetRows
from crashmq.models.history import (
    BrokerPullAnswered,
    BrokerPullAsked,
    BrokerPullHeld,
    FileDamaged,
    FilePlanted,
    Happening,
    LifeEnded,
    OffsetSent,
    OffsetsLoaded,
    ProgressAnswered,
    ProgressAsked,
    PullSent,
    RoundsEnded,
    StartBegan,
    Step,
    StopEnded,
)
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.knowledge.moments import (
    At,
    Moment,
    OffsetAnswered,
    OffsetCommitted,
    OffsetsFound,
    OffsetsPersisted,
    OffsetsRecovered,
    QueueBegun,
)
from crashmq.models.knowledge.moments_of_pulls import OffsetBehindPull
from crashmq.models.knowledge.progress import Ends, Recovered
from crashmq.models.knowledge.walk_consumers import walk_consumers
from crashmq.models.observations import (
    CODES_OF_READS,
    Committed,
    Done,
    OffsetKept,
    QueueTaken,
    Ran,
    Stopped,
)
from crashmq.models.ops import (
    CommitOffset,
    Crash,
    ProgressOp,
    PullThroughBroker,
    QueryOffset,
    ResetOffset,
    TakeQueue,
)


def walk_progress(at: At) -> Generator[Moment, None, Sequence[Recovered]]:
    """Lead what is known of progress through a step; stop at each moment.

    Returns the starts that came up, of which nobody has seen yet what they recovered
    of the log: ``walk_recovered``.
    """
    step, progress = at.step, at.known.progress
    recovered: list[Recovered] = []
    before = dict(progress.now)
    told: dict[int, int] = {}
    worked = not step.fails_calls
    found: Mapping[str, bytes] = {}
    is_loaded = False
    if at.known.promises.reverts:
        progress.is_doubtful = True
    for entry in step.entries:
        match entry.event:
            case ProgressAsked(op):
                _saw_asked(at, op)
            case ProgressAnswered(asked, seen):
                before_it = step.entries[asked].event
                assert isinstance(before_it, ProgressAsked), before_it
                yield from _answered(at, before_it.op, seen)
            case BrokerPullAsked(number, pull, offset):
                told[number] = offset
                _saw_pull_asked(at, pull, offset)
            case BrokerPullAnswered(number, pull) | BrokerPullHeld(
                number, pull
            ) as seen:
                yield from _saw_pull(at, seen, told.pop(number, None))
            case RoundsEnded(service="persist_consumer_offset", seen=Ran(work)) if work:
                progress.persisted(before)
                if step.is_alone and worked:
                    yield OffsetsPersisted(*at, at.look.files())
            case StopEnded(seen=Stopped()):
                if worked:
                    progress.persisted(before)
                progress.ended()
            case LifeEnded(crash):
                _saw_crash(at.known, crash)
                progress.is_doubtful |= _is_unanswered(step)
            case FileDamaged() | FilePlanted():
                progress.is_doubtful = True
            case StartBegan(found, _):
                yield OffsetsFound(*at, found)
            case OffsetsLoaded(rows):
                recovered.append(_recovered(at, found, rows))
                progress.loaded(rows)
                before, is_loaded = dict(progress.now), True
                at.known.consumption.life += 1
            case other:
                yield from walk_consumers(at, other)
    if at.known.promises.reverts and not is_loaded:
        progress.is_doubtful = True
    if not (step.is_alone or step.crash or step.starts or step.is_stopping):
        _settle_single_commits(at)
    return recovered


def _settle_single_commits(at: At) -> None:
    """Take note of commits that nobody else's request for their queues came near.

    What else was asked beside them cannot have changed what they left.
    """
    entries, progress = at.step.entries, at.known.progress
    writers = Counter(
        key for entry in entries if (key := _written_by(at, entry.event)) is not None
    )
    for entry in entries:
        if not isinstance(entry.event, ProgressAnswered):
            continue
        before_it = entries[entry.event.asked].event
        assert isinstance(before_it, ProgressAsked), before_it
        op, seen, key = before_it.op, entry.event.seen, _key_of(before_it.op)
        is_single = writers[key] == 1 and key not in progress.pending
        if isinstance(op, CommitOffset) and isinstance(seen, Committed) and is_single:
            progress.now[key] = frozenset({seen.offset})


def _written_by(at: At, event: Happening) -> OffsetKey | None:
    """Of which group and queue an event may change the offset."""
    match event:
        case ProgressAsked(op) if not isinstance(op, QueryOffset):
            return _key_of(op)
        case BrokerPullAsked(_, pull):
            return _key_of(pull)
        case OffsetSent(queue) | PullSent(queue):
            return at.known.consumption.key_of(queue)
        case _:
            return None


def walk_recovered(at: At, recovered: Sequence[Recovered]) -> Iterator[Moment]:
    """Stop at each start of a step that came up, once its log is known."""
    for one in recovered:
        damaged = one.log_was_damaged or at.known.tampering.log_has_hidden_rot
        yield OffsetsRecovered(*at, one, _ends(at, log_was_damaged=damaged))


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


def _ends(at: At, *, log_was_damaged: bool) -> Ends:
    """Where the queues of the log end that a start of this step has recovered."""
    known, model = at.known, at.known.model
    if log_was_damaged or known.is_degraded or not at.step.is_alone:
        return Ends({}, is_known=False)
    keys = sorted({*model.queues, *model.numbered})
    ends = {key: model.next_queue_offset(key) for key in keys}
    return Ends({key: (end, end) for key, end in ends.items()})


def _is_unanswered(step: Step) -> bool:
    """Whether nobody knows what a consumer has told the broker."""
    kinds = [type(entry.event) for entry in step.entries]
    return kinds.count(ProgressAsked) > kinds.count(ProgressAnswered)


def _key_of(op: ProgressOp | PullThroughBroker) -> OffsetKey:
    return op.group, op.topic, op.queue_id


def _saw_asked(at: At, op: ProgressOp) -> None:
    """Take note of what a request may do from now on."""
    progress, key = at.known.progress, _key_of(op)
    if at.step.is_alone:
        return
    if isinstance(op, CommitOffset | ResetOffset):
        # A commit tells what the consumer knows, which is not less.
        higher = [one for one in progress.of(key) if one > op.offset]
        for offset in (op.offset, *higher):
            progress.set(key, offset, is_certain=False)
    if isinstance(op, ResetOffset | TakeQueue):
        progress.pending[key] = False


def _answered(at: At, op: ProgressOp, seen: object) -> Iterator[Moment]:
    progress, key, is_alone = at.known.progress, _key_of(op), at.step.is_alone
    pending = progress.pending.get(key)
    match op, seen:
        case CommitOffset(), Committed(told):
            if pending is None:
                if is_alone:
                    yield OffsetCommitted(*at, key, told, op.offset, progress.of(key))
                progress.set(key, told, is_certain=is_alone)
            elif not (pending and is_alone):  # else it is dropped
                progress.set(key, told, is_certain=False)
        case QueryOffset(), OffsetKept(offset):
            yield OffsetAnswered(*at, key, offset, progress.of(key), bool(pending))
            if is_alone and pending is None and offset in progress.of(key):
                progress.now[key] = frozenset({offset})
        case ResetOffset(), Done():
            progress.set(key, op.offset, is_certain=is_alone)
            progress.pending[key] = is_alone
            at.known.consumption.was_reset(key, op.offset)
        case TakeQueue(), QueueTaken(offset):
            end = at.known.model.next_queue_offset((op.topic, op.queue_id))
            yield QueueBegun(*at, key, offset, progress.of(key), end)
            if is_alone:
                progress.pending.pop(key, None)
                if progress.of(key) != {-1} and offset in progress.of(key):
                    progress.now[key] = frozenset({offset})
        case _:
            pass


def _saw_pull_asked(at: At, pull: PullThroughBroker, told: int) -> None:
    """Take note of what a pull may do from now on."""
    progress, key = at.known.progress, _key_of(pull)
    if at.step.is_alone:
        return
    if told >= 0:
        progress.set(key, told, is_certain=False)
    if key in progress.pending:
        progress.pending[key] = False


def _saw_pull(
    at: At, seen: BrokerPullAnswered | BrokerPullHeld, told: int | None
) -> Iterator[Moment]:
    """A pull has come to its hold or answer; ``told`` None: not for the first time.

    Then it is read again, and so may meet a reset, but commits nothing.
    """
    progress, key, is_alone = at.known.progress, _key_of(seen.op), at.step.is_alone
    is_read = True
    if isinstance(seen, BrokerPullAnswered):
        is_read = seen.answer.code in CODES_OF_READS
    elif told is None:
        return  # it was answered meanwhile
    pending = progress.pending.get(key)
    has_told = told is not None and told >= 0
    if is_read and has_told and is_alone and not pending:
        # It is not known either whether a reset is pending.
        progress.set(key, told or 0, is_certain=pending is None)
    yield OffsetBehindPull(*at, key, seen.kept, progress.of(key), told)
    if pending is None or not is_read:
        return
    target = min(progress.of(key)) if len(progress.of(key)) == 1 else -1
    progress.pulls.resets[seen.number] = target if pending and is_alone else -1
    if is_alone:
        del progress.pending[key]
    else:
        progress.pending[key] = False


def _saw_crash(known: Knowledge, crash: Crash) -> None:
    progress, promises = known.progress, known.promises
    progress.ended()
    is_lost = crash.kind == "power_loss" and not promises.keeps_what_is_synced
    if is_lost or promises.is_broken_by(crash.kind) or promises.reverts:
        progress.is_doubtful = True
