"""Delayed messages are delivered when they are due, in order, at least once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from java_programs import built
from store_builder import EPOCH_MS, SYNC, StoreBuilder

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.broker.schedule.schedule_message_service import (
    PATH,
    ScheduleMessageService,
)
from crashmq.engine.common.config_file import BACKUP
from crashmq.engine.host.service_threads import ServiceThreads
from crashmq.engine.store.errors import StoreCorrupted
from crashmq.engine.store.message.message import (
    SCHEDULE_TOPIC,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    Message,
)
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import PutMessageResult, PutMessageStatus
from crashmq.models.files.store_image import Record, decode_record, read_store
from crashmq.models.ops import Crash, DiskFault, Survivors

GOLDEN = Path(__file__).parents[1] / "golden" / "delays"
ILLEGAL = PutMessageStatus.MESSAGE_ILLEGAL


class DelayingBroker:
    """A broker on a store builder's world, through its lives."""

    def __init__(self, store: StoreBuilder) -> None:
        self.world = store
        self.statuses: list[PutMessageStatus] = []
        self.begin()

    def begin(self) -> DelayingBroker:
        world = self.world
        self.store = MessageStore(world.config, world.mount, world.runtime)
        self.broker = BrokerController(
            self.store, world.mount, world.runtime, delivers_delayed=True
        )
        self.broker.load()
        self.broker.start()
        world.runtime.serve(self.store.waited_for)
        return self

    @property
    def service(self) -> ScheduleMessageService:
        assert self.broker.schedule is not None
        return self.broker.schedule.service

    def put(self, level: int, body: bytes = b"x", topic: str = "T0") -> DelayingBroker:
        properties = {"UNIQ_KEY": "K"} | ({"DELAY": f"{level}"} if level else {})
        message = Message(topic, 0, body, properties, EPOCH_MS)
        self.statuses.append(self.store.put_message(message).status)
        self.turn("reput")
        return self

    def turn(self, name: str) -> int:
        (service,) = (one for one in self.broker.services if one.name == name)
        return self.world.runtime.run(service.run_once)

    def after(self, ms: int) -> int:
        self.world.runtime.advance(ms)
        passed = self.turn("deliver_delayed")
        self.turn("reput")
        return passed

    def delivered(self, topic: str = "T0") -> list[bytes]:
        bodies: list[bytes] = []
        while True:
            found = self.store.get_message(topic, 0, len(bodies), 32)
            if not found.messages:
                return bodies
            bodies += [bytes(decode_record(record).body) for record in found.messages]

    def restart(self) -> DelayingBroker:
        assert self.world.runtime.run(self.broker.shutdown)
        return self._again()

    def crash(self, kind: str = "power_loss") -> DelayingBroker:
        self.world.disk.crash(Crash(kind, Survivors("none")))  # type: ignore[arg-type]
        return self._again()

    def _again(self) -> DelayingBroker:
        self.world.disk.unmount()
        self.world._mount = None
        return self.begin()


@pytest.fixture
def delaying(store: StoreBuilder) -> DelayingBroker:
    store.configured(mapped_file_size_commit_log=4096)
    return DelayingBroker(store)


def test_a_message_is_delivered_when_it_is_due_and_not_before(
    delaying: DelayingBroker,
) -> None:
    delaying.put(1, b"one").put(2, b"two").put(0, b"at once")

    assert delaying.after(999) == 0
    assert delaying.delivered() == [b"at once"]
    assert delaying.after(1) == 1
    assert delaying.delivered() == [b"at once", b"one"]
    assert delaying.after(4000) == 1
    assert delaying.delivered() == [b"at once", b"one", b"two"]
    assert delaying.service.offset_table == {1: 1, 2: 1}


def test_a_delivered_record_is_as_rocketmq_delivers_it(
    delaying: DelayingBroker,
) -> None:
    message = Message(
        "T0", 3, b"body", {"TAGS": "a", "DELAY": "40", "WAIT": "true"}, 7, 5
    )
    delaying.store.put_message(message)
    delaying.turn("reput")
    delaying.after(2 * 3600 * 1000)

    scheduled, delivered = _records(delaying)
    assert (scheduled.topic, scheduled.queue_id) == (SCHEDULE_TOPIC, 17)
    assert (delivered.topic, delivered.queue_id) == ("T0", 3)
    # tests/golden/delays prints these properties of what RocketMQ delivers.
    kept = {"TAGS": "a", "DELAY": "18", "WAIT": "true"}
    assert delivered.properties == kept | {"REAL_TOPIC": "T0", "REAL_QID": "3"}
    assert delivered[8:] == scheduled[8:]  # all but place, time and code
    assert delivered.born_timestamp == 7
    assert delivered.tags_code == 97


def _records(delaying: DelayingBroker) -> list[Record]:
    return list(read_store(delaying.world.disk.files()).commit_log.records)


def test_a_level_is_delivered_in_order(delaying: DelayingBroker) -> None:
    bodies = [b"%d" % number for number in range(12)]
    for body in bodies:
        delaying.put(1, body)

    assert delaying.after(1000) == 12
    assert delaying.delivered() == bodies
    assert delaying.after(1000) == 0


def test_no_message_is_delivered_twice_over_an_orderly_end(
    delaying: DelayingBroker,
) -> None:
    delaying.put(1, b"a").put(2, b"b").after(1000)

    delaying.restart()

    assert delaying.service.offset_table == {1: 1, 2: 0}
    assert delaying.after(5000) == 1
    assert delaying.delivered() == [b"a", b"b"]


def test_an_offset_waits_until_what_it_passed_over_is_durable(
    delaying: DelayingBroker,
) -> None:
    delaying.put(1, b"a")
    delaying.store.flush()
    delaying.after(1000)
    delaying.turn("persist_delay_offset")
    assert b'"offsetTable":{1:0' in delaying.world.disk.files()[PATH]

    delaying.crash()

    delaying.turn("reput")
    assert delaying.delivered() == []
    assert delaying.after(1000) == 1
    assert delaying.delivered() == [b"a"]
    delaying.store.flush()
    delaying.turn("persist_delay_offset")
    assert b'"offsetTable":{1:1' in delaying.world.disk.files()[PATH]


def test_a_kill_delivers_again_what_was_not_persisted(delaying: DelayingBroker) -> None:
    delaying.put(1, b"a").after(1000)

    delaying.crash("process_kill")

    delaying.turn("reput")
    assert delaying.after(0) == 1
    assert delaying.delivered() == [b"a", b"a"]


def test_a_due_time_beyond_a_full_delay_is_due(delaying: DelayingBroker) -> None:
    delaying.put(2, b"a")

    assert delaying.after(-1) == 1


def test_a_put_that_fails_is_tried_again(delaying: DelayingBroker) -> None:
    delaying.put(1, b"a").put(1, b"b")
    put, tried = delaying.service.put, []

    def refused_once(message: Message) -> PutMessageResult:
        tried.append(message.body)
        if len(tried) == 2:
            return PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE)
        return put(message)

    delaying.service.put = refused_once

    assert delaying.after(1000) == 1
    assert delaying.after(100) == 1
    assert tried == [b"a", b"b", b"b"]
    assert delaying.delivered() == [b"a", b"b"]


def test_what_has_rotted_costs_only_itself(delaying: DelayingBroker) -> None:
    delaying.put(1, b"first body").put(1, b"second body")
    log = delaying.store.commit_log
    read = log.get_message

    def rotten(phy_offset: int, size: int) -> bytes | None:
        record = read(phy_offset, size)
        assert record is not None
        return record.replace(b"first body", b"fIrst body")

    log.get_message = rotten  # type: ignore[method-assign]
    assert delaying.after(1000) == 2
    del log.get_message

    assert delaying.delivered() == [b"second body"]


def test_a_read_that_fails_stops_its_level_alone(delaying: DelayingBroker) -> None:
    delaying.put(1, b"a").put(2, b"b")
    log = delaying.store.commit_log
    read = log.get_message

    def fails_at_first(phy_offset: int, size: int) -> bytes | None:
        if phy_offset == 0:
            raise OSError("EIO")
        return read(phy_offset, size)

    log.get_message = fails_at_first  # type: ignore[method-assign]
    delaying.world.runtime.advance(5000)
    with pytest.raises(OSError, match="EIO"):
        delaying.turn("deliver_delayed")
    del log.get_message

    assert delaying.after(0) == 1
    assert delaying.delivered() == [b"b", b"a"]


def test_a_record_without_a_real_queue_costs_only_itself(store: StoreBuilder) -> None:
    before = MessageStore(store.config, store.mount, store.runtime)
    before.load()
    before.start()
    lone = Message(SCHEDULE_TOPIC, 0, b"x", {"DELAY": "1"}, EPOCH_MS)
    assert before.put_message(lone).is_appended
    store.runtime.run(before.shutdown)
    store.disk.unmount()
    store._mount = None
    delaying = DelayingBroker(store).put(1, b"a")

    assert delaying.after(1000) == 2
    assert delaying.delivered() == [b"a"]


@pytest.mark.parametrize("level", ["x", "1x", "99999999999", "4294967296", "\uff11"])
def test_a_level_that_is_no_integer_is_refused(
    delaying: DelayingBroker, level: str
) -> None:
    message = Message("T0", 0, b"x", {"DELAY": level}, EPOCH_MS)

    assert delaying.store.put_message(message).status is ILLEGAL


@pytest.mark.parametrize("level", ["0", "-1", "-2147483647"])
def test_a_level_below_one_is_none(delaying: DelayingBroker, level: str) -> None:
    delaying.store.put_message(Message("T0", 0, b"x", {"DELAY": level}, EPOCH_MS))
    delaying.turn("reput")

    assert delaying.delivered() == [b"x"]


def test_a_prepared_message_waits_for_its_commit_alone(
    delaying: DelayingBroker,
) -> None:
    for kind in (TRANSACTION_PREPARED, TRANSACTION_COMMIT):
        message = Message("T0", 0, b"x", {"DELAY": "1"}, EPOCH_MS, sys_flag=kind)
        delaying.store.put_message(message)

    prepared, committed = _records(delaying)
    assert (prepared.topic, committed.topic) == ("T0", SCHEDULE_TOPIC)


def test_what_its_real_queue_would_refuse_is_refused_when_it_is_put(
    store: StoreBuilder,
) -> None:
    store.configured(enable_multi_dispatch=True, mapped_file_size_commit_log=1024)
    delaying = DelayingBroker(store)
    delaying.put(1, topic="no topic/").put(1, topic="T" * 256)
    # With its long topic the record fits no file of the log; the scheduled one does.
    delaying.put(1, b"x" * 700, "T" * 120).put(1, b"x" * 700)
    lights = {"DELAY": "1", "INNER_MULTI_DISPATCH": "%LMQ%a,T1"}
    light = Message("T0", 0, b"x", lights, EPOCH_MS)
    delaying.statuses.append(delaying.store.put_message(light).status)
    delaying.put(1, topic=SCHEDULE_TOPIC).put(0, topic=SCHEDULE_TOPIC)

    is_refused = [status is ILLEGAL for status in delaying.statuses]
    assert is_refused == [True, True, True, False, True, True, True]


def test_a_batch_for_the_schedule_topic_is_refused(delaying: DelayingBroker) -> None:
    batch = Message(SCHEDULE_TOPIC, 0, b"", {}, EPOCH_MS)

    assert delaying.store.put_messages(batch).status is ILLEGAL


def test_light_queues_list_a_message_once_it_is_delivered(store: StoreBuilder) -> None:
    store.configured(enable_multi_dispatch=True)
    delaying = DelayingBroker(store)
    light = {"DELAY": "1", "INNER_MULTI_DISPATCH": "%LMQ%a"}
    delaying.store.put_message(Message("T0", 0, b"x", light, EPOCH_MS))
    delaying.turn("reput")
    assert delaying.delivered("%LMQ%a") == []

    assert delaying.after(1000) == 1
    assert delaying.delivered("%LMQ%a") == [b"x"]


def test_nobody_waits_for_the_sync_of_what_is_delivered(store: StoreBuilder) -> None:
    store.configured(flush_disk_type=SYNC)
    delaying = DelayingBroker(store)
    put = Message("T0", 0, b"x", {"DELAY": "1"}, EPOCH_MS)
    store.runtime.run(lambda: delaying.store.put_message(put))
    delaying.turn("reput")
    flushed = delaying.store.commit_log.flushed_where

    assert delaying.after(1000) == 1
    assert delaying.store.commit_log.flushed_where == flushed


def test_levels_are_configured_as_rocketmqs(store: StoreBuilder) -> None:
    store.configured(message_delay_level="2s 1d")
    delaying = DelayingBroker(store).put(1, b"a").put(5, b"b")

    assert delaying.after(1999) == 0
    assert delaying.after(1) == 1
    assert delaying.after(24 * 3600 * 1000 - 2001) == 0
    assert delaying.after(1) == 1
    assert delaying.delivered() == [b"a", b"b"]


def test_other_levels_count_from_the_next_start(store: StoreBuilder) -> None:
    delaying = DelayingBroker(store).put(1, b"a").put(2, b"b")
    store.configured(message_delay_level="3s 1s")

    delaying.restart()

    delaying.turn("reput")
    assert delaying.after(1000) == 1
    assert delaying.delivered() == [b"b"]
    assert delaying.after(2000) == 1


@pytest.mark.parametrize("text", ["", "1", "s", "1s  5s", "1s,5s", "-1s", "1w", "1.5s"])
def test_levels_that_are_none_are_refused(store: StoreBuilder, text: str) -> None:
    with pytest.raises(ValueError, match="message_delay_level"):
        store.configured(message_delay_level=text)


def test_an_offset_is_brought_into_its_queue(store: StoreBuilder) -> None:
    text = GOLDEN.joinpath("fixture", "delayOffset.json").read_bytes()
    store.disk.load({PATH: text})

    delaying = DelayingBroker(store)

    assert delaying.service.offset_table == {1: 0, 2: 0, 4: 0}
    assert delaying.put(1, b"a").after(1000) == 1


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"\0" * 40, b"[]", b'{"offsetTable":{1:-1}}', b'{"offsetTable":{0:1}}'),
        *(b'{"offsetTable":{"1_0":1}}', b'{"offsetTable":{" 1":1}}'),
        *(b'{"offsetTable":{-1:1}}', b'{"offsetTable":null}'),
        b'{"dataVersion":{"stateVersion":false}}',
    ],
)
def test_a_table_that_nobody_can_read_refuses_the_start(
    store: StoreBuilder, text: bytes
) -> None:
    store.disk.load({PATH: text, f"{PATH}{BACKUP}": b"{"})
    before = store.disk.files()

    with pytest.raises(StoreCorrupted) as refused:
        DelayingBroker(store)

    assert refused.value.path == PATH
    assert {**store.disk.files(), "lock": b""} == {**before, "lock": b""}


def test_a_backup_serves_where_the_table_is_torn(delaying: DelayingBroker) -> None:
    delaying.put(1, b"a").after(1000)
    delaying.store.flush()
    delaying.turn("persist_delay_offset")
    delaying.turn("persist_delay_offset")
    files = delaying.world.disk.files()
    assert f"{PATH}{BACKUP}" in files
    world = StoreBuilder()
    world.configured(mapped_file_size_commit_log=4096)
    world.disk.load({**files, PATH: files[PATH][:-9]})

    again = DelayingBroker(world)

    assert again.service.offset_table == {1: 1}


def test_a_stop_that_cannot_sync_persists_what_is_durable(
    delaying: DelayingBroker,
) -> None:
    delaying.put(1, b"a").after(1000)
    delaying.world.disk.fail(DiskFault("sync", "EIO", path="commitlog", lasts=True))

    delaying.world.runtime.run(delaying.broker.shutdown)

    assert b'"offsetTable":{1:0' in delaying.world.disk.files()[PATH]


def test_no_round_does_anything_after_the_end(delaying: DelayingBroker) -> None:
    delaying.put(1, b"a")
    services = delaying.broker.services[-2:]
    delaying.world.runtime.run(delaying.broker.shutdown)
    delaying.world.runtime.advance(1000)

    assert [service.run_once() for service in services] == [0, 0]


def test_threads_turn_its_services(delaying: DelayingBroker) -> None:
    delaying.put(1, b"a")
    delaying.world.runtime.advance(1000)

    with ServiceThreads(delaying.broker) as threads:
        pass

    assert threads.errors == {}
    assert b'"offsetTable":{1:' in delaying.world.disk.files()[PATH]


def test_the_file_is_rocketmqs_byte_for_byte(store: StoreBuilder) -> None:
    text = GOLDEN.joinpath("fixture", "delayOffset.json").read_text("utf-8")
    service = ScheduleMessageService(store.live, store.mount, store.runtime)

    service.decode(text)

    assert service.offset_table == {1: 5, 2: 3, 4: 0}
    assert service.encode() == text


@pytest.fixture(scope="session")
def delays(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., list[str]]:
    """Runs a verb of ``golden/delays`` on the released jars; needs Maven Central."""
    jar = built("delays")
    home = tmp_path_factory.mktemp("home")

    def ran(*command: str | Path) -> list[str]:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", timeout=600, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    return lambda *verb: ran("java", f"-Duser.home={home}", "-jar", jar, *verb)


@pytest.mark.slow
@pytest.mark.rocketmq
def test_rocketmq_reads_the_offsets_that_we_write(
    delays: Callable[..., list[str]], delaying: DelayingBroker, tmp_path: Path
) -> None:
    for level in (1, 1, 2, 4, 18):
        delaying.put(level)
    delaying.after(5000)
    delaying.world.runtime.run(delaying.broker.shutdown)
    file = tmp_path / PATH
    file.parent.mkdir()
    file.write_bytes(delaying.world.disk.files()[PATH])
    ours = file.read_bytes()

    told = delays("offsets", tmp_path)

    assert told[0] == "{1=2, 2=1, 4=0, 18=0}"
    assert file.read_bytes() == ours  # it has written it again


@pytest.mark.slow
@pytest.mark.rocketmq
def test_we_read_the_offsets_and_records_that_rocketmq_writes(
    delays: Callable[..., list[str]], store: StoreBuilder, tmp_path: Path
) -> None:
    told = delays("deliver", tmp_path / "store")

    service = ScheduleMessageService(store.live, store.mount, store.runtime)
    text = (tmp_path / "store" / PATH).read_text("utf-8")
    service.decode(text)
    assert service.offset_table == {1: 5, 2: 3, 4: 0}
    assert service.encode() == text
    assert len(told) == 8
    assert told[0] == (
        "0 10 {DELAY=1, KEYS=K1.0, REAL_QID=0, REAL_TOPIC=orders, TAGS=created, "
        "UNIQ_KEY=U10, WAIT=true}"
    )
