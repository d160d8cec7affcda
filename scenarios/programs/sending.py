"""Phrases in which producers send through the broker, mostly to retry topics.

A message that a producer sends to a retry topic is a dead letter at once if it was
tried too often, or if a client of the group holds a queue lock.
"""

from __future__ import annotations

from typing import Final

from crashmq.models.files.record import DLQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC
from crashmq.models.ops import (
    AdvanceClock,
    ChangeTopic,
    ConfigureGroup,
    Consume,
    DeleteTopic,
    DiskFault,
    During,
    Restart,
    SendMessage,
    StartConsumer,
    TurnConsumer,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.joining import (
    A_LOCK_MS,
    FAULT_ACTIONS_MAX,
    REPUT,
    RETRIES,
    STRANGERS,
    amid_a_fault,
    at_once,
    bring,
    let_join,
    retries_of,
)
from crashmq.scenarios.programs.space import often

AROUND: Final = (-1, 0, 1)
"""Of the most tries that are allowed."""
ABOUT_ITS_END_MS: Final = (A_LOCK_MS, A_LOCK_MS + 1, A_LOCK_MS - 1)
NEW_TOPICS: Final = ("N0", "N1")
"""Topics to which nothing is put."""
LEVELS: Final = (0, 0, 0, 1, 3)
SENT_MAX = 3
SENT_BESIDE = 8
"""One of so many messages is sent while another is, and while a client locks queues."""
TOO_LONG = 12
"""One of so many messages is as long as a file of the log, which takes none such."""
FAILED = 4
"""Where disks fail, one of so many times a deletion fails, and its topic is sent to."""
LATE_ACTIONS: Final = (9, 11)
DONE_IN_VAIN: Final = DiskFault("sync", "EIO", path="config")
"""Late in a change of a config file: the file has it, and the broker has it not."""
PAST_THE_QUEUES = 4
"""One of so many messages is sent to a topic's last queue, or past it."""
LAST_QUEUES: Final = (7, 8, 9)
"""About the end of a topic's queues, of which it has eight."""
CHANGED = 4
"""Before one of so many sends an administrator changes a topic."""
QUEUES_READ: Final = (8, 8, 9, 16)
QUEUES_WRITTEN: Final = (8, 1, 9, 12, 0)
UNRETRIED = 4
"""One of so many groups that are configured has no retry queue."""
QUEUES_ASKED: Final = often(
    *((8, 6), (4, 2), (1, 2), (0, 1), (-1, 2), (7, 1), (9, 1), (1 << 20, 1)),
    (-(1 << 31), 1),
)
"""Of a new topic that nobody consumes, as its producer wants it."""
ELSEWHERE = 4
"""One of so many messages is for a topic that is not one of retries."""


def send(draft: Draft) -> None:
    """Add ops: a producer sends messages, mostly to a group's retry topic."""
    chance, add = draft.chance, draft.add
    if "retry" in draft.space.kinds and chance.one_in(FAILED):
        _fail_to_delete(draft)
        return
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
        add(ConfigureGroup(one.group, most, is_retried=not chance.one_in(UNRETRIED)))
    if one.is_orderly:
        _lock_queues(draft, one)
    if chance.one_in(CHANGED):
        _change_topic(draft)
    for _ in range(chance.integer(1, SENT_MAX)):
        sent = _sent(draft, one, most)
        if chance.one_in(SENT_BESIDE):
            locks = TurnConsumer(one.client, "lock")
            at_once(draft, [sent, locks, _sent(draft, one, most)])
        else:
            add(amid_a_fault(draft, sent))
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
    add(amid_a_fault(draft, change))
    if chance.one_in(4):
        add(Restart())
    last = max(read_queues, write_queues) - chance.integer(0, 1)
    add(SendMessage(topic, last, chance.pick(draft.space.sizes).extra))


def _fail_to_delete(draft: Draft) -> None:
    """Add ops: a deletion of a topic fails, and messages are sent there again."""
    chance, add = draft.chance, draft.add
    sent = SendMessage(chance.pick(NEW_TOPICS), chance.integer(0, 7), 1)
    if not chance.one_in(3):
        add(sent)
    fault, at_action = DONE_IN_VAIN, chance.integer(*LATE_ACTIONS)
    if chance.coin():
        fault, at_action = draft.drawn.fault(), chance.integer(1, FAULT_ACTIONS_MAX)
    add(During(DeleteTopic(sent.topic), at_action, fault), sent)
    if chance.coin():
        add(During(REPUT, 1, draft.drawn.crash()), Restart(), sent)


def _change_dead_letters(draft: Draft) -> None:
    """Add ops: a group's topic of dead letters gets more queues, and perhaps one more.

    A message that is given up at once is a dead letter.
    """
    chance, add = draft.chance, draft.add
    client, one = chance.pick(tuple(draft.joined.items()))
    queues = chance.pick(QUEUES_READ), chance.pick(QUEUES_READ)
    change = ChangeTopic(f"{DLQ_PREFIX}{one.group}", *queues)
    add(amid_a_fault(draft, change))
    bring(draft, client)
    add(Consume(client, 0, 1, "later", -1), TurnConsumer(client, "heartbeat"))
    if chance.one_in(3):
        add(Restart())


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
    if chance.one_in(TOO_LONG):
        size = draft.setup.log_file_size
    address = chance.pick(space.addresses)
    if chance.one_in(ELSEWHERE):
        topics = (address.topic, *NEW_TOPICS, SCHEDULE_TOPIC)
        queue_id = address.queue_id
        if chance.one_in(PAST_THE_QUEUES):
            queue_id = chance.pick(LAST_QUEUES)
        topic = chance.pick(topics)
        queues = chance.pick(QUEUES_ASKED) if topic in NEW_TOPICS else QUEUES_ASKED[0]
        return SendMessage(topic, queue_id, size, asks_queues=queues)
    bound = chance.pick(RETRIES) if chance.one_in(3) else -1
    # In a group that consumes in order, mostly its locks are to decide.
    around = AROUND[:2] if one.is_orderly and chance.coin() else AROUND
    tries = max(0, (bound if bound >= 0 else most) + chance.pick(around))
    origin = f"RETRY_TOPIC={address.topic}"
    topic = RETRY_PREFIX + one.group
    queue_id = chance.below(draft.setup.retry_queues)
    queue_id += chance.one_in(PAST_THE_QUEUES * ELSEWHERE)
    return SendMessage(topic, queue_id, max(size, 1), tries, bound, level, origin)
