"""RecoveredEnds: what a client says holds as far as no life since has lost anything."""

from __future__ import annotations

import pytest
from store_builder import StoreBuilder

from crashmq.engine.broker.offset.recovered_ends import (
    ENDS_KEPT_MAX,
    PATH,
    RecoveredEnds,
)
from crashmq.engine.store.errors import StoreCorrupted, StoreStopped

T0, T1 = ("T0", 0), ("T1", 0)


def started(
    store: StoreBuilder, ends: dict[tuple[str, int], int], *, is_orderly: bool = False
) -> RecoveredEnds:
    """The ends of a broker that has started on what the one before left."""
    found = RecoveredEnds(store.mount, store.runtime)
    found.load()
    found.begin(ends, is_orderly=is_orderly)
    return found


def told(
    store: StoreBuilder, ends: dict[tuple[str, int], int], *, is_orderly: bool = False
) -> RecoveredEnds:
    """The same; it has told somebody something."""
    found = started(store, ends, is_orderly=is_orderly)
    found.tell("c")
    return found


def text(store: StoreBuilder) -> bytes:
    return store.disk.files().get(PATH, b"")


def test_what_an_earlier_life_told_holds_up_to_where_the_log_was_cut(
    store: StoreBuilder,
) -> None:
    before = told(store, {T0: 4}).life

    ends = started(store, {T0: 7})

    assert ends.life == before + 1
    assert [ends.is_stale("c", *T0, n, before) for n in (7, 8)] == [False, True]
    assert not ends.is_stale("c", *T0, 8, ends.life)


def test_a_whole_life_that_a_client_missed_counts(store: StoreBuilder) -> None:
    first = told(store, {T0: 4}).life
    second = told(store, {T0: 5}).life

    ends = started(store, {T0: 30})

    assert ends.end_of(*T0, first) == 5
    assert ends.end_of(*T0, second) == 30
    assert ends.is_stale("c", *T0, 6, first)
    assert not ends.is_stale("c", *T0, 6, second)


def test_an_end_below_earlier_ones_replaces_them(store: StoreBuilder) -> None:
    lives = [told(store, {T0: end}).life for end in (4, 9, 7)]

    ends = started(store, {T0: 8})

    assert [ends.end_of(*T0, life) for life in lives] == [7, 7, 8]


def test_a_queue_that_was_lost_and_made_anew_has_nothing_of_before(
    store: StoreBuilder,
) -> None:
    first = told(store, {T0: 4}).life
    second = told(store, {}).life

    ends = started(store, {T0: 6})

    assert ends.end_of(*T0, first) == 0
    assert ends.end_of(*T0, second) == 6


def test_a_queue_that_a_life_made_holds_for_who_knows_that_life(
    store: StoreBuilder,
) -> None:
    first = told(store, {T1: 1}).life

    ends = started(store, {T0: 6, T1: 1})

    assert ends.end_of(*T0, first) == 6


def test_a_life_that_told_nobody_goes_on_and_changes_no_file(
    store: StoreBuilder,
) -> None:
    life = told(store, {T0: 4}).life
    after = started(store, {T0: 4})
    kept = text(store)

    again = started(store, {T0: 9})

    assert again.life == after.life == life + 1
    assert text(store) == kept
    assert again.end_of(*T0, life) == 4


def test_a_life_that_told_nobody_may_still_lose_what_it_had(
    store: StoreBuilder,
) -> None:
    life = told(store, {T0: 4}).life
    started(store, {T0: 9})

    again = started(store, {T0: 3})

    assert again.end_of(*T0, life) == 3


def test_a_first_start_leaves_no_file(store: StoreBuilder) -> None:
    started(store, {})

    assert PATH not in store.disk.files()


def test_after_an_orderly_stop_the_life_goes_on(store: StoreBuilder) -> None:
    before = told(store, {T0: 4})
    flushes: list[int] = []
    before.end(lambda: flushes.append(1))
    kept = text(store)

    after = started(store, {T0: 9}, is_orderly=True)

    assert (after.life, flushes, text(store)) == (before.life, [1], kept)
    assert not after.is_stale("c", *T0, 9, before.life)


def test_an_orderly_start_takes_back_what_the_stop_could_not(
    store: StoreBuilder,
) -> None:
    before = told(store, {T0: 4})  # its stop cannot write the file

    after = started(store, {T0: 4}, is_orderly=True)
    left = text(store)
    again = started(store, {T0: 4})

    assert before.life == after.life == again.life
    assert text(store) == left


def test_a_stop_whose_flush_fails_ends_the_life(store: StoreBuilder) -> None:
    before = told(store, {T0: 4})

    def fail() -> None:
        raise OSError("the disk failed")

    with pytest.raises(OSError, match="the disk failed"):
        before.end(fail)

    assert started(store, {T0: 9}).life == before.life + 1


def test_who_stops_tells_nobody_any_more(store: StoreBuilder) -> None:
    ends = started(store, {T0: 4})
    ends.end(lambda: None)

    with pytest.raises(StoreStopped, match="shutting down"):
        ends.tell("c")
    assert PATH not in store.disk.files()


def test_who_says_no_life_is_believed_up_to_the_newest_start(
    store: StoreBuilder,
) -> None:
    told(store, {T0: 4})
    ends = told(store, {T0: 9})

    assert [ends.is_stale("c", *T0, n) for n in (9, 10)] == [False, True]
    ends.knows("c", *T0)
    assert not ends.is_stale("c", *T0, 10)
    assert not ends.is_stale("", *T0, 10)
    assert ends.tell("") == 0


def test_a_life_that_never_was_is_believed_least(store: StoreBuilder) -> None:
    told(store, {T0: 4})
    ends = told(store, {T0: 9})

    assert (ends.end_of(*T0, 77), ends.end_of(*T0, 1)) == (0, 9)
    assert ends.is_stale("c", *T0, 1, 77)


def test_of_many_lives_the_oldest_share_their_lowest_end(store: StoreBuilder) -> None:
    for end in range(1, 2 * ENDS_KEPT_MAX):
        told(store, {T0: end})
    ends = started(store, {T0: 99})
    true_ends = {life: life + 1 for life in range(1, ends.life - 1)}

    believed = {life: ends.end_of(*T0, life) for life in true_ends}

    assert all(believed[life] <= end for life, end in true_ends.items())
    newest = [*true_ends][-ENDS_KEPT_MAX + 2 :]
    assert [believed[life] for life in newest] == [true_ends[life] for life in newest]
    assert len(text(store)) < 400


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b'{"ends":{},"hasTold":true}',
        b'{"ends":{},"hasTold":1,"life":1}',
        b'{"ends":{},"hasTold":true,"life":0}',
        b'{"ends":[],"hasTold":true,"life":1}',
        b'{"ends":{"T0@0":[]},"hasTold":true,"life":1}',
        b'{"ends":{"T0@0":[1]},"hasTold":true,"life":1}',
        b'{"ends":{"T0@0":[1,"2"]},"hasTold":true,"life":1}',
        b'{"ends":{"T0":[1,2]},"hasTold":true,"life":1}',
        b'{"ends":{"T0@0":[1,2,null]},"hasTold":true,"life":1}',
        b'{"ends":{"T0@0":[1,-2]},"hasTold":true,"life":1}',
        b'{"ends":{"T0@0":[2,1,1,3]},"hasTold":true,"life":2}',
        b'{"ends":{"T0@0":[1,3,2,3]},"hasTold":true,"life":2}',
        b'{"ends":{"T0@0":[0,3]},"hasTold":true,"life":1}',
        b'{"ends":{"T0@0":[2,3]},"hasTold":true,"life":1}',
        b'{"ends":{"T0@1_0":[1,2]},"hasTold":true,"life":1}',
        b'{"ends":{},"hasTold":true,"life":true}',
        b'{"ends":{},"hasTold":true,"life":9223372036854775807}',
        b'{"crashed":null,"ends":{},"hasTold":true,"life":1}',
        b'{"crashed":true,"ends":{},"hasTold":true,"life":1}',
    ],
)
def test_a_table_that_nobody_can_read_refuses_the_start(
    store: StoreBuilder, data: bytes
) -> None:
    told(store, {T0: 4})
    told(store, {T0: 5})
    for path in (PATH, f"{PATH}.bak"):
        store.mount.remove(path)
        file = store.mount.open(path, len(data), create=True, mapped=False)
        file.write_at(0, data)
        file.close()

    with pytest.raises(StoreCorrupted, match="neither it nor"):
        started(store, {T0: 5})


def deleted(ends: RecoveredEnds, *queues: tuple[str, int]) -> RecoveredEnds:
    with ends.removal(queues):
        pass
    return ends


def test_what_was_told_of_a_queue_before_its_deletion_holds_no_more(
    store: StoreBuilder,
) -> None:
    ends = told(store, {T0: 4, T1: 4})
    before = ends.life

    deleted(ends, T0)

    assert ends.life == before + 1
    assert [ends.is_stale("c", *T0, n, before) for n in (0, 1)] == [False, True]
    assert not ends.is_stale("c", *T1, 9, before)
    assert not ends.is_stale("c", *T0, 9, ends.life)


def test_who_names_no_life_knows_nothing_of_a_deleted_queue(
    store: StoreBuilder,
) -> None:
    ends = told(store, {T0: 4})
    ends.knows("c", *T0)

    deleted(ends, T0)

    assert ends.is_stale("c", *T0, 1)


def test_a_crash_after_a_deletion_leaves_it_known(store: StoreBuilder) -> None:
    ends = told(store, {T0: 4, T1: 4})
    first = ends.life
    second = deleted(ends, T0).life

    again = started(store, {T0: 3, T1: 7})

    assert [again.end_of(*T0, life) for life in (first, second)] == [0, 3]
    assert [again.end_of(*T1, life) for life in (first, second)] == [7, 7]


def test_a_queue_made_before_another_ones_deletion_keeps_its_offsets(
    store: StoreBuilder,
) -> None:
    ends = told(store, {})  # T0 comes in this life
    first = ends.life
    deleted(ends, T1)

    again = started(store, {T0: 6})

    assert again.end_of(*T0, first) == 6


def test_a_deletion_is_noted_durably_before_the_queues_go(store: StoreBuilder) -> None:
    ends = told(store, {T0: 4})
    life = ends.life

    with ends.removal([T0]):
        again = started(store, {})
        assert ends.life == life

    assert again.end_of(*T0, life) == 0


def test_a_deletion_that_is_refused_begins_no_life(store: StoreBuilder) -> None:
    ends = told(store, {T0: 4})
    life = ends.life

    with pytest.raises(StoreStopped), ends.removal([T0]):
        raise StoreStopped("no deletion is taken")
    ends.end(lambda: None)

    after = started(store, {T0: 4}, is_orderly=True)
    assert after.life == life
    assert not after.is_stale("c", *T0, 4, life)


def test_a_deletion_that_nobody_was_told_before_leaves_no_file(
    store: StoreBuilder,
) -> None:
    deleted(started(store, {T0: 4}), T0)

    assert PATH not in store.disk.files()


def test_a_table_of_a_broker_that_knew_no_deletions_is_read(
    store: StoreBuilder,
) -> None:
    life = told(store, {T0: 4}).life
    field = b'"crashed":1,'
    at, size = text(store).index(field), len(text(store))
    file = store.mount.open(PATH, size, create=False, mapped=False)
    file.write_at(at, b" " * len(field))
    file.close()

    assert started(store, {T0: 7}).end_of(*T0, life) == 7


@pytest.mark.parametrize("queue_id", [1 << 31, -5])
def test_a_deletion_of_any_queue_leaves_a_table_that_is_read(
    store: StoreBuilder, queue_id: int
) -> None:
    deleted(told(store, {T0: 4}), ("T0", queue_id))

    started(store, {T0: 4})
