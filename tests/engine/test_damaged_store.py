"""A start on damaged files: refused below the durable mark, cut above it."""

from __future__ import annotations

import pytest
from store_builder import LOG_FILE_SIZE, RECORD_SIZE, StoreBuilder, log_file

from crashmq.engine.store.errors import StoreCorrupted

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE


def refusal(store: StoreBuilder) -> str:
    """Why the store does not load; not a byte may have changed."""
    before = store.disk.files()
    with pytest.raises(StoreCorrupted) as caught:
        store.loaded()
    assert store.disk.files() == before
    return str(caught.value)


def durable_store(store: StoreBuilder, messages: int = PER_FILE + 5) -> StoreBuilder:
    """A store that is down, with everything below its durable mark."""
    return store.put(messages).make_all_durable().kill()


@pytest.mark.parametrize("base", [0, LOG_FILE_SIZE])
@pytest.mark.parametrize("at", [0, 4, 30, 90, 95], ids=str)
def test_damage_below_the_mark_is_refused_and_named(
    store: StoreBuilder, base: int, at: int
) -> None:
    durable_store(store).damage(log_file(base), 200 + at, b"\x33")

    why = refusal(store)

    assert f"{log_file(base)} byte 200 (offset {base + 200})" in why
    assert f"durable up to {LOG_FILE_SIZE + 500}" in why
    assert "crashmq fsck" in why


def test_damage_above_the_mark_is_cut(store: StoreBuilder) -> None:
    store.put(3).make_all_durable().put(3).kill()
    store.damage(log_file(), 4 * RECORD_SIZE, b"\x33")

    assert store.restart().reput().served() == [0, 1, 2, 3]


def test_a_log_file_missing_in_the_middle_is_refused(store: StoreBuilder) -> None:
    durable_store(store, 3 * PER_FILE).remove(log_file(LOG_FILE_SIZE))

    assert f"commitlog at offset {LOG_FILE_SIZE}: a missing file" in refusal(store)


def test_a_log_file_missing_at_the_front_is_refused(store: StoreBuilder) -> None:
    durable_store(store).remove(log_file(0))

    why = refusal(store)

    assert f"the log begins at {LOG_FILE_SIZE}, but began at 0" in why


def test_a_log_without_any_file_is_refused(store: StoreBuilder) -> None:
    durable_store(store, 3).remove(log_file(0))

    assert "commitlog at offset 0: no files" in refusal(store)


@pytest.mark.parametrize("size", [0, 1, 250, 490])
def test_a_log_file_cut_short_below_the_mark_is_refused(
    store: StoreBuilder, size: int
) -> None:
    durable_store(store, 5)
    store.disk.replace_file(log_file(), store.disk.files()[log_file()][:size])

    whole = size - size % RECORD_SIZE
    assert f"{log_file()} byte {whole} (offset {whole})" in refusal(store)


def test_a_log_file_cut_short_above_the_mark_is_made_whole(store: StoreBuilder) -> None:
    durable_store(store, 5)
    store.disk.replace_file(log_file(), store.disk.files()[log_file()][:500])

    assert store.restart().put().reput().served() == [0, 1, 2, 3, 4, 5]
    assert len(store.disk.files()[log_file()]) == LOG_FILE_SIZE


def test_files_of_another_size_are_refused(store: StoreBuilder) -> None:
    store.put(3).reput().kill()

    store.configured(mapped_file_size_commit_log=2 * LOG_FILE_SIZE)
    assert "log files of 1024 bytes" in refusal(store)

    store.kill().remove("checkpoint")
    assert f"{log_file()}: 1024 bytes, but files of this log have 2048" in refusal(
        store
    )

    store.configured(mapped_file_size_commit_log=LOG_FILE_SIZE // 2)
    assert f"{log_file()}: 1024 bytes at offset 0 do not fit" in refusal(store)


def test_without_its_checkpoint_a_damaged_log_is_cut_on_request(
    store: StoreBuilder,
) -> None:
    durable_store(store).damage(log_file(), 204, b"\x33").remove("checkpoint")
    assert "start a copy with adopt=True" in refusal(store)
    store.kill()
    store.configured(adopt=True)

    assert store.restart().reput().served() == [0, 1]
    assert store.put().results[-1].queue_offset == 2


def test_a_refused_store_starts_once_the_file_is_put_back(store: StoreBuilder) -> None:
    durable_store(store)
    copy = store.disk.files()[log_file()]
    store.remove(log_file())
    refusal(store)
    store.kill()

    store.disk.replace_file(log_file(), copy)

    assert store.restart().reput().served() == list(range(PER_FILE + 5))
