from __future__ import annotations

import random
from dataclasses import replace

import pytest

from crashmq.engine.broker.schedule.schedule_message_service import (
    ScheduleMessageService,
)
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.message_store import MessageStore
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.appended import Appended
from crashmq.models.files.delays import (
    DELAYS_BACKUP,
    DELAYS_PATH,
    read_delays,
    whole_delays,
)
from crashmq.models.files.message_delay_level import (
    DEFAULT_LEVELS,
    parse_delay_levels,
)
from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.knowledge.delays import Delays
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
from crashmq.models.messages import message_for
from crashmq.models.ops import PutMessage

PUT = PutMessage("T0", 1, 16, tags="a", delay_level=1)
MESSAGE = message_for(PUT, 1, 0, 0)
WAITED = Appended(MESSAGE.scheduled(), 0, 200, 4)
NOW = 1_700_000_000_000


def service() -> ScheduleMessageService:
    disk, runtime = SimDisk().mount(), SimRuntime(NOW)
    store = MessageStore(StoreConfig(), disk, runtime)
    return ScheduleMessageService(store, disk, runtime)


def written(**levels: int) -> bytes:
    rows = ",".join([f"{name[1:]}:{offset}" for name, offset in levels.items()])
    made = service()
    made.decode(f'{{"offsetTable":{{{rows}}}}}')
    return made.encode().encode()


def test_the_decoder_reads_what_the_engine_writes() -> None:
    assert read_delays(written(l1=5, l18=1 << 40)) == ((1, 5), (18, 1 << 40))
    assert read_delays(b'{"offsetTable":{"2":7}}') == ((2, 7),)
    assert read_delays(b"{}") == ()


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 40, b"null", b"[]", b"{", b'{"offsetTable":{0:1}}']
)
def test_what_is_no_whole_table_is_none(data: bytes) -> None:
    assert read_delays(data) is None
    assert whole_delays({DELAYS_PATH: data, DELAYS_BACKUP: data}) is None
    assert whole_delays({DELAYS_PATH: data, DELAYS_BACKUP: b"{}"}) == ()


@pytest.mark.slow
def test_engine_and_decoder_agree_on_what_is_whole() -> None:
    rng, data = random.Random(1), written(l1=5, l2=123)
    agreed = {True: 0, False: 0}
    for _ in range(2000):
        end = len(data) if rng.randrange(2) else rng.randrange(len(data))
        torn = bytearray(data[:end])
        for _ in range(rng.randrange(3) if torn else 0):
            torn[rng.randrange(len(torn))] = rng.choice(b'\0,:{}"@019-. e\xff')
        made = service()
        try:
            made.decode(torn.decode())
            rows = tuple(sorted(made.offset_table.items()))
        except ValueError:
            assert read_delays(bytes(torn)) is None, torn
            agreed[False] += 1
        else:
            assert read_delays(bytes(torn)) == rows, torn
            agreed[True] += 1
    assert min(agreed.values()) > 100


def test_a_message_waits_in_its_levels_queue_and_comes_out_as_it_was() -> None:
    scheduled = MESSAGE.scheduled()

    assert (scheduled.topic, scheduled.queue_id) == (SCHEDULE_TOPIC, 0)
    assert scheduled.properties["REAL_QID"] == "1"
    delivered = scheduled.delivered()
    assert (delivered.topic, delivered.queue_id) == ("T0", 1)
    assert delivered.properties == scheduled.properties
    assert not delivered.waits_for_sync
    for level, expected in ((0, 0), (-1, -1), (18, 18), (23, 18)):
        message = message_for(replace(PUT, delay_level=level), 1, 0, 0)
        assert message.scheduled().delay_level == expected
        assert (message.scheduled() is message) is (level <= 0)
    few = parse_delay_levels("3s 1s")
    assert (
        message_for(replace(PUT, delay_level=9), 1, 0, 0).scheduled(few).queue_id == 1
    )
    prepared = message_for(replace(PUT, transaction="prepared"), 1, 0, 0)
    assert prepared.scheduled() is prepared


def test_a_level_is_known_as_far_as_it_is_delivered_durably() -> None:
    delays = Delays()
    delays.load({1: 3}, is_persisted=True)
    delays.deliver(1, 3, 500)
    delays.deliver(1, 4, 600)

    assert delays.next_of(1) == 5
    assert [delays.durable_of(1, at) for at in (499, 500, 599, 600)] == [3, 4, 4, 5]
    assert delays.durable_of(2, 0) == delays.next_of(2) == 0
    delays.stopped()
    assert delays.kept == {1: 5}


def test_a_level_is_delivered_from_its_offset_on() -> None:
    law = level_is_delivered_in_order

    assert not law.violations(1, WAITED, 4)
    assert law.violations(1, WAITED, 3)
    assert law.violations(1, WAITED, 5)
    assert law.violations(1, None, 4)


def test_a_level_passes_over_what_a_cleaner_takes_meanwhile() -> None:
    law = level_is_delivered_in_order

    assert not law.violations(1, WAITED, 3, 4)
    assert not law.violations(1, WAITED, 3, 5)
    assert law.violations(1, WAITED, 2, 3)
    assert law.violations(1, WAITED, 5, 6)


def test_what_expired_undelivered_may_count_as_passed() -> None:
    law, files = persist_writes_what_is_durable, {DELAYS_PATH: written(l1=5)}

    assert law.violations(files, {1: 3})
    assert not law.violations(files, {1: 3}, {1: 5})
    assert not law.violations(files, {1: 3}, {1: 6})
    assert law.violations(files, {1: 3}, {1: 4})
    assert law.violations(files, {1: 6}, {1: 4})


def test_a_level_that_goes_on_behind_what_expired_is_durably_there() -> None:
    delays = Delays()
    delays.load({1: 3}, is_persisted=True)
    delays.deliver(1, 3, 500)
    delays.skip(1, 4)
    assert delays.durable_of(1, 0) == 3

    delays.skip(1, 7)
    delays.deliver(1, 7, 900)

    assert delays.next_of(1) == 8
    assert [delays.durable_of(1, at) for at in (0, 900)] == [7, 8]


def test_nothing_of_a_message_may_be_delivered_otherwise() -> None:
    right = WAITED.message.delivered()

    assert not delivered_as_it_was_put.violations(right, WAITED)
    for change in (
        {"queue_id": 0},
        {"topic": "T1"},
        {"body": b"?"},
        {"tags": "b"},
        {"born_timestamp": 1},
        {"delay_level": 2},
        {"is_delivered": False},
    ):
        wrong = replace(right, **change)
        assert delivered_as_it_was_put.violations(wrong, WAITED), change


def test_a_message_is_due_after_its_delay_or_far_ahead_of_the_clock() -> None:
    law, due = not_delivered_before_it_is_due, NOW + 7000

    assert not law.violations(1, NOW, NOW, due, 7000)
    assert law.violations(1, NOW, NOW, due - 1, 7000)
    assert not law.violations(1, NOW, NOW - 1, NOW - 1, 7000)
    left, levels = a_round_leaves_nothing_that_is_due, parse_delay_levels("7s 1s")
    assert not left.violations({1: NOW}, due - 1, levels)
    assert left.violations({1: NOW}, due, levels)
    assert not left.violations({1: NOW}, NOW, levels)
    assert left.violations({1: NOW}, NOW - 1, levels)
    assert left.violations({9: NOW}, NOW + 1000, levels)


def test_levels_are_read_as_a_broker_reads_them() -> None:
    levels = parse_delay_levels("2s 3m 1h 2d 0s")

    assert levels.delays_ms == (2000, 180_000, 3_600_000, 172_800_000, 0)
    assert (levels.level_max, levels.longest_ms) == (5, 172_800_000)
    assert (levels.level_of(4), levels.level_of(6)) == (4, 5)
    assert (levels.delay_ms(1), levels.delay_ms(99)) == (2000, 0)
    assert (DEFAULT_LEVELS.level_max, DEFAULT_LEVELS.delay_ms(18)) == (18, 7_200_000)


@pytest.mark.parametrize("text", ["", "1", "s", "1s  5s", "1s,5s", "-1s", "1w", "1.5s"])
def test_what_is_no_delay_is_no_level(text: str) -> None:
    with pytest.raises(ValueError, match="no delay"):
        parse_delay_levels(text)


def test_what_is_not_delivered_is_told() -> None:
    assert not every_delayed_message_arrives.violations([])
    assert every_delayed_message_arrives.violations([WAITED])
    assert not no_level_is_ahead_of_the_log.violations({1: 5}, [])
    assert no_level_is_ahead_of_the_log.violations({1: 5}, [WAITED])


def test_a_start_brings_each_offset_into_its_queue() -> None:
    law = start_loads_the_delays
    files, bounds = {DELAYS_PATH: written(l1=5)}, {1: (2, 4), 2: (0, 9)}

    assert not law.violations(files, {1: 4}, bounds)
    assert law.violations(files, {1: 5}, bounds)
    assert law.violations(files, {1: 4, 2: 1}, bounds)
    assert not law.violations({DELAYS_PATH: written(l1=1)}, {1: 2}, bounds)
    assert law.violations({DELAYS_PATH: b""}, {}, bounds)
    assert not law.violations({}, {}, bounds)


def test_a_persist_writes_what_is_durable_and_never_less_than_before() -> None:
    files = {DELAYS_PATH: written(l1=5)}

    assert not persist_writes_what_is_durable.violations(files, {1: 5, 2: 0})
    assert persist_writes_what_is_durable.violations(files, {1: 4})
    assert persist_writes_what_is_durable.violations(files, {1: 5, 2: 1})
    assert persist_writes_what_is_durable.violations({}, {})
    assert not written_delays_only_rise.violations(files, {1: 5}, {1: 5})
    assert written_delays_only_rise.violations(files, {1: 6}, {1: 9})
    assert written_delays_only_rise.violations(files, {}, {1: 4})


def test_a_start_finds_no_level_behind_what_was_persisted() -> None:
    assert not start_finds_what_was_persisted.violations({1: 5}, {1: 5, 2: 0})
    assert start_finds_what_was_persisted.violations({1: 4}, {1: 5})
    whole = {DELAYS_PATH: b"", DELAYS_BACKUP: written(l1=5)}
    assert not a_table_of_delays_is_whole.violations(whole)
    assert a_table_of_delays_is_whole.violations({})
    assert a_table_of_delays_is_whole.violations({DELAYS_PATH: b"{"})
