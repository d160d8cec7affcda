"""Phrases in which messages fail and come again.

A message that fails is sent back, waits for its delay level, is delivered to the
group's retry topic, and is pulled there by the consumer that has that queue; after too
many failures it is a dead letter.
"""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import (
    AdvanceClock,
    AskBroker,
    ConfigureGroup,
    Consume,
    DeleteGroup,
    During,
    EndConsumer,
    Op,
    PutMessage,
    Restart,
    RunService,
    StartConsumer,
    TurnConsumer,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.joining import (
    A_LONG_TIME,
    A_SECOND,
    DELIVER,
    FIRST_LEVEL,
    LOOK,
    REPUT,
    SOON,
    amid_a_fault,
    consumed_by,
    join_one_of,
    put_for,
    retries_of,
)

DELAYED = 5
"""One of so many messages was delayed before it fails, and is delayed again."""
ROUNDS_MAX = 4
"""A message is a dead letter after three; one round more shows that it stays one."""
BEFORE_OR_AFTER_MS = (0, 0, 0, -1, 1, 500)
CONFIGURED = 6
"""Before one of so many phrases an administrator says whether a group has retries."""
UNRETRIED = 4
"""One of so many groups that are configured has none."""
JOINS = 3
"""One of so many phrases begins with a consumer that joins, beside the first."""


def retry(draft: Draft) -> None:
    """Add ops: a group's consumers consume, fail, and get the messages again."""
    chance, add = draft.chance, draft.add
    group = chance.pick(draft.space.consumers).group
    members = [one for one in draft.space.consumers if one.group == group]
    is_there = _is_there(draft, group)
    if chance.one_in(CONFIGURED) or (draft.setup.retry_queues > 1 and not is_there):
        add(ConfigureGroup(group, retries_of(draft, group), is_retried=_again(draft)))
    if chance.one_in(JOINS) or not is_there:
        join_one_of(draft, members)
    put = put_for(draft, members[0])
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
        if chance.one_in(CONFIGURED):
            tries, again = retries_of(draft, group), _again(draft)
            add(ConfigureGroup(group, tries, is_retried=again))
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
            join_one_of(draft, members)


def _again(draft: Draft) -> bool:
    """Whether what a group fails to consume is retried: mostly."""
    return not draft.chance.one_in(UNRETRIED)


def _is_there(draft: Draft, group: str) -> bool:
    """Whether a client of a group has joined before in the program."""
    return any(one.group == group for one in draft.joined.values())


def _turn_all(draft: Draft, members: list[StartConsumer]) -> None:
    """Add ops: all consumers of a group pull, and consume it."""
    for one in members:
        draft.add(TurnConsumer(one.client, "pull", 2))
        draft.add(amid_a_fault(draft, consumed_by(draft, one.client)))
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
    join_one_of(draft, members)


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
    join_one_of(draft, members)


def _work_amid(draft: Draft, members: list[StartConsumer]) -> None:
    """Add ops: a consumer works while messages are delivered."""
    client = draft.chance.pick(members).client
    ops: tuple[Op, ...] = (DELIVER, REPUT, consumed_by(draft, client))
    draft.add(draft.drawn.together(ops))
