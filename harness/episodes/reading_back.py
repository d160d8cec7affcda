"""What an episode reads at its end: all that was ever put, and beyond it.

Delayed messages are delivered first. The functions make the ops; ``take`` runs each and
has its answer judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crashmq.harness.judging.judge import Judge
from crashmq.models.appended import Appended
from crashmq.models.files.index import keys_of
from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.knowledge.walk_delays import undelivered
from crashmq.models.laws.querying import QUERY_MAX
from crashmq.models.observations import FilteredPull, Observation, Pulled
from crashmq.models.ops import (
    BOUNDARIES,
    AdvanceClock,
    LookMessage,
    Op,
    PullFiltered,
    PullMessage,
    QueryMessage,
    SearchOffset,
)

Take = Callable[[Op], Observation]

FEW = 2
"""Messages that a pull asks for, of a queue that has more."""


def deliver_everything(judge: Judge, take: Take, deliver: Callable[[], bool]) -> None:
    """Wait until all delayed messages are due, and run rounds with ``deliver``.

    A message put before the clock was set back may hide another one behind it, and so
    may one that is delivered a second time; hence several times.
    """
    deliver()
    queues = judge.model.queues.items()
    for _ in range(sum(len(them) for key, them in queues if key[0] == SCHEDULE_TOPIC)):
        if not undelivered(judge.known):
            break
        take(AdvanceClock(judge.known.setup.delay_levels.longest_ms))
        deliver()


def read_everything(judge: Judge, epoch_ms: int, take: Take) -> None:
    """Pull every queue from end to end, look up messages, and search by time.

    Nothing else happens meanwhile, so a read is not done twice.
    """
    take = _asked_once(take)
    for (topic, queue_id), messages in judge.model.queues.items():
        if not messages:
            continue  # damage took the numbers of its expired messages
        take(LookMessage(messages[-1].phy_offset))
        take(LookMessage(messages[len(messages) // 2].phy_offset))
        _search_by_time(judge, topic, queue_id, epoch_ms, take)
        _pull_on(PullMessage(topic, queue_id, 0), messages, take)
        for tags in _expressions(messages):
            _pull_on(PullMessage(topic, queue_id, 0, tags=tags), messages, take)
        _pull_a_few(topic, queue_id, messages, take)
    for phy_offset in judge.known.tampering.degraded.lost:
        take(LookMessage(phy_offset))


def pull_everything_filtered(judge: Judge, take: Take) -> None:
    """Pull every queue of each topic that a group subscribes, from end to end."""
    for group, topic in sorted(judge.known.progress.filters.now):
        for (name, queue_id), messages in judge.model.queues.items():
            at = 0
            if name == topic and messages:
                take(PullFiltered(group, topic, queue_id, 0, FEW))
            while name == topic and messages and at <= messages[-1].queue_offset:
                seen = take(PullFiltered(group, topic, queue_id, at))
                if not isinstance(seen, FilteredPull):
                    break
                if seen.pulled.next_begin_offset <= at:
                    break  # the judge has found this wrong, or raises next
                at = seen.pulled.next_begin_offset


def _asked_once(take: Take) -> Take:
    """Do each read once; a repeated one returns the first answer."""
    answers: dict[Op, Observation] = {}

    def take_once(op: Op) -> Observation:
        if op not in answers:
            answers[op] = take(op)
        return answers[op]

    return take_once


def query_everything(judge: Judge, epoch_ms: int, take: Take) -> None:
    """Query every key that a message has, and the newest one by its time."""
    newest = {
        (record.topic, key): record.store_timestamp - epoch_ms
        for record in judge.image().commit_log.records
        for key in keys_of(record.properties_raw)
    }
    for topic, key in {**judge.model.keys_ever_put(), **newest}:
        take(QueryMessage(topic, key, QUERY_MAX))
        if (at_ms := newest.get((topic, key))) is not None:
            take(QueryMessage(topic, key, 1, at_ms, at_ms))


def _pull_on(pull: PullMessage, messages: Sequence[Appended], take: Take) -> None:
    """Pull until the queue's last message was passed."""
    at = pull.queue_offset
    while at <= messages[-1].queue_offset:
        seen = take(PullMessage(pull.topic, pull.queue_id, at, tags=pull.tags))
        if not isinstance(seen, Pulled) or seen.next_begin_offset <= at:
            break  # the judge has found this wrong, or raises next
        at = seen.next_begin_offset


def _pull_a_few(
    topic: str, queue_id: int, messages: Sequence[Appended], take: Take
) -> None:
    """Pull with a limit so small that the answer ends within the queue.

    One of these pulls asks for the newest tag, which comes after all messages without
    it.
    """
    take(PullMessage(topic, queue_id, messages[0].queue_offset, FEW))
    take(PullMessage(topic, queue_id, messages[len(messages) // 2].queue_offset, 1))
    newest = next((m.message.tags for m in reversed(messages) if m.message.tags), "")
    if newest:
        take(PullMessage(topic, queue_id, messages[0].queue_offset, 1, newest))


def _expressions(messages: Sequence[Appended]) -> tuple[str, ...]:
    """The last two tags of a queue's messages, as one expression; () if untagged."""
    tags = [*dict.fromkeys([appended.message.tags for appended in messages])]
    wanted = [tag for tag in tags if tag][-2:]
    return (" || ".join(wanted),) if wanted else ()


def _search_by_time(
    judge: Judge, topic: str, queue_id: int, epoch_ms: int, take: Take
) -> None:
    """Search for the store times of a queue's first and last messages, and beyond."""
    records = judge.image().commit_log.indexed_records.get((topic, queue_id))
    if not records:
        return
    first = records[0].store_timestamp - epoch_ms
    last = records[-1].store_timestamp - epoch_ms
    amid = records[len(records) // 2].store_timestamp - epoch_ms
    for at_ms in dict.fromkeys((first, last, amid)):
        for boundary in BOUNDARIES:
            take(SearchOffset(topic, queue_id, at_ms, boundary))
    take(SearchOffset(topic, queue_id, first - 1, "UPPER"))
    take(SearchOffset(topic, queue_id, last + 1, "LOWER"))
