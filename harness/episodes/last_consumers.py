"""What consumers do at the end of an episode: they consume all that is left, and stop.

Every group that ever had a consumer gets one for that, so what is left then is a
message that nobody would ever get.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from crashmq.harness.judging.judge import Judge
from crashmq.models.brokers import queues_of
from crashmq.models.history import OneQueue
from crashmq.models.knowledge.group_configs import DEFAULT
from crashmq.models.knowledge.sharing import listing
from crashmq.models.observations import Observation, Ran
from crashmq.models.ops import (
    AdvanceClock,
    ConfigureGroup,
    Consume,
    EndConsumer,
    Op,
    RunService,
    StartConsumer,
    TurnConsumer,
)
from crashmq.models.program import Setup

Take = Callable[[Op], Observation]

LONG_MS = 130_000
"""After so long a broker has given up clients that say nothing, and all time-outs of
clients are over. Source: ClientChannelInfo, 120 s."""
SOON_MS = 21_000
"""After so long a balanced consumer rebalances, and renews its locks."""
ROUNDS_MAX = 60  # and one for each message
IDLE_ROUNDS = 3
PULLS = 8
MANY = 64


def consume_all_left(judge: Judge, take: Take) -> None:
    """Let every group's consumers consume all that is left; judge and stop them."""
    if judge.known.progress.tables.was_set_back:
        # Clients that were heard at a time to come count as heard now.
        take(RunService("client_housekeeping"))
    take(AdvanceClock(LONG_MS))
    _let_all_consume(judge, take)
    known = judge.known.consumption
    uncommitted = [one.client for one, its in known.shares.items() if its.uncommitted]
    for client in sorted({*uncommitted} & {*known.living}):
        take(EndConsumer(client))  # nobody commits it any more
    for number, (reader, op) in enumerate(sorted(known.newest.items())):
        if not known.members(reader):
            take(_last_of(op, number, judge.known.setup))
    clients = sorted(known.living)
    for client in sorted(judge.known.progress.due.suspended):
        take(TurnConsumer(client, "resume"))
    for client in clients:
        take(TurnConsumer(client, "heartbeat"))
    take(RunService("client_housekeeping"))
    for client in clients:
        take(TurnConsumer(client, "rebalance"))
    _until_idle(clients, judge, take)
    judge.judge_consumed()
    for client in clients:
        take(TurnConsumer(client, "persist"))
    judge.judge_idle()
    for client in clients:
        take(EndConsumer(client))


def _let_all_consume(judge: Judge, take: Take) -> None:
    """Let the groups pull again that an administrator has told not to."""
    groups = judge.known.progress.groups
    for group in sorted(groups.barred):
        its = min(groups.possible(group), default=DEFAULT)
        tries, minutes = its.retry_max_times, its.consume_timeout_minute
        take(ConfigureGroup(group, tries, minutes))


def _last_of(op: StartConsumer, number: int, setup: Setup) -> StartConsumer:
    """A consumer for a group without one, to consume what is left."""
    if op.broadcasts:
        return op  # its offsets are its client's
    listed = op.listed
    if op.strategy == "CONFIG":
        listed = listing(queues_of(op, setup))
    return replace(op, client=f"end-{number}", listed=listed)


def _until_idle(clients: list[str], judge: Judge, take: Take) -> None:
    idle, before = 0, _places(judge)
    # Flow control may let a consumer take two messages a round.
    left = sum(map(len, judge.known.model.queues.values()))
    for _ in range(ROUNDS_MAX + left):
        take(AdvanceClock(SOON_MS))
        # What is held that long is answered: consumers tell what they pass over.
        take(RunService("pull_request_hold"))
        worked = [_turn(client, take) for client in clients]
        # They may pass over much that they have not asked for.
        before, had = _places(judge), before
        idle = 0 if any(worked) or before != had else idle + 1
        if idle == IDLE_ROUNDS:
            return


def _places(judge: Judge) -> dict[OneQueue, int]:
    """Where the newest pull of each queue began."""
    shares = judge.known.consumption.shares
    return {queue: share.asked for queue, share in shares.items()}


def _turn(client: str, take: Take) -> bool:
    """Run each task of a consumer once; whether one still had something to do.

    A pull does not count: a held one that times out is sent again for ever.
    """
    take(TurnConsumer(client, "heartbeat"))
    rebalanced = take(TurnConsumer(client, "rebalance"))
    take(TurnConsumer(client, "lock"))
    take(TurnConsumer(client, "pull", PULLS))
    consumed = take(Consume(client, times=MANY))
    return any(
        isinstance(seen, Ran) and seen.work > 0 for seen in (rebalanced, consumed)
    )
