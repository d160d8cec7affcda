"""Phrases in which the disk fails, and ops that show the effects."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import (
    AdvanceClock,
    DiskFault,
    During,
    Op,
    PullMessage,
    PutMessage,
    QueryMessage,
    Restart,
    RunService,
    ServiceName,
    Shutdown,
)
from crashmq.scenarios.programs.ageing import age, fill, settle
from crashmq.scenarios.programs.crashing import (
    can_make,
    crash,
    crash_during,
    crowded,
    interrupted,
    making,
)
from crashmq.scenarios.programs.draft import THOROUGH_MS, Draft
from crashmq.scenarios.programs.space import FLUSHED_BY, WRITTEN_BY, often
from crashmq.scenarios.programs.spaces import AFTER

FLUSHES: tuple[ServiceName, ...] = often(
    ("flush_commit_log", 2), ("flush_consume_queue", 1), ("checkpoint", 1)
)
FILLED_BY = 12  # messages with keys, of an index file
SPOILED_ROUNDS_MAX = 9

REPEATED = 3  # one op of so many that failed is asked for again
FAILS_AGAIN = 3  # one of so many of these fails as it did
RETRIED_ACTIONS = 4  # at one of so many disk actions a crash may cut that short
MADE_ANEW = 4  # one failure of so many comes while files of a new queue are made
UNMENDED = 3  # in one failure of so many what would undo it fails as well
READ_AFTER = 2  # after one failure of so many somebody reads before it is mended
SPOILS_ANY = 4  # one spoilt sync of so many is any op's, not the file's own flush
TROUBLED = 4  # one full disk of so many comes after a fault


MENDING: tuple[DiskFault, ...] = often(
    (DiskFault("remove", "EIO"), 5),
    (DiskFault("sync", "EIO", after=1), 2),
    (DiskFault("sync", "EIO", 3), 1),
    (DiskFault("create", "EIO"), 1),
)
"""What may fail beside another call, most of it what cleans up after that."""


def fault(draft: Draft) -> None:
    """Add ops: one on a failing disk, and perhaps a crash or start that shows it."""
    chance, space = draft.chance, draft.space
    met = draft.drawn.fault()
    if met.call in ("lose", "misdirect"):
        _spoil(draft, met)
    else:
        _fail(draft, met)
    if chance.coin() and space.crash_kinds:
        crash(draft)  # its effects show after a crash
    elif met.call == "sync" and met.path and chance.coin():
        settle(draft, met.path)


def _fail(draft: Draft, met: DiskFault) -> None:
    """Add an op that runs with this fault."""
    chance, drawn = draft.chance, draft.drawn
    read = _listed(draft) if chance.one_in(READ_AFTER) else None
    op, at_action = _failing(draft, met)
    failing, at_action = crowded(draft, op, at_action)
    is_unmended = failing is op and chance.one_in(UNMENDED)
    if is_unmended:
        failing = During(failing, at_action, chance.pick(MENDING))
    draft.add(During(failing, at_action, met))
    if is_unmended and chance.coin():
        draft.add(Shutdown(), Restart())  # it shows what nobody has let go
    elif read is not None:
        draft.add(read)
    if met.call == "sync" and chance.coin():
        draft.add(drawn.put())  # to be refused, if it was the log's
    if chance.one_in(REPEATED) and not isinstance(op, Shutdown):
        if chance.one_in(FAILS_AGAIN):
            draft.add(During(failing, at_action, met), op)
        elif draft.space.crash_kinds and chance.coin():
            crash_during(draft, op, chance.integer(1, RETRIED_ACTIONS))
            draft.add(Restart())
        else:
            draft.add(op)
    if met.call == "sync" and chance.coin():
        draft.add(evicting(draft), RunService("reput"), drawn.pull())


def _listed(draft: Draft) -> Op:
    """Add a put and its dispatch; returns a read that finds it."""
    chance, put = draft.chance, draft.drawn.put()
    assert isinstance(put, PutMessage), put
    read: Op = PullMessage(put.topic, put.queue_id, 0)
    keys = draft.space.query_keys
    if keys and draft.setup.has_index and chance.coin():
        put = replace(put, keys=chance.pick(keys))
        read = QueryMessage(put.topic, put.keys)
    draft.add(put, RunService("flush_commit_log"), RunService("reput"))
    return read


def _failing(draft: Draft, met: DiskFault) -> tuple[Op, int]:
    """An op for a fault, and at which of its disk actions; often one on its path."""
    chance = draft.chance
    if can_make(draft) and chance.one_in(MADE_ANEW):
        return making(draft)
    services = FLUSHED_BY if met.call == "sync" else WRITTEN_BY
    is_read = met.call == "read"  # mostly by a start
    if met.call == "sync" and met.path != "index" and chance.coin():
        return _due_flush(draft, met.path), 1
    is_aged = draft.setup.cleans and "expire" in draft.space.kinds
    if met.call == "remove" and is_aged and chance.coin():
        return _due_removal(draft), 1
    if met.path not in services or is_read or not chance.coin():
        return interrupted(draft)
    puts = chance.integer(1, FILLED_BY) if met.path == "index" else 1
    for _ in range(puts):
        draft.add(draft.drawn.put())
    draft.add(RunService("flush_commit_log", puts))
    if met.call == "sync" and chance.coin():
        draft.add(RunService("reput"))
    return RunService(services[met.path]), 1


def _due_flush(draft: Draft, path: str) -> Op:
    """A round that syncs, after its interval, below ``path`` if it is given."""
    service = FLUSHED_BY[path] if path in FLUSHED_BY else draft.chance.pick(FLUSHES)
    draft.add(draft.drawn.put(), RunService("reput"))
    if service != "flush_commit_log" and draft.chance.coin():
        draft.add(RunService("flush_commit_log"))
    draft.add(draft.drawn.put(), AdvanceClock(THOROUGH_MS))
    return RunService(service)


def _due_removal(draft: Draft) -> Op:
    """A round of a cleaner that has files to remove."""
    age(draft)
    if draft.chance.coin():
        return RunService("clean_commit_log")
    draft.add(RunService("clean_commit_log"))
    return RunService("clean_consume_queue")


def _spoil(draft: Draft, met: DiskFault) -> None:
    """Add ops: pages of a sync are lost or misdirected."""
    chance = draft.chance
    if chance.one_in(SPOILS_ANY):
        spoilt = crowded(draft, *interrupted(draft))
    else:
        service = FLUSHED_BY.get(met.path, "flush_commit_log")
        if chance.coin():
            draft.add(RunService("reput"))
        spoilt = RunService(service, chance.integer(1, SPOILED_ROUNDS_MAX)), 1
    draft.add(During(*spoilt, met))
    if chance.coin():
        draft.add(evicting(draft), draft.drawn.pull(), draft.drawn.pull())


def evicting(draft: Draft) -> Op:
    """An op while the page cache drops clean pages: reads then show the medium."""
    return During(draft.drawn.service(), AFTER, DiskFault("evict", "EIO"))


def fill_after_all(draft: Draft) -> None:
    """Add ops: fill the disk, perhaps after a fault that freed room does not mend."""
    if draft.chance.one_in(TROUBLED):
        fault(draft)
    fill(draft)
