"""Config files that RocketMQ 5.3.0's managers wrote, and ours, which they read.

What fastjson 1.2.83 makes of texts that are torn is settled here, by the released jar.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from unpacking import unpacked

from crashmq.engine.broker.broker_tables import BrokerTables
from crashmq.engine.broker.offset.consumer_offset_manager import (
    PATH as OFFSETS,
)
from crashmq.engine.broker.offset.consumer_offset_manager import ConsumerOffsetManager
from crashmq.engine.broker.subscription.subscription_group_manager import (
    PATH as GROUPS,
)
from crashmq.engine.broker.topic.topic_config_manager import PATH as TOPICS
from crashmq.engine.common.fastjson import read_json
from crashmq.engine.common.mix_all import Perm
from crashmq.engine.common.subscription_group_config import SubscriptionGroupConfig
from crashmq.engine.common.topic_config import TopicConfig
from crashmq.engine.host.real_disk import RealDisk
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.files.offsets import read_offsets

ARCHIVE = Path(__file__).parents[1] / "golden" / "rocketmq-5.3.0-config.tar.xz"
NOW_MS = 1_800_000_000_000
Writer = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return unpacked(ARCHIVE, tmp_path / "golden") / "store"


@pytest.fixture
def told(golden: Path) -> dict[str, Any]:
    """What RocketMQ itself has loaded of these files."""
    found: dict[str, Any] = json.loads((golden.parent / "manifest.json").read_text())
    return found


def tables_on(root: Path) -> BrokerTables:
    tables = BrokerTables(RealDisk(root), SimRuntime(NOW_MS))
    tables.load()
    return tables


def offsets_of(manager: ConsumerOffsetManager) -> dict[str, dict[str, int]]:
    return {
        key: {f"{queue_id}": offset for queue_id, offset in offsets.items()}
        for key, offsets in manager.offset_table.items()
    }


def test_we_load_what_rocketmq_loads(golden: Path, told: dict[str, Any]) -> None:
    tables = tables_on(golden)

    assert offsets_of(tables.consumer_offset_manager) == told["offsetTable"]
    topics = tables.topic_config_manager.topics
    assert topics.keys() == told["topicConfigTable"].keys()
    assert topics["audit-log"] == TopicConfig("audit-log", 1, 1, Perm.READ)
    groups = tables.subscription_group_manager.groups
    assert groups.keys() == told["subscriptionGroupTable"].keys()
    assert groups["shipping"] == SubscriptionGroupConfig(
        "shipping",
        consume_message_orderly=True,
        retry_queue_nums=2,
        retry_max_times=3,
    )
    assert groups["billing"] == SubscriptionGroupConfig("billing")


def test_we_write_topics_and_groups_as_rocketmq_does(golden: Path) -> None:
    before = {path: (golden / path).read_bytes() for path in (TOPICS, GROUPS)}
    tables = tables_on(golden)

    tables.topic_config_manager.table.persist()
    tables.subscription_group_manager.table.persist()

    after = {path: (golden / path).read_bytes() for path in (TOPICS, GROUPS)}
    assert after == before


def test_we_write_offsets_as_rocketmq_does(golden: Path) -> None:
    text = (golden / OFFSETS).read_text()

    manager = tables_on(golden).consumer_offset_manager

    assert manager.encode() == text
    assert manager.data_version.counter == 0


def test_both_decoders_read_rocketmqs_offsets(
    golden: Path, told: dict[str, Any]
) -> None:
    rows = read_offsets((golden / OFFSETS).read_bytes())

    assert rows is not None
    assert {f"{topic}@{group}" for (group, topic, _), _ in rows} == set(
        told["offsetTable"]
    )
    assert sum(offset for _, offset in rows) == 200


def test_the_backup_is_the_table_of_before(golden: Path) -> None:
    (golden / OFFSETS).unlink()

    manager = tables_on(golden).consumer_offset_manager

    assert manager.query_offset("billing", "orders", 3) == 4


@pytest.mark.slow
@pytest.mark.rocketmq
def test_rocketmq_loads_what_we_write(
    tmp_path: Path, golden_config_writer: Writer
) -> None:
    root = tmp_path / "ours"
    root.mkdir()
    tables = tables_on(root)
    offsets = tables.consumer_offset_manager
    for committed in (
        *(("g", "T0", 0, 5), ("g", "T0", 11, 1 << 40), ("h", "%RETRY%h", 0, 0)),
        *(("g", "T1", 2, 7), ("g@broadcast", "T1", 3, 9)),
    ):
        offsets.commit_offset(*committed)
    offsets.persist()
    topic = TopicConfig("T0", 12, 12, Perm.READ, attributes={"+message.type": "FIFO"})
    tables.topic_config_manager.update_topic_config(topic)
    tables.topic_config_manager.create_topic_in_send_message_method("T1")
    group = SubscriptionGroupConfig("g", consume_enable=False, retry_max_times=2)
    tables.subscription_group_manager.update_subscription_group_config(group)

    done = golden_config_writer("read", root)

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [told[name] for name in ("offsets", "topics", "groups")] == ["true"] * 3
    assert told["offsetTable"] == offsets_of(offsets)
    assert told["topicConfigTable"]["T0"]["readQueueNums"] == 12
    assert told["topicConfigTable"]["T0"]["perm"] == 4
    assert told["topicConfigTable"]["T0"]["attributes"] == topic.attributes
    assert told["topicConfigTable"]["T1"]["writeQueueNums"] == 4
    assert told["subscriptionGroupTable"]["g"]["consumeEnable"] is False
    assert told["subscriptionGroupTable"]["g"]["retryMaxTimes"] == 2


WHOLE = b'{"offsetTable":{"T@g":{0:7,1:8\n\t\t}\n\t}\n}'
TEXTS = {
    **{f"cut at {end}": WHOLE[:end] for end in range(1, len(WHOLE))},
    "empty": b"",
    "blank": b" \n\t ",
    "NULs": bytes(len(WHOLE)),
    "NULs from the middle": WHOLE[:20] + bytes(20),
    "NULs behind it": WHOLE + bytes(20),
    "twice": WHOLE * 2,
    "a word": b"garbage",
    "null": b"null",
    "a list": b"[]",
    "an empty object": b"{}",
    "no table": b'{"offsetTable":null}',
    "quoted": b'{"offsetTable":{"T@g":{"0":"7"}}}',
    "negative": b'{"offsetTable":{"T@g":{0:-7}}}',
}
# RocketMQ starts with these, and without an offset, whatever the backup says.
TAKEN_FOR_NONE = {"null", "a list", "an empty object", "no table"}
# It takes these for tables of their own.
TAKEN = {"NULs behind it", "quoted", "negative"}


@pytest.mark.slow
@pytest.mark.rocketmq
def test_what_fastjson_makes_of_texts_that_are_no_tables(
    tmp_path: Path, golden_config_writer: Writer
) -> None:
    roots = []
    for number, data in enumerate(TEXTS.values()):
        config = tmp_path / f"{number}" / "config"
        config.mkdir(parents=True)
        (config / "consumerOffset.json").write_bytes(data)
        backup = b'{"offsetTable":{"B@b":{0:1}}}'
        (config / "consumerOffset.json.bak").write_bytes(backup)
        roots.append(config.parent)

    done = golden_config_writer("read", *roots)

    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    tables = {
        name: one.get("offsetTable") for name, one in zip(TEXTS, told, strict=True)
    }
    assert {one["offsets"] for one in told} == {"true"}
    assert {name for name, table in tables.items() if not table} == TAKEN_FOR_NONE
    from_backup = {name for name, table in tables.items() if table and "B@b" in table}
    assert from_backup == TEXTS.keys() - TAKEN_FOR_NONE - TAKEN


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_we_take_the_backup_for_every_text_that_is_no_table(name: str) -> None:
    disk = SimDisk()
    backup = b'{"offsetTable":{"B@b":{0:1}}}'
    disk.load({OFFSETS: TEXTS[name], f"{OFFSETS}.bak": backup})
    manager = ConsumerOffsetManager(disk.mount(), SimRuntime(NOW_MS))

    manager.load()

    from_backup = manager.offset_table == {"B@b": {0: 1}}
    assert from_backup is (name != "an empty object")
    if from_backup and TEXTS[name]:
        with pytest.raises(ValueError, match=r"\S"):
            ConsumerOffsetManager(disk.beside(), SimRuntime(0)).decode(
                TEXTS[name].decode()
            )


def test_a_list_is_read_and_is_no_table() -> None:
    assert read_json("[]") == []
