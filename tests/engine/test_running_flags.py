from __future__ import annotations

import pytest

from crashmq.engine.store.running_flags import Flag, RunningFlags

# RocketMQ's table, and FLUSH_FAILED of our own: puts, queues and readers stopped.
TABLE = {
    Flag.NOT_READABLE: (1, False, False, True),
    Flag.NOT_WRITEABLE: (2, True, True, False),
    Flag.LOGICS_QUEUE_ERROR: (4, True, True, False),
    Flag.INDEX_FILE_ERROR: (8, True, True, False),
    Flag.DISK_FULL: (16, True, False, False),
    Flag.FENCED: (32, True, False, False),
    Flag.LOGIC_DISK_FULL: (64, True, True, False),
    Flag.FLUSH_FAILED: (256, True, False, False),
}


def test_the_table_names_every_flag() -> None:
    assert set(TABLE) == set(Flag)


@pytest.mark.parametrize("flag", list(Flag))
def test_a_flag_stops_what_its_row_says(flag: Flag) -> None:
    value, puts, queues, readers = TABLE[flag]
    flags = RunningFlags()

    flags.set(flag)

    assert flags.bits == value
    assert flags.is_writeable is not puts
    assert flags.is_cq_writeable is not queues
    assert flags.is_readable is not readers


@pytest.mark.parametrize("flag", list(Flag))
def test_clearing_one_flag_leaves_the_others(flag: Flag) -> None:
    flags = RunningFlags()
    for other in Flag:
        flags.set(other)

    flags.clear(flag)

    assert flags.bits == sum(Flag) - flag
    assert not flags.has(flag)


def test_a_full_disk_leaves_the_store_sound() -> None:
    flags = RunningFlags()

    flags.set(Flag.DISK_FULL)

    assert flags.is_sound
    assert flags.is_flushable
