"""Phrases in which groups subscribe by expressions, and pull by them."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.limits import FILTERS_KEPT_MS
from crashmq.models.ops import (
    AdvanceClock,
    During,
    ExpressionType,
    Op,
    PullFiltered,
    PullThroughBroker,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    Subscribe,
    Together,
    Unsubscribe,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.expressions import drawn_expression
from crashmq.scenarios.programs.lapsing import lapse
from crashmq.scenarios.programs.space import Address, often

PERSIST: Final = RunService("persist_consumer_filter")
REPUT: Final = RunService("reput")
FLUSHES: tuple[Op, ...] = (
    RunService("flush_commit_log"),
    RunService("flush_consume_queue"),
    RunService("checkpoint"),
)
STEP: Final = AdvanceClock(10)
LONG: Final = AdvanceClock(60_000)
"""After so long a flush takes all there is."""
ACTIONS_MAX = 14
"""So many disk actions a persist makes at most, and a stop or start at first."""
DISPATCH_ACTIONS_MAX = 8
PULLS_MAX = 3
PUTS_MAX = 4
PULL_COUNTS = often((32, 4), (1, 1), (2, 1))
OLD_VERSIONS = (1, 2)
"""Of subscriptions older than any newer one: of a client that was there before."""
SET_BACK_MS = (-1, -50, -1000)
STEPS_MS = often((10, 3), (0, 1), (1, 1))
STRANGERS = 6
"""One of so many pulls is of any group and queue."""

Whom: TypeAlias = tuple[str, str]
"""A group and a topic."""

Way: TypeAlias = Literal[
    "by itself",
    "again",
    "beside",
    "amid",
    "clock",
    "crash",
    "away",
    "old",
    "older",
    "behind",
    "retry",
]
WAYS: tuple[Way, ...] = often(
    ("by itself", 5),
    ("again", 3),
    ("beside", 6),
    ("amid", 2),
    ("clock", 4),
    ("crash", 4),
    ("away", 6),
    ("old", 3),
    ("older", 2),
    ("behind", 4),
    ("retry", 4),
)
CUT: tuple[Op, ...] = often((PERSIST, 3), (Shutdown(), 2), (Restart(), 2), (REPUT, 4))


def filtering(draft: Draft) -> None:
    """Add ops: a group subscribes, messages are put, it pulls; perhaps with a crash."""
    chance, add = draft.chance, draft.add
    whom = chance.pick(draft.space.groups), chance.pick(draft.space.addresses).topic
    match _way(draft):
        case "by itself":
            _subscribe(draft, whom)
            _messages(draft)
        case "again":
            for _ in range(2):
                _subscribe(draft, whom)
                _messages(draft)
        case "beside":
            _subscribe(draft, whom)
            again, put = _subscription(draft, whom), draft.drawn.put()
            ops: tuple[Op, ...] = (again, put, REPUT)
            if chance.coin():
                ops = (_pull(draft, whom), *ops)
            add(draft.drawn.together(ops))
        case "amid":
            add(draft.drawn.put(), draft.drawn.put())
            amid = chance.pick((REPUT, _pull(draft, whom), draft.drawn.put()))
            at_action = chance.integer(1, DISPATCH_ACTIONS_MAX)
            add(During(amid, at_action, _subscription(draft, whom)))
        case "clock":
            # Somebody filters the topic already, so its messages have bit maps.
            _subscribe(draft, (chance.pick(draft.space.groups), whom[1]))
            _messages(draft)
            add(REPUT, AdvanceClock(chance.pick(SET_BACK_MS)))
            _subscribe(draft, whom)
        case "crash":
            if chance.coin():
                _subscribe(draft, whom)
                add(PERSIST)
            _messages(draft)
            if chance.coin():
                add(*FLUSHES)
            _cut_short(draft)
            add(Restart())
            _subscribe(draft, whom)
        case "away":
            _go_away(draft, whom)
        case "old":
            add(_subscription(draft, whom, chance.pick(OLD_VERSIONS)))
            _messages(draft)
            if chance.coin():
                add(PERSIST)
            if chance.coin():
                add(Restart(), _subscription(draft, whom, chance.pick(OLD_VERSIONS)))
        case "older":
            _older_comes_back(draft, whom)
        case "behind":
            _older_comes_behind(draft, whom)
        case "retry":
            _retries(draft, whom)
    for _ in range(chance.integer(1, PULLS_MAX)):
        add(_pull(draft, whom))


def _way(draft: Draft) -> Way:
    """What happens; a broker that filters retries as well has some often."""
    if draft.setup.filters_retries and draft.chance.coin():
        return "retry"
    return draft.chance.pick(WAYS)


def _messages(draft: Draft) -> None:
    """Add some puts, dispatched or not."""
    draft.add(*[draft.drawn.put() for _ in range(draft.chance.integer(1, PUTS_MAX))])
    if not draft.chance.one_in(PUTS_MAX):
        draft.add(REPUT)


def _older_comes_back(draft: Draft, whom: Whom) -> None:
    """Add ops: a crash restores an older table; the client subscribes as before it."""
    old, newer = _subscription(draft, whom, 1), _subscription(draft, whom)
    draft.add(old, PERSIST, newer, STEP)
    _messages(draft)
    draft.add(REPUT, LONG, *FLUSHES, During(PERSIST, 1, draft.drawn.crash()))
    draft.add(Restart(), old)


def _older_comes_behind(draft: Draft, whom: Whom) -> None:
    """Add ops: of a group's clients one tells what it subscribed before the others."""
    _subscribe(draft, whom)
    if draft.chance.coin():
        _messages(draft)
    draft.add(_subscription(draft, whom, draft.chance.pick(OLD_VERSIONS)))
    _messages(draft)


def _retries(draft: Draft, whom: Whom) -> None:
    """Add ops: a group pulls its retry topic, perhaps with a new subscription."""
    chance, add, group = draft.chance, draft.add, whom[0]
    retry_topic = RETRY_PREFIX + group
    other = chance.pick(draft.space.addresses).topic
    _subscribe(draft, whom)
    for _ in range(chance.integer(1, PUTS_MAX)):
        told = [chance.pick(draft.space.labels).properties]
        if not chance.one_in(PUTS_MAX):
            told.append(f"RETRY_TOPIC={whom[1] if chance.coin() else other}")
        properties = ";".join([one for one in told if one])
        add(PutMessage(retry_topic, 0, 16, properties=properties))
    add(REPUT)
    pull = PullFiltered(group, retry_topic, 0, 0)
    for _ in range(chance.integer(0, PULLS_MAX)):
        offset, count = chance.integer(0, PUTS_MAX), chance.pick(PULL_COUNTS)
        add(PullFiltered(group, retry_topic, 0, offset, count))
    if chance.one_in(PULLS_MAX):
        add(_by_the_broker(draft, group, retry_topic))
    if chance.coin():
        again: Op = _subscription(draft, (group, other))
        if chance.one_in(3):
            add(Together((pull, again), draft.drawn.schedule(2)))
        else:
            add(again)
    add(pull)


def _by_the_broker(draft: Draft, group: str, topic: str) -> PullThroughBroker:
    """A pull that carries what it asks for: everything, or by an expression."""
    asked: tuple[str, ExpressionType] = "*", "TAG"
    if draft.chance.coin():
        asked = drawn_expression(draft.chance), "SQL92"
    return PullThroughBroker(group, topic, 0, 0, 32, -1, False, *asked)


def _go_away(draft: Draft, whom: Whom) -> None:
    """Add ops: a group goes, or its broker ends; time passes, and it comes back."""
    chance, add = draft.chance, draft.add
    there = _subscription(draft, whom)
    if chance.coin():
        add(there, STEP)
    is_restarted = chance.one_in(3)
    add(*((PERSIST, Restart()) if is_restarted else (Unsubscribe(whom[0]),)))
    if not chance.one_in(4):
        add(*lapse(chance, FILTERS_KEPT_MS, (PERSIST,)))
    _messages(draft)
    add(there if chance.coin() else _subscription(draft, whom), STEP)


def _cut_short(draft: Draft) -> None:
    """Add ops: a crash during a persist, a dispatch, a stop or a start."""
    at_action = draft.chance.integer(1, ACTIONS_MAX)
    draft.add(During(draft.chance.pick(CUT), at_action, draft.drawn.crash()))


def _subscribe(draft: Draft, whom: Whom) -> None:
    """Add ops: a group subscribes, and mostly time passes before the next put."""
    draft.add(_subscription(draft, whom))
    passed = draft.chance.pick(STEPS_MS)
    if passed:
        draft.add(AdvanceClock(passed))


def _subscription(draft: Draft, whom: Whom, version: int = 0) -> Subscribe:
    if draft.chance.coin():
        return Subscribe(*whom, drawn_expression(draft.chance), "SQL92", version)
    expression, kind = draft.chance.pick(draft.space.expressions)
    return Subscribe(*whom, expression, kind, version)


def _pull(draft: Draft, whom: Whom) -> PullFiltered:
    """A pull of a queue, mostly of the topic subscribed last."""
    chance, space = draft.chance, draft.space
    group, address = chance.pick(space.groups), chance.pick(space.addresses)
    if not chance.one_in(STRANGERS):
        group, address = whom[0], Address(whom[1], address.queue_id)
    offset = 0 if chance.coin() else chance.number(space.pull_offsets)
    return PullFiltered(group, *address, offset, chance.pick(PULL_COUNTS))
