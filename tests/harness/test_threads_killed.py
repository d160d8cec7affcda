"""Real threads on a real disk, killed amid their work; judged by the same laws."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.host.service_threads import ServiceThreads
from crashmq.engine.host.thread_runtime import ThreadRuntime
from crashmq.engine.store.config import FlushDiskType, StoreConfig
from crashmq.engine.store.message_store import MessageStore
from crashmq.harness.fsck.store_files import read_files
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.harness.subjects.engine_messages import message_of as message_of_engine
from crashmq.models.appended import Appended
from crashmq.models.files.store_image import StoreImage, read_store
from crashmq.models.laws.file_laws import FILE_LAWS
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.reading import pulled_messages_are_right
from crashmq.models.laws.recovery import (
    recovered_log_is_a_prefix,
    recovered_log_reaches_the_floor,
)
from crashmq.models.messages import MessageToPut, message_for
from crashmq.models.observations import PULL_STATUSES, Pulled
from crashmq.models.ops import PutMessage

PUTTERS = 3
ACKNOWLEDGED_BEFORE_THE_KILL = 400
SIZES = (16, 60, 333, 1000)


def config(flush: FlushDiskType) -> StoreConfig:
    return StoreConfig(
        mapped_file_size_commit_log=65_536,
        mapped_file_size_consume_queue=2_000,
        flush_disk_type=flush,
    )


def message_of(putter: int, number: int) -> MessageToPut:
    """The message a putter puts as its n-th; its key names both."""
    size = SIZES[(putter + number) % len(SIZES)]
    return message_for(PutMessage("T0", putter % 2, size), 1, number, putter)


def live(root: Path, flush: FlushDiskType, answers: Connection) -> None:
    """The process to be killed: putters, pullers and services, until the end."""
    store = MessageStore(config(flush), RealDisk(root), ThreadRuntime())
    store.load()
    store.start()
    one_at_a_time = threading.Lock()

    def put(putter: int) -> None:
        number = 0
        while True:
            message = message_of(putter, number)
            answer = store.put_message(
                message_of_engine(message, message.body, message.properties)
            )
            place = (answer.phy_offset, answer.size, answer.queue_offset)
            with one_at_a_time:
                answers.send_bytes(
                    json.dumps([putter, number, answer.status.value, *place]).encode()
                )
            number += 1

    def pull() -> None:
        at = 0
        while True:
            at = store.get_message("T0", 0, at, 32).next_begin_offset

    with ServiceThreads(store):
        for body in [pull, *(lambda p=p: put(p) for p in range(PUTTERS))]:
            threading.Thread(target=body, daemon=True).start()
        threading.Event().wait()


def killed_amid_work(root: Path, flush: FlushDiskType) -> list[Appended]:
    """What was acknowledged to the outside when SIGKILL came."""
    context = multiprocessing.get_context("fork")
    answers, theirs = context.Pipe(duplex=False)
    child = context.Process(target=live, args=(root, flush, theirs), daemon=True)
    child.start()
    theirs.close()
    appended: list[Appended] = []
    try:
        while True:
            putter, number, status, phy, size, queue_offset = json.loads(
                answers.recv_bytes()
            )
            assert status == "PUT_OK"
            message = message_of(putter, number)
            appended.append(Appended(message, phy, size, queue_offset))
            if len(appended) == ACKNOWLEDGED_BEFORE_THE_KILL:
                assert child.pid is not None
                os.kill(child.pid, signal.SIGKILL)
    except EOFError:
        child.join(60)
    assert child.exitcode == -signal.SIGKILL
    return sorted(appended, key=lambda one: one.phy_offset)


def unanswered(appended: list[Appended]) -> dict[str, MessageToPut]:
    """The one message that each putter may have put without hearing of it."""
    counts = [0] * PUTTERS
    for one in appended:
        counts[int(one.message.unique_key[-2:], 16)] += 1
    following = [message_of(putter, counts[putter]) for putter in range(PUTTERS)]
    return {message.unique_key: message for message in following}


def with_the_unanswered(image: StoreImage, appended: list[Appended]) -> list[Appended]:
    """All that was appended; a put may lie before others and yet have no answer."""
    known = {one.message.unique_key: one for one in appended}
    others = unanswered(appended)
    for record in image.commit_log.records:
        key = record.properties["UNIQ_KEY"]
        if key not in known:
            place = (record.phy_offset, record.size, record.queue_offset)
            known[key] = Appended(others[key], *place)
    return sorted(known.values(), key=lambda one: one.phy_offset)


@pytest.mark.slow
@pytest.mark.parametrize("flush", list(FlushDiskType))
def test_what_was_acknowledged_survives_sigkill(
    flush: FlushDiskType, tmp_path: Path
) -> None:
    appended = killed_amid_work(tmp_path, flush)

    runtime = SimRuntime(1_800_000_000_000)
    store = MessageStore(config(flush), RealDisk(tmp_path), runtime)
    store.load()
    store.start()
    runtime.serve(store.services)
    while store.reput.behind > 0:
        store.reput.run_once()
    pulls = [(store.get_message("T0", queue_id, 0, 32)) for queue_id in (0, 1)]
    assert store.shutdown()

    image = read_store(read_files(tmp_path))
    expected = with_the_unanswered(image, appended)
    records = image.commit_log.records
    assert not recovered_log_is_a_prefix.violations(records, expected, [])
    floor = appended[-1].end
    assert not recovered_log_reaches_the_floor.violations(records, expected, floor)
    for law in FILE_LAWS:
        assert not law.violations(Judged(image, image.commit_log.max_phy_offset)), law
    for queue_id, got in enumerate(pulls):
        queue = [one for one in expected if one.message.queue_id == queue_id]
        seen = Pulled(
            PULL_STATUSES[got.status.value],
            got.next_begin_offset,
            got.min_offset,
            got.max_offset,
            got.messages,
        )
        assert len(got.messages) == min(32, len(queue))
        assert not pulled_messages_are_right.violations(seen, 0, queue)
