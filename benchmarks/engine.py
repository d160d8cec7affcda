"""The engine on real files beside Apache RocketMQ's DefaultMessageStore.

Run ``python benchmarks/engine.py`` from the checkout. Each row times one thing on both
stores in the same run, with the same file sizes, bodies and queues: putting, putting
with SYNC_FLUSH, dispatching, pulling, and a start after the process was killed. The
last line is the store that crash exploration starts thousands of times, on the
simulated disk. RocketMQ needs JDK 17 and Maven; without them its columns stay empty.

Ratios of one run mean something; seconds of two runs do not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "golden"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".ci" / "checkout"))

from make import MissingTool, Writer, build_writer

from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.host.service_threads import ServiceThreads
from crashmq.engine.host.thread_runtime import ThreadRuntime
from crashmq.engine.store.config import FlushDiskType, StoreConfig
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import PutMessageStatus
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.messages import message_for
from crashmq.models.ops import Crash, PutMessage
from crashmq.models.program import Setup

LOG_FILE_SIZE = 64 * 1024 * 1024
QUEUE_FILE_SIZE = 6_000_000
TOPIC, QUEUES = "bench", 4
PULL_COUNT_MAX = 32
SYNC_SHARE = 100  # one sync put for so many others: each waits for the disk
TINY_STARTS = 2_000


@dataclass(frozen=True, slots=True)
class Measured:
    """What one store did: seconds, and messages for each.

    ``messages`` were put and dispatched once ``pulled - messages`` had warmed it up.
    """

    messages: int
    pulled: int
    put_s: float
    dispatched_s: float
    pull_s: float
    sync_messages: int
    sync_put_s: float
    load_messages: int
    load_s: float
    log_bytes: int


def config(*, sync: bool = False) -> StoreConfig:
    """The settings both stores run with."""
    return StoreConfig(
        mapped_file_size_commit_log=LOG_FILE_SIZE,
        mapped_file_size_consume_queue=QUEUE_FILE_SIZE,
        flush_disk_type=(
            FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH
        ),
    )


def timed(body: Callable[[], object]) -> float:
    started = time.perf_counter()
    body()
    return time.perf_counter() - started


def opened(root: Path, *, sync: bool = False) -> MessageStore:
    root.mkdir(exist_ok=True)
    store = MessageStore(config(sync=sync), RealDisk(root), ThreadRuntime())
    store.load()
    store.start()
    return store


def put_all(store: MessageStore, first: int, end: int, body: bytes) -> None:
    for n in range(first, end):
        now = time.time_ns() // 1_000_000
        answer = store.put_message(Message(TOPIC, n % QUEUES, body, {}, now))
        if answer.status is not PutMessageStatus.PUT_OK:
            sys.exit(f"benchmarks/engine.py: put {n} was answered {answer.status}")


def pull_all(store: MessageStore) -> int:
    pulled = 0
    for queue_id in range(QUEUES):
        at, seen = 0, -1
        while seen:
            got = store.get_message(TOPIC, queue_id, at, PULL_COUNT_MAX)
            seen, at = len(got.messages), got.next_begin_offset
            pulled += seen
    return pulled


def dispatch_all(store: MessageStore) -> None:
    while store.reput.behind > 0:
        time.sleep(0.001)


def measure_engine(room: Path, messages: int, body: bytes) -> Measured:
    """Our engine: services turn in threads of their own, as RocketMQ's do."""
    warm = messages // 4
    store = opened(room / "killed")
    threads = ServiceThreads(store)
    with threads:
        put_all(store, 0, warm, body)
        dispatch_all(store)
        started = time.perf_counter()
        put_all(store, warm, messages, body)
        put_s = time.perf_counter() - started
        dispatch_all(store)
        dispatched_s = time.perf_counter() - started
        pull_all(store)
        pull_s = timed(lambda: pull_all(store))
    log_bytes = store.commit_log.max_offset
    store = opened(room / "sync", sync=True)
    sync_messages = max(400, messages // SYNC_SHARE)
    with ServiceThreads(store):
        put_all(store, 0, sync_messages // 4, body)
        sync_put_s = timed(
            lambda: put_all(store, sync_messages // 4, sync_messages, body)
        )
    store.shutdown()
    load_s = load_after_kill(room / "fresh", messages, body)
    return Measured(
        messages - warm,
        messages,
        put_s,
        dispatched_s,
        pull_s,
        sync_messages - sync_messages // 4,
        sync_put_s,
        messages,
        load_s,
        log_bytes,
    )


def load_after_kill(root: Path, messages: int, body: bytes) -> float:
    """Seconds of the start that follows a kill, each life a process of its own."""
    for verb in ("--put-and-die", "--start"):
        command = [sys.executable, __file__, verb, str(root)]
        sizes = ["--messages", str(messages), "--body-size", str(len(body))]
        done = subprocess.run(command + sizes, capture_output=True, text=True)
    return float(done.stdout)


def put_and_die(root: Path, messages: int, body: bytes) -> None:
    store = opened(root)
    threads = ServiceThreads(store)
    with threads:
        put_all(store, 0, messages, body)
        dispatch_all(store)
        os._exit(0)


def time_a_start(root: Path) -> None:
    store = MessageStore(config(), RealDisk(root), ThreadRuntime())
    started = time.perf_counter()
    store.load()
    store.start()
    print(time.perf_counter() - started)


def measure_rocketmq(room: Path, messages: int, body_size: int) -> Measured:
    """The released store, the same things."""
    writer = build_writer(room / "build")
    sizes = (
        *("--log-file-size", str(LOG_FILE_SIZE)),
        *("--queue-file-size", str(QUEUE_FILE_SIZE), "--index", "off"),
    )
    ran = bench(writer, room / "killed", messages, body_size, "--end", "halt", *sizes)
    (line,) = writer.run("load", room / "killed", *sizes).splitlines()
    load_s = json.loads(line)["load_s"]
    few = max(400, messages // SYNC_SHARE)
    sync = bench(writer, room / "sync", few, body_size, "--flush", "sync", *sizes)
    return Measured(
        ran["messages"] - ran["warm_messages"],
        ran["pulled"],
        ran["put_s"],
        ran["dispatched_s"],
        ran["pull_s"],
        sync["messages"] - sync["warm_messages"],
        sync["put_s"],
        ran["messages"],
        load_s,
        ran["log_bytes"],
    )


def bench(
    writer: Writer, root: Path, messages: int, body_size: int, *more: str
) -> dict[str, Any]:
    sizes = ("--messages", str(messages), "--body-size", str(body_size))
    (line,) = writer.run("bench", root, *sizes, *more).splitlines()
    measured: dict[str, Any] = json.loads(line)
    return measured


def tiny_start_us() -> float:
    """A kill and a start of ten messages in 4 KiB files, on the simulated disk."""
    store = PythonStore(Setup(disk_profile="kill9"))
    store.start()
    for n in range(10):
        message = message_for(PutMessage("T0", 0, 16), 1, n, 0)
        store.run(partial(store.put, message))
    store.run(lambda: store.run_service("reput", 20))

    def once() -> None:
        store.crash(Crash("process_kill"))
        store.run(store.start)

    return (
        min(timeit.repeat(once, number=TINY_STARTS // 5, repeat=5))
        / (TINY_STARTS // 5)
        * 1e6
    )


def show(ours: Measured, theirs: Measured | None) -> None:
    record_size = ours.log_bytes / ours.load_messages
    rows: dict[str, Callable[[Measured], tuple[int, float]]] = {
        "put": lambda m: (m.messages, m.put_s),
        "put, SYNC_FLUSH": lambda m: (m.sync_messages, m.sync_put_s),
        "put and reput": lambda m: (m.messages, m.dispatched_s),
        "pull": lambda m: (m.pulled, m.pull_s),
        "start after a kill": lambda m: (m.load_messages, m.load_s),
    }
    print(
        f"{'':20}{'messages/s':>12}{'MB/s':>8}{'RocketMQ':>12}{'MB/s':>8}{'ratio':>8}"
    )
    for name, of in rows.items():
        count, seconds = of(ours)
        rate = count / seconds
        line = f"{name:20}{rate:>12,.0f}{rate * record_size / 1e6:>8.1f}"
        if theirs is not None:
            count, seconds = of(theirs)
            other = count / seconds
            line += (
                f"{other:>12,.0f}{other * record_size / 1e6:>8.1f}{rate / other:>8.3f}"
            )
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=400_000)
    parser.add_argument("--body-size", type=int, default=100)
    parser.add_argument("--put-and-die", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--start", type=Path, help=argparse.SUPPRESS)
    said = parser.parse_args()
    body = bytes(said.body_size)
    if said.put_and_die:
        put_and_die(said.put_and_die, said.messages, body)
    if said.start:
        time_a_start(said.start)
        return
    theirs = None
    with tempfile.TemporaryDirectory(prefix="engine-bench-") as scratch:
        room = Path(scratch)
        for name in ("ours", "theirs"):
            (room / name).mkdir()
        try:
            theirs = measure_rocketmq(room / "theirs", said.messages, said.body_size)
        except MissingTool as missing:
            print(f"without RocketMQ: {missing}")
        ours = measure_engine(room / "ours", said.messages, body)
        show(ours, theirs)
    print(f"kill and start of a tiny store on SimDisk: {tiny_start_us():.0f} us")


if __name__ == "__main__":
    main()
