"""When the laws of delayed messages and delay offsets are asked."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import (
    AllDelivered,
    DelaysFound,
    DelaysPersisted,
    DelaysRecovered,
    DelaysWritten,
    DeliveryRoundOver,
    LevelsUnread,
    MessageDelivered,
    stored_by_level,
)
from crashmq.models.knowledge.walk_delays import bounds, undelivered
from crashmq.models.laws.delays import (
    a_round_leaves_nothing_that_is_due,
    a_table_of_delays_is_whole,
    delivered_as_it_was_put,
    every_delayed_message_arrives,
    level_is_delivered_in_order,
    no_level_is_ahead_of_the_log,
    not_delivered_before_it_is_due,
    persist_writes_what_is_durable,
    start_finds_what_was_persisted,
    start_loads_the_delays,
    written_delays_only_rise,
)


def _is_appended(at: MessageDelivered) -> bool:
    return at.answer.phy_offset >= 0


@asked(
    level_is_delivered_in_order,
    on=MessageDelivered,
    needs=(Fact.UNDAMAGED_LOG, Fact.DELAYS_LACK_NOTHING),
    where=_is_appended,
)
def _ask_dly_1(at: MessageDelivered) -> Breaches:
    level = at.message.delay_level
    judge = level_is_delivered_in_order.judge
    return judge(level, at.waited, at.expected, at.latest)


def _did_wait(at: MessageDelivered) -> bool:
    return at.waited is not None


@asked(delivered_as_it_was_put, on=MessageDelivered, where=_did_wait)
def _ask_dly_2(at: MessageDelivered) -> Breaches:
    assert at.waited is not None
    return delivered_as_it_was_put.judge(at.message, at.waited)


@asked(
    not_delivered_before_it_is_due,
    on=MessageDelivered,
    needs=(Fact.LIVES, Fact.HAS_CLOCK, Fact.UNDAMAGED_LOG),
    where=lambda at: _did_wait(at) and not at.step.sets_back,
)
def _ask_dly_3(at: MessageDelivered) -> Breaches:
    began_ms = at.step.entries[0].at_ms
    level = at.message.delay_level
    return not_delivered_before_it_is_due.judge(
        *(level, at.stored_ms, began_ms, at.asked_ms),
        at.known.setup.delay_levels.delay_ms(level),
    )


@asked(
    a_round_leaves_nothing_that_is_due,
    on=DeliveryRoundOver,
    needs=(
        Fact.ALONE,
        Fact.TURNS_SERVICES,
        Fact.HAS_CLOCK,
        Fact.DISK_WORKED,
        Fact.READABLE,
        Fact.WRITTEN_STAYS,
        Fact.UNDAMAGED_LOG,
        Fact.DELAYS_LACK_NOTHING,
    ),
)
def _ask_dly_11(at: DeliveryRoundOver) -> Breaches:
    return _due_and_left(at)


def _due_and_left(at: DeliveryRoundOver | LevelsUnread) -> Breaches:
    return a_round_leaves_nothing_that_is_due.judge(
        stored_by_level(at.look.image(), at.first),
        at.step.world.now_ms,
        at.known.setup.delay_levels,
    )


@asked(
    a_round_leaves_nothing_that_is_due,
    on=LevelsUnread,
    needs=(
        *(Fact.TURNS_SERVICES, Fact.HAS_CLOCK, Fact.WRITTEN_STAYS),
        *(Fact.LOG_WORKED, Fact.UNDAMAGED_LOG, Fact.DELAYS_LACK_NOTHING),
    ),
)
def _ask_dly_11_of_others(at: LevelsUnread) -> Breaches:
    return _due_and_left(at)


@asked(
    every_delayed_message_arrives,
    on=AllDelivered,
    needs=(Fact.DISK_WORKED, Fact.UNDAMAGED_LOG, Fact.DELAYS_LACK_NOTHING),
    where=lambda at: at.known.expiry.has_room,  # what is delivered takes room as well
)
def _ask_dly_4(at: AllDelivered) -> Breaches:
    return every_delayed_message_arrives.judge(undelivered(at.known))


@asked(
    no_level_is_ahead_of_the_log,
    on=DelaysRecovered,
    needs=(Fact.DELAYS_STAY, Fact.UNDAMAGED_LOG),
)
def _ask_dly_5(at: DelaysRecovered) -> Breaches:
    lacking = undelivered(at.known, at.offsets)
    return no_level_is_ahead_of_the_log.judge(at.offsets, lacking)


@asked(start_loads_the_delays, on=DelaysRecovered, needs=(Fact.ALONE,))
def _ask_dly_6(at: DelaysRecovered) -> Breaches:
    levels = range(1, 1 + max([0, *at.offsets, *at.known.delays.levels]))
    limits = {level: bounds(at.known, level) for level in levels}
    return start_loads_the_delays.judge(at.files, at.offsets, limits)


@asked(
    persist_writes_what_is_durable,
    on=DelaysPersisted,
    needs=(Fact.UNDAMAGED_LOG, Fact.HAD_ROOM),
)
def _ask_dly_7(at: DelaysPersisted) -> Breaches:
    delays = at.known.delays
    durable = {one: delays.durable_of(one, at.flushed) for one in delays.levels}
    queues = at.known.model.queues
    there = [number + 1 for topic, number in queues if topic == SCHEDULE_TOPIC]
    levels = {*delays.levels, *there}
    least = {level: bounds(at.known, level)[0] for level in levels}
    return persist_writes_what_is_durable.judge(at.files, durable, least)


@asked(start_finds_what_was_persisted, on=DelaysRecovered, needs=(Fact.DELAYS_STAY,))
def _ask_dly_8(at: DelaysRecovered) -> Breaches:
    return start_finds_what_was_persisted.judge(at.offsets, at.known.delays.kept)


@asked(
    a_table_of_delays_is_whole,
    on=DelaysFound,
    needs=(Fact.DELAYS_STAY,),
    where=lambda at: at.known.delays.is_persisted,
)
def _ask_dly_9(at: DelaysFound) -> Breaches:
    return a_table_of_delays_is_whole.judge(at.files)


@asked(written_delays_only_rise, on=DelaysWritten)
def _ask_dly_10(at: DelaysWritten) -> Breaches:
    delays = at.known.delays
    levels = range(1, at.known.setup.delay_levels.level_max + 1)
    ends = {level: bounds(at.known, level)[1] for level in levels}
    return written_delays_only_rise.judge(at.files, delays.written, ends)
