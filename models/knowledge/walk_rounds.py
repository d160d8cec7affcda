"""What the events of a step say of service rounds, files made or removed, and waits.

A walk goes through the events of one step, updates what is known, and yields the
moments at which laws are asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from crashmq.models.files.index import is_index_file
from crashmq.models.files.places import is_of_a_store
from crashmq.models.history import (
    CheckpointWritten,
    PutAnswered,
    PutAsked,
    ReplicasConfirmed,
    RoundDone,
    StartEnded,
    Step,
    TakenAway,
    TimePassed,
)
from crashmq.models.knowledge.counted import counted, due_index_files
from crashmq.models.knowledge.knowledge import QUEUES
from crashmq.models.knowledge.moments import At, Moment
from crashmq.models.knowledge.moments_of_rounds import (
    FileTaken,
    IndexFilesMade,
    MarkWritten,
    PutsWaited,
    RoundCounted,
    RoundHindered,
    RoundTurned,
    ServiceAsked,
)
from crashmq.models.observations import Positions, Ran, Skipped, Started
from crashmq.models.ops import DiskFault, RunService, innermost

_EVERY_CALL: Final = frozenset({"read", "write", "sync", "create", "remove"})
_FAILS_BY: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        (
            *("reput", "commit", "flush_commit_log", "flush_consume_queue"),
            *("flush_index", "checkpoint", "persist_consumer_offset"),
            *("persist_consumer_filter", "persist_delay_offset"),
            *("clean_commit_log", "clean_consume_queue", "allocate"),
        ),
        _EVERY_CALL,
    ),
    "deliver_delayed": frozenset({"read"}),
}
_OF_REPLICAS = frozenset({ReplicasConfirmed, StartEnded})


def walk_turned(at: At) -> Iterator[Moment]:
    """Walk the rounds of a step, in the order of their ends."""
    step, known = at.step, at.known
    rounds = known.rounds
    if step.crash is not None or at.now.max_phy_offset < 0:
        rounds.end_life()
        return
    if step.starts:
        rounds.begin_life(_end_of_files(at), at.now.max_phy_offset)
    if known.setup.flush_mode == "SYNC_FLUSH" and step.ended.puts and not step.starts:
        yield _puts_waited(at)
    is_clear = step.is_alone and not step.starts
    for number, done in step.turned if not step.starts else ():
        is_set_back = is_clear and rounds.is_set_back(done)
        takes_all = rounds.takes_all(done) if is_clear else None
        bounds = counted(at, done, number)
        if bounds is not None:
            yield RoundCounted(*at, done, *bounds)
        yield RoundTurned(
            *(*at, done, number, takes_all, is_set_back),
            *(rounds.begun_at, rounds.durable_until, rounds.index_until),
        )
        if takes_all and done.service == "flush_consume_queue" and known.works(QUEUES):
            rounds.durable_until = _end_below(at, done.before.reput_from_offset)
        if is_clear and done.service == "flush_index" and _had_to_sync(at, done):
            began = done.before
            rounds.index_until = min(began.flushed_where, began.reput_from_offset)
    if not is_clear or step.raised:
        of_host = [done.service for _, done in step.turned]
        for service in dict.fromkeys((*step.services, *of_host)):
            rounds.saw_unclear(step, service)


def _had_to_sync(at: At, done: RoundDone) -> bool:
    """Whether a flush of the index began with a full file that it had to sync."""
    if not at.known.promises.keeps_what_is_synced:
        return False
    unsynced = dict(done.unsynced or ())
    return any(path in unsynced for path in due_index_files(at, done))


def walk_hindered(at: At, stood: Positions | None) -> Iterator[Moment]:
    """Walk the calls that failed amid rounds of the one service that ran.

    ``stood``: the positions before the step, if they are known.

    Puts and pulls in a round are answered with the failures that they meet; so is who
    waits for a pull that dispatch wakes.
    """
    step, op = at.step, innermost(at.step.op)
    if not isinstance(op, RunService) or step.crash is not None or step.starts:
        return
    others = [one for one in step.acts if not isinstance(one, DiskFault)]
    is_single = others[1:] == [op] * (len(others) - 1)
    if not is_single or any(fault.errno == "EINTR" for fault in step.faults):
        return
    told = _FAILS_BY.get(op.service, frozenset())
    if op.service == "reput" and at.known.setup.keeps_progress:
        told -= {"read"}
    calls = [(one.call, one.path) for one in step.met if one.call in told]
    if calls and not at.known.promises.errors_come_late:
        yield RoundHindered(*at, op.service, calls, stood if op.times == 1 else None)


def saw_replicas(at: At) -> None:
    """Note how far replicas have the log, by what they confirm and what a start found.

    What any queue lists at a start was confirmed before.
    """
    step, rounds = at.step, at.known.rounds
    for entry in step.entries if not step.kinds.isdisjoint(_OF_REPLICAS) else ():
        match entry.event:
            case ReplicasConfirmed(phy_offset):
                least, most = rounds.replicated
                rounds.replicated = max(least, phy_offset), max(most, phy_offset)
            case StartEnded(seen=Started()):
                found = max(at.now.reput_from_offset, _listed_until(at))
                rounds.replicated = (found if step.is_alone else 0), found
            case _:
                pass


def _listed_until(at: At) -> int:
    """Where the newest record with a ConsumeQueue unit ends."""
    queues = at.look.image().consume_queues
    last = [queue.units[-1] for queue in queues if queue.units]
    return max([unit.phy_offset + unit.size for unit in last], default=0)


def walk_asked(at: At) -> Iterator[Moment]:
    """Walk the service that the step was to run by itself."""
    op, seen = at.step.op, at.step.seen
    if isinstance(op, RunService) and isinstance(seen, Ran | Skipped):
        yield ServiceAsked(*at, op.service, isinstance(seen, Ran))


def walk_told(at: At, *, had_failed: bool, lacked_abort: bool) -> Iterator[Moment]:
    """Walk what a store removes, renames, or says to be durable, in that order.

    Args:
        at: a step.
        had_failed: a call to its disk had failed, or one of the step's has.
        lacked_abort: the abort file was gone before a start, though a kill came last.
    """
    amid_start = bool(at.step.starts)
    for entry in at.step.entries:
        match entry.event:
            case TakenAway() as taken:
                yield FileTaken(*at, taken, amid_start)
            case CheckpointWritten() as written:
                yield MarkWritten(*at, written, had_failed, lacked_abort)
            case _:
                pass


def walk_index_files(at: At) -> Iterator[Moment]:
    """Note the names of the index files; yields those that a running store has made.

    A file that was made and removed in one step was seen when it went.
    """
    step, rounds = at.step, at.known.rounds
    if step.crash is not None or at.now.max_phy_offset < 0:
        rounds.index_names = None
        return
    had, newest = rounds.index_names, rounds.newest_index
    taken = [
        entry.event.path for entry in step.entries if isinstance(entry.event, TakenAway)
    ]
    rounds.index_names = _names_in(at.look.files())
    known = rounds.index_names | _names_in(taken)
    if step.starts:
        found = _names_in(step.starts[-1].found)
        rounds.newest_index = max({*known, *found}, default=0)
        return
    rounds.newest_index = max({*known, newest})
    made = sorted(known - had) if had is not None else []
    if made:
        times = [*[entry.at_ms for entry in step.entries], step.world.now_ms]
        yield IndexFilesMade(*at, made, newest, (min(times), max(times)))


def _names_in(paths: Iterable[str]) -> frozenset[int]:
    names = [path.rpartition("/")[2] for path in paths if is_index_file(path)]
    return frozenset([int(name) for name in names])


def _end_of_files(at: At) -> int:
    """Where the newest file of the log ends, even if it is empty."""
    if not at.known.setup.preallocate:
        return -1
    newest = max(
        [
            path
            for path in at.look.files()
            if path.startswith("commitlog/") and is_of_a_store(path, has_index=False)
        ],
        default="",
    )
    return (
        int(newest.rpartition("/")[2]) + at.known.setup.log_file_size if newest else 0
    )


def _end_below(at: At, offset: int) -> int:
    """The end of the newest message that ends at or before ``offset``."""
    for message in reversed(at.known.model.messages):
        if message.end <= offset:
            return message.end
    return 0


def _puts_waited(at: At) -> PutsWaited:
    """How long puts waited for their sync, and which rounds left them waiting."""
    step = at.step
    waits: list[tuple[int, int]] = []
    gave_up: list[int] = []
    left: list[tuple[int, int]] = []
    of_host = _rounds_of_host(step)
    for number, entry in enumerate(step.entries):
        answered = entry.event
        if not isinstance(answered, PutAnswered) or not answered.answers:
            continue  # a batch may be empty
        asked = step.entries[answered.asked].event
        last = answered.answers[-1]
        assert isinstance(asked, PutAsked), asked
        if last.phy_offset < 0 or not asked.messages[0].waits_for_sync:
            continue
        end = last.phy_offset + last.size
        stood_still_ms = _stood_still(step, answered.asked, number, end)
        waits.append((answered.waited_ms, stood_still_ms))
        if last.status == "FLUSH_DISK_TIMEOUT":
            gave_up.append(answered.waited_ms)
        left += [
            (last.phy_offset, ended)
            for (ended, done), (_, later) in pairwise(of_host)
            if answered.asked < done.began
            and end <= done.before.max_phy_offset
            and ended <= later.began < number
        ]
    return PutsWaited(*at, waits, gave_up, left)


def _rounds_of_host(step: Step) -> list[tuple[int, RoundDone]]:
    """The group commit rounds that began because every activity waited."""
    return [
        (number, done)
        for number, done in step.turned
        if done.by_host and done.service == "flush_commit_log"
    ]


def _stood_still(step: Step, asked: int, answered: int, end: int) -> int:
    """For how long a put itself was suspended, in ms.

    Time that passes within a round of the host suspends no put that waits for its sync,
    unless ops ran together and one of them moved the clock. A put whose record, up to
    ``end``, was not in the log when the round began did not wait for its sync yet.
    """
    stood_still_ms = in_round_ms = 0
    for one in step.entries[asked:answered]:
        match one.event:
            case TimePassed(ms, in_round=True) if not step.is_together:
                in_round_ms += ms
            case TimePassed(ms):
                stood_still_ms += ms
            case RoundDone(began=began, before=before):
                if before.max_phy_offset < end:
                    is_older = began < asked
                    asked_ms = step.entries[asked].at_ms
                    stood_still_ms += one.at_ms - asked_ms if is_older else in_round_ms
                in_round_ms = 0
            case _:
                pass
    return stood_still_ms
