"""The walk through the broker's deliveries of delayed messages and their offsets.

A delivery is a put by the broker and walked as one. The message delivered is looked up
in the model, in the queue of its level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from crashmq.models.appended import Appended
from crashmq.models.files.delays import DELAYS_BACKUP, DELAYS_PATH, read_delays
from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.history import (
    DelaysLoaded,
    FileDamaged,
    FilePlanted,
    PutAnswered,
    PutAsked,
    Start,
    Step,
)
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.knowledge.moments import (
    At,
    DelaysPersisted,
    DelaysRecovered,
    DelaysWritten,
    DeliveryRoundOver,
    LevelsUnread,
    MessageDelivered,
    Moment,
)
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Put, Ran, Started
from crashmq.models.ops import Damage, DiskFault, RunService, innermost

DELIVER = "deliver_delayed"
PERSIST = "persist_delay_offset"
CLEANER = "clean_commit_log"


def walk_delivery(
    at: At, message: MessageToPut, answer: Put
) -> Iterator[MessageDelivered]:
    """Walk one answered delivery; the model does not have its record yet."""
    delays = at.known.delays
    level = message.delay_level
    expected = max(delays.next_of(level), bounds(at.known, level)[0])
    waited = _waiting(at.known, level, message, expected)
    latest = max(expected, _first_left(at, level))
    asked_ms = _asked_ms(at.step, answer)
    yield MessageDelivered(*at, message, answer, waited, expected, latest, asked_ms)
    if waited is not None and answer.phy_offset >= 0:
        delays.skip(level, min(waited.queue_offset, latest))
        delays.deliver(level, waited.queue_offset, answer.phy_offset + answer.size)


def _first_left(at: At, level: int) -> int:
    """The lowest offset of a level's queue that a cleaner has certainly left."""
    known, model = at.known, at.known.model
    gone_below = model.may_expire
    if CLEANER in at.step.services:
        gone_below = max(gone_below, at.now.min_phy_offset)
        if at.now.max_phy_offset < 0 or at.step.fails_calls or at.step.is_stopping:
            # A queue passes over what expired before its file goes.
            gone_below = max(gone_below, known.expirable_in(at.step))
    queue = model.queues.get(queue_of(level), [])
    # If all of them went, it is the last one that went last.
    last = queue[-1].queue_offset if queue else 0
    left = (one.queue_offset for one in queue if one.phy_offset >= gone_below)
    return next(left, last)


def queue_of(level: int) -> tuple[str, int]:
    """The queue in which the messages of a level wait."""
    return SCHEDULE_TOPIC, level - 1


def _waiting(
    known: Knowledge, level: int, message: MessageToPut, begin: int
) -> Appended | None:
    """The message of a level's queue that was delivered; None: there is none.

    If consumers have sent one message back more than once, its copies are ranked: first
    those not delivered yet, oldest first, then the one delivered last; in each case
    those with the same queue and reconsume times first. ``begin`` is the offset of the
    next message that the level has to deliver.
    """

    def rank(one: Appended) -> tuple[bool, bool, int]:
        is_over = one.queue_offset < begin
        is_other = not _is_copy(one.message, message)
        return is_over, is_other, -one.queue_offset if is_over else one.queue_offset

    queue = known.model.queues.get(queue_of(level), [])
    copies = [one for one in queue if one.message.unique_key == message.unique_key]
    return min(copies, key=rank, default=None)


def _is_copy(waited: MessageToPut, message: MessageToPut) -> bool:
    is_its_queue = waited.real_topic == message.topic
    is_its_queue = is_its_queue and waited.real_queue_id == message.queue_id
    return is_its_queue and waited.reconsume_times == message.reconsume_times


def _asked_ms(step: Step, answer: Put) -> int:
    """When the put with this answer began, by the store's clock."""
    for entry in step.entries:
        event = entry.event
        if isinstance(event, PutAnswered) and answer in event.answers:
            asked = step.entries[event.asked]
            assert isinstance(asked.event, PutAsked), asked
            return asked.at_ms
    raise AssertionError(f"no event has the answer {answer}")


def walk_rounds(at: At) -> Iterator[Moment]:
    """Walk what delivery rounds left waiting, and what persists have written."""
    step, known = at.step, at.known
    op, seen = step.op, step.seen
    if isinstance(op, RunService) and op.service == DELIVER and isinstance(seen, Ran):
        yield DeliveryRoundOver(*at, _left_waiting(known, _refused_levels(step)))
        for topic, queue_id in known.model.queues if step.is_alone else ():
            if topic == SCHEDULE_TOPIC:
                known.delays.skip(queue_id + 1, bounds(known, queue_id + 1)[0])
    elif step.raised and (unread := _levels_not_read(step)):
        yield LevelsUnread(*at, _left_waiting(known, _refused_levels(step) | unread))
    done = [
        one
        for one in step.rounds
        if one.service == PERSIST
        and isinstance(one.seen, Ran)
        and step.must_have_written(one.seen.work)
    ]
    if not done or step.starts or step.crash is not None:
        return
    is_round = isinstance(step.op, RunService) and step.is_alone
    files = at.look.files()
    yield DelaysWritten(*at, files)
    if is_round:
        yield DelaysPersisted(*at, files, at.now.flushed_where)
    rows = read_delays(bytes(files.get(DELAYS_PATH, b"")))
    if rows is not None and not step.fails_calls:
        known.delays.persisted(rows)


def _levels_not_read(step: Step) -> frozenset[int]:
    """The levels whose queues a round of delivery could not read; none if more failed.

    The round must have been a single one that nothing else ran beside.
    """
    op = innermost(step.op)
    is_round = isinstance(op, RunService) and (op.service, op.times) == (DELIVER, 1)
    others = [one for one in step.acts if not isinstance(one, DiskFault)]
    if not is_round or others[1:] != [op] * (len(others) - 1):
        return frozenset()
    prefix = f"consumequeue/{SCHEDULE_TOPIC}/"
    hit = [(one.call, one.path) for one in step.met]
    if step.crash or not all(c == "read" and p.startswith(prefix) for c, p in hit):
        return frozenset()
    return frozenset([int(path.split("/")[2]) + 1 for _, path in hit])


def _refused_levels(step: Step) -> frozenset[int]:
    """The levels of which a delivery was refused; laws of puts judge that."""
    levels = [
        message.delay_level
        for message, answer in step.puts
        if message.is_delivered and answer is not None and answer.phy_offset < 0
    ]
    return frozenset(levels)


def _left_waiting(known: Knowledge, refused: Set[int]) -> dict[int, Appended]:
    """By level, the first waiting message that can be read.

    A level of which a delivery was ``refused`` is left out: it stays there until the
    next round.
    """
    first: dict[int, Appended] = {}
    for topic, queue_id in known.model.queues:
        if topic != SCHEDULE_TOPIC or queue_id + 1 in refused:
            continue
        offset = known.delays.next_of(queue_id + 1)
        for appended in known.model.visible((topic, queue_id)).messages:
            if appended.queue_offset >= offset and appended.message.real_topic:
                first[queue_id + 1] = appended
                break
    return first


def walk_stop(at: At) -> Iterator[Moment]:
    """Walk an orderly stop, which syncs the log before it persists the offsets."""
    step, known = at.step, at.known
    if known.disk_failed or step.fails_calls:
        return
    if not known.expiry.has_room_for_tables(step.world):
        return
    if step.is_alone and not step.starts and step.crash is None:
        yield DelaysPersisted(*at, at.look.files(), known.model.end)
    known.delays.stopped()


def walk_loaded(at: At, start: Start, number: int) -> Iterator[Moment]:
    """Walk the delay offsets that the start with index ``number`` has loaded."""
    if not isinstance(start.seen, Started):
        return
    events = [entry.event for entry in at.step.entries]
    rows = [event.offsets for event in events if isinstance(event, DelaysLoaded)]
    starts = at.step.starts[:number]
    succeeded = [one for one in starts if isinstance(one.seen, Started)]
    if len(rows) <= len(succeeded):
        return  # it does not tell them
    offsets = dict(rows[len(succeeded)])
    delays = at.known.delays
    yield DelaysRecovered(*at, start.found, offsets)
    has_table = DELAYS_PATH in start.found or DELAYS_BACKUP in start.found
    delays.load(offsets, is_persisted=has_table)


def saw_what_else(at: At) -> None:
    """Note what other than a crash may have changed the persisted offsets."""
    step, known = at.step, at.known
    promises, delays = known.promises, known.delays
    if promises.reverts:
        delays.is_doubtful = delays.may_lack = True
    for entry in step.entries:
        if isinstance(entry.event, FileDamaged | FilePlanted):
            delays.is_doubtful = True
            delays.may_lack |= not _only_forgets(step)
    crash = step.crash
    if crash is None:
        return
    is_lost = crash.kind == "power_loss" and not promises.keeps_what_is_synced
    if is_lost or promises.is_broken_by(crash.kind):
        delays.is_doubtful = delays.may_lack = True


def _only_forgets(step: Step) -> bool:
    """Whether damage can only make tables unreadable, so that the backup is used.

    A table that is cut, zeroed or removed cannot be read, and its backup is older.
    """
    kinds = [one.kind for one in step.acts if isinstance(one, Damage)]
    places = [one.path for one in step.damaged]
    is_of_a_table = all(path.startswith("config/") for path in places)
    is_harmless = all(kind in ("truncate", "zero", "delete") for kind in kinds)
    return is_of_a_table and is_harmless and not step.planted


def bounds(known: Knowledge, level: int) -> tuple[int, int]:
    """The first offset of a level's queue, and its end, undispatched ones included."""
    key = queue_of(level)
    return known.model.visible(key).min_offset, known.model.next_queue_offset(key)


def undelivered(
    known: Knowledge, before: Mapping[int, int] | None = None
) -> list[Appended]:
    """The delayed messages without a delivered copy in the log.

    Of each level only those below the offset in ``before``; None: all.
    """
    model = known.model
    delivered = {
        one.message.unique_key for one in model.messages if one.message.is_delivered
    }
    return [
        one
        for (topic, queue_id), queue in model.queues.items()
        if topic == SCHEDULE_TOPIC
        for one in queue
        if one.phy_offset >= model.log_min
        and one.message.real_topic
        and one.message.unique_key not in delivered
        and (before is None or one.queue_offset < before.get(queue_id + 1, 0))
    ]
