"""What a service round has done, counted from outside, whatever it reports itself.

Removed files, delivered messages and answered pulls are events of the step. Whether a
checkpoint, a table or a file was written shows in the disk actions, and what a flush
has made durable shows on the medium.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.history import (
    BrokerPullAnswered,
    Happening,
    PutAnswered,
    PutAsked,
    RoundDone,
    TakenAway,
)
from crashmq.models.knowledge.moments import At

_CLEANERS: Final = frozenset({"clean_commit_log", "clean_consume_queue"})
_DATA: Final = ("commitlog/", "consumequeue/", "consumequeue_ext/", "index/")
_WRITERS: Final = frozenset(
    {
        *("checkpoint", "allocate", "persist_consumer_offset"),
        *("persist_consumer_filter", "persist_delay_offset"),
    }
)


class Counted(NamedTuple):
    """Bounds of the work that a round has to report."""

    least: int
    most: int


def counted(at: At, done: RoundDone, number: int) -> Counted | None:
    """How much work a round did that ended as entry ``number`` of the step.

    None: nobody outside can count it. Rounds of the host that ran amid it are no work
    of its own, so nothing is counted.
    """
    events = [entry.event for entry in at.step.entries[done.began : number]]
    if any(isinstance(event, RoundDone) for event in events):
        return None
    if done.service in _CLEANERS:
        taken = [one.path for one in events if isinstance(one, TakenAway)]
        return _exactly(len([path for path in taken if path.startswith(_DATA)]))
    if done.service in _WRITERS:
        return _exactly(int(done.actions > 0))
    if done.service == "pull_request_hold":
        answered = len([one for one in events if isinstance(one, BrokerPullAnswered)])
        # Those of consumers have no event of their own.
        return Counted(answered, answered) if not _has_consumers(at) else None
    if done.service == "deliver_delayed":
        return _delivered(at, events)
    return _flushed(at, done)


def _exactly(number: int) -> Counted:
    return Counted(number, number)


def _has_consumers(at: At) -> bool:
    consumption = at.known.consumption
    return bool(consumption.living or consumption.newest)


def _delivered(at: At, events: list[Happening]) -> Counted | None:
    """The messages of which copies were put; None if others may have been passed."""
    model = at.known.model
    is_addressed = all(
        one.message.real_topic
        for (topic, _), queue in model.queues.items()
        if topic == SCHEDULE_TOPIC
        for one in queue
    )
    if not is_addressed:
        return None
    put = [
        answer
        for event in events
        if isinstance(event, PutAnswered)
        and _is_of_a_delivery(at.step.entries[event.asked].event)
        for answer in event.answers
        if answer.phy_offset >= 0
    ]
    return _exactly(len(put))


def _is_of_a_delivery(asked: Happening) -> bool:
    assert isinstance(asked, PutAsked), asked
    return any(message.is_delivered for message in asked.messages)


def _flushed(at: At, done: RoundDone) -> Counted | None:
    """The files that a flush of queues or of the index has surely synced, and all.

    The medium is known at the end of the step, so it must have been the only round.
    """
    if done.unsynced is None or len(at.step.turned) > 1:
        return None
    left, before = at.look.unsynced_from(), dict(done.unsynced)
    if done.service == "flush_index":
        due = due_index_files(at, done)
        synced = [path for path in due if path in before and path not in left]
        return Counted(len(synced), len(due))
    queues = [path for path in at.look.files() if path.startswith("consumequeue/")]
    # At byte 0 the name may be what was not durable, which another file's sync changes.
    synced = [path for path in queues if 0 < before.get(path, 0) != left.get(path)]
    return Counted(len(synced), len(queues))


def due_index_files(at: At, done: RoundDone) -> list[str]:
    """The full index files all of whose records were flushed when a round began."""
    index = at.look.image().index(at.known.setup.index_slots)
    return [
        path
        for path, file in index.files
        if file.is_full and file.header.end_phy_offset < done.before.flushed_where
    ]
