"""A push consumer's life: start, suspend, reset, shutdown, and being killed."""

from __future__ import annotations

import pytest
from consumer_bench import FIRST, LAST, SUCCESS, Bench, T
from fake_broker import queue_of, turn

from crashmq.engine.client.consumer.default_mq_push_consumer import (
    DefaultMQPushConsumer,
)
from crashmq.engine.client.consumer.pull_from_where import ConsumeFromWhere
from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.consumer.store.local_file_offset_store import (
    LocalFileOffsetStore,
)
from crashmq.engine.host.disk import Disk
from crashmq.harness.disk.sim_disk import SimDisk


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.broker.create("T")
    return bench


def test_what_is_put_is_consumed_and_committed(bench: Bench) -> None:
    bench.broker.create("T", queues=2)
    consumer = bench.started()
    for queue_id in range(2):
        bench.broker.put("T", queue_id, count=40)

    bench.pull(consumer)
    bench.consume_all(consumer)
    turn(consumer, "persist_all_consumer_offset")

    assert sorted(bench.listener.got) == [
        ("T", queue_id, offset) for queue_id in range(2) for offset in range(40)
    ]
    assert bench.committed(0) == bench.committed(1) == 40


def test_a_consumer_tells_the_broker_who_it_is_and_what_it_subscribes(
    bench: Bench,
) -> None:
    bench.started(subscriptions=(("T", "B || A", "TAG"),))

    told = bench.broker.clients["g"]["c0"]
    assert [(s.topic, s.tags) for s in told.subscriptions] == [
        ("%RETRY%g", ()),
        ("T", ("A", "B")),
    ]
    assert told.message_model == "CLUSTERING"


def test_a_consumer_starts_once(bench: Bench) -> None:
    consumer = bench.started()

    with pytest.raises(RuntimeError, match="c0 of g was started before"):
        consumer.start()
    consumer.shutdown()
    with pytest.raises(RuntimeError, match="starts once"):
        consumer.start()


def test_its_services_are_idle_before_the_start_and_after_the_end(
    bench: Bench,
) -> None:
    bench.broker.put("T", count=3)
    consumer = bench.consumer(consume_from_where=FIRST)
    assert [service.run_once() for service in consumer.services] == [0] * 5

    consumer.start()
    turn(consumer, "rebalance")
    consumer.shutdown()
    calls = bench.broker.calls
    bench.runtime.advance(60_000)

    assert [service.run_once() for service in consumer.services] == [0] * 5
    assert consumer.consume(0) == 0
    assert bench.broker.calls == calls


def test_the_services_come_as_often_as_rocketmqs(bench: Bench) -> None:
    consumer = bench.consumer(is_orderly=True)
    intervals = {service.name: service.interval_ms for service in consumer.services}

    assert intervals == {
        "rebalance": 1_000,
        "pull_message": 10,
        "persist_all_consumer_offset": 5_000,
        "heartbeat": 30_000,
        "lock_mq_periodically": 20_000,
    }
    names = [service.name for service in bench.consumer().services]
    assert names[-1] == "clean_expired_msg"


def test_a_rebalance_is_due_soon_until_all_is_in_place(bench: Bench) -> None:
    consumer = bench.consumer()
    consumer.start()
    rebalance = consumer.services[0]

    bench.broker.down = True
    rebalance.run_once()
    assert rebalance.interval_ms == 1_000
    bench.broker.down = False
    rebalance.run_once()
    assert rebalance.interval_ms == 20_000
    consumer.notify_consumer_ids_changed()
    assert rebalance.interval_ms == 1_000


def test_while_suspended_nothing_is_pulled_and_what_was_pulled_is_consumed(
    bench: Bench,
) -> None:
    consumer = bench.started()
    bench.broker.put("T", count=2)
    bench.pull(consumer)

    consumer.suspend()
    bench.broker.put("T", count=2)
    bench.pull(consumer)
    bench.consume_all(consumer)
    asked = len(bench.broker.pulls)
    bench.runtime.advance(1_000)
    bench.pull(consumer)
    assert len(bench.broker.pulls) == asked
    assert turn(consumer, "rebalance") == 0

    consumer.resume()
    bench.runtime.advance(1_000)
    bench.pull(consumer)
    bench.consume_all(consumer)
    assert bench.listener.offsets == [0, 1, 2, 3]


def test_a_reset_begins_the_queue_anew(bench: Bench) -> None:
    consumer = bench.started()
    bench.broker.put("T", count=10)
    bench.pull(consumer)
    consumer.consume(0)

    consumer.reset_offset("T", {T: 4})
    assert bench.committed() == 4
    turn(consumer, "rebalance")
    bench.runtime.advance(500)
    bench.pull(consumer)
    bench.listener.got.clear()
    bench.consume_all(consumer)

    assert bench.listener.offsets == [4, 5, 6, 7, 8, 9]


def test_a_completion_after_a_reset_does_not_undo_it(bench: Bench) -> None:
    consumer = bench.started()
    bench.broker.put("T", count=10)
    bench.pull(consumer)

    def reset_amid(*_: object) -> object:
        consumer.reset_offset("T", {T: 0})
        return SUCCESS

    bench.listener.answer = reset_amid
    consumer.consume(9)
    turn(consumer, "persist_all_consumer_offset")

    assert bench.committed() == 0


def test_shutdown_tells_the_offsets_and_lets_the_queues_go(bench: Bench) -> None:
    bench.broker.create("T", queues=3)
    consumer = bench.started(is_orderly=True)
    bench.broker.put("T", count=4)
    bench.pull(consumer)
    bench.consume_all(consumer)

    consumer.shutdown()

    assert bench.committed() == 4
    assert bench.broker.locks == {}
    assert bench.broker.clients["g"] == {}
    assert consumer.process_queue_table == {}
    assert not consumer.is_started


def test_shutdown_tells_the_offsets_before_it_lets_the_locks_go(bench: Bench) -> None:
    consumer = bench.started(is_orderly=True)
    bench.broker.put("T", count=4)
    bench.pull(consumer)
    bench.consume_all(consumer)
    told_when_unlocked = []
    bench.broker.unlock_batch = (  # type: ignore[method-assign] # it tells
        lambda *_: told_when_unlocked.append(bench.committed())
    )

    consumer.shutdown()

    assert told_when_unlocked == [4]


def test_shutdown_waits_for_the_listener_at_work(bench: Bench) -> None:
    consumer = bench.started()
    bench.broker.put("T", count=2)
    bench.pull(consumer)

    def slowly(*_: object) -> object:
        bench.runtime.sleep_ms(700)
        return SUCCESS

    def consume_and_shut_down() -> None:
        bench.runtime.spawn(lambda: consumer.consume(0), "a listener")
        bench.runtime.sleep_ms(1)
        consumer.shutdown()

    bench.listener.answer = slowly
    bench.runtime.run(consume_and_shut_down)

    assert bench.listener.offsets == [0]
    assert bench.committed() == 1


def test_a_listener_that_is_not_waited_for_commits_nothing_later(
    bench: Bench,
) -> None:
    consumer = bench.started(await_terminate_millis_when_shutdown=0)
    bench.broker.put("T", count=2)
    bench.pull(consumer)

    def shut_down_amid(*_: object) -> object:
        consumer.shutdown()
        bench.broker.offsets["g", T] = 7
        return SUCCESS

    bench.listener.answer = shut_down_amid
    consumer.consume(0)

    assert bench.committed() == 7


def test_a_shutdown_that_was_broken_off_is_ended_by_another(bench: Bench) -> None:
    consumer = bench.started()
    bench.broker.put("T", count=2)
    bench.pull(consumer)
    bench.consume_all(consumer)

    bench.broker.break_in(1)
    with pytest.raises(BaseException, match="killed"):
        consumer.shutdown()
    assert consumer.is_started
    consumer.shutdown()

    assert bench.committed() == 2
    assert bench.broker.clients["g"] == {}


def test_of_a_killed_client_nothing_goes_on(bench: Bench) -> None:
    killed = bench.started()
    bench.pull(killed)
    del killed
    calls = bench.broker.calls

    bench.broker.put("T", count=3)
    bench.runtime.advance(60_000)

    assert bench.broker.calls == calls
    assert bench.listener.got == []


def test_a_topic_subscribed_later_is_consumed_and_one_unsubscribed_is_told(
    bench: Bench,
) -> None:
    bench.broker.create("U")
    consumer = bench.started()
    bench.broker.put("T", count=3)
    bench.pull(consumer)
    bench.consume_all(consumer)

    consumer.subscribe("U", "*")
    consumer.unsubscribe("T")
    turn(consumer, "rebalance")
    bench.broker.put("U", count=2)
    bench.runtime.advance(500)
    bench.pull(consumer)
    bench.consume_all(consumer)

    assert bench.committed() == 3
    assert bench.listener.got[3:] == [("U", 0, 0), ("U", 0, 1)]
    queues = [queue.topic for queue in consumer.process_queue_table]
    assert queues == ["%RETRY%g", "U"]
    with pytest.raises(ValueError, match="write tags between"):
        consumer.subscribe("U", "||")


def broadcasting(bench: Bench, disk: Disk, client_id: str) -> DefaultMQPushConsumer:
    store = LocalFileOffsetStore(disk, client_id, "g", bench.runtime)
    config = PushConsumerConfig(
        client_id,
        "g",
        message_model="BROADCASTING",
        consume_from_where=FIRST,
        subscriptions=(("T", "*", "TAG"),),
    )
    consumer = DefaultMQPushConsumer(
        config, bench.broker, store, bench.runtime, bench.listener
    )
    consumer.start()
    turn(consumer, "rebalance")
    bench.runtime.advance(500)
    bench.pull(consumer)
    bench.consume_all(consumer)
    return consumer


def test_broadcast_each_client_gets_all_and_keeps_its_own_offsets(
    bench: Bench,
) -> None:
    bench.broker.create("T", queues=2)
    for queue_id in range(2):
        bench.broker.put("T", queue_id, count=2)
    disk = SimDisk().mount()

    first = broadcasting(bench, disk, "c0")
    broadcasting(bench, disk, "c1")
    assert bench.listener.offsets == [0, 1, 0, 1] * 2
    assert list(first.process_queue_table) == [T, queue_of("T", 1)]

    turn(first, "persist_all_consumer_offset")
    bench.listener.got.clear()
    broadcasting(bench, disk, "c0")  # which kept what it consumed
    broadcasting(bench, disk, "c1")  # which was killed before it did
    assert bench.listener.offsets == [0, 1, 0, 1]
    assert bench.broker.offsets == {}


def test_broadcast_what_failed_is_skipped(bench: Bench) -> None:
    bench.broker.put("T", count=2)
    bench.listener.answer = lambda *_: None

    broadcasting(bench, SimDisk().mount(), "c0")

    assert bench.listener.offsets == [0, 1]
    assert bench.broker.sent_back == []


def first_start(bench: Bench, client_id: str) -> DefaultMQPushConsumer:
    consumer = bench.started(client_id, consume_from_where=LAST)
    bench.pull(consumer)
    return consumer


def test_e5_a_client_killed_before_it_consumed_anything_skips_nothing(
    bench: Bench,
) -> None:
    bench.broker.create("T", base=40)
    bench.broker.put("T", count=60)

    first_start(bench, "c0")
    assert bench.asked_of() == [100]
    bench.broker.kill("g", "c0")
    bench.broker.put("T", count=10)
    again = first_start(bench, "c1")
    bench.consume_all(again)

    assert bench.listener.offsets == list(range(100, 110))


def test_e5_from_the_first_offset_a_group_comes_to_the_queues_minimum(
    bench: Bench,
) -> None:
    bench.broker.create("T", base=40)
    bench.broker.put("T", count=60)

    consumer = bench.started(consume_from_where=FIRST)
    bench.pull(consumer)
    assert bench.asked_of() == [0]
    assert bench.committed() == 40
    turn(consumer, "rebalance")
    bench.runtime.advance(500)
    bench.pull(consumer)
    bench.consume_all(consumer)

    assert bench.listener.offsets == list(range(40, 100))


def test_from_a_timestamp_a_group_begins_half_an_hour_ago(bench: Bench) -> None:
    bench.broker.put("T", count=3)
    bench.runtime.advance(31 * 60 * 1000)
    bench.broker.put("T", count=2)

    consumer = bench.started(consume_from_where=ConsumeFromWhere.CONSUME_FROM_TIMESTAMP)
    bench.pull(consumer)
    bench.consume_all(consumer)

    assert bench.listener.offsets == [3, 4]


def test_e3_what_a_crash_repeats_is_what_was_not_told(bench: Bench) -> None:
    """Committed are 470, told by a pull 490, in memory 500: 30 come again."""
    bench.broker.create("T", base=400)
    bench.broker.put("T", count=120)
    bench.broker.offsets["g", T] = 400
    consumer = bench.started()
    bench.pull(consumer, rounds=6)
    for _ in range(70):
        consumer.consume(0)
    turn(consumer, "persist_all_consumer_offset")
    on_disk = bench.committed()
    for _ in range(30):
        consumer.consume(0)
    assert (on_disk, max(bench.listener.offsets)) == (470, 499)

    bench.broker.restart()
    bench.broker.offsets["g", T] = on_disk
    surviving, bench.listener.got = list(bench.listener.got), []
    turn(consumer, "heartbeat")
    turn(consumer, "persist_all_consumer_offset")
    assert bench.committed() == 500

    bench.broker.offsets["g", T] = on_disk
    bench.broker.kill("g", "c0")
    again = bench.started("c1")
    bench.pull(again, rounds=5)
    bench.consume_all(again)
    repeated = [each for each in bench.listener.got if each in surviving]
    assert [offset for _, _, offset in repeated] == list(range(470, 500))


def test_e8_a_reset_at_the_broker_reaches_a_running_client(bench: Bench) -> None:
    bench.broker.create("T", base=100)
    bench.broker.put("T", count=440)
    bench.broker.offsets["g", T] = 400
    consumer = bench.started()
    bench.pull(consumer, rounds=6)
    bench.consume_all(consumer)
    turn(consumer, "persist_all_consumer_offset")

    bench.broker.reset("g", T, 200)
    turn(consumer, "persist_all_consumer_offset")
    assert bench.committed() == 200
    bench.runtime.advance(15_000)
    bench.broker.wake()
    bench.pull(consumer)
    assert bench.committed() == 200
    bench.listener.got.clear()
    turn(consumer, "rebalance")
    bench.runtime.advance(500)
    bench.pull(consumer)
    bench.consume_all(consumer)

    assert bench.listener.offsets[0] == 200
