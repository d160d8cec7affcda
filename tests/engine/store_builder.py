"""StoreBuilder: one store, its simulated world, and its lives, told as sentences.

A record of the default message takes 100 bytes, so a log file of 1,024 bytes holds ten
and a filler of 24; a queue file holds ten units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crashmq.engine.store.config import FlushDiskType, StoreConfig
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import GetMessageResult, PutMessageResult
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.files.store_image import StoreImage, Unit, decode_record, read_store
from crashmq.models.ops import Crash, DiskFault, FaultCall, FaultErrno, Survivors

EPOCH_MS = 1_700_000_000_000
RECORD_SIZE = 100
BODY_SIZE = RECORD_SIZE - 91 - len("T0")
LOG_FILE_SIZE = 1024
QUEUE_FILE_SIZE = 200
TRACED_ACTIONS_MAX = 300
SYNC = FlushDiskType.SYNC_FLUSH


def log_file(base: int = 0) -> str:
    return f"commitlog/{base:020d}"


def queue_file(topic: str = "T0", queue_id: int = 0, base: int = 0) -> str:
    return f"consumequeue/{topic}/{queue_id}/{base:020d}"


class StoreBuilder:
    """Does one thing after the other to a store; starts it when first needed."""

    def __init__(self) -> None:
        self.config = StoreConfig(
            mapped_file_size_commit_log=LOG_FILE_SIZE,
            mapped_file_size_consume_queue=QUEUE_FILE_SIZE,
        )
        self.disk = SimDisk()
        self.runtime = SimRuntime(EPOCH_MS)
        self.results: list[PutMessageResult] = []
        self._mount: Mount | None = None
        self._store: MessageStore | None = None

    @property
    def live(self) -> MessageStore:
        """The started store."""
        if self._store is None:
            store = self.loaded()
            store.start()
            self._store = store
            self.runtime.serve(store.waited_for)
        return self._store

    @property
    def mount(self) -> Mount:
        """The disk of this life."""
        if self._mount is None:
            self._mount = self.disk.mount()
        return self._mount

    def loaded(self) -> MessageStore:
        """A store that has read the files and changed nothing."""
        store = MessageStore(self.config, self.mount, self.runtime)
        store.load()
        return store

    def configured(self, **settings: Any) -> StoreBuilder:
        """Let the next life have other settings."""
        self.config = replace(self.config, **settings)
        return self

    def send(self, message: Message) -> PutMessageResult:
        """Put one message; its result is kept."""
        store = self.live
        result = self.runtime.run(lambda: store.put_message(message))
        self.results.append(result)
        self.runtime.advance(1)
        return result

    def put(
        self,
        count: int = 1,
        topic: str = "T0",
        queue_id: int = 0,
        body_size: int = BODY_SIZE,
        **fields: Any,
    ) -> StoreBuilder:
        """Put messages whose bodies are their numbers."""
        for _ in range(count):
            body = str(len(self.results)).encode().rjust(body_size, b"0")
            born = self.runtime.now_ms()
            self.send(Message(topic, queue_id, body, born_timestamp=born, **fields))
        return self

    def turn(self, name: str) -> int:
        """One round of a service; the work it did."""
        (service,) = (s for s in self.live.services if s.name == name)
        return self.runtime.run(service.run_once)

    def reput(self) -> StoreBuilder:
        self.turn("reput")
        return self

    def flush(self) -> StoreBuilder:
        """Flush the log to its end, whatever the intervals say."""
        self.runtime.advance(self.config.flush_commit_log_thorough_interval)
        while self.turn("flush_commit_log"):
            self.runtime.advance(self.config.flush_commit_log_thorough_interval)
        return self

    def flush_queues(self) -> StoreBuilder:
        self.runtime.advance(self.config.flush_consume_queue_thorough_interval)
        self.turn("flush_consume_queue")
        return self

    def write_checkpoint(self) -> StoreBuilder:
        self.turn("checkpoint")
        return self

    def make_all_durable(self) -> StoreBuilder:
        """Dispatch, flush and write the mark."""
        return self.reput().flush().flush_queues().write_checkpoint()

    def stop(self) -> bool:
        """Shut down in order; whether that left nothing to mend."""
        store = self.live
        clean = self.runtime.run(store.shutdown)
        self._end_life()
        return clean

    def kill(self) -> StoreBuilder:
        self.disk.crash(Crash("process_kill"))
        self._end_life()
        return self

    def lose_power(self, survivors: Survivors | None = None) -> StoreBuilder:
        """Lose power, by default with all that was not synced."""
        self.disk.crash(Crash("power_loss", survivors or Survivors("none")))
        self._end_life()
        return self

    def restart(self) -> StoreBuilder:
        """Start; a store that is up is shut down first."""
        if self._store is not None:
            self.stop()
        assert self.live.is_started
        return self

    def _end_life(self) -> None:
        self.disk.unmount()
        self.runtime.serve(())
        self._mount = None
        self._store = None

    def fail(
        self, call: FaultCall, errno: FaultErrno = "EIO", times: int = 1
    ) -> StoreBuilder:
        """Let the next calls of one kind fail."""
        self.disk.fail(DiskFault(call, errno, times))
        return self

    def fail_at(self, at_action: int, *calls: FaultCall) -> StoreBuilder:
        """Let the next calls of these kinds fail, from a disk action on."""

        def arm() -> None:
            for call in calls:
                self.fail(call)

        self.disk.at_action(at_action, 0, arm)
        return self

    def traced(self, body: Callable[[], object]) -> list[str]:
        """What ``body`` did to the disk: each action as ``verb:path``."""
        trace: list[str] = []

        def note() -> None:
            trace.append(self.disk.last_action)

        for n in range(TRACED_ACTIONS_MAX, 0, -1):
            self.disk.at_action(n, 0, note)
        body()
        for _ in range(TRACED_ACTIONS_MAX):
            self.disk.end_watch()
        assert len(trace) < TRACED_ACTIONS_MAX
        return trace

    def damage(self, path: str, at: int, data: bytes) -> StoreBuilder:
        """Replace bytes of a file while the store is down."""
        old = self.disk.files()[path]
        self.disk.replace_file(path, old[:at] + data + old[at + len(data) :])
        return self

    def scribble(self, path: str, at: int, data: bytes) -> StoreBuilder:
        """Replace bytes of a file behind the back of the running store."""
        size = self.mount.file_size(path)
        file = self.mount.open(path, size, create=False, mapped=True)
        file.write_at(at, data)
        file.close()
        return self

    def remove(self, path: str) -> StoreBuilder:
        """Remove a file while the store is down."""
        self.disk.replace_file(path, None)
        return self

    def drop_commit_log_tail(self, messages: int) -> StoreBuilder:
        """Zero the newest records of the log while the store is down."""
        for result in self.results[-messages:]:
            base = result.phy_offset - result.phy_offset % LOG_FILE_SIZE
            at = result.phy_offset - base
            self.damage(log_file(base), at, bytes(result.size))
        return self

    def image(self) -> StoreImage:
        """The files, as a reader of its own decodes them."""
        return read_store(self.disk.files())

    def queue(self, topic: str = "T0", queue_id: int = 0) -> tuple[Unit, ...]:
        """The units of a queue as they lie in its files."""
        return self.image().queue_at[topic, queue_id].units

    def pull(
        self,
        queue_offset: int = 0,
        max_msg_nums: int = 32,
        topic: str = "T0",
        queue_id: int = 0,
    ) -> GetMessageResult:
        return self.live.get_message(topic, queue_id, queue_offset, max_msg_nums)

    def served(self, topic: str = "T0", queue_id: int = 0) -> list[int]:
        """Every message of a queue, by the number in its body."""
        numbers: list[int] = []
        result = self.pull(0, 32, topic, queue_id)
        while result.next_begin_offset < result.max_offset or result.messages:
            records = [decode_record(m, takes_nul=True) for m in result.messages]
            numbers += [int(bytes(record.body)) for record in records]
            result = self.pull(result.next_begin_offset, 32, topic, queue_id)
        return numbers
