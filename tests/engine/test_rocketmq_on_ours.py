"""RocketMQ 5.3.0's own classes on directories that hold what only we write.

A broker of ours keeps where queues ended as lives of the log began, and a consumer that
broadcasts keeps which life told it each offset. RocketMQ knows neither: it has to pass
over both, and what it writes then has to be enough for a start of ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from golden_kinds import RunClient

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.broker.offset.recovered_ends import PATH as ENDS
from crashmq.engine.client.consumer.store.local_file_offset_store import (
    LocalFileOffsetStore,
)
from crashmq.engine.client.consumer.store.offset_store import ReadOffsetType
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.store.message_store import MessageStore
from crashmq.harness.episodes.episode import Episode
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.harness.subjects.engine_config import config_of as store_config
from crashmq.models.ops import (
    CommitOffset,
    Crash,
    During,
    Op,
    PutMessage,
    QueryOffset,
    Restart,
    RunService,
    Shutdown,
    StartConsumer,
    TurnConsumer,
)
from crashmq.models.program import Setup

CLIENT, GROUP = "10.0.0.1@1", "b"
SETUP = Setup(keeps_progress=True)
A_LIFE_IS_LOST: tuple[Op, ...] = (
    PutMessage("T0", 0, 1),
    RunService("reput"),
    StartConsumer("c0", "g", "T0"),
    TurnConsumer("c0", "rebalance"),
    During(QueryOffset("x", "T9", 0), 1, Crash("process_kill")),
    Restart(),
    CommitOffset("h", "T0", 0, 1),
    Shutdown(),
)
Writer = Callable[..., "CompletedProcess[str]"]


def store_of_ours(root: Path) -> dict[str, bytes]:
    """Write a store of ours that has lost a life; its config files."""
    episode = Episode("rocketmq_on_ours", SETUP)
    for op in A_LIFE_IS_LOST:
        episode.step(op)
    for path, data in episode.subject.files().items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return config_of(root)


def config_of(root: Path) -> dict[str, bytes]:
    return {
        f"{path.relative_to(root)}": path.read_bytes()
        for path in sorted((root / "config").iterdir())
        if path.is_file()
    }


@pytest.mark.slow
@pytest.mark.rocketmq
def test_rocketmqs_managers_pass_over_the_ends_of_lives(
    tmp_path: Path, golden_config_writer: Writer
) -> None:
    before = store_of_ours(tmp_path)
    assert json.loads(before[ENDS])["life"] == 2
    assert json.loads(before[ENDS])["ends"]["T0@0"] == [1, 0, 2, 1]

    read = golden_config_writer("read", tmp_path)
    left_by_reading = config_of(tmp_path)
    written = golden_config_writer("write", tmp_path)

    assert (read.returncode, written.returncode) == (0, 0), read.stderr + written.stderr
    told = json.loads(read.stdout)
    assert [told[name] for name in ("offsets", "topics", "groups")] == ["true"] * 3
    assert told["offsetTable"]["T0@h"] == {"0": 1}
    assert {"T0", "%RETRY%g"} <= {*told["topicConfigTable"]}
    assert "g" in told["subscriptionGroupTable"]
    ends = {path for path in before if path.startswith(ENDS)}
    assert {path: left_by_reading[path] for path in ends} == {
        path: config_of(tmp_path)[path] for path in ends
    }
    assert left_by_reading[ENDS] == before[ENDS]


@pytest.mark.slow
@pytest.mark.rocketmq
def test_a_broker_of_ours_starts_on_what_rocketmqs_managers_wrote_there(
    tmp_path: Path, golden_config_writer: Writer
) -> None:
    store_of_ours(tmp_path)
    assert golden_config_writer("write", tmp_path).returncode == 0

    disk, runtime = RealDisk(tmp_path), SimRuntime(1_800_000_000_000)
    store = MessageStore(store_config(SETUP), disk, runtime)
    broker = BrokerController(store, disk, runtime)
    broker.load()
    broker.start()

    offsets = broker.consumer_offset_manager
    # Of topics that have no message here, so that a start lowers what RocketMQ wrote.
    assert offsets.query_offset("billing", "orders", 3) == 0
    assert broker.tables.topic_config_manager.topics["payments"].read_queue_nums == 2
    assert json.loads((tmp_path / ENDS).read_bytes())["life"] == 2
    broker.shutdown()


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.xdist_group("golden-client")
def test_rocketmqs_local_store_passes_over_the_lives_that_told_offsets(
    tmp_path: Path, golden_client: RunClient
) -> None:
    queues = [MessageQueue("T0", "broker-a", number) for number in (0, 1)]
    ours = store_on(tmp_path)
    for queue, offset in zip(queues, (5, 1 << 40), strict=True):
        ours.heard_of(queue, 7)
        ours.update_offset(queue, offset, increase_only=True)
    ours.persist_all(queues)
    text = (tmp_path / CLIENT / GROUP / "offsets.json").read_text()
    assert "brokerLifeTable" in text

    where = f"-Drocketmq.client.localOffsetStoreDir={tmp_path}"
    told = golden_client(where, "crashmq.client.LocalOffsets", CLIENT, GROUP, "T0")

    assert told.splitlines() == ["broker-a\t0\t5", f"broker-a\t1\t{1 << 40}"]
    again = store_on(tmp_path)
    found = [again.read_offset(q, ReadOffsetType.READ_FROM_STORE) for q in queues]
    assert found == [6, (1 << 40) + 1]
    # RocketMQ writes its own table alone: then no life vouches for an offset.
    assert [again.broker_life_of(queue) for queue in queues] == [0, 0]


def store_on(root: Path) -> LocalFileOffsetStore:
    store = LocalFileOffsetStore(RealDisk(root), CLIENT, GROUP, SimRuntime(1))
    store.load()
    return store
