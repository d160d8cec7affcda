"""Files made ahead: taken by the next roll, made once, gone at an orderly end."""

from __future__ import annotations

import pytest
from store_builder import LOG_FILE_SIZE, RECORD_SIZE, StoreBuilder, log_file

from crashmq.engine.host.probe import recording
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.results import PutMessageResult, PutMessageStatus
from crashmq.models.ops import DiskFault

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
MESSAGE = Message("T0", 0, b"0000000")
NEXT = log_file(LOG_FILE_SIZE)


def log_files(store: StoreBuilder) -> list[str]:
    return [path for path in store.disk.files() if path.startswith("commitlog/")]


def test_the_file_after_the_last_is_made_ahead(store: StoreBuilder) -> None:
    store.put()

    assert store.turn("allocate") == 1

    assert store.disk.files()[NEXT] == bytes(LOG_FILE_SIZE)
    assert store.live.commit_log.max_offset == RECORD_SIZE
    assert store.turn("allocate") == 0


def test_nothing_is_made_before_the_log_has_a_file(store: StoreBuilder) -> None:
    assert store.turn("allocate") == 0
    assert log_files(store) == []


def test_a_roll_takes_the_file_that_is_ready(store: StoreBuilder) -> None:
    store.put(count=PER_FILE)
    store.turn("allocate")

    with recording() as hits:
        trace = store.traced(lambda: store.put())

    assert hits["allocate.ready"] == 1
    assert [action for action in trace if action.startswith("create")] == []
    assert store.results[-1].phy_offset == LOG_FILE_SIZE


def test_a_roll_that_comes_first_makes_its_file_itself(store: StoreBuilder) -> None:
    with recording() as hits:
        store.put(count=PER_FILE + 1)

    assert hits["allocate.not_ready"] == 2
    assert log_files(store) == [log_file(), NEXT]


def test_a_roll_amid_an_allocation_waits_and_takes_its_file(
    store: StoreBuilder,
) -> None:
    store.put(count=PER_FILE)
    service = next(s for s in store.live.services if s.name == "allocate")
    results: list[PutMessageResult] = []

    def roll() -> None:
        store.runtime.spawn(lambda: results.append(store.live.put_message(MESSAGE)))

    store.disk.at_action(2, 0, roll)
    assert store.runtime.run(service.run_once) == 1

    assert [result.status for result in results] == [PutMessageStatus.PUT_OK]
    assert log_files(store) == [log_file(), NEXT]
    assert store.live.commit_log.max_offset == LOG_FILE_SIZE + RECORD_SIZE


def test_a_failed_allocation_fails_no_put_and_is_tried_again(
    store: StoreBuilder,
) -> None:
    store.put().fail("create", "ENOSPC")
    with pytest.raises(OSError, match="create"):
        store.turn("allocate")
    store.disk.heal()

    assert store.turn("allocate") == 1
    assert store.put().results[-1].status is PutMessageStatus.PUT_OK


def test_an_orderly_end_removes_the_file_that_nobody_took(store: StoreBuilder) -> None:
    store.put()
    store.turn("allocate")
    store.reput()

    assert store.stop()

    store.lose_power()
    assert log_files(store) == [log_file()]


@pytest.mark.parametrize("heals", [True, False])
def test_a_file_that_a_failed_creation_left_goes_at_an_orderly_end(
    store: StoreBuilder, heals: bool
) -> None:
    store.put()
    store.disk.fail(DiskFault("sync", "EIO", path=NEXT))
    store.disk.fail(DiskFault("remove", "EIO", 1 if heals else 2, path=NEXT))
    with pytest.raises(OSError, match="remove"):
        store.turn("allocate")
    assert log_files(store) == [log_file(), NEXT]
    store.reput()

    assert store.stop() is heals

    store.lose_power()
    assert (NEXT in log_files(store)) is not heals


def test_a_start_after_a_kill_removes_the_file_made_ahead(store: StoreBuilder) -> None:
    store.put(count=3)
    store.turn("allocate")

    store.kill().restart()

    assert log_files(store) == [log_file()]
    assert store.reput().served() == [0, 1, 2]


def test_a_start_after_a_kill_goes_on_in_the_file_made_ahead(
    store: StoreBuilder,
) -> None:
    store.put(count=PER_FILE, body_size=16)
    store.turn("allocate")

    store.kill().restart().put()

    assert store.reput().served() == list(range(PER_FILE + 1))
