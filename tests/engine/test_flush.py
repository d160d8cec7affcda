"""What makes bytes durable, who waits for it, and what a failed sync means."""

from __future__ import annotations

import pytest
from store_builder import (
    EPOCH_MS,
    LOG_FILE_SIZE,
    QUEUE_FILE_SIZE,
    RECORD_SIZE,
    SYNC,
    StoreBuilder,
    log_file,
    queue_file,
)

from crashmq.engine.host.probe import recording
from crashmq.engine.host.service import WokenService
from crashmq.engine.store.flush import CommitLogFlusher
from crashmq.engine.store.group_commit import GroupCommitRequest, GroupCommitService
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.results import PutMessageResult, PutMessageStatus
from crashmq.engine.store.running_flags import RunningFlags
from crashmq.engine.store.store_checkpoint import StoreCheckpoint
from crashmq.models.files.checkpoint import CheckpointImage, read_checkpoint

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE
PUT_OK = PutMessageStatus.PUT_OK
TIMEOUT = PutMessageStatus.FLUSH_DISK_TIMEOUT
REFUSED = PutMessageStatus.SERVICE_NOT_AVAILABLE
MESSAGE = Message("T0", 0, b"0000000")
PAGE_OF_RECORDS = 4096 // RECORD_SIZE + 1


@pytest.fixture
def sync_store(store: StoreBuilder) -> StoreBuilder:
    """A store whose puts wait for the group commit, and which has had its first."""
    return store.configured(flush_disk_type=SYNC).put()


def checkpoint(store: StoreBuilder) -> CheckpointImage:
    """The checkpoint that a power loss would leave."""
    return read_checkpoint(store.disk.durable_files()["checkpoint"])


def durable_log(store: StoreBuilder) -> bytes:
    return store.disk.durable_files()[log_file()]


def put_at_once(
    store: StoreBuilder, count: int, round_between: bool
) -> list[PutMessageResult]:
    """Several puts that wait together, with a round of the group commit or none."""

    def body() -> list[PutMessageResult]:
        live = store.live
        puts = [
            store.runtime.spawn(lambda: live.put_message(MESSAGE)) for _ in range(count)
        ]
        if round_between:
            assert live.waited_for[0].run_once() == count
        return [put.result() for put in puts]

    return store.runtime.run(body)


def fail_a_sync(store: StoreBuilder, message: Message = MESSAGE) -> PutMessageResult:
    """Put one message under SYNC_FLUSH whose sync fails; the put's answer."""
    answers: list[PutMessageResult] = []
    live = store.live
    store.fail("sync")
    with pytest.raises(OSError, match="sync"):
        store.runtime.run(lambda: answers.append(live.put_message(message)))
    store.disk.heal()
    return answers[0]


def test_a_sync_put_is_durable_when_it_is_acknowledged(
    sync_store: StoreBuilder,
) -> None:
    sync_store.put()

    assert sync_store.results[-1].status is PUT_OK
    assert sync_store.live.commit_log.flushed_where == 2 * RECORD_SIZE
    sync_store.lose_power()
    assert sync_store.restart().reput().served() == [0, 1]


def test_an_async_put_is_acknowledged_before_it_is_durable(store: StoreBuilder) -> None:
    store.put()

    assert store.results[-1].status is PUT_OK
    store.lose_power()
    assert store.restart().live.commit_log.max_offset == 0


def test_one_sync_answers_every_waiting_put(sync_store: StoreBuilder) -> None:
    with recording() as hits:
        results = put_at_once(sync_store, 3, round_between=True)

    assert [result.status for result in results] == [PUT_OK] * 3
    assert [result.queue_offset for result in results] == [1, 2, 3]
    assert hits["flush.group.committed"] == 3
    assert hits["flush.group.before"] == 2


def test_a_waiting_put_is_answered_exactly_once(sync_store: StoreBuilder) -> None:
    put_at_once(sync_store, 3, round_between=True)

    with recording() as hits:
        assert sync_store.turn("flush_commit_log") == 0

    assert hits == {"flush.group.idle": 1}


def test_a_group_commit_syncs_across_files(sync_store: StoreBuilder) -> None:
    results = put_at_once(sync_store, 2 * PER_FILE, round_between=True)

    assert {result.status for result in results} == {PUT_OK}
    assert sync_store.live.commit_log.flushed_where == results[-1].end_offset


def test_a_put_stops_waiting_after_its_timeout(sync_store: StoreBuilder) -> None:
    sync_store.runtime.serve(())
    before = sync_store.runtime.now_ms()

    result = sync_store.send(MESSAGE)

    assert result.status is TIMEOUT
    assert result.is_appended
    waited = sync_store.runtime.now_ms() - 1 - before
    assert waited == sync_store.config.sync_flush_timeout


def test_a_put_that_timed_out_is_flushed_and_served_later(
    sync_store: StoreBuilder,
) -> None:
    sync_store.runtime.serve(())
    sync_store.put()

    sync_store.turn("flush_commit_log")

    assert sync_store.reput().served() == [0, 1]
    assert sync_store.results[-1].status is TIMEOUT


@pytest.mark.parametrize("first", [PUT_OK, TIMEOUT])
def test_the_first_answer_stands(store: StoreBuilder, first: PutMessageStatus) -> None:
    request = GroupCommitRequest(100, store.runtime)

    request.complete(first)
    request.complete(PUT_OK)
    request.complete(TIMEOUT)

    assert request.wait(5000) is first


def test_a_put_that_does_not_wait_is_answered_before_the_sync(
    sync_store: StoreBuilder,
) -> None:
    sync_store.put(properties={"WAIT": "false"})

    assert sync_store.results[-1].status is PUT_OK
    assert sync_store.live.commit_log.flushed_where == RECORD_SIZE
    sync_store.turn("flush_commit_log")
    end = sync_store.results[-1].end_offset
    assert sync_store.live.commit_log.flushed_where == end


def test_a_failed_sync_is_not_acknowledged(sync_store: StoreBuilder) -> None:
    result = fail_a_sync(sync_store)

    assert result.status is TIMEOUT
    assert sync_store.live.commit_log.flushed_where == RECORD_SIZE


def test_a_failed_sync_answers_every_waiting_put(sync_store: StoreBuilder) -> None:
    answers: list[PutMessageResult] = []
    before = sync_store.runtime.now_ms()

    def body() -> None:
        live = sync_store.live
        puts = [
            sync_store.runtime.spawn(lambda: live.put_message(MESSAGE))
            for _ in range(3)
        ]
        sync_store.fail("sync")
        with pytest.raises(OSError, match="sync"):
            live.waited_for[0].run_once()
        answers.extend(put.result() for put in puts)

    sync_store.runtime.run(body)
    assert [answer.status for answer in answers] == [TIMEOUT] * 3
    assert sync_store.runtime.now_ms() == before


def test_a_put_overtaken_by_a_failed_sync_is_not_acknowledged(
    sync_store: StoreBuilder,
) -> None:
    sync_store.put(properties={"WAIT": "false"})
    (group_commit,) = sync_store.live.waited_for

    def fail_meanwhile() -> None:
        sync_store.fail("sync")
        with pytest.raises(OSError, match="sync"):
            group_commit.run_once()

    sync_store.disk.at_action(1, 0, fail_meanwhile)
    with recording() as hits:
        sync_store.put()

    assert sync_store.results[-1].status is TIMEOUT
    assert hits["flush.group.failed"] == 1


def test_after_a_failed_sync_puts_are_refused_until_a_restart(
    sync_store: StoreBuilder,
) -> None:
    fail_a_sync(sync_store)
    assert sync_store.send(MESSAGE).status is REFUSED
    assert sync_store.turn("flush_commit_log") == 0

    sync_store.restart()

    assert sync_store.send(MESSAGE).status is PUT_OK


def test_after_a_failed_sync_no_later_sync_moves_the_mark(
    sync_store: StoreBuilder,
) -> None:
    fail_a_sync(sync_store)

    sync_store.flush().flush()

    assert sync_store.live.commit_log.flushed_where == RECORD_SIZE
    sync_store.write_checkpoint()
    mark = checkpoint(sync_store).mark
    assert mark is not None
    assert mark.durable_offset == RECORD_SIZE


def test_a_shutdown_after_a_failed_sync_is_not_clean(sync_store: StoreBuilder) -> None:
    fail_a_sync(sync_store)

    assert not sync_store.stop()
    assert "abort" in sync_store.disk.files()


@pytest.mark.parametrize("ends", ["killed", "shut down"])
def test_a_restart_writes_again_what_a_failed_sync_left(
    sync_store: StoreBuilder, ends: str
) -> None:
    fail_a_sync(sync_store, Message("T0", 0, b"0000001"))
    assert not any(durable_log(sync_store)[RECORD_SIZE:])
    if ends == "killed":
        sync_store.kill()

    sync_store.restart().lose_power()

    assert sync_store.restart().reput().served() == [0, 1]


def test_a_failed_sync_in_the_background_stops_puts_too(store: StoreBuilder) -> None:
    store.put().fail("sync")
    with pytest.raises(OSError, match="sync"):
        store.flush()
    store.disk.heal()

    store.put()

    assert store.results[-1].status is REFUSED
    assert store.reput().served() == [0]


def test_the_first_flush_takes_every_byte(store: StoreBuilder) -> None:
    store.put()

    with recording() as hits:
        assert store.turn("flush_commit_log") == 1

    assert hits["flush.real_time.thorough"] == 1
    assert store.live.commit_log.flushed_where == RECORD_SIZE


def test_a_flush_waits_for_whole_pages_until_the_thorough_interval(
    store: StoreBuilder,
) -> None:
    store.configured(
        mapped_file_size_commit_log=1 << 20, flush_commit_log_least_pages=1
    )
    store.put().turn("flush_commit_log")
    assert store.put().turn("flush_commit_log") == 0

    assert store.put(PAGE_OF_RECORDS).turn("flush_commit_log") == 1

    store.put()
    assert store.turn("flush_commit_log") == 0
    store.runtime.advance(store.config.flush_commit_log_thorough_interval)
    assert store.turn("flush_commit_log") == 1


def test_a_clock_set_back_does_not_hold_the_thorough_flush_up(
    store: StoreBuilder,
) -> None:
    store.put().turn("flush_commit_log")
    store.put().runtime.advance(-3_600_000)

    assert store.turn("flush_commit_log") == 1


def test_a_round_of_the_flush_syncs_one_file(store: StoreBuilder) -> None:
    store.put(2 * PER_FILE + 1)

    assert store.turn("flush_commit_log") == 1
    assert store.live.commit_log.flushed_where == LOG_FILE_SIZE

    store.flush()
    assert store.live.commit_log.flushed_where == store.results[-1].end_offset


def test_a_thorough_round_over_the_queues_syncs_all_of_them(
    store: StoreBuilder,
) -> None:
    store.put(PER_FILE + 1).put(topic="T1").reput()

    assert store.turn("flush_consume_queue") == 3

    durable = store.disk.durable_files()
    assert all(any(durable[queue_file(topic)]) for topic in ("T0", "T1"))
    assert any(durable[queue_file(base=200)])


def test_queues_are_flushed_by_whole_pages_between_thorough_rounds(
    store: StoreBuilder,
) -> None:
    store.put().reput().turn("flush_consume_queue")
    store.put().reput()

    with recording() as hits:
        assert store.turn("flush_consume_queue") == 0

    assert hits["flush.queues.least_pages"] == 1


def test_the_physic_timestamp_moves_after_the_sync_it_stands_for(
    store: StoreBuilder,
) -> None:
    store.put(3).write_checkpoint()
    assert checkpoint(store).physic_msg_timestamp == 0

    store.flush().write_checkpoint()

    assert checkpoint(store).physic_msg_timestamp == EPOCH_MS + 2


def test_the_physic_timestamp_stays_when_the_sync_fails(store: StoreBuilder) -> None:
    store.put(3).fail("sync")
    with pytest.raises(OSError, match="sync"):
        store.flush()
    store.disk.heal()

    store.write_checkpoint()

    assert checkpoint(store).physic_msg_timestamp == 0


def test_the_logics_timestamp_moves_after_the_queues_are_flushed(
    store: StoreBuilder,
) -> None:
    store.put(3).flush().reput().write_checkpoint()
    assert checkpoint(store).logics_msg_timestamp == 0

    store.flush_queues().write_checkpoint()

    assert checkpoint(store).logics_msg_timestamp == EPOCH_MS + 2


def test_the_logics_timestamp_is_that_of_the_last_unit_flushed(
    store: StoreBuilder,
) -> None:
    store.put(2).reput().flush_queues()
    store.put().reput().write_checkpoint()

    assert checkpoint(store).logics_msg_timestamp == EPOCH_MS + 1


def test_the_logics_timestamp_stays_once_a_queues_sync_failed(
    store: StoreBuilder,
) -> None:
    store.put(3).reput().fail("sync")
    with pytest.raises(OSError, match="sync"):
        store.flush_queues()
    store.disk.heal()

    store.flush_queues().write_checkpoint()

    assert checkpoint(store).logics_msg_timestamp == 0


def test_the_mark_is_where_the_log_was_flushed_to(store: StoreBuilder) -> None:
    store.put(2).flush().put().write_checkpoint()

    mark = checkpoint(store).mark
    assert mark is not None
    assert (mark.log_min_offset, mark.durable_offset) == (0, 2 * RECORD_SIZE)


def test_the_mark_of_an_empty_store_holds_its_sizes_and_promises_nothing(
    store: StoreBuilder,
) -> None:
    store.write_checkpoint()

    mark = checkpoint(store).mark
    assert mark is not None
    assert mark[1:5] == (0, 0, LOG_FILE_SIZE, QUEUE_FILE_SIZE)
    assert mark.is_empty


def test_a_checkpoint_without_news_is_no_work(store: StoreBuilder) -> None:
    store.put().flush()

    assert [store.turn("checkpoint") for _ in range(2)] == [1, 0]


def test_a_put_that_waits_while_the_store_stops_is_answered_by_what_is_durable(
    sync_store: StoreBuilder,
) -> None:
    sync_store.runtime.serve(())
    live = sync_store.live
    before = sync_store.runtime.now_ms()

    def body() -> PutMessageResult:
        put = sync_store.runtime.spawn(lambda: live.put_message(MESSAGE))
        live.shutdown()
        return put.result()

    with recording() as hits:
        result = sync_store.runtime.run(body)

    assert (result.status, hits["flush.group.stopped"]) == (PUT_OK, 1)
    assert "flush.group.timed_out" not in hits
    waited = sync_store.runtime.now_ms() - before
    assert waited <= sync_store.config.shutdown_dispatch_timeout


def test_a_put_that_waits_while_a_stop_fails_is_not_acknowledged(
    sync_store: StoreBuilder,
) -> None:
    sync_store.runtime.serve(())
    live = sync_store.live

    def body() -> PutMessageResult:
        put = sync_store.runtime.spawn(lambda: live.put_message(MESSAGE))
        sync_store.fail("sync")
        assert not live.shutdown()
        return put.result()

    assert sync_store.runtime.run(body).status is TIMEOUT


def test_who_asks_a_stopped_group_commit_is_answered_at_once(
    sync_store: StoreBuilder,
) -> None:
    live = sync_store.live
    flusher = CommitLogFlusher(
        live.commit_log,
        StoreCheckpoint(sync_store.mount),
        RunningFlags(),
        sync_store.runtime,
    )
    service = GroupCommitService(live.commit_log, flusher, sync_store.runtime)
    service.stop()

    assert service.put_request(RECORD_SIZE).wait(0) is PUT_OK
    assert service.put_request(RECORD_SIZE + 1).wait(0) is TIMEOUT


def test_a_put_wakes_the_group_commit(sync_store: StoreBuilder) -> None:
    woken: list[int] = []
    service = sync_store.live.waited_for[0]
    assert isinstance(service, WokenService)
    service.on_work(lambda: woken.append(1))

    sync_store.put()
    sync_store.put(properties={"WAIT": "false"})

    assert woken == [1]
