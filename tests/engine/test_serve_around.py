"""A start that was asked to serve around damage: what is left of a log is read."""

from __future__ import annotations

import pytest
from store_builder import LOG_FILE_SIZE, RECORD_SIZE, StoreBuilder, log_file, queue_file

from crashmq.engine.store.config import OnDamage
from crashmq.engine.store.errors import StoreCorrupted
from crashmq.models.files.store_image import decode_record

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
ALL = PER_FILE + 5


@pytest.fixture
def down(store: StoreBuilder) -> StoreBuilder:
    """A store of two log files, down, all of it durable and dispatched."""
    store.configured(on_damage=OnDamage.SERVE)
    return store.put(ALL).reput().make_all_durable().kill()


def pulled(store: StoreBuilder, first: int = 0) -> list[int]:
    """The queue offsets of all that reading from ``first`` on gives."""
    found: list[int] = []
    at = first
    while (got := store.pull(at)).next_begin_offset > at:
        found += [decode_record(data).queue_offset for data in got.messages]
        at = got.next_begin_offset
    return found


def ranges(store: StoreBuilder) -> list[tuple[int, int]]:
    return [(at.start, at.end) for at in store.live.damaged_ranges]


def all_but(*lost: int, end: int = ALL) -> list[int]:
    return [n for n in range(end) if n not in lost]


@pytest.mark.parametrize("at", [0, 4, 30, 95, 99], ids=str)
def test_every_whole_message_is_served_around_a_damaged_one(
    down: StoreBuilder, at: int
) -> None:
    down.damage(log_file(), 2 * RECORD_SIZE + at, b"\x33")

    assert pulled(down.restart().reput()) == all_but(2)
    assert ranges(down) == [(2 * RECORD_SIZE, 3 * RECORD_SIZE)]
    assert down.live.damaged_ranges[0].path == log_file()


def test_a_read_that_begins_at_a_damaged_message_goes_past_it(
    down: StoreBuilder,
) -> None:
    down.damage(log_file(), 2 * RECORD_SIZE, bytes(2 * RECORD_SIZE)).restart()

    assert pulled(down, 2) == list(range(4, ALL))
    assert down.live.look_message_by_offset(2 * RECORD_SIZE) is None
    assert down.live.get_message_store_timestamp("T0", 0, 2) == -1


def test_damage_at_the_mark_leaves_the_numbers_of_its_messages_taken(
    down: StoreBuilder,
) -> None:
    down.damage(log_file(LOG_FILE_SIZE), 3 * RECORD_SIZE, b"\0" * 200)

    down.restart().put(2).reput()

    assert [put.queue_offset for put in down.results[-2:]] == [ALL, ALL + 1]
    assert pulled(down) == all_but(ALL - 2, ALL - 1, end=ALL + 2)


def test_what_is_put_goes_to_a_file_that_has_no_damage(down: StoreBuilder) -> None:
    down.damage(log_file(LOG_FILE_SIZE), 193, b"\x33")

    assert down.restart().put().results[-1].phy_offset == 2 * LOG_FILE_SIZE


def test_a_damaged_file_keeps_every_byte_below_the_mark(down: StoreBuilder) -> None:
    down.damage(log_file(), 193, b"\x33").damage(log_file(LOG_FILE_SIZE), 193, b"\x33")
    before = down.disk.files()

    down.restart().put().reput().stop()
    after = down.disk.files()

    assert after[log_file()] == before[log_file()]
    second = log_file(LOG_FILE_SIZE)
    assert after[second][: 5 * RECORD_SIZE] == before[second][: 5 * RECORD_SIZE]


@pytest.mark.parametrize("base", [0, LOG_FILE_SIZE])
def test_a_missing_file_is_served_around(store: StoreBuilder, base: int) -> None:
    store.configured(on_damage=OnDamage.SERVE)
    store.put(3 * PER_FILE).reput().make_all_durable().kill().remove(log_file(base))

    first = base // LOG_FILE_SIZE * PER_FILE
    lost = range(first, first + PER_FILE)
    assert pulled(store.restart().reput(), 0 if base else PER_FILE) == all_but(
        *lost, end=3 * PER_FILE
    )
    assert ranges(store) == [(base, base + LOG_FILE_SIZE)]


def test_a_log_that_begins_behind_all_that_the_mark_knows_of_is_kept(
    store: StoreBuilder,
) -> None:
    """Both files have expired since; the slot that said so has rotted."""
    store.configured(on_damage=OnDamage.SERVE)
    store.put(2).make_all_durable().put(3 * PER_FILE - 2).reput().flush().kill()
    store.remove(log_file(0)).remove(log_file(LOG_FILE_SIZE)).restart().reput()

    assert pulled(store, 2 * PER_FILE) == list(range(2 * PER_FILE, 3 * PER_FILE))
    assert ranges(store) == [(0, LOG_FILE_SIZE)]


def test_a_log_of_which_nothing_is_left_goes_on_behind_it(down: StoreBuilder) -> None:
    down.remove(log_file()).remove(log_file(LOG_FILE_SIZE))

    down.restart().put().reput()

    assert down.results[-1].phy_offset == 2 * LOG_FILE_SIZE
    assert down.results[-1].queue_offset == ALL
    assert pulled(down, ALL) == [ALL]


@pytest.mark.parametrize("size", [0, 1, 250, 490])
def test_a_file_cut_short_is_served_and_left_so(store: StoreBuilder, size: int) -> None:
    store.configured(on_damage=OnDamage.SERVE)
    store.put(5).reput().make_all_durable().kill()
    store.disk.replace_file(log_file(), store.disk.files()[log_file()][:size])

    store.restart().put().reput()

    whole = list(range(size // RECORD_SIZE))
    assert pulled(store) == [*whole, 5]
    assert len(store.disk.files()[log_file()]) == size


def test_a_queue_made_again_keeps_the_places_of_damaged_messages(
    down: StoreBuilder,
) -> None:
    down.damage(log_file(), 2 * RECORD_SIZE + 95, b"\x33")
    for base in (0, 200):
        down.remove(queue_file(base=base))

    assert pulled(down.restart().reput()) == all_but(2)
    assert pulled(down.kill().restart().reput()) == all_but(2)


def test_a_wrong_unit_among_those_of_damaged_messages_is_never_read(
    down: StoreBuilder,
) -> None:
    down.damage(log_file(), 2 * RECORD_SIZE, bytes(RECORD_SIZE))
    wrong = (5 * RECORD_SIZE).to_bytes(8, "big")
    down.damage(queue_file(), 2 * 20, wrong)

    assert pulled(down.restart().reput()) == all_but(2)


@pytest.mark.parametrize("orderly", [False, True])
def test_a_second_start_finds_the_same(down: StoreBuilder, orderly: bool) -> None:
    down.damage(log_file(), 291, b"\x33").damage(log_file(LOG_FILE_SIZE), 491, b"\x33")
    down.restart().put(3).reput()
    once, damaged = pulled(down), ranges(down)[:1]

    if not orderly:
        down.kill()
    down.restart().reput()

    assert pulled(down) == once
    assert ranges(down)[:1] == damaged


def test_a_place_held_for_a_damaged_message_that_rots_is_held_again(
    store: StoreBuilder,
) -> None:
    store.configured(on_damage=OnDamage.SERVE)
    store.put(5).flush().write_checkpoint().kill()
    store.damage(log_file(), 0, bytes(2 * RECORD_SIZE)).restart().make_all_durable()
    store.stop()
    store.damage(queue_file(), 1, b"\xff").restart().reput().stop()
    held = store.disk.files()[queue_file()]

    store.restart()

    assert store.disk.files()[queue_file()] == held
    assert pulled(store, 2) == [2, 3, 4]


def test_damage_above_the_mark_is_cut_as_ever(store: StoreBuilder) -> None:
    store.configured(on_damage=OnDamage.SERVE)
    store.put(3).make_all_durable().put(3).kill()
    store.damage(log_file(), 4 * RECORD_SIZE, b"\x33")

    assert pulled(store.restart().reput()) == [0, 1, 2, 3]
    assert ranges(store) == []


def test_what_cannot_be_located_is_refused_even_so(down: StoreBuilder) -> None:
    born_timestamp = 2 * RECORD_SIZE + 40
    down.damage(log_file(), born_timestamp, b"\x33\x33")

    with pytest.raises(StoreCorrupted, match="bytes that no record's CRC covers"):
        down.loaded()
