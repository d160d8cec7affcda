"""Phrases in which several callers write a broker's table at the same time.

Each table is one file that is written as a whole: by its service, by a stop, and at
once by each change of a topic or a group and by each removal of offsets. Whoever writes
last must also have the newest text. What was lost shows at the next start, so the
broker dies before the table is written again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from crashmq.models.ops import (
    AskBroker,
    ChangeTopic,
    CleanOffsets,
    CommitOffset,
    ConfigureGroup,
    DeleteGroup,
    DeleteTopic,
    During,
    Op,
    PullThroughBroker,
    QueryOffset,
    Restart,
    RunService,
    Schedule,
    SendMessage,
    Session,
    Together,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.drawn_ops import STOCK
from crashmq.scenarios.programs.joining import RETRIES
from crashmq.scenarios.programs.space import Address, often

PERSIST: Final = RunService("persist_consumer_offset")
FLUSH_ALL: Final = RunService("flush_commit_log", 2)
Table: TypeAlias = Literal["offsets", "topics", "groups"]
TABLES: tuple[Table, ...] = often(("offsets", 4), ("topics", 1), ("groups", 1))
ALIKE = 3
"""Of so many times one has any writers of offsets; else some are removed meanwhile."""
IN_ORDER = 6
"""One of so many brokers stops in order before it starts, and writes all again."""
DRAWN = 4
"""One of so many times the schedule is any."""
POINTS: Final = (7, 7, 24)
"""Among so many first switch points is the one at which the first caller stands still;
most make their text soon."""
BACK_AFTER: Final = 40
"""One of so many later points is where it goes on, amid what the second one writes."""
GOES_ON = 3
"""It does so one of so many times; else once the second one has written."""
NEW_TOPICS: Final = ("M0", "M1", "M2")
"""Topics that nobody consumes."""
QUEUES: Final = (8, 9, 12, 16)


def write_at_once(draft: Draft) -> None:
    """Add ops: two or three callers change one table at once, and the broker dies."""
    chance, add = draft.chance, draft.add
    writers = {"offsets": _of_offsets, "topics": _of_topics, "groups": _of_groups}
    table = chance.pick(TABLES)
    if table == "offsets":
        _commit_some(draft)
    ops = [writers[table](draft) for _ in range(chance.pick((2, 2, 3)))]
    if table == "offsets" and not chance.one_in(ALIKE):
        removes = _removes(draft)
        ops[:2] = (PERSIST, removes) if chance.coin() else (removes, _persists(draft))
    if chance.one_in(DRAWN):
        add(draft.drawn.together(ops))
    else:
        add(Together((*ops,), _stopped_once(draft)))
    addresses = tuple(dict.fromkeys(draft.space.addresses))
    if chance.coin():  # what begins anew has offsets that were given before
        add(*[draft.drawn.stock(one) for one in addresses], FLUSH_ALL)
    asked = _asked_of(draft, table)
    if chance.one_in(IN_ORDER):
        add(Restart())
    else:
        add(During(asked[0], 1, draft.drawn.crash()), Restart())
    add(*asked)


def _stopped_once(draft: Draft) -> Schedule:
    """A schedule in which the first caller stands still while the second one writes."""
    chance = draft.chance
    point = chance.integer(1, chance.pick(POINTS))
    preemptions = [(point, 1)]
    if chance.one_in(GOES_ON):
        preemptions.append((point + chance.integer(1, BACK_AFTER), 0))
    return Schedule(preemptions=(*preemptions,))


def _commit_some(draft: Draft) -> None:
    """Add ops: groups have offsets on each queue, which are in the file or not."""
    chance, add = draft.chance, draft.add
    addresses = tuple(dict.fromkeys(draft.space.addresses))
    add(*[draft.drawn.stock(one) for one in addresses], RunService("reput"))
    for address in addresses:
        add(_commit(draft, address))
    if chance.coin():
        add(PERSIST)


def _commit(draft: Draft, address: Address) -> CommitOffset:
    group = draft.chance.pick(draft.space.groups)
    return CommitOffset(group, *address, draft.chance.integer(1, STOCK[0]))


def _of_offsets(draft: Draft) -> Op:
    """A caller who removes some offsets, or one who persists all."""
    return _removes(draft) if draft.chance.coin() else _persists(draft)


def _persists(draft: Draft) -> Op:
    """A caller who persists the offsets, perhaps right after a commit."""
    commit = _commit(draft, draft.chance.pick(draft.space.addresses))
    return PERSIST if draft.chance.coin() else Session((commit, PERSIST))


def _removes(draft: Draft) -> Op:
    """A caller who removes some offsets, and then writes the others."""
    chance, space = draft.chance, draft.space
    address = chance.pick(space.addresses)
    removals: tuple[Op, ...] = often(
        (DeleteTopic(address.topic), 3),
        (DeleteTopic(*address), 2),
        (CleanOffsets(address.topic), 2),
        (DeleteGroup(chance.pick(space.groups)), 1),
    )
    return chance.pick(removals)


def _of_topics(draft: Draft) -> Op:
    """A caller who makes, changes or deletes a topic."""
    chance = draft.chance
    topic = chance.pick(
        (*NEW_TOPICS, *NEW_TOPICS, chance.pick(draft.space.addresses)[0])
    )
    makers: tuple[Callable[[], Op], ...] = often(
        (lambda: ChangeTopic(topic, chance.pick(QUEUES), chance.pick(QUEUES)), 3),
        (lambda: SendMessage(chance.pick(NEW_TOPICS), chance.below(4), 1), 2),
        (lambda: DeleteTopic(topic), 1),
    )
    return chance.pick(makers)()


def _of_groups(draft: Draft) -> Op:
    """A caller who configures, deletes or first uses a group."""
    chance, address = draft.chance, draft.chance.pick(draft.space.addresses)
    group = chance.pick(draft.space.groups)
    makers: tuple[Callable[[], Op], ...] = often(
        (lambda: ConfigureGroup(group, chance.pick(RETRIES), chance.pick((15, 1))), 3),
        (lambda: DeleteGroup(group), 1),
        (lambda: PullThroughBroker(group, *address, 0, suspends=False), 1),
    )
    return chance.pick(makers)()


def _asked_of(draft: Draft, table: Table) -> tuple[Op, ...]:
    """Questions about what was written."""
    space = draft.space
    groups = tuple(dict.fromkeys(space.groups))
    addresses = tuple(dict.fromkeys(space.addresses))
    match table:
        case "offsets":
            queries = [QueryOffset(one, *at) for one in groups for at in addresses]
            return draft.chance.pick(queries), draft.chance.pick(queries)
        case "topics":
            return tuple([AskBroker("topic_config", "", one) for one in NEW_TOPICS])
        case "groups":
            return tuple([AskBroker("group_config", one) for one in groups])
