"""Who commits offsets in a step in which several act, and who removes them.

An offset is known for certain, beside others too, if nobody else can have written it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import get_args

from crashmq.models.files.offsets import OffsetKey
from crashmq.models.history import (
    MAIN,
    BrokerPullAnswered,
    BrokerPullAsked,
    BrokerPullHeld,
    DeletionAsked,
    DeletionEnded,
    Entry,
    Happening,
    OffsetSent,
    OffsetsLoaded,
    ProgressAnswered,
    ProgressAsked,
    PullSent,
    RoundsEnded,
    Step,
)
from crashmq.models.knowledge.moments import At
from crashmq.models.knowledge.progress import NO_OFFSET
from crashmq.models.observations import Committed, Deleted, Done, Observation
from crashmq.models.ops import (
    AskBroker,
    CleanOffsets,
    CloneOffset,
    CommitOffset,
    ConsumerOp,
    DeleteGroup,
    ProgressOp,
    PullThroughBroker,
    QueryOffset,
    QueueOp,
    ResetOffset,
    TakeQueue,
)

_NONE = frozenset({NO_OFFSET})


def answers_in(step: Step) -> dict[int, tuple[ProgressOp, Observation]]:
    """The answer to each request of a step, by the number of the event that asked."""
    found: dict[int, tuple[ProgressOp, Observation]] = {}
    if ProgressAnswered not in step.kinds:
        return found
    for entry in step.entries:
        if isinstance(entry.event, ProgressAnswered):
            before_it = step.entries[entry.event.asked].event
            assert isinstance(before_it, ProgressAsked), before_it
            found[entry.event.asked] = before_it.op, entry.event.seen
    return found


def key_of(op: QueueOp | PullThroughBroker) -> OffsetKey:
    """The group, topic and queue whose offset an op is about."""
    return op.group, op.topic, op.queue_id


def consumers_act(step: Step) -> bool:
    """Whether a consumer may have committed and not come to tell so."""
    return any(isinstance(one, get_args(ConsumerOp)) for one in step.acts)


def settle_single_commits(at: At, before: Mapping[OffsetKey, frozenset[int]]) -> None:
    """Record commits of a step as certain if nothing else wrote the same offset."""
    others = (DeleteGroup, CloneOffset, CleanOffsets)
    if at.step.deletions or any(isinstance(op, others) for op in _asked(at.step)):
        return
    for op, seen in answers_in(at.step).values():
        if isinstance(op, CommitOffset) and isinstance(seen, Committed):
            key = key_of(op)
            if is_only_commit(at, key):
                was, told = before.get(key, _NONE), frozenset({seen.offset})
                at.known.progress.now[key] = told if seen.accepted else was


def _written_by(at: At, event: Happening) -> OffsetKey | None:
    """The group and queue whose offset an event may change; None: none."""
    match event:
        case ProgressAsked(CommitOffset() | ResetOffset() | TakeQueue() as op):
            return key_of(op)
        case BrokerPullAsked(_, pull):
            return key_of(pull)
        case OffsetSent(queue) | PullSent(queue):
            return at.known.consumption.key_of(queue)
        case _:
            return None


class Beside:
    """What becomes certain of offsets in a step in which several act.

    Attributes:
        removed: the offsets that were removed, and that nobody has written since.
    """

    def __init__(self, at: At) -> None:
        self.removed: list[OffsetKey] = []
        self._at = at
        self._is_asked = not (at.step.is_alone or at.step.fails_calls)
        self._is_asked &= not consumers_act(at.step)
        self._sure: dict[OffsetKey, frozenset[int]] = {}
        self._before: dict[int, dict[OffsetKey, frozenset[int]]] = {}

    def saw(self, entry: Entry) -> None:
        """Record what an event of the step makes certain."""
        if not self._is_asked:
            return
        match entry.event:
            case OffsetsLoaded():
                self._sure.clear()
                self._before.clear()
                self.removed.clear()
                return
            case ProgressAnswered(asked, seen):
                self._answered(asked, seen)
            case DeletionEnded(asked, Deleted()):
                its = self._at.step.entries[asked].event
                assert isinstance(its, DeletionAsked), its
                topic, queue_id = its.op.topic, its.op.queue_id
                keys = self._at.known.progress.keys_of(topic=topic, queue_id=queue_id)
                self._is_gone(keys)
            case DeletionEnded() | RoundsEnded():
                pass
            case _:
                return  # it need not be the end of what its caller does
        self._before[entry.activity] = dict(self._sure)

    def sure_before(self, entry: Entry) -> Mapping[OffsetKey, frozenset[int]]:
        """What was certain before the op that an event ends, and still is.

        Offsets that were removed are in no later text, whenever its writer began.
        """
        is_called = entry.activity != MAIN
        before = self._before.get(entry.activity, {}) if is_called else {}
        return {**before, **dict.fromkeys(self.removed, _NONE)}

    def _answered(self, asked: int, seen: Observation) -> None:
        its = self._at.step.entries[asked].event
        assert isinstance(its, ProgressAsked), its
        keys_of = self._at.known.progress.keys_of
        match its.op, seen:
            case CommitOffset() as op, Committed(told, accepted=True):
                if is_only_commit(self._at, key_of(op)):
                    self._sure[key_of(op)] = frozenset({told})
            case DeleteGroup(group), Done():
                self._is_gone(keys_of(group=group))
            case CleanOffsets(topic), Done():
                self._is_gone(keys_of(topic=topic))
            case _:
                pass

    def _is_gone(self, keys: Collection[OffsetKey]) -> None:
        gone = left_alone(self._at, keys)
        self.removed += gone
        for key in gone:
            self._sure[key] = self._at.known.progress.kept[key] = _NONE


def is_only_commit(at: At, key: OffsetKey) -> bool:
    """Whether one commit alone can have written an offset in the step.

    No reset is pending that would drop it, and nobody removes or copies that offset.
    """
    if at.known.progress.may_drop(key) or any(
        _is_of(op, key) for op in _asked(at.step)
    ):
        return False
    for op, _ in at.step.deletions:
        if op.topic == key[1] and op.queue_id in (-1, key[2]):
            return False
    its = [_written_by(at, entry.event) for entry in at.step.entries]
    return its.count(key) == 1


def _is_of(op: ProgressOp, key: OffsetKey) -> bool:
    """Whether an op removes or copies an offset."""
    group, topic, _ = key
    match op:
        case DeleteGroup():
            return op.group == group
        case CleanOffsets():
            return op.topic == topic
        case CloneOffset():
            return op.topic == topic and op.target == group
        case _:
            return False


def left_alone(at: At, keys: Collection[OffsetKey]) -> list[OffsetKey]:
    """Those of the removed offsets that nobody else is about in the step.

    A removal that fails puts back what another one may have removed as well. Whoever is
    told names of groups and topics may be told those of before.
    """
    step, asked = at.step, _asked(at.step)
    if any(isinstance(op, CloneOffset | AskBroker) for op in asked):
        return []
    removals = [op for op in asked if isinstance(op, DeleteGroup | CleanOffsets)]
    answers = answers_in(step).values()
    done = [op for op, seen in answers if op in removals and isinstance(seen, Done)]
    have_failed = len(done) < len(removals)
    have_failed |= any(not isinstance(seen, Deleted) for _, seen in step.deletions)
    if have_failed:
        return []
    touched = {*_touched(step)}
    return [key for key in keys if key not in touched]


def _asked(step: Step) -> list[ProgressOp]:
    events = [one.event for one in step.entries]
    return [one.op for one in events if isinstance(one, ProgressAsked)]


def _touched(step: Step) -> Iterator[OffsetKey]:
    """The offsets that requests of the step are about, written or read."""
    for entry in step.entries:
        match entry.event:
            case ProgressAsked(
                CommitOffset() | QueryOffset() | ResetOffset() | TakeQueue() as op
            ):
                yield key_of(op)
            case (
                BrokerPullAsked(_, pull)
                | BrokerPullHeld(_, pull)
                | BrokerPullAnswered(_, pull)
            ):
                yield key_of(pull)
            case _:
                pass
