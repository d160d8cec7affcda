"""The store under real threads, on a real disk: what is acknowledged is served."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import pytest

from crashmq.engine.host.disk import Disk, File
from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.host.service import Service
from crashmq.engine.host.service_threads import ServiceThreads
from crashmq.engine.host.thread_runtime import ThreadRuntime
from crashmq.engine.store.config import FlushDiskType, StoreConfig
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import (
    GetMessageStatus,
    PutMessageResult,
    PutMessageStatus,
)
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.fsck.fsck import fsck
from crashmq.models.files.store_image import decode_record
from crashmq.models.ops import DiskFault

T = TypeVar("T")
ASYNC, SYNC = FlushDiskType.ASYNC_FLUSH, FlushDiskType.SYNC_FLUSH
OK = PutMessageStatus.PUT_OK
WAIT_MS = 60_000
QUEUES = [(topic, queue_id) for topic in ("T0", "T1") for queue_id in (0, 1)]
Queue = tuple[str, int]


class Caller(threading.Thread, Generic[T]):
    """A caller of the store; begins at once, and its end is waited for."""

    def __init__(self, body: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self._body = body
        self._result: list[T] = []
        self.start()

    def run(self) -> None:
        self._result.append(self._body())

    def result(self) -> T:
        self.join(WAIT_MS / 1000)
        assert not self.is_alive(), f"waited {WAIT_MS} ms for {self._body} to end"
        return self._result[0]


@dataclass
class FakeService:
    """A service whose rounds do what the test says."""

    body: Callable[[int], None]
    name: str = "fake"
    interval_ms: int = 1
    rounds: int = 0

    def run_once(self) -> int:
        self.rounds += 1
        self.body(self.rounds)
        return 1


@dataclass
class FakeStore:
    services: tuple[Service, ...]
    waited_for: tuple[Service, ...] = ()
    is_started: bool = True


class Watched:
    """A service that takes note of who turns it, and of rounds that overlap."""

    def __init__(self, service: Service) -> None:
        self.name = service.name
        self.interval_ms = service.interval_ms
        self.turned_by: set[str] = set()
        self.overlaps = 0
        self._service = service
        self._turn = threading.Lock()

    def run_once(self) -> int:
        self.turned_by.add(threading.current_thread().name)
        if not self._turn.acquire(blocking=False):
            self.overlaps += 1
            return 0
        try:
            return self._service.run_once()
        finally:
            self._turn.release()


class HookedFile:
    """A file that lets something happen in the middle of every sync."""

    def __init__(self, file: File, during_sync: Callable[[], None]) -> None:
        self._during_sync = during_sync
        self._file = file
        self.size = file.size
        self.read_at = file.read_at
        self.examine = file.examine
        self.write_at = file.write_at
        self.close = file.close

    def sync(self) -> None:
        self._file.sync()
        self._during_sync()


class HookedDisk(RealDisk):
    """A disk on which other threads come in while a sync is under way."""

    during_sync_dir: Callable[[str], None] | None = None
    during_sync: Callable[[str], None] | None = None

    def open(self, path: str, size: int, *, create: bool, mapped: bool) -> File:  # type: ignore[override]
        file = super().open(path, size, create=create, mapped=mapped)
        return HookedFile(file, lambda: self._call(self.during_sync, path))

    def sync_dir(self, path: str) -> None:
        super().sync_dir(path)
        self._call(self.during_sync_dir, path)

    @staticmethod
    def _call(hook: Callable[[str], None] | None, path: str) -> None:
        if hook is not None:
            hook(path)


@dataclass
class Work:
    """What the callers of one store were told."""

    puts: list[tuple[Queue, bytes, PutMessageResult]] = field(default_factory=list)
    pulled: dict[Queue, list[bytes]] = field(default_factory=dict)

    def acknowledged(self) -> dict[Queue, dict[int, bytes]]:
        """Bodies by queue and queue_offset; no offset may be given twice."""
        bodies: dict[Queue, dict[int, bytes]] = {queue: {} for queue in QUEUES}
        for queue, body, result in self.puts:
            assert result.status is OK
            assert result.queue_offset not in bodies[queue]
            bodies[queue][result.queue_offset] = body
        return bodies


@pytest.fixture
def hasty_switches() -> Iterator[None]:
    """Let threads take turns every few bytecodes."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def opened(
    root: Path,
    mode: FlushDiskType,
    disk: Disk | None = None,
    *,
    buffers: int = 0,
) -> MessageStore:
    config = StoreConfig(
        mapped_file_size_commit_log=64 * 1024,
        mapped_file_size_consume_queue=100 * 20,
        flush_disk_type=mode,
        transient_store_pool_enable=buffers > 0,
        transient_store_pool_size=buffers,
    )
    store = MessageStore(config, disk or RealDisk(root), ThreadRuntime())
    store.load()
    store.start()
    return store


def message(body: bytes = b"x", queue: Queue = QUEUES[0]) -> Message:
    return Message(*queue, body)


def put_all(
    store: MessageStore, putter: int, count: int
) -> list[tuple[Queue, bytes, PutMessageResult]]:
    answers = []
    for n in range(count):
        queue = QUEUES[(putter + n) % len(QUEUES)]
        body = f"{putter}:{n}:".encode() + bytes(n * 7 % 300)
        answers.append((queue, body, store.put_message(message(body, queue))))
    return answers


def pull_until(
    store: MessageStore, queue: Queue, ended: threading.Event
) -> list[bytes]:
    """Every body of a queue, until all was put and dispatched and is read."""
    bodies: list[bytes] = []
    while True:
        is_last = ended.is_set()
        result = store.get_message(*queue, len(bodies), 32)
        bodies += [bytes(decode_record(record).body) for record in result.messages]
        assert result.next_begin_offset == len(bodies), result
        if result.status is not GetMessageStatus.FOUND:
            if is_last:
                return bodies
            ended.wait(0.001)


def work_on(store: MessageStore, putters: int, count: int) -> Work:
    """Let putters and a puller for each queue work while the services are turned."""
    work, ended = Work(), threading.Event()
    pullers = {
        queue: Caller(lambda queue=queue: pull_until(store, queue, ended))  # type: ignore[misc]
        for queue in QUEUES
    }
    with ServiceThreads(store) as threads:
        callers = [
            Caller(lambda n=n: put_all(store, n, count))  # type: ignore[misc]
            for n in range(putters)
        ]
        for caller in callers:
            work.puts += caller.result()
    ended.set()
    work.pulled = {queue: puller.result() for queue, puller in pullers.items()}
    assert threads.errors == {}
    return work


def served(store: MessageStore) -> dict[Queue, dict[int, bytes]]:
    """What a store serves, by queue and queue_offset."""
    ended = threading.Event()
    ended.set()
    return {q: dict(enumerate(pull_until(store, q, ended))) for q in QUEUES}


def judge(
    root: Path, mode: FlushDiskType, putters: int, count: int, buffers: int = 0
) -> None:
    """Work on a new store, stop it, hold its directory to every law, start it again."""
    store = opened(root, mode, buffers=buffers)
    work = work_on(store, putters, count)
    assert store.shutdown()

    report = fsck(root)
    assert (report.mode, report.violations) == ("clean", ())
    acknowledged = work.acknowledged()
    assert {q: dict(enumerate(b)) for q, b in work.pulled.items()} == acknowledged
    restarted = opened(root, mode)
    assert restarted.last_exit_ok
    assert served(restarted) == acknowledged
    assert restarted.shutdown()


@pytest.mark.parametrize(("mode", "putters", "count"), [(ASYNC, 3, 150), (SYNC, 4, 12)])
def test_what_threads_put_is_lawful_and_served(
    tmp_path: Path, mode: FlushDiskType, putters: int, count: int
) -> None:
    judge(tmp_path, mode, putters, count)


@pytest.mark.slow
@pytest.mark.usefixtures("hasty_switches")
@pytest.mark.parametrize(("mode", "count"), [(ASYNC, 300), (SYNC, 30)])
@pytest.mark.parametrize("buffers", [1, 3])
def test_what_threads_put_through_write_buffers_is_lawful_and_served(
    tmp_path: Path, mode: FlushDiskType, count: int, buffers: int
) -> None:
    judge(tmp_path, mode, 3, count, buffers)


@pytest.mark.slow
@pytest.mark.usefixtures("hasty_switches")
@pytest.mark.parametrize(
    ("mode", "putters", "count"), [(ASYNC, 4, 10_000), (SYNC, 8, 150)]
)
def test_what_many_threads_put_in_haste_is_lawful_and_served(
    tmp_path: Path, mode: FlushDiskType, putters: int, count: int
) -> None:
    judge(tmp_path, mode, putters, count)


def test_a_put_that_waits_for_its_sync_turns_no_service_itself(tmp_path: Path) -> None:
    store = opened(tmp_path, SYNC)
    watched = {service.name: Watched(service) for service in store.services}
    hosted = FakeStore(tuple(watched.values()), (watched["flush_commit_log"],))

    with ServiceThreads(hosted):
        putters = [
            Caller(lambda n=n: put_all(store, n, 4))  # type: ignore[misc]
            for n in range(3)
        ]
        answers = [answer for putter in putters for answer in putter.result()]

    assert {result.status for _, _, result in answers} == {OK}
    assert {service.overlaps for service in watched.values()} == {0}
    assert watched["flush_commit_log"].turned_by == {"service-flush_commit_log"}
    assert store.shutdown()


@pytest.mark.parametrize("mode", [ASYNC, SYNC])
def test_what_was_put_before_the_stop_is_dispatched_after_it(
    tmp_path: Path, mode: FlushDiskType
) -> None:
    store = opened(tmp_path, mode)
    unwaited = Message(*QUEUES[0], b"x", {"WAIT": "false"})

    with ServiceThreads(store):
        for _ in range(100):
            store.put_message(unwaited)

    assert store.reput.behind == 0
    assert len(served(store)[QUEUES[0]]) == 100
    assert store.shutdown()


def test_services_that_callers_wait_for_end_first() -> None:
    ended: list[str] = []
    names = ("reput", "flush", "checkpoint")
    services = tuple(
        FakeService(lambda _, name=name: ended.append(name), name, WAIT_MS)  # type: ignore[misc]
        for name in names
    )

    with ServiceThreads(FakeStore(services, (services[1],))):
        assert ended == []

    assert ended == ["flush", "reput", "checkpoint"]


def test_a_last_round_begins_when_the_one_before_it_has_ended() -> None:
    next_has_run, met = threading.Event(), []
    first = FakeService(lambda _: met.append(next_has_run.wait(0.2)), "flush", WAIT_MS)
    second = FakeService(lambda _: next_has_run.set(), "reput", WAIT_MS)

    with ServiceThreads(FakeStore((first, second), (first,))):
        pass

    assert met == [False]
    assert next_has_run.is_set()


def test_the_first_error_of_the_disk_is_kept_and_the_service_goes_on() -> None:
    went_on = threading.Event()

    def fail_twice(n: int) -> None:
        if n <= 2:
            raise OSError(5, f"round {n}")
        went_on.set()

    with ServiceThreads(FakeStore((FakeService(fail_twice),))) as threads:
        assert went_on.wait(WAIT_MS / 1000)

    assert [(name, str(e)) for name, e in threads.errors.items()] == [
        ("fake", "[Errno 5] round 1")
    ]


def test_a_stop_says_which_round_it_waited_for_and_can_be_called_again() -> None:
    began, goes_on = threading.Event(), threading.Event()

    def hang(_: int) -> None:
        began.set()
        assert goes_on.wait(WAIT_MS / 1000)

    other = FakeService(lambda _: None, "other")
    threads = ServiceThreads(FakeStore((FakeService(hang), other)))
    threads.start()
    assert began.wait(WAIT_MS / 1000)

    with pytest.raises(
        TimeoutError, match=r"20 ms for the last round of fake.* to end"
    ):
        threads.stop(20)
    goes_on.set()
    threads.stop(WAIT_MS)

    rounds = other.rounds
    threads.stop(0)
    assert other.rounds == rounds


@pytest.mark.parametrize(
    "error",
    [MemoryError(), OSError(28, "full"), AssertionError("a mistake"), KeyError("k")],
    ids=repr,
)
def test_a_service_outlives_what_its_rounds_raise_and_says_so_once(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    went_on = threading.Event()

    def fail_thrice(n: int) -> None:
        if n <= 3:
            raise error
        if n == 5:
            went_on.set()

    with ServiceThreads(FakeStore((FakeService(fail_thrice),))) as threads:
        assert went_on.wait(WAIT_MS / 1000)

    assert threads.errors == {"fake": error}
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "service fake: a round failed; it is turned again in 1 ms",
        "service fake: works after 3 failures",
    ]
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].exc_info[1] is error


def test_a_last_round_that_raises_ends_the_thread_in_order() -> None:
    begun = threading.Event()

    def fail(_: int) -> None:
        begun.set()
        raise MemoryError

    other = FakeService(lambda _: None, "other", WAIT_MS)
    threads = ServiceThreads(FakeStore((FakeService(fail), other)))
    threads.start()
    assert begun.wait(WAIT_MS / 1000)
    threads.stop(WAIT_MS)

    assert isinstance(threads.errors["fake"], MemoryError)
    assert other.rounds == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reput", "flush_commit_log", "flush_consume_queue"])
def test_a_store_goes_on_after_memory_ran_out_in_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store = opened(tmp_path, SYNC)
    (rounds,) = [one for one in store.services if one.name == name]
    run_once, failed = rounds.run_once, threading.Event()

    def run_out_once() -> int:
        if not failed.is_set():
            failed.set()
            raise MemoryError
        return run_once()

    monkeypatch.setattr(rounds, "run_once", run_out_once)
    with ServiceThreads(store) as threads:
        assert failed.wait(WAIT_MS / 1000)
        answers = put_all(store, 0, 20)

    assert {result.status for _, _, result in answers} == {OK}
    assert [*threads.errors] == [name]
    assert store.shutdown()
    assert fsck(tmp_path).violations == ()


def test_a_thread_that_its_own_round_ended_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    died = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: died.set())

    def break_down(_: int) -> None:
        raise GeneratorExit("no error of a service, but the end of its host")

    threads = ServiceThreads(FakeStore((FakeService(break_down),)))
    threads.start()
    assert died.wait(WAIT_MS / 1000)

    with pytest.raises(RuntimeError, match="fake: its round ended the thread"):
        threads.stop(WAIT_MS)


def test_services_are_turned_once_and_only_of_a_started_store() -> None:
    store = FakeStore((FakeService(lambda _: None),), is_started=False)
    threads = ServiceThreads(store)
    with pytest.raises(RuntimeError, match="the store is not started"):
        threads.start()

    store.is_started = True
    with threads, pytest.raises(RuntimeError, match="fake: turned already"):
        threads.start()


def test_an_event_of_the_runtime_is_waited_for_with_a_bound() -> None:
    runtime = ThreadRuntime()
    event = runtime.event()

    assert not event.wait(1)
    setter = Caller(event.set)
    assert event.wait(WAIT_MS)

    setter.result()
    assert event.is_set()


def test_time_goes_on_while_the_runtime_sleeps() -> None:
    runtime = ThreadRuntime()
    before = runtime.now_ms()

    runtime.sleep_ms(2)

    assert runtime.now_ms() > before > 1_600_000_000_000


def test_a_lock_of_the_runtime_is_held_by_one_thread_at_a_time() -> None:
    lock, entered = ThreadRuntime().lock(), threading.Event()

    def enter() -> None:
        with lock:
            entered.set()

    with lock:
        second = Caller(enter)
        assert not entered.wait(0.01)
    second.result()
    assert entered.is_set()


def test_a_name_made_while_names_are_synced_is_synced_again(tmp_path: Path) -> None:
    disk, syncs = HookedDisk(tmp_path), list[str]()
    queue = MappedFileQueue(disk, "log", 100)
    queue.get_or_create_last_mapped_file(0).append_message(bytes(100))

    def roll_once(path: str) -> None:
        syncs.append(path)
        if len(syncs) == 1:
            queue.get_or_create_last_mapped_file(0).append_message(bytes(10))

    disk.during_sync_dir = roll_once
    while queue.flush(0):
        pass

    assert queue.flushed_where == 110
    assert syncs == ["log"] * 3  # one more before the roll, for the first name
    queue.close()


def test_a_flush_of_the_queues_ends_while_dispatch_goes_on(tmp_path: Path) -> None:
    disk = HookedDisk(tmp_path)
    store = opened(tmp_path, ASYNC, disk)
    flush = next(s for s in store.services if s.name == "flush_consume_queue")
    store.put_message(message())
    store.reput.run_once()
    rounds = iter(range(20))

    def dispatch_one(path: str) -> None:
        if path.startswith("consumequeue") and next(rounds, None) is not None:
            store.put_message(message())
            store.reput.run_once()

    disk.during_sync = dispatch_one
    assert flush.run_once() == 1

    disk.during_sync = None
    assert store.shutdown()


def test_a_put_that_waited_while_an_append_failed_is_refused(tmp_path: Path) -> None:
    disk = SimDisk()
    log = opened(tmp_path, ASYNC, disk.mount()).commit_log
    log.put_message(message())
    disk.fail(DiskFault("write", "EIO"))

    with pytest.raises(OSError, match="write"):
        log.put_message(message())

    # The next in the line for the lock has passed every check that the store makes.
    answer = log.put_message(message())
    assert answer.status is PutMessageStatus.SERVICE_NOT_AVAILABLE


def test_a_put_that_waited_while_the_store_stopped_is_refused(tmp_path: Path) -> None:
    store = opened(tmp_path, ASYNC)
    assert store.shutdown()

    answer = store.commit_log.put_message(message())

    assert answer.status is PutMessageStatus.SERVICE_NOT_AVAILABLE
