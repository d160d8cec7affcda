"""Phrases in which consumers join, leave, pull and consume messages.

A message that fails is sent back, waits for its delay level, is delivered to the
group's retry topic, and is pulled there by the consumer that has that queue; after too
many failures it is a dead letter. So is a message that a producer sends to a retry
topic, if it was tried too often or a client of the group holds a queue lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from crashmq.models.files.record import DLQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC
from crashmq.models.ops import (
    AdvanceClock,
    AskBroker,
    ChangeTopic,
    ConfigureGroup,
    Consume,
    ConsumerEnd,
    ConsumerTask,
    ConsumeStatus,
    Crash,
    DeleteGroup,
    During,
    EndConsumer,
    ExpressionType,
    Op,
    PutMessage,
    ResetOffset,
    Restart,
    Resubscribe,
    RunService,
    SendMessage,
    Shutdown,
    StartConsumer,
    TellReset,
    TurnConsumer,
)
from crashmq.models.program import Setup
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.space import Address, often

Doing: TypeAlias = Literal[
    "work",
    "join",
    "end",
    "rebalance",
    "persist",
    "wait",
    "commit",
    "batch",
    "begin_by_time",
    "together",
    "hold",
    "hand_over",
    "leave",
    "reset",
    "resubscribe",
    "try_again",
    "take_over",
]
DOINGS: tuple[Doing, ...] = often(
    ("work", 9),
    ("join", 4),
    ("end", 2),
    ("rebalance", 3),
    ("persist", 2),
    ("wait", 1),
    ("together", 3),
    ("hold", 4),
    ("hand_over", 2),
    ("leave", 2),
    ("reset", 4),
    ("resubscribe", 2),
    ("try_again", 3),
    ("take_over", 2),
    ("commit", 4),
    ("batch", 4),
    ("begin_by_time", 1),
)
ENDS: tuple[ConsumerEnd, ...] = often(("stop", 2), ("kill", 2), ("vanish", 1))
TASKS: tuple[ConsumerTask, ...] = often(
    *(("pull", 8), ("rebalance", 6), ("persist", 4), ("heartbeat", 2), ("lock", 4)),
    *(("reconnect", 1), ("disconnect", 1)),
)
Beside: TypeAlias = Literal["reput", "put", "consume", "end", "turn"]
BESIDE: tuple[Beside, ...] = often(
    ("reput", 1), ("put", 1), ("consume", 3), ("end", 1), ("turn", 4)
)
MOST_AT_ONCE = 4
TIMES: Final = often((1, 3), (2, 2), (8, 2))
PLACES: Final = often((0, 4), (1, 2), (2, 1), (5, 1))
PAUSES_MS: Final = often((500, 4), (1000, 2), (5000, 2), (21_000, 2), (31_000, 1))
"""After a rebalance, an error, a persist, a balance, a pull that nobody answers."""
THERE_AND_BACK = 3
"""One of so many that subscribe something else go back to what they had."""
AT_ONCE = 4
"""One of so many times consumers that have the same to do do it at once."""
HELD_MS: Final = 21_000
"""So often a consumer renews its locks; a third of how long a broker keeps them."""
SEEN_BY_NOBODY = 4
"""After one of so many crashes the broker dies again before any consumer asks it."""
CUT_SHORT = 4
"""One of so many brokers dies while it shuts down."""
ACTIONS_OF_A_STOP = 24
STAYING = 2
STAYS_MS: Final = often((21_000, 3), (29_000, 1))
"""Before a lease of half a minute is over."""
SILENT_MS: Final = (60_000, 91_000, 119_999, 120_000, 120_001, 150_000, 220_000)
"""Around the two minutes after which a client counts as silent."""
BROKEN = 8
"""Before one of so many rebalances a client's connection has broken."""
STRANGERS = 4
"""One of so many that join may be of any group; the others are of one that is there."""
DELIVER: Final = RunService("deliver_delayed")
REPUT: Final = RunService("reput")
LOOK: Final = RunService("pull_request_hold")
SOON: Final = AdvanceClock(500)
"""After so long a new queue is pulled for the first time."""
A_SECOND: Final = AdvanceClock(1000)
A_LONG_TIME: Final = AdvanceClock(10_000)
"""After so long a flush takes all there is."""
UNANSWERED: Final = AdvanceClock(31_000)
"""After so long a pull has no answer any more."""
PATIENCE: Final = often(
    ((UNANSWERED, A_SECOND), 2), ((A_SECOND, AdvanceClock(29_500), A_SECOND), 1)
)
"""What passes between the pulls of consumers that outlived their broker; in the second,
the time-out of a pull of before ends amid one of after."""
PUT_OFF: Final = AdvanceClock(5000)
"""After so long a consumer takes up what it has put off."""
AGAIN_MS: Final = (1, 999, 1000, 4000, 4999, 5000, 5001, 9999)
"""Around the times after which a consumer tries again what it has kept."""
COMING_AT_ONCE: Final[tuple[ConsumeStatus, ...]] = ("success", "uncommitted", "commit")
"""Results that leave nothing to come again."""
AGAIN: Final = often(
    *((0, 8), (1, 2), (2, 1), (5, 1), (99, 1), (-1, 2), (3000, 1), (5000, 1)),
)
"""Delay levels, and pauses in ms, that a listener names for what has failed."""
BATCHES: Final = often((1, 9), (2, 1), (3, 1), (8, 1))
FAILING: Final[tuple[ConsumeStatus, ...]] = ("later", "raises", "partly")
AGO_MS: Final = often(
    *((1, 1), (60_000, 1), (1_739_999, 1), (1_740_000, 1), (1_799_999, 1)),
    *((1_800_000, 1), (1_860_000, 3)),
)
"""Around half an hour, alone or a minute later."""
BEGINS_LATE = 4
"""One of so many new groups does not begin with the first message."""
OF_BATCHES: Final[tuple[ConsumeStatus, ...]] = often(
    ("partly", 4), ("success", 2), ("later", 1), ("raises", 1)
)
COMMITS = 3
"""One of so many results of a listener in order says whether to commit."""
COMMITTING: Final[tuple[ConsumeStatus, ...]] = (
    *("uncommitted", "uncommitted", "uncommitted"),
    *("commit", "rollback"),
)
DELAYED = 5
"""One of so many messages was delayed before it fails, and is delayed again."""
FIRST_LEVEL = 3
ROUNDS_MAX = 4
"""A message is a dead letter after three; one round more shows that it stays one."""
BEFORE_OR_AFTER_MS = (0, 0, 0, -1, 1, 500)
FAULTS = 12
"""Amid one of so many ops, for which a topic may be made, a call fails."""
FAULT_ACTIONS_MAX = 6
TOLD = 2
"""Of so many resets, the broker tells the consumers of one without being asked."""
JOINS = 3
"""One of so many phrases begins with a consumer that joins, beside the first."""
RETRIES: Final = (16, 0, 1, 3)
"""Of a group that is configured, or as a request says: the default and others."""
AROUND: Final = (-1, 0, 1)
"""Of the most tries that are allowed."""
A_LOCK_MS: Final = 60_000
"""So long a broker keeps a lock that is not renewed."""
ABOUT_ITS_END_MS: Final = (A_LOCK_MS, A_LOCK_MS + 1, A_LOCK_MS - 1)
NEW_TOPICS: Final = ("N0", "N1")
"""Topics to which nothing is put."""
LEVELS: Final = (0, 0, 0, 1, 3)
SENT_MAX = 3
SENT_BESIDE = 8
"""One of so many messages is sent while another is, and while a client locks queues."""
PAST_THE_QUEUES = 5
"""One of so many messages is sent to a topic's last queue, or past it."""
LAST_QUEUES: Final = (7, 8, 9)
"""About the end of a topic's queues, of which it has eight."""
CHANGED = 4
"""Before one of so many sends an administrator changes a topic."""
QUEUES_READ: Final = (8, 8, 9, 16)
QUEUES_WRITTEN: Final = (8, 1, 9, 12, 0)
ELSEWHERE = 4
"""One of so many messages is for a topic that is not one of retries."""


def consume(draft: Draft) -> None:
    """Add ops of a consumer: it joins, works, pulls, rebalances, or ends."""
    chance, add = draft.chance, draft.add
    joined = tuple(draft.joined)
    doing = chance.pick(DOINGS)
    if doing == "join" or not joined:
        _join(draft)
        return
    client = chance.pick(joined)
    match doing:
        case "work":
            _work(draft, client)
        case "end":
            add(EndConsumer(client, chance.pick(ENDS)))
            if chance.coin():
                _rebalance_all(draft)
        case "rebalance":
            _rebalance_all(draft)
        case "persist":
            add(TurnConsumer(client, "persist"))
            if chance.coin():
                add(RunService("persist_consumer_offset"))
        case "try_again":
            _try_again(draft, client)
        case "commit":
            _commit_itself(draft, client)
        case "batch":
            _consume_in_batches(draft, client)
        case "begin_by_time":
            _begin_by_time(draft, client)
        case "wait":
            add(AdvanceClock(chance.pick(PAUSES_MS)))
            add(TurnConsumer(client, chance.pick(TASKS)))
        case "together":
            who = (client,) if chance.coin() else joined
            _at_once(draft, [_beside(draft, who) for _ in range(chance.integer(2, 3))])
        case "hold":
            _hold(draft, client)
        case "hand_over":
            _hand_over(draft, client)
        case "leave":
            _leave_at_work(draft, client)
        case "take_over":
            _take_over(draft, client)
        case "reset":
            _reset(draft)
        case "resubscribe":
            _resubscribe(draft, client)


def _resubscribe(draft: Draft, client: str) -> None:
    """Add ops: a consumer, mostly with all of its group, changes its subscription."""
    chance, who = draft.chance, draft.joined[client]
    told = [one for one in draft.space.resubscriptions if _can_ask(one[2], draft.setup)]
    if not told:
        _work(draft, client)
        return
    group = [one for one in draft.joined.values() if one.group == who.group]
    alike = [who] if chance.one_in(STRANGERS) else group
    if chance.coin():
        draft.add(TurnConsumer(client, "pull", 2))
    _subscribe(draft, alike, chance.pick(told))
    if chance.coin():
        draft.add(*[draft.drawn.put() for _ in range(chance.integer(1, 3))])
        draft.add(RunService("reput"))
    if chance.one_in(THERE_AND_BACK):
        _subscribe(draft, alike, (who.topics, who.expression, who.expression_type))
    else:
        _rebalance_all(draft)
    _work(draft, chance.pick(group).client)


def _subscribe(
    draft: Draft, who: list[StartConsumer], told: tuple[str, str, ExpressionType]
) -> None:
    """Add ops: consumers subscribe topics by an expression."""
    topics, expression, kind = told
    for one in who:
        draft.add(Resubscribe(one.client, topics, expression, kind))
        draft.joined[one.client] = replace(
            one, topics=topics, expression=expression, expression_type=kind
        )


def _can_ask(kind: ExpressionType, setup: Setup) -> bool:
    """Whether a broker of the setup accepts that kind of expression."""
    return kind == "TAG" or setup.filters


def outlive(draft: Draft) -> None:
    """Add ops: the broker dies, while consumers keep what they have pulled.

    The log may lose it; new messages are there, or not yet, when they continue.
    """
    chance, add = draft.chance, draft.add
    if not draft.joined:
        _join(draft)
    joined = tuple(draft.joined)
    pulls = [TurnConsumer(client, "pull", 8) for client in joined]
    queues = tuple(dict.fromkeys(draft.space.addresses))
    chosen = [chance.pick(queues) for _ in range(chance.integer(1, 3))]
    for one in chosen:
        add(draft.drawn.stock(one))
        if chance.one_in(3):
            add(RunService("flush_commit_log"))
    add(REPUT)
    for client in joined:
        add(TurnConsumer(client, "pull", 8))
        if chance.coin():
            add(consumed_by(draft, client), TurnConsumer(client, "pull"))
        if chance.one_in(3):
            add(TurnConsumer(client, "persist"))
    _die(draft)
    if chance.coin():  # nobody answers for a while
        add(UNANSWERED)
        for client in joined:
            add(TurnConsumer(client, chance.pick(TASKS), 8), consumed_by(draft, client))
        if chance.coin():  # what was given up is sent again, and nobody takes it
            add(*pulls, A_SECOND, *pulls)
    add(Restart())
    if chance.one_in(SEEN_BY_NOBODY):
        add(*[draft.drawn.stock(chance.pick(chosen)) for _ in joined], REPUT)
        if chance.coin():  # so that it loses less than the life before
            add(RunService("flush_commit_log"), draft.drawn.stock(chosen[0]), REPUT)
        _die(draft)
        add(Restart())
    for _ in range(chance.integer(1, 2)):
        if chance.coin():
            add(*[draft.drawn.stock(one) for one in chosen], REPUT)
        # One that was held has to be given up first; then the consumer waits a second.
        for pause in chance.pick(PATIENCE):
            add(pause, *[TurnConsumer(client, "heartbeat") for client in joined])
            add(*pulls)
        if chance.coin():
            add(*[consumed_by(draft, client) for client in joined])
        elif chance.coin():  # what it sends back may not be there any more
            add(*[Consume(one, 0, 8, chance.pick(FAILING)) for one in joined])


def _die(draft: Draft) -> None:
    """Add ops: the broker dies during a round of dispatch, or while it shuts down."""
    chance, drawn = draft.chance, draft.drawn
    crash = Crash("power_loss") if chance.coin() else drawn.crash()
    if chance.one_in(CUT_SHORT):
        draft.add(During(Shutdown(), chance.integer(1, ACTIONS_OF_A_STOP), crash))
    else:
        draft.add(During(REPUT, 1, crash))


def stay(draft: Draft) -> None:
    """Add ops: few consumers keep their queues for long; then another one joins."""
    chance, add = draft.chance, draft.add
    if not draft.joined:
        _join(draft)
    few = tuple(draft.joined)[-STAYING:]
    is_slow = chance.one_in(3)  # it has pulled more than it takes, and goes on so
    if is_slow:
        bring(draft, few[0])
    for _ in range(chance.integer(2, 5)):
        add(AdvanceClock(chance.pick(STAYS_MS)))
        for client in few:
            add(TurnConsumer(client, "heartbeat"), TurnConsumer(client, "lock"))
        add(TurnConsumer(few[0], "pull") if is_slow else consumed_by(draft, few[0]))
    if len(few) > 1 and chance.coin():
        _fall_silent(draft, *few)
    elif chance.coin():
        add(RunService("client_housekeeping"))
    one = _one_who_joins(draft)
    draft.joined[one.client] = one
    add(one, TurnConsumer(one.client, "rebalance"))
    for client in few:
        add(consumed_by(draft, client), TurnConsumer(client, "rebalance"))
    add(TurnConsumer(one.client, "rebalance"))


def _fall_silent(draft: Draft, stays: str, silent: str) -> None:
    """Add ops: a client sends no heartbeat for a while, and the broker scans."""
    chance, add = draft.chance, draft.add
    if chance.coin():
        add(EndConsumer(silent, "vanish"))
        draft.joined.pop(silent)
    add(AdvanceClock(chance.pick(SILENT_MS)), TurnConsumer(stays, "heartbeat"))
    add(RunService("client_housekeeping"), TurnConsumer(stays, "rebalance"))


def _reset(draft: Draft) -> None:
    """Add ops: a group is reset at the broker.

    Mostly a clustering group with a running consumer, which then pulls and gets the
    reset; the broker has no offset of a broadcasting one.
    """
    chance, add = draft.chance, draft.add
    living = [one for one in draft.joined.values() if not one.broadcasts]
    addresses = draft.space.addresses
    address = chance.pick(addresses)
    offset = chance.number(draft.space.progress_offsets)
    if not living or chance.one_in(STRANGERS):
        who = chance.pick(draft.space.consumers)
        if not who.broadcasts:
            add(ResetOffset(who.group, *address, offset))
        return
    who = chance.pick(living)
    group, topics = who.group, who.topics.split(",")
    address = chance.pick([one for one in addresses if one[0] in topics] or addresses)
    its = [one.client for one in living if one.group == group]
    add(draft.drawn.stock(address), REPUT)
    add(SOON, *[TurnConsumer(client, "rebalance") for client in its], SOON)
    for client in its:
        add(
            TurnConsumer(client, "pull", chance.pick(TIMES)), consumed_by(draft, client)
        )
    offset = chance.integer(0, 2) if chance.coin() else offset
    if chance.one_in(TOLD):
        first, *others = [TellReset(client, *address, offset) for client in its]
        if chance.coin():  # amid what its listener does
            add(draft.drawn.together((consumed_by(draft, its[0]), first)))
        else:
            add(first)
        add(*others)
    else:
        add(ResetOffset(group, *address, offset))
    if chance.coin():
        add(TurnConsumer(its[0], "persist"))  # that changes nothing now
    add(draft.drawn.stock(address), REPUT)
    for client in its:
        add(TurnConsumer(client, "pull", 2), TurnConsumer(client, "rebalance"))
    add(SOON, *[TurnConsumer(client, "pull", 2) for client in its])


def _join(draft: Draft) -> None:
    """Add ops: consumers join, and all rebalance."""
    chance = draft.chance
    who = [_one_who_joins(draft) for _ in range(chance.integer(1, 2))]
    if len(who) > 1 and chance.one_in(AT_ONCE):
        _at_once(draft, who)
    else:
        draft.add(*who)
    for one in who:
        draft.joined[one.client] = one
    _rebalance_all(draft)
    if chance.coin():
        _work(draft, who[0].client)


def _one_who_joins(draft: Draft) -> StartConsumer:
    """A consumer, mostly of an existing group, so that groups have several members."""
    chance = draft.chance
    can_join = [one for one in draft.space.consumers if _has_a_share(one, draft.setup)]
    if draft.joined and not chance.one_in(STRANGERS):
        groups = {one.group for one in draft.joined.values()}
        can_join = [one for one in can_join if one.group in groups] or can_join
    return as_the_others(draft, chance.pick(can_join or draft.space.consumers))


def let_join(draft: Draft, who: StartConsumer) -> None:
    """Add ops: a consumer joins, and subscribes what its group does now.

    What a new group begins behind is there before.
    """
    chance, joins = draft.chance, as_the_others(draft, who)
    groups = {one.group for one in draft.joined.values()}
    if who.group not in groups and chance.one_in(BEGINS_LATE):
        joins = replace(joins, where=chance.pick(("last", "timestamp")))
        draft.add(draft.drawn.stock(), REPUT)
        if not groups:  # nobody's time is over
            draft.add(AdvanceClock(chance.pick(AGO_MS)))
    draft.joined[joins.client] = joins
    draft.add(joins)


def as_the_others(draft: Draft, who: StartConsumer) -> StartConsumer:
    """The consumer, with the present subscription of its group, and perhaps batches."""
    if who.batch == 1:
        who = replace(who, batch=draft.chance.pick(BATCHES))
    others = [one for one in draft.joined.values() if one.group == who.group]
    if not others:
        return who
    newest = others[-1]
    return replace(
        who,
        where=newest.where,
        topics=newest.topics,
        expression=newest.expression,
        expression_type=newest.expression_type,
    )


def _has_a_share(one: StartConsumer, setup: Setup) -> bool:
    """Whether the setup has any queue and message for the consumer."""
    has_room = one.strategy != "MACHINE_ROOM" or setup.brokers > 1
    return has_room and _can_ask(one.expression_type, setup)


def _work(draft: Draft, client: str) -> None:
    """Add ops: a consumer pulls and consumes some of it."""
    chance, add = draft.chance, draft.add
    if chance.coin():
        add(RunService("reput"))
    if chance.coin():
        add(AdvanceClock(chance.pick(PAUSES_MS)))
    add(TurnConsumer(client, "pull", chance.pick(TIMES)))
    add(consumed_by(draft, client))
    if chance.coin():
        add(TurnConsumer(client, "pull"))


def _try_again(draft: Draft, client: str) -> None:
    """Add ops: a consumer fails and soon consumes again, so the message is retried.

    It keeps messages that it cannot send back, since the broker is down or refuses
    them.
    """
    chance, add = draft.chance, draft.add
    failing = chance.pick(FAILING)
    add(*[draft.drawn.put() for _ in range(chance.integer(1, 3))], REPUT, LOOK)
    add(A_SECOND, TurnConsumer(client, "pull", 8))
    is_gone = chance.coin()
    if is_gone:
        add(Shutdown())
    soon = chance.pick(AGAIN)
    add(Consume(client, times=chance.pick(TIMES), status=failing, again=soon))
    for number in range(chance.integer(1, 3)):
        if is_gone and number == 1:
            add(Restart())
        add(AdvanceClock(chance.pick(AGAIN_MS)))
        again = failing if chance.coin() else "success"
        add(Consume(client, times=chance.pick(TIMES), status=again, again=soon))
    if is_gone:
        add(Restart())


def bring(draft: Draft, client: str) -> Address:
    """Add ops: a consumer gets messages; returns from which queue."""
    address = draft.chance.pick(addresses_of(draft, draft.joined[client]))
    draft.add(draft.drawn.stock(address), REPUT)
    draft.add(A_SECOND, TurnConsumer(client, "pull", 8))
    return address


def addresses_of(draft: Draft, who: StartConsumer) -> tuple[Address, ...]:
    """The queues of a consumer's topics, or all if it has none of them."""
    topics = who.topics.split(",")
    addresses = tuple(dict.fromkeys(draft.space.addresses))
    return tuple([one for one in addresses if one.topic in topics]) or addresses


def _consume_in_batches(draft: Draft, client: str) -> None:
    """Add ops: a listener is given several messages, and consumes a part of them."""
    chance, add = draft.chance, draft.add
    joined = [one for one in draft.joined.values() if _takes_batches(one)]
    can_join = [one for one in draft.space.consumers if not one.is_orderly]
    can_join = [one for one in can_join if _has_a_share(one, draft.setup)]
    if not joined and not can_join:
        _work(draft, client)
        return
    one = chance.pick(joined or can_join)
    if not joined:
        let_join(draft, replace(one, batch=chance.pick((2, 3, 8))))
    add(TurnConsumer(one.client, "rebalance"))
    bring(draft, one.client)
    for _ in range(chance.integer(1, 3)):
        result, again = chance.pick(OF_BATCHES), chance.pick(AGAIN)
        add(Consume(one.client, chance.pick(PLACES), 1, result, again))
    if chance.coin():
        add(PUT_OFF, Consume(one.client, times=8))
    if chance.coin():
        add(TurnConsumer(one.client, "persist"))


def _begin_by_time(draft: Draft, client: str) -> None:
    """Add ops: a new group begins with what was stored half an hour before."""
    chance, add = draft.chance, draft.add
    groups = {one.group for one in draft.joined.values()}
    can_join = [one for one in draft.space.consumers if one.group not in groups]
    can_join = [one for one in can_join if _has_a_share(one, draft.setup)]
    if not can_join:
        _work(draft, client)
        return
    one = replace(chance.pick(can_join), where="timestamp")
    for _ in range(2):
        add(*[draft.drawn.put() for _ in range(chance.integer(1, 3))])
        add(AdvanceClock(chance.pick(AGO_MS)))
    add(REPUT)
    let_join(draft, one)
    if chance.coin():
        add(AdvanceClock(chance.pick(AGO_MS)))
    _rebalance_all(draft)
    _work(draft, one.client)


def _takes_batches(one: StartConsumer) -> bool:
    return one.batch > 1 and not one.is_orderly


def _commit_itself(draft: Draft, client: str) -> None:
    """Add ops: a listener in order says which of its results commit, or take back."""
    chance, add = draft.chance, draft.add
    joined = [one for one in draft.joined.values() if one.is_orderly]
    can_join = [one for one in draft.space.consumers if one.is_orderly]
    can_join = [one for one in can_join if _has_a_share(one, draft.setup)]
    if not joined and not can_join:
        _work(draft, client)
        return
    one = chance.pick(joined or can_join)
    client = one.client
    if not joined:
        let_join(draft, one)
    for _ in range(2):
        add(*[draft.drawn.put()] * chance.integer(2, 4))
    add(REPUT, LOOK, TurnConsumer(client, "rebalance"))
    add(A_SECOND, TurnConsumer(client, "pull", 8))
    add(Consume(client, times=chance.pick((1, 2, 4)), status="uncommitted"))
    for _ in range(chance.integer(1, 4)):
        status = chance.pick((*COMMITTING, "later"))
        add(Consume(client, times=chance.pick((1, 1, 2)), status=status))
        if status in ("rollback", "later"):
            add(A_SECOND)
        if chance.one_in(3):
            add(TurnConsumer(client, "persist"))
    add(Consume(client, times=chance.pick(TIMES)))


def consumed_by(draft: Draft, client: str) -> Consume:
    """An op in which a consumer's listener works, with a result of the space."""
    chance = draft.chance
    status = chance.pick(draft.space.consumed)
    who = draft.joined.get(client)
    if who is not None and who.is_orderly and chance.one_in(COMMITS):
        status = chance.pick(COMMITTING)
    again = 0 if status in COMING_AT_ONCE else chance.pick(AGAIN)
    return Consume(client, chance.pick(PLACES), chance.pick(TIMES), status, again)


def _hold(draft: Draft, client: str) -> None:
    """Add ops: time passes, so orderly consumers keep queues only by renewing locks."""
    chance = draft.chance
    orderly = [one.client for one in draft.joined.values() if one.is_orderly]
    if not orderly:
        _work(draft, client)
        return
    if chance.coin():
        _lose_locks(draft, orderly)
        return
    for _ in range(chance.integer(1, 3)):
        draft.add(AdvanceClock(HELD_MS))
        draft.add(*[TurnConsumer(one, "lock") for one in orderly])
    other = chance.pick(orderly)
    draft.add(TurnConsumer(other, "rebalance"))
    _work(draft, chance.pick(orderly))


def _lose_locks(draft: Draft, orderly: list[str]) -> None:
    """Add ops: orderly consumers with messages do not renew their locks."""
    chance, add = draft.chance, draft.add
    queues = tuple(dict.fromkeys(draft.space.addresses))
    add(draft.drawn.stock(chance.pick(queues)), REPUT)
    add(*[TurnConsumer(client, "pull", 8) for client in orderly])
    is_away = not chance.one_in(3)
    if is_away and "crash" in draft.space.kinds and chance.coin():
        add(During(REPUT, 1, draft.drawn.crash()))
    elif is_away:
        add(Shutdown())
    add(UNANSWERED)
    add(*[consumed_by(draft, client) for client in orderly])
    if is_away:
        add(Restart())
    for client in orderly:
        add(TurnConsumer(client, "heartbeat"), TurnConsumer(client, "lock"))
    add(PUT_OFF, *[Consume(client, times=8) for client in orderly])


def _hand_over(draft: Draft, client: str) -> None:
    """Add ops: one joins or leaves; another consumes and rebalances at once.

    The one may leave again, so that the other gets back what it was about to lose.
    """
    chance = draft.chance
    draft.add(RunService("reput"), TurnConsumer(client, "pull", 2))
    others = others_of(draft, client)
    if others:
        other = as_the_others(draft, chance.pick(others))
        draft.joined[other.client] = other
        goes = chance.one_in(AT_ONCE)
        draft.add(EndConsumer(other.client, chance.pick(ENDS)) if goes else other)
    if chance.coin():
        draft.add(AdvanceClock(HELD_MS))
    works, looks = consumed_by(draft, client), TurnConsumer(client, "rebalance")
    _at_once(draft, (works, looks) if chance.coin() else (looks, works))
    if others and chance.coin():
        draft.add(EndConsumer(other.client))
        draft.joined.pop(other.client)
        draft.add(looks)
    _rebalance_all(draft)
    _work(draft, client)


def others_of(draft: Draft, client: str) -> list[StartConsumer]:
    """The other consumers of a client's group, joined or not."""
    group = draft.joined[client].group
    its = [one for one in draft.space.consumers if one.group == group]
    return [one for one in its if one.client != client]


def _leave_at_work(draft: Draft, client: str) -> None:
    """Add ops: a consumer ends while its listener runs, and another goes on."""
    chance, who = draft.chance, draft.joined[client]
    draft.add(_put_for(draft, who), RunService("reput"), TurnConsumer(client, "pull"))
    ends = EndConsumer(client, chance.pick(ENDS))
    _at_once(draft, (consumed_by(draft, client), ends))
    _join_one_of(
        draft, [one for one in draft.joined.values() if one.group == who.group]
    )


def _take_over(draft: Draft, client: str) -> None:
    """Add ops: a consumer takes queues whose locks are over; then the other lets go.

    The broker is asked which locks it has.
    """
    chance, add, group = draft.chance, draft.add, draft.joined[client].group
    others = others_of(draft, client)
    if not draft.joined[client].is_orderly or not others:
        _work(draft, client)
        return
    other = chance.pick(others)
    add(TurnConsumer(client, "rebalance"), TurnConsumer(client, "lock"))
    if other.client not in draft.joined:
        let_join(draft, other)
    add(AdvanceClock(A_LOCK_MS + 1))
    add(TurnConsumer(other.client, "rebalance"), TurnConsumer(other.client, "lock"))
    if chance.coin():
        add(EndConsumer(client, chance.pick(ENDS)))
        draft.joined.pop(client)
    else:
        add(TurnConsumer(client, "rebalance"))
    for address in dict.fromkeys(draft.space.addresses):
        add(AskBroker("lock", group, *address, client=other.client))
    bring(draft, other.client)
    add(consumed_by(draft, other.client))


def _reconnect(draft: Draft, client: str) -> None:
    """Add ops: a client comes on a new connection, before its broker misses the old.

    The broker sees that close, or hears nothing on it for so long that it is over.
    """
    chance, add = draft.chance, draft.add
    add(TurnConsumer(client, "reconnect"))
    if chance.coin():
        add(TurnConsumer(client, "disconnect"))
        return
    for _ in range(2):
        beats = [TurnConsumer(name, "heartbeat") for name in draft.joined]
        add(AdvanceClock(chance.pick(SILENT_MS)), *beats)
    add(RunService("client_housekeeping"))


def _rebalance_all(draft: Draft) -> None:
    """Add ops: every consumer that may run rebalances."""
    chance = draft.chance
    if chance.coin():
        draft.add(AdvanceClock(chance.pick(PAUSES_MS)))
    if draft.joined and chance.one_in(BROKEN):
        _reconnect(draft, chance.pick(tuple(draft.joined)))
    turns = [TurnConsumer(client, "rebalance") for client in draft.joined]
    if 2 <= len(turns) <= MOST_AT_ONCE and chance.one_in(AT_ONCE):
        _at_once(draft, turns)
    draft.add(*turns)


def _at_once(draft: Draft, ops: Sequence[Op]) -> None:
    draft.add(draft.drawn.together(ops))


def _beside(draft: Draft, joined: tuple[str, ...]) -> Op:
    """An op to run at the same time as others."""
    chance = draft.chance
    client = chance.pick(joined)
    match chance.pick(BESIDE):
        case "reput":
            return RunService("reput")
        case "put":
            return draft.drawn.put()
        case "consume":
            return consumed_by(draft, client)
        case "end":
            return EndConsumer(client, chance.pick(ENDS))
        case "turn":
            return TurnConsumer(client, chance.pick(TASKS), chance.pick(TIMES))


def retry(draft: Draft) -> None:
    """Add ops: a group's consumers consume, fail, and get the messages again."""
    chance, add = draft.chance, draft.add
    group = chance.pick(draft.space.consumers).group
    members = [one for one in draft.space.consumers if one.group == group]
    if chance.one_in(JOINS) or not _is_there(draft, group):
        _join_one_of(draft, members)
    put = _put_for(draft, members[0])
    if isinstance(put, PutMessage) and chance.one_in(DELAYED):
        level = chance.integer(1, 2)
        add(replace(put, delay_level=level), REPUT)
        add(AdvanceClock(draft.delay_ms(level)), DELIVER, REPUT)
    else:
        add(put, REPUT)
    if chance.one_in(3):
        _forget_what_came_back(draft, members)
    _turn_all(draft, members)
    for nth in range(chance.integer(1, ROUNDS_MAX)):
        ms = draft.delay_ms(FIRST_LEVEL + nth) + chance.pick(BEFORE_OR_AFTER_MS)
        add(AdvanceClock(ms))
        if chance.one_in(3):
            _begin_again(draft, members)
        if chance.one_in(6):
            _work_amid(draft, members)
        add(DELIVER, REPUT)
        if chance.coin():
            add(LOOK)
        _turn_all(draft, members)
        if chance.one_in(8):
            add(EndConsumer(chance.pick(members).client))
            _join_one_of(draft, members)


def _put_for(draft: Draft, consumer: StartConsumer) -> Op:
    """A put to a topic that a consumer subscribes."""
    put, topics = draft.drawn.put(), consumer.topics.split(",")
    if not isinstance(put, PutMessage) or put.topic in topics:
        return put
    return replace(put, topic=draft.chance.pick(topics))


def _is_there(draft: Draft, group: str) -> bool:
    """Whether a client of a group has joined before in the program."""
    return any(one.group == group for one in draft.joined.values())


def _join_one_of(draft: Draft, members: list[StartConsumer]) -> None:
    """Add ops: a consumer joins, and all of its group rebalance."""
    one = draft.chance.pick(members)
    draft.add(_amid_a_fault(draft, one))
    draft.joined[one.client] = one
    rebalances = [TurnConsumer(one.client, "rebalance") for one in members]
    draft.add(*rebalances, *rebalances, SOON)


def _turn_all(draft: Draft, members: list[StartConsumer]) -> None:
    """Add ops: all consumers of a group pull, and consume it."""
    for one in members:
        draft.add(TurnConsumer(one.client, "pull", 2))
        draft.add(_amid_a_fault(draft, consumed_by(draft, one.client)))
        if draft.chance.coin():
            draft.add(A_SECOND, TurnConsumer(one.client, "pull", 2))
            draft.add(consumed_by(draft, one.client))


def _begin_again(draft: Draft, members: list[StartConsumer]) -> None:
    """Add ops: the broker restarts, or crashes and perhaps loses offsets."""
    chance, add = draft.chance, draft.add
    if chance.one_in(3):
        add(Restart(), SOON)
        return
    if not chance.one_in(3):
        add(A_LONG_TIME, RunService("flush_commit_log"))
    add(During(REPUT, 1, draft.drawn.crash()), Restart())
    _join_one_of(draft, members)


def _forget_what_came_back(draft: Draft, members: list[StartConsumer]) -> None:
    """Add ops: a group's messages fail and come back; the group is created again."""
    for one in members:
        draft.add(TurnConsumer(one.client, "pull", 2))
        draft.add(Consume(one.client, times=8, status="later"))
    draft.add(REPUT, AdvanceClock(draft.delay_ms(FIRST_LEVEL)), DELIVER, REPUT)
    _delete_group(draft, members)


def _delete_group(draft: Draft, members: list[StartConsumer]) -> None:
    """Add ops: a group's consumers end, its offsets are deleted, and one joins again.

    Messages sent back stay in its retry topic for the one that joins.
    """
    group = members[0].group
    is_early = draft.chance.one_in(3)  # its clients leave a group that is gone
    if is_early:
        draft.add(DeleteGroup(group))
    for one in members:
        draft.add(EndConsumer(one.client))  # nobody else counts as a member then
        draft.joined.pop(one.client, None)
    draft.add(AskBroker("group", group) if is_early else DeleteGroup(group))
    _join_one_of(draft, members)


def _amid_a_fault(draft: Draft, op: Op) -> Op:
    """The op, where disks fail sometimes with a fault, for a topic may be created."""
    chance = draft.chance
    if "retry" not in draft.space.kinds or not chance.one_in(FAULTS):
        return op
    return During(op, chance.integer(1, FAULT_ACTIONS_MAX), draft.drawn.fault())


def _work_amid(draft: Draft, members: list[StartConsumer]) -> None:
    """Add ops: a consumer works while messages are delivered."""
    client = draft.chance.pick(members).client
    ops: tuple[Op, ...] = (DELIVER, REPUT, consumed_by(draft, client))
    draft.add(draft.drawn.together(ops))


def send(draft: Draft) -> None:
    """Add ops: a producer sends messages, mostly to a group's retry topic."""
    chance, add = draft.chance, draft.add
    joined = tuple(draft.joined.values())
    orderly = tuple([one for one in draft.space.consumers if one.is_orderly])
    if orderly and chance.coin():
        joined = orderly
    elif not joined or chance.one_in(STRANGERS):
        joined = draft.space.consumers
    one = chance.pick(joined)
    most = retries_of(draft, one.group)
    if chance.one_in(3):
        most = chance.pick(RETRIES)
        add(ConfigureGroup(one.group, most))
    if one.is_orderly:
        _lock_queues(draft, one)
    if chance.one_in(CHANGED):
        _change_topic(draft)
    for _ in range(chance.integer(1, SENT_MAX)):
        sent = _sent(draft, one, most)
        if chance.one_in(SENT_BESIDE):
            locks = TurnConsumer(one.client, "lock")
            _at_once(draft, [sent, locks, _sent(draft, one, most)])
        else:
            add(_amid_a_fault(draft, sent))
    if chance.coin():
        add(REPUT)


def _change_topic(draft: Draft) -> None:
    """Add ops: a topic gets more or fewer queues, or is closed; then it is sent to.

    Or it is a group's topic of dead letters.
    """
    chance, add = draft.chance, draft.add
    topic = chance.pick((*NEW_TOPICS, chance.pick(draft.space.addresses).topic))
    if draft.joined and chance.one_in(4):
        _change_dead_letters(draft)
        return
    read_queues, write_queues = chance.pick(QUEUES_READ), chance.pick(QUEUES_WRITTEN)
    change = ChangeTopic(topic, read_queues, write_queues, not chance.one_in(3))
    add(_amid_a_fault(draft, change))
    if chance.one_in(4):
        add(Restart())
    last = max(read_queues, write_queues) - chance.integer(0, 1)
    add(SendMessage(topic, last, chance.pick(draft.space.sizes).extra))


def _change_dead_letters(draft: Draft) -> None:
    """Add ops: a group's topic of dead letters gets more queues, and perhaps one more.

    A message that is given up at once is a dead letter.
    """
    chance, add = draft.chance, draft.add
    client, one = chance.pick(tuple(draft.joined.items()))
    queues = chance.pick(QUEUES_READ), chance.pick(QUEUES_READ)
    change = ChangeTopic(f"{DLQ_PREFIX}{one.group}", *queues)
    add(_amid_a_fault(draft, change))
    bring(draft, client)
    add(Consume(client, 0, 1, "later", -1), TurnConsumer(client, "heartbeat"))
    if chance.one_in(3):
        add(Restart())


def retries_of(draft: Draft, group: str) -> int:
    """How often a message of a group may be tried, by its newest configuration."""
    for op in reversed(draft.ops):
        if isinstance(op, ConfigureGroup) and op.group == group:
            return op.retry_max_times
    return RETRIES[0]


def _lock_queues(draft: Draft, one: StartConsumer) -> None:
    """Add ops: an orderly consumer and perhaps another of its group lock queues.

    Then their locks expire or nearly do; perhaps one client has renewed its own.
    """
    chance, add = draft.chance, draft.add
    its = [other for other in draft.space.consumers if other.group == one.group]
    clients = tuple(dict.fromkeys([one.client, chance.pick(its).client]))
    for other in its:
        if other.client in clients and other.client not in draft.joined:
            let_join(draft, other)
    for _ in clients:  # who has come first gives up some of its queues first
        add(*[TurnConsumer(client, "rebalance") for client in clients])
    add(*[TurnConsumer(client, "lock") for client in clients])
    ms = chance.pick(ABOUT_ITS_END_MS)
    if chance.coin():
        add(AdvanceClock(ms))
        return
    half = A_LOCK_MS // 2
    add(AdvanceClock(ms - half), TurnConsumer(chance.pick(clients), "lock"))
    add(AdvanceClock(half))


def _sent(draft: Draft, one: StartConsumer, most: int) -> SendMessage:
    chance, space = draft.chance, draft.space
    size, level = chance.pick(space.sizes).extra, chance.pick(LEVELS)
    address = chance.pick(space.addresses)
    if chance.one_in(ELSEWHERE):
        topics = (address.topic, *NEW_TOPICS, SCHEDULE_TOPIC)
        queue_id = address.queue_id
        if chance.one_in(PAST_THE_QUEUES):
            queue_id = chance.pick(LAST_QUEUES)
        return SendMessage(chance.pick(topics), queue_id, size)
    bound = chance.pick(RETRIES) if chance.one_in(3) else -1
    # In a group that consumes in order, mostly its locks are to decide.
    around = AROUND[:2] if one.is_orderly and chance.coin() else AROUND
    tries = max(0, (bound if bound >= 0 else most) + chance.pick(around))
    origin = f"RETRY_TOPIC={address.topic}"
    topic = RETRY_PREFIX + one.group
    queue_id = int(chance.one_in(PAST_THE_QUEUES * ELSEWHERE))
    return SendMessage(topic, queue_id, max(size, 1), tries, bound, level, origin)
