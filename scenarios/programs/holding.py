"""Phrases in which the broker holds pulls, and what happens to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from crashmq.models.limits import QUEUES_OF_A_TOPIC, SHORT_POLLING_MS, SUSPEND_MS
from crashmq.models.ops import (
    AdvanceClock,
    ChangeConfig,
    ChangeTopic,
    CommitOffset,
    ConfigureGroup,
    ConfirmLog,
    During,
    ExpressionType,
    Op,
    Option,
    PullThroughBroker,
    PutMessage,
    QueryOffset,
    ResetOffset,
    Restart,
    RunService,
    Schedule,
    Shutdown,
    Subscribe,
    TakeQueue,
    Together,
)
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.expressions import drawn_expression
from crashmq.scenarios.programs.lapsing import lapse
from crashmq.scenarios.programs.space import Address, Numbers, often, schedule_of

LOOK = RunService("pull_request_hold")
REPUT = RunService("reput")
PULLS_MAX = 3
AT_ACTIONS = often((1, 5), (2, 2), (3, 1), (4, 1), (6, 1), (9, 1), (12, 1))
"""Where something happens during a round of dispatch; most rounds make few actions."""

LIGHT = "%LMQ%a"
EARLY = Schedule("preempt", depth=1, steps=7)
"""Of two who meet the first is stopped early, until the other one has ended."""
ANYWHERE = Schedule("preempt", depth=1, steps=30)
"""The same, at any point of a pull until it is held."""

RIVALS: tuple[Op, ...] = often((REPUT, 4), (Shutdown(), 1))
"""Who runs meanwhile."""

STRANGE_TOPICS = often(
    (LIGHT, 3), ("nobody", 1), ("TBW102", 1), ("%LMQ%nobody", 1), ("%LMQ%", 1)
)
STRANGE_QUEUES = often((1, 3), (8, 2), (7, 1), (-1, 1), (1000, 1))
"""Past the queues that a topic has, of which most have eight and light ones one."""

Way: TypeAlias = Literal[
    "arrival",
    "look",
    "time",
    "beside",
    "amid",
    "end",
    "crash",
    "progress",
    "barred",
    "closed",
    "fault",
    "strange",
]
WAYS: tuple[Way, ...] = often(
    ("arrival", 5),
    ("look", 3),
    ("time", 5),
    ("beside", 8),
    ("amid", 2),
    ("end", 2),
    ("crash", 2),
    ("progress", 5),
    ("barred", 2),
    ("closed", 4),
    ("fault", 5),
    ("strange", 2),
)
BEHIND_THE_END = often((0, 12), (1, 2), (-1, 1), (3, 1))
"""How far before the queue's end a pull begins, by what is known of it."""

QUEUE_NUMS = (8, 9, 10, 12)
"""Of a topic that is changed: as many as a new one has, or more."""
SUBSCRIBED = 3
"""Before so many pulls that a broker with filters holds its group subscribes."""

WAITS = often((True, 9), (False, 1))
TIMES_MS = often(
    *((SUSPEND_MS, 3), (SUSPEND_MS - 1, 2), (5000, 2), (40_000, 1)),
    *((SHORT_POLLING_MS, 1), (SHORT_POLLING_MS - 1, 1)),
)
BEHIND = Numbers((*(0,) * 9, 1, 131, 300), 1500)
"""How many bytes replicas lack: they may end anywhere in a record or a BLANK."""

BESIDE: tuple[str, ...] = often(
    ("pull", 3), ("put", 2), ("reput", 5), ("look", 3), ("stop", 1), ("commit", 1)
)
BESIDE_MAX = 4
LITE = 6
"""One of so many pulls is a lite one."""
CLOSES: tuple[Option, ...] = often(("lets_read", 2), ("takes_lite_pulls", 1))
SELDOM = 30
"""So often a pull carries an expression to a broker that does not filter by such."""


def hold(draft: Draft) -> None:
    """Add ops: pulls at the end of a queue, mostly held, and what may wake them."""
    chance, add = draft.chance, draft.add
    if chance.coin():
        _deliver(draft)
    address = chance.pick(draft.space.addresses)
    if draft.setup.multi_dispatch and chance.one_in(3):
        address = Address(LIGHT, 0)
    pulls = [_pull(draft, address) for _ in range(chance.integer(1, PULLS_MAX))]
    if draft.setup.filters and chance.one_in(SUBSCRIBED):
        add(Subscribe(pulls[0].group, address.topic, drawn_expression(chance), "SQL92"))
    match chance.pick(WAYS):
        case "arrival":
            add(*pulls)
            for _ in range(chance.integer(1, 2)):
                _put(draft, address)
                _deliver(draft)
        case "look":
            add(*pulls)
            _put(draft, address)
            _deliver(draft)
            add(LOOK)
        case "time":
            _let_time_pass(draft, address, pulls)
        case "beside":
            _beside(draft, address, pulls)
        case "amid":
            _put(draft, address)
            _flush(draft)
            add(*pulls[1:], During(REPUT, chance.pick(AT_ACTIONS), pulls[0]))
        case "end":
            add(*pulls)
            if chance.coin():  # the stop dispatches it
                _put(draft, address)
            add(Shutdown() if chance.coin() else Restart(), Restart())
        case "crash":
            add(*pulls)
            _put(draft, address)
            _flush(draft)
            at_action = chance.pick(AT_ACTIONS)
            add(During(REPUT, at_action, draft.drawn.crash()), Restart())
            _deliver(draft)
        case "progress":
            _progress(draft, address, pulls)
        case "barred":
            _bar(draft, address, pulls)
        case "closed":
            _close(draft, address, pulls)
        case "fault":
            add(*pulls)
            _put(draft, address)
            _flush(draft)
            at_action = chance.pick(AT_ACTIONS)
            add(During(REPUT, at_action, draft.drawn.fault()))
            add(LOOK if chance.coin() else REPUT, REPUT)
        case "strange" if chance.coin():
            _pull_at_the_ends(draft, pulls)
        case "strange":
            add(*[_strange(draft, pull) for pull in pulls])
            _put(draft, address)
            _deliver(draft)


def _pull(draft: Draft, address: Address) -> PullThroughBroker:
    chance, space = draft.chance, draft.space
    end = draft.drawn.whereabouts.counts[address]
    offset = max(0, end - chance.pick(BEHIND_THE_END))
    commit = -1 if chance.coin() else chance.number(space.progress_offsets)
    asked: tuple[str, ExpressionType] = chance.pick(space.pull_tags), "TAG"
    filters = draft.setup.filters and chance.coin()
    if filters or chance.one_in(SELDOM):
        asked = drawn_expression(chance), "SQL92"
    return PullThroughBroker(
        chance.pick(space.groups),
        *address,
        offset,
        chance.pick(space.pull_counts),
        commit,
        chance.pick(WAITS),
        *asked,
        chance.one_in(LITE),
    )


def _let_time_pass(
    draft: Draft, address: Address, pulls: list[PullThroughBroker]
) -> None:
    """Add ops: pulls are held for about as long as the broker holds them."""
    chance, add = draft.chance, draft.add
    add(*pulls)
    if chance.coin():
        add(*lapse(chance, draft.setup.patience_ms, (LOOK,)))
        return
    add(AdvanceClock(chance.pick(TIMES_MS)))
    if chance.coin():
        _put(draft, address)
        _deliver(draft)
    add(LOOK)


def _strange(draft: Draft, pull: PullThroughBroker) -> PullThroughBroker:
    """A pull of a queue or topic that may not exist."""
    chance = draft.chance
    topic = pull.topic if chance.coin() else chance.pick(STRANGE_TOPICS)
    return replace(pull, topic=topic, queue_id=chance.pick(STRANGE_QUEUES))


def _pull_at_the_ends(draft: Draft, pulls: list[PullThroughBroker]) -> None:
    """Add ops: a topic gets more or fewer queues; pulls of its last ones and behind."""
    chance, add, topic = draft.chance, draft.add, pulls[0].topic
    queues = chance.pick(QUEUE_NUMS), chance.pick(QUEUE_NUMS)
    read_queues, write_queues = max(queues), min(queues)
    if chance.coin():
        read_queues, write_queues = QUEUES_OF_A_TOPIC, max(queues)
    add(ChangeTopic(topic, read_queues, write_queues, not chance.one_in(3)))
    for pull in pulls:
        last = chance.pick((read_queues, write_queues)) - chance.integer(0, 1)
        add(replace(pull, topic=topic, queue_id=last, queue_offset=0))


def _put(draft: Draft, address: Address, *, is_certain: bool = False) -> None:
    """Add a put, mostly to the queue of the pulls, or to a light queue besides.

    Sometimes a message that no queue lists comes first.
    """
    chance = draft.chance
    put, counts = draft.drawn.put(), draft.drawn.whereabouts.counts
    if chance.one_in(8):
        draft.add(PutMessage(*address, 16, transaction="prepared"))
    if isinstance(put, PutMessage) and (is_certain or not chance.one_in(4)):
        if address.topic == LIGHT:
            put = replace(put, multi_dispatch=LIGHT)
        else:
            counts[Address(put.topic, put.queue_id)] -= 1
            put = replace(put, topic=address.topic, queue_id=address.queue_id)
        counts[address] += 1
    draft.add(put)


def _flush(draft: Draft) -> None:
    """Add rounds, so that puts can be dispatched that wait for a flush or commit."""
    setup = draft.setup
    if setup.transient_store_pool:
        draft.add(AdvanceClock(1000), RunService("commit"))
    if setup.flush_mode == "SYNC_FLUSH":
        draft.add(RunService("flush_commit_log"))
    if setup.duplicates:
        draft.add(ConfirmLog(draft.chance.number(BEHIND)))


def _deliver(draft: Draft) -> None:
    _flush(draft)
    draft.add(REPUT)


def _beside(draft: Draft, address: Address, pulls: list[PullThroughBroker]) -> None:
    """Add pulls together with ops that may wake them, all at the same time."""
    chance = draft.chance
    if chance.coin():
        _duel(draft, address, pulls)
        return
    if chance.coin():
        draft.add(pulls.pop())
    _put(draft, address)
    _flush(draft)
    others = range(chance.integer(1, BESIDE_MAX - 1))
    ops = [*pulls, *[_other(draft, address, chance) for _ in others], REPUT]
    draft.add(draft.drawn.together(ops))
    if chance.coin():
        draft.add(REPUT)


def _duel(draft: Draft, address: Address, pulls: list[PullThroughBroker]) -> None:
    """Add a pull, or a check of held ones, that stands still while others run."""
    pulls = [replace(pull, suspends=True) for pull in pulls]
    first: Op = LOOK
    when = EARLY
    if draft.chance.coin():
        first = replace(pulls.pop(), tags="*", expression_type="TAG")
        when = draft.chance.pick((EARLY, ANYWHERE))
    draft.add(*pulls)
    _put(draft, address, is_certain=True)
    _flush(draft)
    schedule = schedule_of(when, 2, draft.chance.word())
    second = draft.chance.pick(RIVALS)
    draft.add(Together((first, second), schedule))
    if isinstance(second, Shutdown):
        draft.add(Restart())


def _other(draft: Draft, address: Address, chance: Chance) -> Op:
    match chance.pick(BESIDE):
        case "pull":
            return _pull(draft, address)
        case "put":
            return draft.drawn.put()
        case "look":
            return LOOK
        case "stop":
            return Shutdown()
        case "commit":
            group = chance.pick(draft.space.groups)
            offset = chance.number(draft.space.progress_offsets)
            return CommitOffset(group, *address, offset)
        case _:
            return REPUT


def _bar(draft: Draft, address: Address, pulls: list[PullThroughBroker]) -> None:
    """Add ops: a group is told not to consume, and mostly allowed to later."""
    chance, add, group = draft.chance, draft.add, pulls[0].group
    bars = ConfigureGroup(group, consume_enable=chance.one_in(6))
    if chance.one_in(3):
        add(*pulls[1:], draft.drawn.together((bars, pulls[0])))
    elif chance.coin():
        add(*pulls, bars)
    else:
        add(bars, *pulls)
    if chance.one_in(4):
        add(Restart())
    _put(draft, address)
    _deliver(draft)
    add(replace(_pull(draft, address), group=group))
    if not chance.one_in(4):
        add(ConfigureGroup(group), replace(_pull(draft, address), group=group))


def _close(draft: Draft, address: Address, pulls: list[PullThroughBroker]) -> None:
    """Add ops: a life of the broker in which it refuses pulls; mostly one after it."""
    chance, add, option = draft.chance, draft.add, draft.chance.pick(CLOSES)
    if chance.coin():
        add(*pulls)
    add(Shutdown(), ChangeConfig(option, False), Restart())
    add(*[replace(pull, is_lite=chance.coin()) for pull in pulls])
    _put(draft, address)
    _deliver(draft)
    add(replace(_pull(draft, address), group=pulls[0].group))
    if not chance.one_in(4):
        add(Shutdown(), ChangeConfig(option, True), Restart())
        add(replace(_pull(draft, address), group=pulls[0].group))


def _progress(draft: Draft, address: Address, pulls: list[PullThroughBroker]) -> None:
    """Add ops: a group with a held pull is reset, commits, or is assigned the queue."""
    chance, add, space, group = draft.chance, draft.add, draft.space, pulls[0].group
    add(*pulls)
    offset = chance.number(space.progress_offsets)
    ops: tuple[Op, ...] = (
        ResetOffset(group, *address, offset),
        CommitOffset(group, *address, offset),
        TakeQueue(group, *address),
    )
    add(chance.pick(often(*zip(ops, (3, 1, 1), strict=True))))
    if chance.coin():
        _put(draft, address)
        _deliver(draft)
    add(replace(_pull(draft, address), group=group))
    if chance.coin():  # by what it knew before the pull told it of a reset
        end = max(1, draft.drawn.whereabouts.counts[address])
        add(CommitOffset(group, *address, chance.integer(1, end)))
    add(QueryOffset(group, *address))
