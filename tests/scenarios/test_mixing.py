"""Programs that mix what two scenarios ask."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crashmq.models.ops import FillDisk, Op, PutBatch, QueryMessage, StartConsumer
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.mixing import (
    EXT_MAX,
    QUEUES,
    ROOM,
    in_view,
    mixed_setup,
    mixed_space,
    with_room,
)
from crashmq.scenarios.programs.space import ONLY_ZERO, Numbers
from crashmq.scenarios.programs.workload import program_for

MIXTURES = SCENARIOS["mixtures"]
DISK_FULL, DELETED, INDEX = (
    SCENARIOS[name] for name in ("disk_full", "deleted_topics", "index")
)


def test_a_mixed_space_has_what_both_ask() -> None:
    mixed = mixed_space(DISK_FULL.space, INDEX.space)

    assert {*mixed.kinds} == {*DISK_FULL.space.kinds, *INDEX.space.kinds}
    assert mixed.fill_percents == DISK_FULL.space.fill_percents
    assert mixed.query_keys == INDEX.space.query_keys
    assert mixed_space(INDEX.space, DISK_FULL.space).query_keys == mixed.query_keys
    assert mixed_space(INDEX.space, INDEX.space) == INDEX.space


def test_entries_of_large_files_do_not_fill_a_disk_with_an_end() -> None:
    large = Setup(disk_capacity=65_536, queue_ext_size=100_000)

    assert with_room(large).queue_ext_size == EXT_MAX
    assert with_room(replace(large, disk_capacity=0)).queue_ext_size == 100_000


def test_numbers_of_both_are_drawn() -> None:
    one = replace(INDEX.space, look_offsets=Numbers((1, 2), 10, 3))
    other = replace(INDEX.space, look_offsets=Numbers((5,), 20, -4))

    mixed = mixed_space(one, other).look_offsets

    assert mixed == Numbers((1, 2, 5), 20, -4)
    silent = replace(INDEX.space, look_offsets=ONLY_ZERO)
    assert mixed_space(silent, one).look_offsets == one.look_offsets


def test_a_mixed_store_has_what_is_special_of_both() -> None:
    mixed = mixed_setup(
        Setup(queue_file_units=7, disk_profile="xfs", index_slots=8),
        Setup(cleans=True, disk_profile="posix_min", log_file_size=16384),
    )

    assert mixed == Setup(
        queue_file_units=7,
        disk_profile="posix_min",
        index_slots=8,
        cleans=True,
        log_file_size=16384,
    )


def test_no_mixed_store_has_a_disk_that_lies() -> None:
    assert mixed_setup(Setup(disk_profile="lying_disk"), Setup()) == Setup()


def test_a_disk_with_an_end_holds_some_of_the_other_stores_files() -> None:
    full, large = Setup(disk_capacity=64 * 1024), Setup(log_file_size=16384)

    room = ROOM * 16384 + QUEUES * 20 * large.queue_file_units
    assert mixed_setup(full, large).disk_capacity == room
    assert mixed_setup(large, replace(full, disk_capacity=1 << 30)).disk_capacity == (
        1 << 30
    )


def test_a_store_whose_files_are_spoilt_reads_them_all() -> None:
    windowed = Setup(start_window=4096)

    assert in_view(SCENARIOS["bit_rot"].space, windowed) == Setup()
    assert in_view(SCENARIOS["lost_writes"].space, windowed) == Setup()
    assert in_view(SCENARIOS["transactions"].space, windowed) == windowed


@pytest.mark.slow
def test_programs_mix_ops_that_no_scenario_has_together() -> None:
    kinds: list[set[type[Op]]] = []
    for number in range(4000):
        program = program_for(MIXTURES, 3, number)
        assert program == program_for(MIXTURES, 3, number)
        kinds.append({type(op) for op in program.ops})

    for pair in ({FillDisk, QueryMessage}, {QueryMessage, PutBatch}):
        assert any(pair <= met for met in kinds), pair


def test_the_consumers_of_a_group_share_out_alike() -> None:
    averaging = StartConsumer("o1", "o", "T0")
    by_circle = replace(averaging, client="o2", strategy="AVG_BY_CIRCLE")
    another, fellow = (replace(by_circle, group="p"), replace(averaging, client="o3"))
    one = replace(DISK_FULL.space, consumers=(averaging,))
    other = replace(INDEX.space, consumers=(by_circle, another, fellow))

    mixed = mixed_space(one, other)

    assert mixed.consumers == (averaging, another, fellow)
