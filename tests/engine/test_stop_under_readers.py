"""Readers that go on while a store stops or deletes meet no closed file."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from store_builder import EPOCH_MS, StoreBuilder

from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.host.thread_runtime import ThreadRuntime
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.errors import StoreStopped
from crashmq.engine.store.logfile.mapped_file import MappedFile
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue
from crashmq.engine.store.logfile.reference_resource import ReferenceResource
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message_store import MessageStore

READERS = 3
WAIT_S = 60


@pytest.fixture(autouse=True)
def hasty_switches() -> Iterator[None]:
    """Let threads take turns every few bytecodes."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Reader(threading.Thread):
    """Reads over and over until it is told that there is nothing more."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.error: BaseException | None = None
        self.rounds = 0

    def read(self) -> bool:
        """Read once; whether to go on."""
        raise AssertionError("a reader reads something")

    def run(self) -> None:
        try:
            while self.read():
                self.rounds += 1
        except BaseException as error:
            self.error = error
            raise

    def ended(self) -> bool:
        self.join(WAIT_S)
        return not self.is_alive()


def wait_for_rounds(readers: list[Reader]) -> None:
    for reader in readers:
        reader.start()
    while any(reader.rounds < 20 and reader.is_alive() for reader in readers):
        threading.Event().wait(0.001)


@pytest.mark.parametrize("life", range(5))
def test_a_pull_while_the_store_stops_is_answered_or_turned_away(
    tmp_path: Path, life: int
) -> None:
    config = StoreConfig(
        mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=200
    )
    store = MessageStore(config, RealDisk(tmp_path), ThreadRuntime())
    store.load()
    store.start()
    for n in range(100):
        store.put_message(Message("T0", 0, f"{n}".encode()))
    store.reput.run_once()

    class Puller(Reader):
        def read(self) -> bool:
            try:
                store.get_message("T0", 0, self.rounds % 100, 32)
            except StoreStopped:
                return False
            return True

    pullers: list[Reader] = [Puller() for _ in range(READERS)]
    wait_for_rounds(pullers)

    assert store.shutdown(), life

    assert all(puller.ended() for puller in pullers)
    assert [puller.error for puller in pullers] == [None] * READERS


def test_a_read_while_files_are_deleted_gets_their_bytes_or_none(
    tmp_path: Path,
) -> None:
    queue = MappedFileQueue(RealDisk(tmp_path), "log", 4096)
    for _ in range(20):
        queue.get_or_create_last_mapped_file(0).append_message(b"x" * 4096)

    class Looker(Reader):
        def read(self) -> bool:
            offset = queue.min_offset
            file = queue.find_mapped_file_by_offset(offset)
            assert file is None or file.read(0, 10) in (b"x" * 10, b"")
            return len(queue.files) > 1

    lookers: list[Reader] = [Looker() for _ in range(READERS)]
    wait_for_rounds(lookers)

    assert queue.delete_first_files(lambda _: True, at_most=500) == 19

    assert all(looker.ended() for looker in lookers)
    assert [looker.error for looker in lookers] == [None] * READERS


READS: dict[str, Callable[[MessageStore], object]] = {
    "pull": lambda store: store.get_message("T0", 0, 0, 32),
    "pull by tags": lambda store: store.get_message("T0", 0, 0, 32, "a"),
    "look": lambda store: store.look_message_by_offset(0),
    "search": lambda store: store.get_offset_in_queue_by_time("T0", 0, EPOCH_MS),
    "time": lambda store: store.get_message_store_timestamp("T0", 0, 1),
    "earliest": lambda store: store.get_earliest_message_time(),
    "query": lambda store: store.query_message("T0", "k", 9, 0, 1 << 60),
}


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("kind", READS)
def test_a_read_whose_files_a_stop_lets_go_says_so(
    store: StoreBuilder, monkeypatch: pytest.MonkeyPatch, kind: str, nth: int
) -> None:
    """The stop comes before the read's n-th hold of a file, if it has so many."""
    store.configured(message_index_enable=True, max_hash_slot_num=4, max_index_num=8)
    store.put(3, properties={"KEYS": "k", "TAGS": "a"}).make_all_durable()
    live = store.live
    whole = READS[kind](live)
    holds = 0

    def hold(file: MappedFile) -> bool:
        nonlocal holds
        holds += 1
        if holds == nth:
            monkeypatch.setattr(MappedFile, "hold", ReferenceResource.hold)
            assert store.runtime.run(live.shutdown)
        return ReferenceResource.hold(file)

    monkeypatch.setattr(MappedFile, "hold", hold)

    found: object = None
    with suppress(StoreStopped):
        found = READS[kind](live)
    assert (found is None) is (holds >= nth)
    assert found in (None, whole)
    monkeypatch.undo()
    assert store.restart().served() == [0, 1, 2]
