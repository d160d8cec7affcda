"""Phrases in which a crash interrupts an op, and the starts that follow."""

from __future__ import annotations

from crashmq.models.ops import Crash, During, Op, Restart, RunService, Shutdown
from crashmq.scenarios.programs.ageing import tell
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.space import Address, InterruptedKind

RETOLD = 4
"""After one crash of so many it is said what the start has taken for durable."""


MAKING = 4
"""One crash of so many comes while the first files of a queue are made."""

NEW_QUEUES = (4, 7)
"""The ids of such queues, at least and at most; others have lower ones."""

NEW_PUTS_MAX = 5
MAKING_ACTIONS = 9
"""The most messages of such a queue, and disk actions that make its first file."""

STREWN = 3
"""Of so many directories of another program one has something else in it."""

FIRST_CUT_SHORT = 2
"""Of so many first starts one is cut short by a crash."""

FIRST_FAILED = 3
"""Of so many first starts one meets a failing disk."""


def first_start(draft: Draft) -> None:
    """Add ops: the first start, on an empty directory or one of another program."""
    chance, space = draft.chance, draft.space
    if draft.setup.begins_with and space.plants and chance.one_in(STREWN):
        draft.add(chance.pick(space.plants))
    if space.crash_kinds and chance.one_in(FIRST_CUT_SHORT):
        for _ in range(max(1, chance.pick(space.recovery_crashes))):
            crash_during(draft, Restart(), chance.number(space.at_actions.restart))
    if space.faults and chance.one_in(FIRST_FAILED):
        at_action = chance.number(space.at_actions.restart)
        draft.add(During(Restart(), at_action, draft.drawn.fault()), *_down(draft))
    draft.add(Restart())


def _down(draft: Draft) -> tuple[Op, ...]:
    """What may take down a store of which nobody knows whether it has started."""
    return (Shutdown(),) if draft.chance.coin() else ()


def restart(draft: Draft) -> None:
    """Add ops: restart the store, after an orderly shutdown or after a crash."""
    if draft.chance.pick(draft.space.orderly_stops):
        draft.add(Shutdown())
    draft.add(Restart())


def crash(draft: Draft) -> None:
    """Add ops: a crash, perhaps crashes of its recovery, and a restart."""
    chance, space = draft.chance, draft.space
    is_making = can_make(draft) and chance.one_in(MAKING)
    begun = making(draft) if is_making else interrupted(draft)
    if is_making and "process_kill" in space.crash_kinds and chance.coin():
        # So that what was made is there, and nobody knows whether it is durable.
        draft.add(During(*begun, Crash("process_kill")))
    else:
        crash_during(draft, *crowded(draft, *begun))
    for _ in range(chance.pick(space.recovery_crashes)):
        at_action = chance.number(space.at_actions.restart)
        crash_during(draft, Restart(), at_action)
    draft.add(Restart())
    if is_making or chance.one_in(RETOLD):
        tell(draft, "flush_consume_queue")


def can_make(draft: Draft) -> bool:
    """Whether new queues may come.

    A broker's topics have the queues that their table says; and a scenario of one queue
    is about damage that a start notices by each record that it reads.
    """
    return not draft.setup.keeps_progress and len({*draft.space.addresses}) > 1


def making(draft: Draft) -> tuple[Op, int]:
    """Add puts into a new queue; returns their dispatch, and a disk action of it.

    After a crash what it has made may be there, and not be durable; or units may be
    there whose messages are lost. After a failure it makes the same again.
    """
    chance, drawn = draft.chance, draft.drawn
    queue = Address(
        chance.pick(draft.space.addresses).topic, chance.integer(*NEW_QUEUES)
    )
    for _ in range(chance.integer(1, NEW_PUTS_MAX)):
        draft.add(drawn.put_into(queue))
    if draft.setup.transient_store_pool:
        draft.add(RunService("commit"))
    if draft.setup.flush_mode == "SYNC_FLUSH" or chance.coin():
        draft.add(RunService("flush_commit_log"))
    return RunService("reput"), chance.integer(1, MAKING_ACTIONS)


def crash_during(draft: Draft, op: Op, at_action: int) -> None:
    """Add the op, interrupted by a crash at one of its disk actions."""
    draft.add(During(op, at_action, draft.drawn.crash()))


def interrupted(draft: Draft) -> tuple[Op, int]:
    """An op, and the number of a disk action of it, at which an event is to happen.

    Before a start, an orderly stop may be added to the draft.
    """
    space = draft.space
    kind = draft.chance.pick(space.interrupted)
    if kind == "restart" and draft.chance.coin():
        draft.add(Shutdown())  # else most of its actions are of a stop
    op = _op_of(draft, kind)
    return op, draft.chance.number(space.at_actions.of(kind))


def _op_of(draft: Draft, kind: InterruptedKind) -> Op:
    match kind:
        case "put":
            is_batch = draft.space.batch_counts and draft.chance.coin()
            return draft.drawn.batch() if is_batch else draft.drawn.put()
        case "service":
            return draft.drawn.service()
        case "shutdown":
            return Shutdown()
        case "restart":
            return Restart()


def crowded(draft: Draft, op: Op, at_action: int) -> tuple[Op, int]:
    """The op, perhaps with a put or service during its first disk action."""
    odds = draft.space.crowded
    # One question the less where there is no choice.
    if len(odds) > 1 and draft.chance.pick(odds):
        event = draft.drawn.put() if draft.chance.coin() else draft.drawn.service()
        return During(op, 1, event), at_action
    return op, at_action
