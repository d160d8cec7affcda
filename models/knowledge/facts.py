"""Facts: the conditions under which a law is asked, each with its reason, in one table.

A law that is asked although a condition fails reports false alarms; one that is never
asked finds nothing. So each law declares its conditions where it is asked, and the
judge counts how often which condition excused which law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Final

from crashmq.models.files.config_files import BACKUP, ENDS_PATH
from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.history import LocksAnswered, LocksReturned, PutAsked
from crashmq.models.knowledge.knowledge import DISPATCHED, LOG, QUEUES, End
from crashmq.models.knowledge.moments import (
    CommitAnswered,
    FilteredPullOver,
    LowestAnswered,
    Moment,
    OffsetsRecovered,
    PullOver,
    PutOver,
    QueryBeside,
    QueryOver,
    QueueBegun,
    ResetAnswered,
    SearchOver,
    TimeFound,
)
from crashmq.models.knowledge.moments_of_consumers import (
    GroupCaughtUp,
    GroupIdle,
    LockAnswered,
)
from crashmq.models.knowledge.moments_of_pulls import PullAnswered, PullKept
from crashmq.models.knowledge.reference import QueueKey, ReferenceModel
from crashmq.models.ops import Capability, Crash, DiskFault, During, EndConsumer


class Fact(Enum):
    """A condition that holds at a moment or not; its value is the reason for it."""

    ALONE = "nothing else ran at the same time, so the op alone made its effects"
    NO_OTHER_OP = (
        "no other op ran at the same time, so nobody else held or changed files"
    )
    LIVES = "no crash came while the op ran, so it ran to its end"
    NOT_STOPPING = "no shutdown began, which refuses callers and ends their waits"
    NOTHING_RAISED = "no call to the store raised, so none is half done"
    DISK_WORKED = "no disk call has failed since the store started"
    LOG_WORKED = "no call on CommitLog files has failed since the store started"
    QUEUES_WORKED = "no call on ConsumeQueue files has failed since the store started"
    DISK_WORKS = "no disk call failed in this step"
    HAD_ROOM = "no disk call has met a full disk since the store started"
    READS_WORKED = "no read was made to fail, so a start saw the files as they are"
    OFFSETS_STAY = "only crashes, no damage, came over the persisted consumer offsets"
    DELAYS_STAY = "only crashes, and no damage, came over the persisted delay offsets"
    DELAYS_LACK_NOTHING = "no delay offset was ever changed from outside"
    READABLE = "every sector of the files can be read"
    SYNCED_STAYS = "the disk keeps its promise: what a sync covered is on the medium"
    WRITTEN_STAYS = "what was written and not synced can still be read"
    UNTOUCHED = "no file of the store was changed from outside since its last start"
    VALUES_ARE_OURS = "nobody has edited a config file, so its values are the broker's"
    ENDS_ARE_OURS = "nobody has edited the broker's table of where its queues ended"
    UNDAMAGED_LOG = "the store does not serve around damage; other laws are for that"
    FILES_ARE_OURS = "a start of ours has taken over what another program left"
    ABORT_IS_OURS = "the abort file was not removed from outside: starts can trust it"
    END_IS_KNOWN = "no crash or fault hit the creation or removal of the abort file"
    CHECKPOINT_IS_WHOLE = "no crash tore the checkpoint's times, which no CRC protects"
    KNEW_POSITIONS = "the store's positions before the step are known"
    LIFE_IS_KNOWN = "the store has just started, or all it did since then is known"
    QUEUE_IS_SETTLED = "it is certain how far the queue is dispatched, and if deleted"
    TOPIC_STAYS = "no other op deleted the topic while the op ran"
    TOPIC_IS_SETTLED = "nothing in the step made or deleted the topic, or lost it"
    TOPIC_STANDS = "no deletion of the queue's topic has begun, unless it ended"
    MAY_CONSUME = "an administrator lets the consumers of the group pull, for certain"
    LOCK_IS_SETTLED = (
        "nobody else asked for the queue's lock, or gave it back, meanwhile"
    )
    ANSWERS_ALL = "every put was answered, so it is known what the store counts"
    CONTENT_IS_KNOWN = "it is known which messages of the queue survived the last crash"
    READING_IS_KNOWN = "the store reports its dispatch progress, or dispatches at once"
    STORES_AS_ROCKETMQ = "the subject has RocketMQ's files, records and refusals"
    TURNS_SERVICES = "the subject's services run only when the harness runs them"
    HAS_CLOCK = "the subject's time moves only when the harness moves it"
    STEPS_IN = "the subject counts its disk actions, and something may happen at each"
    RUNS_SEVERAL = "several ops can run in the subject at the same time"
    LOSES_POWER = "the subject tells which data it has not synced"
    TAKES_DAMAGE = "the subject's files can be changed while it is down"
    FINDS_STORES = "the subject can start on a directory that RocketMQ wrote"
    HAS_ROOM = "foreign files can fill the subject's disk"
    PUTS_BATCHES = "the subject takes batches of messages"
    SEARCHES = "the subject finds messages by phy_offset, time or key"
    DELETES = "the subject deletes topics and expired files"
    TRACKS_PROGRESS = "the subject stores the offsets of consumer groups"
    RUNS_CONSUMERS = "the subject has consumers that the harness runs step by step"
    HOLDS_PULLS = "the subject answers a group's pulls, at once or later"
    FILTERS = "the subject filters messages by a group's subscription"
    IS_REPLICATED = "the subject can be told how far its replicas have its log"
    DELIVERS_DELAYED = "the subject delays messages and reports their delivery"
    TELLS_POSITIONS = "the subject reports its log's positions"
    TELLS_COUNTS = "the subject reports how many puts it has counted"
    TELLS_WHAT_IT_HOLDS = "the subject reports which files and locks it holds"

    @property
    def label(self) -> str:
        """Its name in rows and tables, in lower case."""
        return self.name.lower()


CAPABILITIES: Final[Mapping[Fact, Capability]] = {
    Fact[one.name]: one for one in Capability if one.name in Fact.__members__
}
"""The facts that hold for a subject or do not, whatever happens to it.

No law asks whether something can happen amid an op, whether calls can be made to fail,
or whether disks can be copied: where that is so, more can be tried.
"""


def decided_by(capabilities: frozenset[Capability]) -> Mapping[Fact, bool]:
    """The facts whose value follows from a subject's capabilities alone."""
    decided = {fact: one in capabilities for fact, one in CAPABILITIES.items()}
    decided[Fact.READING_IS_KNOWN] = _says_how_far(capabilities)
    if shows_content(capabilities):
        decided[Fact.CONTENT_IS_KNOWN] = True
    return decided


def shows_content(capabilities: frozenset[Capability]) -> bool:
    """Whether files and positions show a store's content, also after a crash."""
    return capabilities >= {Capability.STORES_AS_ROCKETMQ, Capability.TELLS_POSITIONS}


def _says_how_far(capabilities: frozenset[Capability]) -> bool:
    tells = Capability.TELLS_POSITIONS in capabilities
    return tells or Capability.TURNS_SERVICES not in capabilities


def is_half_dispatched(at: Moment, key: QueueKey) -> bool:
    """Whether a queue may list a message that the index or a light queue lacks.

    So it is if the disk failed between the two writes, or the queue's deletion was
    interrupted.
    """
    model, setup = at.known.model, at.known.setup
    if model.is_unsettled(key):
        return True
    may_fail = (
        not at.known.works(DISPATCHED) or setup.disk_capacity > 0
    )  # full disks fail too
    if not (may_fail and (setup.has_index or setup.multi_dispatch)):
        return False
    queue = model.queues.get(key, [])
    return any(m.phy_offset == model.reput_from_offset for m in queue)


def _alone(at: Moment) -> bool:
    return at.step.is_alone


def _no_other_op(at: Moment) -> bool:
    step = at.step
    if step.is_alone:
        return True
    no_op = During | Crash | DiskFault
    ops = [one for one in step.acts if not isinstance(one, no_op)]
    return len(ops) == 1 and not step.is_together


def _lives(at: Moment) -> bool:
    return at.step.crash is None


def _not_stopping(at: Moment) -> bool:
    return not at.step.is_stopping


def _nothing_raised(at: Moment) -> bool:
    return not at.step.raised


def _disk_worked(at: Moment) -> bool:
    return not at.known.disk_failed


def _log_worked(at: Moment) -> bool:
    return at.known.works(LOG)


def _queues_worked(at: Moment) -> bool:
    return at.known.works(QUEUES)


def _disk_works(at: Moment) -> bool:
    return not at.step.fails_calls


def _had_room(at: Moment) -> bool:
    return at.known.expiry.had_room(at.step.world)


def _reads_worked(at: Moment) -> bool:
    return not at.step.fails_reads


def _readable(at: Moment) -> bool:
    return not at.step.is_unreadable


def _synced_stays(at: Moment) -> bool:
    return at.known.promises.keeps_what_is_synced


def _written_stays(at: Moment) -> bool:
    return not at.known.promises.reverts


def _untouched(at: Moment) -> bool:
    return not at.known.tampering.damaged


def _offsets_stay(at: Moment) -> bool:
    if isinstance(at, OffsetsRecovered):
        return not at.recovered.is_doubtful
    return not (at.known.progress.is_doubtful or at.known.tampering.damaged)


def _delays_stay(at: Moment) -> bool:
    return not (at.known.delays.is_doubtful or at.known.delays.may_lack)


def _delays_lack_nothing(at: Moment) -> bool:
    return not at.known.delays.may_lack


def _values_are_ours(at: Moment) -> bool:
    return not at.known.tampering.reworded


def _ends_are_ours(at: Moment) -> bool:
    return at.known.tampering.reworded.isdisjoint({ENDS_PATH, ENDS_PATH + BACKUP})


def _undamaged_log(at: Moment) -> bool:
    return not at.known.is_degraded


def _files_are_ours(at: Moment) -> bool:
    return not at.known.tampering.is_found


def _abort_is_ours(at: Moment) -> bool:
    return not at.known.tampering.abort_taken


def _end_is_known(at: Moment) -> bool:
    return at.known.end is not End.UNKNOWN


def _checkpoint_is_whole(at: Moment) -> bool:
    return not at.known.checkpoint_is_torn


def _knew_positions(at: Moment) -> bool:
    return at.known.positions is not None


def _answers_all(at: Moment) -> bool:
    return not at.known.model.in_flight


def _life_is_known(at: Moment) -> bool:
    known = at.known
    stood = known.positions is not None and not known.disk_failed
    return bool(at.step.starts) or stood


def _queue_is_settled(at: Moment) -> bool:
    match at:
        case (
            PullOver(pull=read)
            | SearchOver(search=read)
            | FilteredPullOver(pull=read)
            | PullAnswered(pull=read)
            | PullKept(pull=read)
        ):
            return not is_half_dispatched(at, (read.topic, read.queue_id))
        case CommitAnswered() | ResetAnswered() | QueueBegun():
            return not is_half_dispatched(at, at.key[1:])
        case TimeFound(key=key):
            return not is_half_dispatched(at, key)
        case LowestAnswered(possible=queues):
            keys = [(at.topic, queue_id) for queue_id in queues]
            return not any(is_half_dispatched(at, key) for key in keys)
        case QueryOver(query=query):
            return not _may_be_deleted(at.known.model, query.topic)
        case _:
            raise AssertionError(f"no queue is asked of in {at}")


def _may_be_deleted(model: ReferenceModel, topic: str) -> bool:
    return any(key[0] == topic for key in model.may_be_deleted)


def _topic_stays(at: Moment) -> bool:
    deleted = [op.topic for op, _ in at.step.deletions]
    if isinstance(at, QueryBeside):
        return at.query.topic not in deleted
    assert isinstance(at, PullOver | PullAnswered | FilteredPullOver), at
    return at.step.is_alone or at.pull.topic not in deleted


def _topic_is_settled(at: Moment) -> bool:
    """Whether a topic is known throughout a step, or unknown throughout."""
    step = at.step
    if step.is_alone:
        return True
    assert isinstance(at, PullAnswered | PullKept), at
    topic = at.pull.topic
    is_up = step.crash is None and not (step.starts or step.is_stopping)
    put = {
        message.destination[0]
        for _, _, event in step.entries
        if isinstance(event, PutAsked)
        for message in event.messages
    }
    gone = [op for op, _ in step.deletions if op.topic == topic]
    return is_up and not topic.startswith("%") and topic not in put and not gone


def _lock_is_settled(at: Moment) -> bool:
    step = at.step
    if step.is_alone:
        return True
    assert isinstance(at, LockAnswered), at
    ends = any(isinstance(act, EndConsumer) for act in step.acts)
    if step.crash is not None or step.starts or ends:
        return False
    others = [
        event
        for _, _, event in step.entries
        if isinstance(event, LocksAnswered | LocksReturned)
        and event.client != at.queue.client
    ]
    return not others


def _topic_stands(at: Moment) -> bool:
    assert isinstance(at, GroupCaughtUp | GroupIdle), at
    is_made = at.key[1] != RETRY_PREFIX  # else it is no group's
    return is_made and at.key[1] not in at.known.progress.topics.half_deleted


def _may_consume(at: Moment) -> bool:
    assert isinstance(at, GroupCaughtUp | GroupIdle), at
    group, _, _ = at.key[0].partition("@")  # one that broadcasts reads for itself
    known, groups = at.known, at.known.progress.groups
    its_own = at.key[1].removeprefix(RETRY_PREFIX)
    # Nobody makes the retry topic of a group without retries, and its messages stay.
    is_lost = its_own != at.key[1] and its_own in groups.unretried
    return known.setup.lets_read and group not in groups.barred and not is_lost


def _content_is_known(at: Moment) -> bool:
    match at:
        case (
            PullOver(pull=asked) | PutOver(message=asked) | FilteredPullOver(pull=asked)
        ):
            return not at.known.doubts((asked.topic, asked.queue_id))
        case _:
            raise AssertionError(f"no queue is asked of in {at}")


def _reading_is_known(at: Moment) -> bool:
    return _says_how_far(at.known.capabilities)


def _can(capability: Capability, at: Moment) -> bool:
    return capability in at.known.capabilities


HOLDS: Final[Mapping[Fact, Callable[[Moment], bool]]] = {
    Fact.ALONE: _alone,
    Fact.NO_OTHER_OP: _no_other_op,
    Fact.LIVES: _lives,
    Fact.NOT_STOPPING: _not_stopping,
    Fact.NOTHING_RAISED: _nothing_raised,
    Fact.DISK_WORKED: _disk_worked,
    Fact.LOG_WORKED: _log_worked,
    Fact.QUEUES_WORKED: _queues_worked,
    Fact.DISK_WORKS: _disk_works,
    Fact.READS_WORKED: _reads_worked,
    Fact.OFFSETS_STAY: _offsets_stay,
    Fact.DELAYS_STAY: _delays_stay,
    Fact.DELAYS_LACK_NOTHING: _delays_lack_nothing,
    Fact.HAD_ROOM: _had_room,
    Fact.READABLE: _readable,
    Fact.SYNCED_STAYS: _synced_stays,
    Fact.WRITTEN_STAYS: _written_stays,
    Fact.UNTOUCHED: _untouched,
    Fact.VALUES_ARE_OURS: _values_are_ours,
    Fact.ENDS_ARE_OURS: _ends_are_ours,
    Fact.UNDAMAGED_LOG: _undamaged_log,
    Fact.FILES_ARE_OURS: _files_are_ours,
    Fact.ABORT_IS_OURS: _abort_is_ours,
    Fact.END_IS_KNOWN: _end_is_known,
    Fact.CHECKPOINT_IS_WHOLE: _checkpoint_is_whole,
    Fact.KNEW_POSITIONS: _knew_positions,
    Fact.LIFE_IS_KNOWN: _life_is_known,
    Fact.QUEUE_IS_SETTLED: _queue_is_settled,
    Fact.TOPIC_STAYS: _topic_stays,
    Fact.ANSWERS_ALL: _answers_all,
    Fact.TOPIC_IS_SETTLED: _topic_is_settled,
    Fact.TOPIC_STANDS: _topic_stands,
    Fact.MAY_CONSUME: _may_consume,
    Fact.LOCK_IS_SETTLED: _lock_is_settled,
    Fact.CONTENT_IS_KNOWN: _content_is_known,
    Fact.READING_IS_KNOWN: _reading_is_known,
    **{fact: partial(_can, one) for fact, one in CAPABILITIES.items()},
}
"""How each fact is told from a moment."""
