"""Phrases in which the disk of a broker's config files fails for a while.

A change of a table has failed, so that each use of the table writes it first; and that
fails as well, as long as the disk does. Whatever is asked meanwhile, the broker goes by
the tables as they were before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from crashmq.models.ops import (
    AskBroker,
    ChangeTopic,
    CommitOffset,
    ConfigureGroup,
    DeleteGroup,
    DiskFault,
    During,
    Op,
    PullThroughBroker,
    QueryOffset,
    RunService,
    SendMessage,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.space import Address, often

CONFIG: Final = "config"
OUTAGES: tuple[DiskFault, ...] = often(
    (DiskFault("write", "EIO", path=CONFIG, lasts=True), 3),
    (DiskFault("sync", "EIO", path=CONFIG, lasts=True), 2),
    (DiskFault("write", "ENOSPC", path=CONFIG, written=9, lasts=True), 1),
    (DiskFault("remove", "EIO", path=CONFIG, lasts=True), 1),
)
FAILS_AT: Final = (1, 1, 1, 2, 5)
"""From one of so many actions of a change on its calls fail."""
ASKED_MAX = 4
BARRED = 2
"""One of so many groups is barred from consuming before."""
NEW_TOPICS: Final = ("M0", "M1")
"""Topics that nobody consumes."""
HEALED = 3
"""One of so many outages has not ended before the broker is asked no more."""


def outage(draft: Draft) -> None:
    """Add ops: a change of a table fails, and the disk goes on failing."""
    chance, add = draft.chance, draft.add
    address = chance.pick(draft.space.addresses)
    group = chance.pick(draft.space.groups)
    add(draft.drawn.stock(address), RunService("reput"))
    if chance.one_in(BARRED):
        add(ConfigureGroup(group, consume_enable=False))
    elif chance.coin():
        add(ChangeTopic(chance.pick(NEW_TOPICS), chance.pick((8, 9, 16))))
    fault = chance.pick(OUTAGES)
    add(During(_change(draft), chance.pick(FAILS_AT), fault))
    asked = [_asked(draft, group, address) for _ in range(chance.integer(1, ASKED_MAX))]
    add(*amid(asked, fault))
    if not chance.one_in(HEALED):
        add(*asked)


def amid(ops: list[Op], fault: DiskFault) -> list[Op]:
    """The ops, each with an outage from its first action on."""
    return [During(op, 1, fault) for op in ops]


def _change(draft: Draft) -> Op:
    """What writes the table of groups or topics at once."""
    chance = draft.chance
    group = chance.pick(draft.space.groups)
    makers: tuple[Callable[[], Op], ...] = often(
        (lambda: ConfigureGroup(group, chance.pick((0, 3))), 2),
        (lambda: ConfigureGroup(f"{group}2", chance.pick((0, 3))), 2),
        (lambda: DeleteGroup(group), 1),
        (lambda: ChangeTopic(chance.pick(NEW_TOPICS), chance.pick((8, 9, 16))), 2),
        (lambda: SendMessage(chance.pick(NEW_TOPICS), 0, 1), 1),
    )
    return chance.pick(makers)()


def _asked(draft: Draft, group: str, address: Address) -> Op:
    """What is asked meanwhile, mostly about the group."""
    chance = draft.chance
    pull = PullThroughBroker(group, *address, 0, suspends=chance.coin())
    topic = chance.pick(NEW_TOPICS)
    asked: tuple[Op, ...] = often(
        (pull, 6),
        (replace(pull, topic=topic, queue_id=chance.below(9)), 1),
        (CommitOffset(group, *address, chance.integer(0, 3)), 1),
        (QueryOffset(group, *address), 1),
        (SendMessage(topic, chance.below(9), 1), 1),
        (AskBroker("group_config", group), 1),
        (AskBroker("topic_config", "", topic), 1),
        (RunService("persist_consumer_offset"), 1),
    )
    return chance.pick(asked)
