"""Phrases of one consumer's life: it works, rebalances, commits, and hands over.

It joins and leaves, loses its locks, is reset, and subscribes something else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, TypeAlias

from crashmq.models.limits import PULL_MAX_IDLE_MS, PUT_OFF_MS
from crashmq.models.ops import (
    RETRIED,
    AdvanceClock,
    Consume,
    ConsumerTask,
    ConsumeStatus,
    During,
    EndConsumer,
    Op,
    ResetOffset,
    Restart,
    Resubscribe,
    RunService,
    Schedule,
    Session,
    Shutdown,
    StartConsumer,
    TellReset,
    Together,
    TurnConsumer,
    pause_ms,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.joining import (
    A_SECOND,
    AGAIN,
    AGO_MS,
    AT_ONCE,
    COMMITTING,
    ENDS,
    FAILING,
    LOOK,
    NO_TOPIC,
    PAUSES_MS,
    PLACES,
    REPUT,
    SOON,
    STRANGERS,
    TASKS,
    TIMES,
    UNANSWERED,
    as_the_others,
    askable,
    at_length,
    at_once,
    bring,
    consumed_by,
    has_a_share,
    join,
    join_one_of,
    joined_of,
    let_join,
    others_of,
    put_for,
    rebalance_all,
    work,
)
from crashmq.scenarios.programs.space import often
from crashmq.scenarios.programs.subscribing import (
    drop_a_topic,
    resubscribe,
    subscribe_all,
)

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
    "drop",
    "try_again",
    "come_back",
    "find_again",
    "lose_amid_work",
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
    ("reset", 14),
    ("resubscribe", 2),
    ("drop", 4),
    ("try_again", 3),
    ("come_back", 3),
    ("find_again", 3),
    ("lose_amid_work", 3),
    ("commit", 4),
    ("batch", 4),
    ("begin_by_time", 1),
)
Beside: TypeAlias = Literal["reput", "put", "consume", "end", "turn"]
BESIDE: tuple[Beside, ...] = often(
    ("reput", 1), ("put", 1), ("consume", 3), ("end", 1), ("turn", 4)
)
HELD_MS: Final = 21_000
"""So often a consumer renews its locks; a third of how long a broker keeps them."""
PUT_OFF: Final = AdvanceClock(PUT_OFF_MS)
"""After so long a consumer takes up what it has put off."""
AGAIN_MS: Final = (1, 10, 999, 1000, 4000, 4999, 5000, 5001, 9999)
"""Around the times after which a consumer tries again what it has kept."""
AROUND: Final = (-1, 0, 0, 1)
"""So many ms from the end of a wait."""
PAUSES: Final = (0, -1, 99, 3000)
"""What a listener in order says of it."""
OF_BATCHES: Final[tuple[ConsumeStatus, ...]] = often(
    ("partly", 4), ("success", 2), ("later", 1), ("raises", 1)
)
LostBy: TypeAlias = Literal["neglect", "reset", "choice"]
LOST_BY: tuple[LostBy, ...] = ("neglect", "reset", "choice")
LONG_MS: Final = (600, 2000, 7000)
FOUND_AGAIN: Final[tuple[tuple[ConsumerTask, ...], ...]] = often(
    *((("rebalance",), 2), (("lock",), 2), (("rebalance", "lock"), 1), ((), 1)),
    *((("lock", "rebalance"), 1), (("pull",), 1)),
)
"""What a client does first at a broker that knows nothing of it."""
ASKED_FOR = 3
"""Of so many resets one waits until a pull asks; of others the broker tells clients."""
TOLD_AMID = 3
"""Of so many times a client is told once amid what its listener does."""
TOLD_POINTS: Final = (1, 16)
"""Between these points a listener is called, returns, and what it did is committed."""


def consume(draft: Draft) -> None:
    """Add ops of a consumer: it joins, works, pulls, rebalances, or ends."""
    chance, add = draft.chance, draft.add
    joined = tuple(draft.joined)
    doing = chance.pick(DOINGS)
    if doing == "join" or not joined:
        join(draft)
        return
    client = chance.pick(joined)
    match doing:
        case "work":
            work(draft, client)
        case "end":
            add(EndConsumer(client, chance.pick(ENDS)))
            if chance.coin():
                rebalance_all(draft)
        case "rebalance":
            rebalance_all(draft)
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
            at_once(draft, [_beside(draft, who) for _ in range(chance.integer(2, 3))])
        case "hold":
            _hold(draft, client)
        case "hand_over":
            _hand_over(draft, client)
        case "leave":
            _leave_at_work(draft, client)
        case "come_back":
            _come_back(draft, client)
        case "find_again":
            _find_again(draft, client)
        case "lose_amid_work":
            _lose_amid_work(draft, client)
        case "reset":
            _reset(draft)
        case "resubscribe":
            resubscribe(draft, client)
        case "drop":
            drop_a_topic(draft, client)


def _come_back(draft: Draft, client: str) -> None:
    """Add ops: a consumer works and ends; its client begins again, and works on.

    Perhaps it, with the others of its group, subscribes something else from then on. So
    it may begin queues that it never had before those that it has worked on.
    """
    chance, add, who = draft.chance, draft.add, draft.joined[client]
    told = askable(draft)
    bring(draft, client)
    add(consumed_by(draft, client))
    if chance.coin():
        add(TurnConsumer(client, "persist"))
    add(EndConsumer(client, chance.pick(ENDS)))
    if told and chance.coin():
        asked = chance.pick(told)
        its = joined_of(draft, who.group)
        subscribe_all(draft, [one for one in its if one.client != client], asked)
        topics, expression, kind = asked
        who = replace(who, topics=topics, expression=expression, expression_type=kind)
    draft.joined[client] = who
    if chance.coin():
        add(put_for(draft, who), REPUT)
    add(who)
    rebalance_all(draft)
    if chance.coin():
        add(TurnConsumer(client, "persist"))
    bring(draft, client)
    add(consumed_by(draft, client))


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
    if not chance.one_in(ASKED_FOR):
        first, *others = [TellReset(client, *address, offset) for client in its]
        if chance.one_in(TOLD_AMID):
            both = (at_length(draft, its[0]), first)
            point = chance.integer(*TOLD_POINTS)
            schedule = Schedule(preemptions=((point, 1),))
            add(Together(both, schedule if chance.coin() else draft.drawn.schedule(2)))
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
    add(*[TurnConsumer(client, "persist") for client in its])


def _try_again(draft: Draft, client: str) -> None:
    """Add ops: a consumer fails and soon consumes again, so the message is retried.

    It keeps messages that it cannot send back, since the broker is down or refuses
    them.
    """
    chance, add = draft.chance, draft.add
    in_order = [name for name, one in draft.joined.items() if one.is_orderly]
    if in_order and chance.coin():
        client = chance.pick(in_order)
    failing = chance.pick(FAILING)
    add(*[draft.drawn.put() for _ in range(chance.integer(1, 3))], REPUT, LOOK)
    add(A_SECOND, TurnConsumer(client, "pull", 8))
    is_gone = chance.coin()
    if is_gone:
        add(Shutdown())
    soon = chance.pick(PAUSES if draft.joined[client].is_orderly else AGAIN)
    add(Consume(client, times=chance.pick(TIMES), status=failing, again=soon))
    for number in range(chance.integer(1, 3)):
        if is_gone and number == 1:
            add(Restart())
        waits_ms = _waits_ms(draft.joined[client], soon) + chance.pick(AROUND)
        add(AdvanceClock(waits_ms if chance.coin() else chance.pick(AGAIN_MS)))
        again = failing if chance.coin() else "success"
        add(Consume(client, times=chance.pick(TIMES), status=again, again=soon))
    if is_gone:
        add(Restart())


def _waits_ms(who: StartConsumer, again: int) -> int:
    """How long a consumer waits before it tries again what it has kept."""
    if not who.is_orderly:
        return PUT_OFF_MS
    return pause_ms(again)


def _consume_in_batches(draft: Draft, client: str) -> None:
    """Add ops: a listener is given several messages, and consumes a part of them."""
    chance, add = draft.chance, draft.add
    joined = [one for one in draft.joined.values() if _takes_batches(one)]
    can_join = [one for one in draft.space.consumers if not one.is_orderly]
    can_join = [one for one in can_join if has_a_share(one, draft.setup)]
    if not joined and not can_join:
        work(draft, client)
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
    can_join = [one for one in can_join if has_a_share(one, draft.setup)]
    if not can_join:
        work(draft, client)
        return
    one = replace(chance.pick(can_join), where="timestamp")
    for _ in range(2):
        add(*[draft.drawn.put() for _ in range(chance.integer(1, 3))])
        add(AdvanceClock(chance.pick(AGO_MS)))
    add(REPUT)
    let_join(draft, one)
    if chance.coin():
        add(AdvanceClock(chance.pick(AGO_MS)))
    rebalance_all(draft)
    work(draft, one.client)


def _takes_batches(one: StartConsumer) -> bool:
    return one.batch > 1 and not one.is_orderly


def commit(draft: Draft) -> None:
    """Add ops: a listener in order commits by itself, and fails now and then."""
    if not draft.joined:
        join(draft)
    _commit_itself(draft, draft.chance.pick(tuple(draft.joined)))


def _commit_itself(draft: Draft, client: str) -> None:
    """Add ops: a listener in order says which of its results commit, or take back."""
    chance, add = draft.chance, draft.add
    joined = [one for one in draft.joined.values() if one.is_orderly]
    can_join = [one for one in draft.space.consumers if one.is_orderly]
    can_join = [one for one in can_join if has_a_share(one, draft.setup)]
    if not joined and not can_join:
        work(draft, client)
        return
    soon = [one for one in can_join if one.max_reconsume_times < RETRIED]
    gives_up = bool(soon) and chance.coin()
    one = chance.pick(soon if gives_up else joined or can_join)
    client = one.client
    if client not in draft.joined:
        let_join(draft, one)
    for _ in range(2):
        add(*[draft.drawn.put()] * chance.integer(2, 4))
    add(REPUT, LOOK, TurnConsumer(client, "rebalance"))
    add(A_SECOND, TurnConsumer(client, "pull", 8))
    add(Consume(client, times=chance.pick((1, 2, 4)), status="uncommitted"))
    for _ in range(chance.integer(1, 4)):
        results = (*COMMITTING, "later", "suspends")
        status = "suspends" if gives_up and chance.coin() else chance.pick(results)
        add(Consume(client, times=chance.pick((1, 1, 2)), status=status))
        if status in ("rollback", "later", "suspends"):
            add(A_SECOND)
        if chance.coin():
            add(TurnConsumer(client, "persist"))
    add(Consume(client, times=chance.pick(TIMES)))


def _hold(draft: Draft, client: str) -> None:
    """Add ops: time passes, so orderly consumers keep queues only by renewing locks."""
    chance = draft.chance
    orderly = [one.client for one in draft.joined.values() if one.is_orderly]
    if not orderly:
        work(draft, client)
        return
    if chance.coin():
        _lose_locks(draft, orderly)
        return
    for _ in range(chance.integer(1, 3)):
        draft.add(AdvanceClock(HELD_MS))
        draft.add(*[TurnConsumer(one, "lock") for one in orderly])
    other = chance.pick(orderly)
    draft.add(TurnConsumer(other, "rebalance"))
    work(draft, chance.pick(orderly))


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


def _find_again(draft: Draft, client: str) -> None:
    """Add ops: a broker loses its locks, and a group's clients come back one by one.

    Who comes first is the only member that the broker knows, and takes all queues. The
    others still have messages of theirs, and in order a lease of their locks.
    """
    chance, add = draft.chance, draft.add
    in_order = [name for name, one in draft.joined.items() if one.is_orderly]
    if in_order and not chance.one_in(STRANGERS):
        client = chance.pick(in_order)
    group, others = draft.joined[client].group, others_of(draft, client)
    if others and not any(one.client in draft.joined for one in others):
        let_join(draft, chance.pick(others))
    its = [one.client for one in joined_of(draft, group)]
    add(*[TurnConsumer(name, "rebalance") for name in (*its, *its)])
    for name in its:
        bring(draft, name)
    add(*[TurnConsumer(name, "lock") for name in its])
    add(Shutdown(), Restart())
    turned = chance.below(len(its))
    for name in (*its[turned:], *its[:turned]):
        add(TurnConsumer(name, "heartbeat"))
        for task in chance.pick(FOUND_AGAIN):
            add(TurnConsumer(name, task))
        add(Consume(name, times=chance.pick(TIMES)))


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
    works, looks = at_length(draft, client), TurnConsumer(client, "rebalance")
    at_once(draft, (works, looks) if chance.coin() else (looks, works))
    if others and chance.coin():
        draft.add(EndConsumer(other.client))
        draft.joined.pop(other.client)
        draft.add(looks)
    rebalance_all(draft)
    work(draft, client)


def _lose_amid_work(draft: Draft, client: str) -> None:
    """Add ops: a consumer loses a queue while its listener runs, and begins it again.

    It has not pulled for too long, is told to begin elsewhere, or subscribes something
    else and comes back; then it pulls and consumes the queue beside that listener.
    """
    chance, add, who = draft.chance, draft.add, draft.joined[client]
    for _ in range(2):
        address = bring(draft, client)
    looks = TurnConsumer(client, "rebalance")
    loses: tuple[Op, ...] = (looks,)
    match chance.pick(LOST_BY):
        case "neglect":
            add(AdvanceClock(PULL_MAX_IDLE_MS + 1), TurnConsumer(client, "heartbeat"))
            add(TurnConsumer(client, "lock"))
        case "reset":
            offset = chance.number(draft.space.progress_offsets)
            loses = (TellReset(client, *address, offset), looks)
        case "choice":
            other = Resubscribe(client, NO_TOPIC)
            asked = who.topics, who.expression, who.expression_type
            loses = (other, looks, Resubscribe(client, *asked), looks)
    works = Consume(client, takes_ms=chance.pick(LONG_MS))
    again = (TurnConsumer(client, "pull", 2), Consume(client, times=2))
    both = (works, Session((*loses, SOON, *again)))
    add(Together(both, draft.drawn.schedule(2)))
    add(looks, A_SECOND, *again, TurnConsumer(client, "persist"))


def _leave_at_work(draft: Draft, client: str) -> None:
    """Add ops: a consumer ends while its listener runs, and another goes on."""
    chance, who = draft.chance, draft.joined[client]
    draft.add(put_for(draft, who), RunService("reput"), TurnConsumer(client, "pull"))
    ends = EndConsumer(client, chance.pick(ENDS))
    at_once(draft, (at_length(draft, client), ends))
    join_one_of(draft, joined_of(draft, who.group))


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
            return at_length(draft, client)
        case "end":
            return EndConsumer(client, chance.pick(ENDS))
        case "turn":
            return TurnConsumer(client, chance.pick(TASKS), chance.pick(TIMES))
