"""Laws of delayed messages: each arrives when it is due, unchanged and in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from crashmq.models.appended import Appended
from crashmq.models.files.delays import (
    DELAYS_BACKUP,
    DELAYS_PATH,
    read_delays,
    whole_delays,
)
from crashmq.models.files.message_delay_level import DelayLevels
from crashmq.models.laws.registry import law
from crashmq.models.messages import MessageToPut
from crashmq.models.verdict import Violation


def _name(level: int, offset: int) -> str:
    return f"level {level}, offset {offset}"


@law(
    "DLY-1",
    "a broker delivers the messages of a delay level in queue order, each once per "
    "run of the broker, from the offset that it loaded",
    catalogue="I5 I16",
)
def level_is_delivered_in_order(
    level: int, waited: Appended | None, expected: int, latest: int = 0
) -> Iterator[Violation]:
    """Compares the delivered message with the next one of its level.

    ``waited`` is the delayed message; None: no such message is in the level's queue.
    Messages before ``latest`` may have expired meanwhile.

    Source: DeliverDelayedMessageTimerTask#executeOnTimeUp.
    """
    if waited is None:
        where = f"level {level}"
        yield Violation(where, "a message is delivered that did not wait there", "none")
    elif not expected <= waited.queue_offset <= max(expected, latest):
        seen = f"the message at offset {waited.queue_offset} is delivered"
        yield Violation(f"level {level}", seen, f"that at {expected}")


@law(
    "DLY-2",
    "a delayed message is delivered unchanged to the topic and queue it was sent to",
    catalogue="I3",
)
def delivered_as_it_was_put(
    message: MessageToPut, waited: Appended
) -> Iterator[Violation]:
    """Compares all fields: delivery restores topic and queue, and keeps the properties.

    Source: ScheduleMessageService#messageTimeUp.
    """
    expected = waited.message.delivered()
    for name in MessageToPut.__slots__:
        seen, wanted = getattr(message, name), getattr(expected, name)
        if seen != wanted:
            where = _name(message.delay_level, waited.queue_offset)
            yield Violation(where, f"{name} {seen!r} is delivered", f"{wanted!r}")
            return


@law(
    "DLY-3",
    "no delayed message is delivered before it is due, unless the clock was set back "
    "so far that its due time is more than its whole delay ahead",
    catalogue="I13",
)
def not_delivered_before_it_is_due(
    level: int, stored_ms: int, began_ms: int, asked_ms: int, delay_ms: int
) -> Iterator[Violation]:
    """Compares the clock with the time the message was stored plus its level's delay.

    A message whose delivery time is more than one full delay ahead counts as due. The
    broker read the clock between ``began_ms`` and ``asked_ms``.

    Source: DeliverDelayedMessageTimerTask#correctDeliverTimestamp.
    """
    due = stored_ms + delay_ms
    if asked_ms < due <= began_ms + delay_ms:
        seen = f"a message stored at {stored_ms} is delivered at {asked_ms}"
        yield Violation(f"level {level}", seen, f"not before {due}")


@law(
    "DLY-4",
    "every delayed message arrives: once all are due and the broker has had its "
    "rounds, the log holds a delivered copy of each",
    catalogue="I1 I4",
)
def every_delayed_message_arrives(lacking: Sequence[Appended]) -> Iterator[Violation]:
    """Asked at the end of an episode, after all faults are lifted.

    ``lacking`` are the delayed messages without a delivered copy in the log.
    """
    for waited in lacking[:3]:
        message = waited.message
        where = _name(message.delay_level, waited.queue_offset)
        seen = f"{message.unique_key} waits at phy_offset {waited.phy_offset} for ever"
        expected = f"it is in {message.real_topic}/{message.real_queue_id}"
        yield Violation(where, seen, expected)


@law(
    "DLY-5",
    "after a start, no delay level's offset is past a message whose delivered copy is "
    "missing from the recovered log",
    catalogue="I1 I12",
)
def no_level_is_ahead_of_the_log(
    offsets: Mapping[int, int], lacking: Sequence[Appended]
) -> Iterator[Violation]:
    """Otherwise a crash took a delivered copy, and it is never delivered again.

    ``lacking`` are the delayed messages below these offsets without a delivered copy.

    Source: none in RocketMQ, which persists an offset as soon as its copy is put.
    """
    for waited in lacking[:3]:
        level = waited.message.delay_level
        where = _name(level, waited.queue_offset)
        seen = f"the start goes on at {offsets[level]}"
        expected = f"no more than {waited.queue_offset}: its delivery is lost"
        yield Violation(where, seen, expected)


@law(
    "DLY-6",
    "a start loads the delay offsets from their file or, if that is damaged, from its "
    "backup, and moves each into the bounds of its queue",
    catalogue="I9 I12",
)
def start_loads_the_delays(
    files: Mapping[str, bytes],
    offsets: Mapping[int, int],
    bounds: Mapping[int, tuple[int, int]],
) -> Iterator[Violation]:
    """Without either file the broker starts without offsets.

    If there are files and none is intact, it must not start.

    ``bounds`` is, by level, where its queue begins and ends.

    Source: ScheduleMessageService#load, #correctDelayOffset.
    """
    rows = whole_delays(files)
    if rows is None:
        yield Violation(DELAYS_PATH, "a start, without a whole table", "a refusal")
        return
    wanted = dict(rows)
    for level in sorted({*wanted, *offsets}):
        least, end = bounds[level]
        expected = min(max(wanted.get(level, 0), least), end) if level in wanted else 0
        seen = offsets.get(level, 0)
        if seen != expected:
            yield Violation(f"level {level}", f"offset {seen} is loaded", f"{expected}")


@law(
    "DLY-7",
    "a persist writes, for each delay level, the offset up to which its deliveries "
    "are durable",
    catalogue="I8 I12",
)
def persist_writes_what_is_durable(
    files: Mapping[str, bytes],
    durable: Mapping[int, int],
    least: Mapping[int, int] = MappingProxyType({}),
) -> Iterator[Violation]:
    """Asked after a round that ran alone, and after an orderly stop.

    ``least`` is where each level's queue begins: messages that expired before they were
    delivered may count as passed.

    Source: ScheduleMessageService#persist, which writes how far they are put.
    """
    rows = read_delays(bytes(files.get(DELAYS_PATH, b"")))
    if rows is None:
        yield Violation(DELAYS_PATH, "no whole table", "the offsets of all levels")
        return
    written = dict(rows)
    for level in sorted({*written, *durable}):
        seen, expected = written.get(level, 0), durable.get(level, 0)
        if not expected <= seen <= max(expected, least.get(level, 0)):
            yield Violation(f"level {level}", f"{seen} is written", f"{expected}")


@law(
    "DLY-8",
    "a start finds each delay level at or past the offset last persisted, so that "
    "only a crash can make a message be delivered twice",
    catalogue="I12",
)
def start_finds_what_was_persisted(
    offsets: Mapping[int, int], kept: Mapping[int, int]
) -> Iterator[Violation]:
    """Asked if nothing but crashes happened in between.

    Source: ConfigManager#load.
    """
    for level in sorted(kept):
        seen = offsets.get(level, 0)
        if seen < kept[level]:
            yield Violation(
                f"level {level}", f"offset {seen}", f"{kept[level]} at least"
            )


@law(
    "DLY-9",
    "once delay offsets have been persisted, every start finds their file or its "
    "backup intact",
    catalogue="I9 I12",
)
def a_table_of_delays_is_whole(files: Mapping[str, bytes]) -> Iterator[Violation]:
    """At most one of the two may be empty, torn, zeroed or missing.

    Asked if nothing but crashes happened in between.

    Source: ConfigManager#persist.
    """
    paths = [path for path in (DELAYS_PATH, DELAYS_BACKUP) if path in files]
    if not paths:
        yield Violation(DELAYS_PATH, "it is missing, its backup too", "a whole table")
    elif whole_delays(files) is None:
        sizes = ", ".join(f"{len(files[path])} bytes" for path in paths)
        yield Violation(DELAYS_PATH, f"{sizes}, no table", "a whole table")


@law(
    "DLY-10",
    "within one run of the broker, a delay level's persisted offset never decreases "
    "and never passes the end of its queue",
    catalogue="I12",
)
def written_delays_only_rise(
    files: Mapping[str, bytes], before: Mapping[int, int], ends: Mapping[int, int]
) -> Iterator[Violation]:
    """Asked after every persist. ``before`` is what the file held earlier in this run.

    Source: ScheduleMessageService#updateOffset.
    """
    for level, offset in read_delays(bytes(files.get(DELAYS_PATH, b""))) or ():
        least, end = before.get(level, 0), ends.get(level, 0)
        if not least <= offset <= end:
            seen = f"offset {offset} is written"
            yield Violation(f"level {level}", seen, f"in [{least}, {end}]")


@law(
    "DLY-11",
    "after a delivery round no message that is due is left undelivered",
    catalogue="I4 I19",
)
def a_round_leaves_nothing_that_is_due(
    stored_ms: Mapping[int, int], now_ms: int, levels: DelayLevels
) -> Iterator[Violation]:
    """Asked after a round that ran alone, on a disk that works.

    If the round could only not read the queues of some levels, it is asked of the
    others, whose messages need not wait for the disk.

    ``stored_ms`` is, by level, when the first waiting message was stored; ``levels``
    are the broker's. A message whose delivery time is more than its full delay ahead
    counts as due.

    Source: DeliverDelayedMessageTimerTask#executeOnTimeUp.
    """
    for level, stored in sorted(stored_ms.items()):
        delay_ms = levels.delay_ms(level)
        due = stored + delay_ms
        if due <= now_ms or due > now_ms + delay_ms:
            seen = f"a message waits that is due at {due}"
            yield Violation(f"level {level}", seen, f"delivered by {now_ms}")
