from __future__ import annotations

from contextlib import suppress

import pytest
from store_builder import EPOCH_MS, LOG_FILE_SIZE, StoreBuilder, log_file, queue_file

from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.errors import StoreCorrupted
from crashmq.engine.store.results import PutMessageStatus
from crashmq.harness.disk.crash import StoreCrashed
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.ops import Crash

HOUR_MS = 3_600_000
FILE_MESSAGES = (LOG_FILE_SIZE - 8) // 100


def filled(files: int = 3) -> StoreBuilder:
    """So many whole log files and one message more, durable and dispatched."""
    store = StoreBuilder().configured(file_reserved_time=2)
    store.disk = SimDisk(now_ms=store.runtime.now_ms, capacity=1 << 16)
    return store.put(files * FILE_MESSAGES + 1).make_all_durable()


def cleaned(store: StoreBuilder, hours: int = 2) -> int:
    """Let hours pass, ask for a deletion, and give the cleaner a round."""
    store.runtime.advance(hours * HOUR_MS)
    store.live.deletion.execute_delete_files_manually()
    return store.turn("clean_commit_log")


def test_old_files_go_from_the_front_and_the_last_one_stays() -> None:
    store = filled()

    assert cleaned(store) == 3
    assert cleaned(store) == 0

    assert store.live.commit_log.min_offset == 3 * LOG_FILE_SIZE
    assert store.pull().min_offset == 3 * FILE_MESSAGES
    assert store.pull(3 * FILE_MESSAGES).next_begin_offset == 3 * FILE_MESSAGES + 1


def test_young_files_stay() -> None:
    store = filled()

    assert cleaned(store, hours=1) == 0


def test_nothing_goes_before_its_hour_unless_asked_for() -> None:
    store = filled()
    store.runtime.advance(2 * HOUR_MS)
    assert store.turn("clean_commit_log") == 0

    store.runtime.advance(HOUR_MS * ((4 - EPOCH_MS // HOUR_MS % 24) % 24 + 22))

    assert store.turn("clean_commit_log") == 3


def test_what_is_not_dispatched_stays() -> None:
    store = StoreBuilder().configured(file_reserved_time=0)
    store.put(3 * FILE_MESSAGES + 1).flush()

    assert cleaned(store) == 0


def test_a_file_that_looks_old_stays_while_its_records_are_young() -> None:
    store = filled()
    store.disk.set_mtime(log_file(), 0)

    assert cleaned(store, hours=1) == 0


def test_a_file_that_was_touched_stays_until_it_is_old_again() -> None:
    store = filled()
    store.disk.set_mtime(log_file(), EPOCH_MS + HOUR_MS)

    assert cleaned(store) == 0
    assert cleaned(store, hours=1) == 3


def test_a_round_deletes_no_more_than_a_batch() -> None:
    store = filled()
    store.configured(delete_file_batch_max=2).restart()

    assert [cleaned(store), cleaned(store), cleaned(store)] == [2, 1, 0]


def test_the_mark_moves_before_the_first_file_goes() -> None:
    store = filled()

    trace = store.traced(lambda: cleaned(store))

    first = trace.index(f"remove:{log_file()}")
    assert "sync:checkpoint" in trace[:first]
    assert trace[first + 1] == "sync_dir:commitlog"


def test_a_start_goes_on_from_a_deletion_that_the_power_cut_short() -> None:
    begins: list[int] = []
    for at_action in range(1, 12):
        store = filled()

        def lose_power(store: StoreBuilder = store) -> None:
            raise store.disk.crash(Crash("power_loss"))

        store.disk.at_action(at_action, 0, lose_power)
        with suppress(StoreCrashed):
            cleaned(store)
        store.disk.end_watch()
        store.lose_power().restart()
        first = store.pull(0).min_offset
        assert first * LOG_FILE_SIZE == store.live.commit_log.min_offset * FILE_MESSAGES
        begins.append(first)

    assert begins == sorted(begins)
    assert {0, FILE_MESSAGES, 2 * FILE_MESSAGES, 3 * FILE_MESSAGES} == set(begins)


def test_a_first_file_that_others_removed_is_missed() -> None:
    store = filled()
    store.stop()
    store.remove(log_file())

    with pytest.raises(StoreCorrupted, match="a file was removed"):
        store.loaded()


def test_queue_files_follow_the_log() -> None:
    store = filled()
    cleaned(store)

    assert store.turn("clean_consume_queue") == 3
    assert store.turn("clean_consume_queue") == 0
    assert queue_file() not in store.disk.files()


def test_a_queue_of_which_all_has_expired_counts_on_after_a_start() -> None:
    store = filled(0).put(3, topic="T1")
    store.put(3 * FILE_MESSAGES).make_all_durable()
    cleaned(store)

    store.restart().put(topic="T1")

    assert store.results[-1].queue_offset == 3
    assert store.pull(topic="T1").min_offset == 3


def test_puts_stop_before_the_disk_is_full_and_begin_again() -> None:
    store = filled(1)
    store.disk.fill(91)
    store.turn("clean_commit_log")
    refused = store.put().results[-1].status

    store.disk.fill(86)
    store.turn("clean_commit_log")
    still = store.put().results[-1].status
    store.disk.fill(0)
    store.turn("clean_commit_log")

    unavailable = PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert (refused, still) == (unavailable, unavailable)
    assert store.put().results[-1].status is PutMessageStatus.PUT_OK


def test_no_log_file_is_made_that_would_fill_the_disk() -> None:
    store = filled(1)
    store.disk.fill(90)

    store.put(FILE_MESSAGES)

    assert store.results[-1].status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert store.disk.usage().percent <= 90


def test_a_dispatch_that_met_a_full_disk_is_made_up_for() -> None:
    store = filled(0).put(topic="T1")
    store.disk.fill(100)
    with pytest.raises(OSError, match="are free"):
        store.reput()

    store.disk.fill(0)
    store.reput()

    assert store.served("T1") == [1]


def test_unexpired_files_go_by_force_where_that_is_wanted() -> None:
    store = filled()
    store.disk.fill(88)
    assert store.turn("clean_commit_log") == 0

    store.configured(clean_file_forcibly_enable=True).restart()

    assert store.turn("clean_commit_log") == 3


@pytest.mark.parametrize(
    "settings",
    [
        {"delete_when": "24"},
        {"delete_when": ""},
        {"disk_max_used_space_ratio": 95},
        {"delete_file_batch_max": 0},
        {"file_reserved_time": -1},
    ],
)
def test_settings_that_say_nothing_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"delete|share"):
        StoreConfig(**settings)  # type: ignore[arg-type]
