from __future__ import annotations

import pytest
from store_builder import EPOCH_MS, StoreBuilder, log_file, queue_file

from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.errors import StoreStopped
from crashmq.engine.store.index.index_file import file_size
from crashmq.engine.store.message.message import (
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from crashmq.engine.store.message_store import MessageStore
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.files.index import IndexFileImage
from crashmq.models.files.store_image import decode_record
from crashmq.models.laws.file_laws import FILE_LAWS
from crashmq.models.laws.judged import Judged

SLOTS, ENTRIES = 3, 5  # four keys fill a file
SIZE = file_size(SLOTS, ENTRIES)
FOREVER = 1 << 62


@pytest.fixture
def indexed() -> StoreBuilder:
    return StoreBuilder().configured(
        message_index_enable=True,
        max_hash_slot_num=SLOTS,
        max_index_num=ENTRIES,
    )


def put_keys(store: StoreBuilder, *keys: str, sys_flag: int = 0) -> StoreBuilder:
    for words in keys:
        store.put(properties={"KEYS": words}, sys_flag=sys_flag)
    return store


def found(
    store: StoreBuilder,
    key: str,
    max_num: int = 32,
    begin_ms: int = 0,
    end_ms: int = FOREVER,
) -> list[int]:
    """The messages with a key, by the number in their bodies."""
    result = store.live.query_message("T0", key, max_num, begin_ms, end_ms)
    return [int(bytes(decode_record(data).body)) for data in result.messages]


def index_files(store: StoreBuilder) -> list[IndexFileImage]:
    return [file for _, file in store.image().index(SLOTS).files]


def index_paths(store: StoreBuilder) -> list[str]:
    return [path for path, _ in store.image().index(SLOTS).files]


def broken(store: StoreBuilder) -> list[str]:
    """Which laws of the index the files break now."""
    image = store.image()
    judged = Judged(
        image,
        reput_from_offset=image.commit_log.max_phy_offset,
        index_slots=SLOTS,
        keeps_index=True,
    )
    return [
        law.id for law in FILE_LAWS if law.id[:2] == "IX" and law.violations(judged)
    ]


def test_a_message_is_found_by_each_of_its_keys(indexed: StoreBuilder) -> None:
    put_keys(indexed, "one two", "two").reput()

    assert found(indexed, "one") == [0]
    assert found(indexed, "two") == [0, 1]
    assert found(indexed, "three") == []
    assert found(indexed, "one two") == []


def test_what_is_not_dispatched_is_not_found(indexed: StoreBuilder) -> None:
    put_keys(indexed, "one")

    assert found(indexed, "one") == []


def test_keys_of_the_same_hash_are_told_apart(indexed: StoreBuilder) -> None:
    put_keys(indexed, "Aa", "BB", "Aa").reput()

    assert found(indexed, "Aa") == [0, 2]
    assert found(indexed, "BB") == [1]


def test_hits_of_another_key_take_no_place_in_the_answer(
    indexed: StoreBuilder,
) -> None:
    put_keys(indexed, "Aa", *["BB"] * 5).reput()

    assert found(indexed, "Aa", max_num=1) == [0]


def test_a_message_that_names_a_key_twice_is_found_once(indexed: StoreBuilder) -> None:
    put_keys(indexed, "one one", "one").reput()

    assert found(indexed, "one") == [0, 1]


def test_the_newest_are_found_up_to_the_number_asked_for(indexed: StoreBuilder) -> None:
    put_keys(indexed, *["one"] * 9).reput()

    assert found(indexed, "one", max_num=2) == [7, 8]
    assert found(indexed, "one", max_num=0) == []
    assert found(indexed, "one", max_num=-1) == []


def test_a_query_returns_64_messages_at_most(indexed: StoreBuilder) -> None:
    put_keys(indexed, *["one"] * 70).reput()

    assert found(indexed, "one", max_num=2**31 - 1) == [*range(6, 70)]


def test_a_time_range_is_exact_to_the_millisecond(indexed: StoreBuilder) -> None:
    for _ in range(6):
        put_keys(indexed, "one")
        indexed.runtime.advance(399)  # and each put lets one millisecond pass
    indexed.reput()

    assert found(indexed, "one", 32, EPOCH_MS + 400, EPOCH_MS + 1200) == [1, 2, 3]
    assert found(indexed, "one", 32, EPOCH_MS + 401, EPOCH_MS + 1199) == [2]
    assert found(indexed, "one", 32, EPOCH_MS + 2000, EPOCH_MS + 2000) == [5]
    assert found(indexed, "one", 32, EPOCH_MS + 5, EPOCH_MS + 4) == []


def test_prepared_messages_are_indexed_and_rolled_back_ones_are_not(
    indexed: StoreBuilder,
) -> None:
    put_keys(indexed, "one", sys_flag=TRANSACTION_PREPARED)
    put_keys(indexed, "one", sys_flag=TRANSACTION_ROLLBACK).reput()

    assert found(indexed, "one") == [0]


def test_a_full_file_is_followed_by_one_with_a_later_name(
    indexed: StoreBuilder,
) -> None:
    put_keys(indexed, *["one"] * 9).reput()

    files, paths = index_files(indexed), index_paths(indexed)
    assert [len(file.entries) for file in files] == [4, 4, 1]
    assert paths[0] == "index/20231114221320009"
    assert [int(path[6:]) - int(paths[0][6:]) for path in paths] == [0, 1, 2]
    assert found(indexed, "one") == [*range(9)]


def test_names_rise_though_the_clock_was_set_back(indexed: StoreBuilder) -> None:
    put_keys(indexed, *["one"] * 4).reput()
    indexed.runtime.advance(-60_000)
    put_keys(indexed, "one").reput()

    assert found(indexed, "one") == [0, 1, 2, 3, 4]
    assert broken(indexed) == []


def test_a_start_finds_a_right_index_and_changes_nothing(indexed: StoreBuilder) -> None:
    put_keys(indexed, *["one two"] * 5).reput().stop()
    before = indexed.disk.files()

    indexed.restart()

    assert found(indexed, "two") == [0, 1, 2, 3, 4]
    assert all(
        data == before[path]
        for path, data in indexed.disk.files().items()
        if path.startswith("index/")
    )


def test_keys_of_old_messages_are_found_after_a_kill(indexed: StoreBuilder) -> None:
    put_keys(indexed, *["one"] * 30).reput().kill()

    assert found(indexed, "one") == [*range(30)]
    assert indexed.turn("reput") == 0


def test_dispatching_the_last_record_again_doubles_no_entry(
    indexed: StoreBuilder,
) -> None:
    put_keys(indexed, "one two", "one two").reput().kill()
    indexed.remove(queue_file())

    assert indexed.reput().pull().max_offset == 2
    assert sum(len(file.entries) for file in index_files(indexed)) == 4
    assert broken(indexed) == []


def test_a_start_takes_records_with_tags_behind_a_full_last_file(
    indexed: StoreBuilder,
) -> None:
    for words in ("one two", "three four", "five"):
        indexed.put(properties={"KEYS": words, "TAGS": "TagA"})
        if words == "three four":
            indexed.reput()

    indexed.kill().restart().reput()

    assert found(indexed, "four") == [1]
    assert found(indexed, "five") == [2]
    assert broken(indexed) == []


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_a_removed_file_is_made_again_as_it_was(
    indexed: StoreBuilder, removed: int
) -> None:
    put_keys(indexed, *["one two", "Aa BB"] * 5).reput()
    before = [file.entries for file in index_files(indexed)]
    indexed.stop()

    indexed.remove(index_paths(indexed)[removed]).restart().reput()

    assert [file.entries for file in index_files(indexed)] == before
    assert found(indexed, "BB") == [1, 3, 5, 7, 9]
    assert broken(indexed) == []


@pytest.mark.slow
@pytest.mark.parametrize("length", [*range(0, SIZE, 3), SIZE + 1])
def test_a_file_of_another_length_is_made_again(
    indexed: StoreBuilder, length: int
) -> None:
    put_keys(indexed, *["one two"] * 3).reput().stop()
    path = index_paths(indexed)[0]
    data = indexed.disk.files()[path].ljust(length, b"\1")
    indexed.disk.replace_file(path, data[:length])

    indexed.restart().reput()

    assert found(indexed, "two") == [0, 1, 2]
    assert broken(indexed) == []


@pytest.mark.slow
@pytest.mark.parametrize("at", range(0, SIZE, 5))
def test_a_damaged_byte_anywhere_in_a_file_is_mended(
    indexed: StoreBuilder, at: int
) -> None:
    put_keys(indexed, *["one two"] * 3).reput().stop()
    path = index_paths(indexed)[0]

    indexed.damage(path, at, b"\x5a").restart().reput()

    assert found(indexed, "one") == found(indexed, "two") == [0, 1, 2]
    assert broken(indexed) == []


def test_an_index_ahead_of_a_log_that_lost_its_tail_is_cut(
    indexed: StoreBuilder,
) -> None:
    put_keys(indexed, *["one"] * 7).reput().kill()
    indexed.drop_commit_log_tail(messages=5)

    assert found(indexed, "one") == [0, 1]
    assert broken(indexed) == []


def test_an_index_of_other_sizes_is_made_again(indexed: StoreBuilder) -> None:
    put_keys(indexed, *["one"] * 5).reput().stop()

    indexed.configured(max_index_num=9).restart().reput()

    assert found(indexed, "one") == [0, 1, 2, 3, 4]
    assert [len(file.data) for file in index_files(indexed)] == [file_size(SLOTS, 9)]


def test_an_index_switched_on_later_lists_what_is_there(indexed: StoreBuilder) -> None:
    indexed.configured(message_index_enable=False)
    put_keys(indexed, *["one"] * 5).reput().stop()

    indexed.configured(message_index_enable=True).restart().reput()

    assert found(indexed, "one") == [0, 1, 2, 3, 4]


def test_a_foreign_name_is_passed_over(indexed: StoreBuilder) -> None:
    put_keys(indexed, "one").reput().stop()
    indexed.disk.replace_file("index/notes.txt", b"mine")

    indexed.restart()

    assert found(indexed, "one") == [0]
    assert indexed.disk.files()["index/notes.txt"] == b"mine"


def test_a_file_that_cannot_be_made_is_asked_for_again_and_leaves_none(
    indexed: StoreBuilder,
) -> None:
    put_keys(indexed, *["one"] * 4).reput()
    put_keys(indexed, *["one"] * 2)
    for _ in range(5):
        indexed.fail("create", "ENOSPC")
        with pytest.raises(OSError, match="No space left"):
            indexed.reput()
    assert len(index_files(indexed)) == 1

    indexed.reput()

    assert len(index_files(indexed)) == 2
    assert found(indexed, "one") == [0, 1, 2, 3, 4, 5]


def test_a_record_whose_second_key_failed_is_gone_on_with(
    indexed: StoreBuilder,
) -> None:
    put_keys(indexed, "zero").reput()
    put_keys(indexed, "one two three")
    indexed.fail_at(6, "write")  # after the unit, and the three writes of a key

    with pytest.raises(OSError, match="write"):
        indexed.reput()
    there = sum(len(file.entries) for file in index_files(indexed))
    indexed.reput()

    assert there == 2
    assert [found(indexed, key) for key in ("one", "two", "three")] == [[1]] * 3
    assert broken(indexed) == []


def test_only_files_whose_records_are_durable_move_the_checkpoint(
    indexed: StoreBuilder,
) -> None:
    put_keys(indexed, *["one"] * 5).reput()

    assert indexed.turn("flush_index") == 0
    indexed.flush()
    assert indexed.turn("flush_index") == 1
    assert indexed.turn("flush_index") == 0
    indexed.write_checkpoint()

    assert indexed.image().checkpoint.index_msg_timestamp == EPOCH_MS + 3


def test_a_failed_sync_moves_no_time_until_a_start_has_written_it_again(
    indexed: StoreBuilder,
) -> None:
    put_keys(indexed, *["one"] * 5).reput().flush()
    indexed.fail("sync")
    with pytest.raises(OSError, match="sync"):
        indexed.turn("flush_index")

    assert indexed.turn("flush_index") == 0
    assert not indexed.stop()
    assert indexed.image().checkpoint.index_msg_timestamp == 0
    indexed.restart()
    assert indexed.turn("flush_index") == 1


def test_files_whose_records_have_all_expired_are_removed(
    indexed: StoreBuilder,
) -> None:
    put_keys(indexed, *["one"] * 11).reput()
    index = indexed.live._index

    assert index.delete_expired(401) == 1
    assert index.delete_expired(1 << 40) == 1  # the newest stays
    assert [len(file.entries) for file in index_files(indexed)] == [3]
    assert found(indexed, "one") == [8, 9, 10]


def test_entries_below_the_logs_begin_are_kept_with_their_file(
    indexed: StoreBuilder,
) -> None:
    put_keys(indexed, *["one two"] * 12).reput().stop()
    indexed.remove(log_file()).remove("checkpoint")
    before = index_files(indexed)[-1].entries

    indexed.restart().reput()

    assert index_files(indexed)[-1].entries == before
    assert min(found(indexed, "two")) > 0
    assert found(indexed, "one") == found(indexed, "two")
    assert broken(indexed) == []


def test_a_store_that_is_down_answers_no_query(indexed: StoreBuilder) -> None:
    store = MessageStore(indexed.config, indexed.mount, SimRuntime(EPOCH_MS))

    with pytest.raises(StoreStopped, match="not started"):
        store.query_message("T0", "one", 1, 0, FOREVER)


def test_an_index_file_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one slot and two"):
        StoreConfig(max_hash_slot_num=0)
    with pytest.raises(ValueError, match="at least one slot and two"):
        StoreConfig(max_index_num=1)
