from __future__ import annotations

import json

import pytest

from crashmq.engine.broker.offset.consumer_offset_manager import (
    NO_OFFSET,
    PATH,
    ConsumerOffsetManager,
    Part,
)
from crashmq.engine.store.errors import StoreCorrupted
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.ops import DiskFault

EPOCH_MS = 1_736_661_762_584
WRITTEN_BY_ROCKETMQ = """{
	"dataVersion":{
		"counter":3,
		"stateVersion":0,
		"timestamp":1736661762584
	},
	"groupTopicMap":{
		"sub_localtest":["test_url","%RETRY%sub_localtest"]
	},
	"offsetTable":{
		"test_url@sub_localtest":{0:2599,1:2602,6:103
		},
		"%RETRY%sub_localtest@sub_localtest":{0:0
		}
	}
}"""


def manager_on(disk: SimDisk) -> ConsumerOffsetManager:
    manager = ConsumerOffsetManager(disk.mount(), SimRuntime(EPOCH_MS), version_step=2)
    manager.load()
    return manager


@pytest.fixture
def manager() -> ConsumerOffsetManager:
    return manager_on(SimDisk())


def test_its_file_is_rocketmqs_byte_for_byte() -> None:
    disk = SimDisk()
    disk.load({PATH: WRITTEN_BY_ROCKETMQ.encode()})

    manager = manager_on(disk)
    assert manager.offset_table == {
        "test_url@sub_localtest": {0: 2599, 1: 2602, 6: 103},
        "%RETRY%sub_localtest@sub_localtest": {0: 0},
    }
    assert manager.data_version.counter == 3

    manager.persist()
    assert disk.files()[PATH].decode() == WRITTEN_BY_ROCKETMQ


def test_a_table_of_4x_has_no_version_and_quoted_keys_are_read() -> None:
    disk = SimDisk()
    disk.load({PATH: json.dumps({"offsetTable": {"T@g": {"3": 7}}}).encode()})

    manager = manager_on(disk)

    assert manager.query_offset("g", "T", 3) == 7
    assert manager.data_version.counter == 0


@pytest.mark.parametrize(
    "text",
    [
        *("null", "[]", '{"offsetTable":5}', '{"offsetTable":{"T@g":5}}'),
        *('{"offsetTable":{"T@g":{0:"7"}}}', '{"offsetTable":{"T@g":{0:-7}}}'),
        *('{"offsetTable":{"T@g":{"x":7}}}', '{"dataVersion":5}'),
        *('{"dataVersion":{"counter":"x"}}', '{"dataVersion":{"timestamp":true}}'),
        *('{"offsetTable":{"T@g":{"1_0":7}}}', '{"offsetTable":{"T@g":{"+1":7}}}'),
        *('{"offsetTable":{"T@g":{-1:7}}}', '{"offsetTable":null}'),
        '{"offsetTable":{"T@g":{0:9223372036854775808}}}',
    ],
)
def test_a_text_that_is_no_table_refuses_the_start(text: str) -> None:
    disk = SimDisk()
    disk.load({PATH: text.encode()})

    with pytest.raises(StoreCorrupted) as refused:
        manager_on(disk)

    assert refused.value.path == PATH
    assert disk.files() == {PATH: text.encode()}


def test_a_commit_is_taken_as_it_is(manager: ConsumerOffsetManager) -> None:
    assert manager.query_offset("g", "T", 0) == NO_OFFSET

    manager.commit_offset("g", "T", 0, 9)
    manager.commit_offset("g", "T", 0, 4)
    manager.commit_offset("h", "T", 0, 1)

    assert manager.query_offset("g", "T", 0) == 4
    assert manager.query_offset("g", "T", 1) == NO_OFFSET
    assert manager.data_version.counter == 1
    with pytest.raises(ValueError, match="must be >= 0"):
        manager.commit_offset("g", "T", 0, -1)


def test_a_reset_is_pending_until_the_client_meets_it(
    manager: ConsumerOffsetManager,
) -> None:
    manager.commit_offset("g", "T", 0, 500)
    manager.assign_reset_offset("T", "g", 0, 200)
    manager.commit_offset("g", "T", 0, 510)  # by a pull, which nobody stops

    assert manager.query_offset("g", "T", 0) == 200
    assert manager.has_offset_reset("T", "g", 0)
    assert manager.query_then_erase_reset_offset("T", "g", 0) == 200
    assert manager.query_then_erase_reset_offset("T", "g", 0) is None
    assert manager.query_offset("g", "T", 0) == 510


def test_a_client_is_behind_a_reset_until_it_follows(
    manager: ConsumerOffsetManager,
) -> None:
    manager.assign_reset_offset("T", "g", 0, 200)
    assert manager.is_behind_a_reset("T", "g", 0, 200)  # nobody was told
    manager.query_then_erase_reset_offset("T", "g", 0)

    assert manager.is_behind_a_reset("T", "g", 0, 510)
    assert not manager.is_behind_a_reset("T", "g", 0, 200)
    assert not manager.is_behind_a_reset("T", "g", 0, 510)

    manager.assign_reset_offset("T", "g", 0, 300)
    manager.query_then_erase_reset_offset("T", "g", 0)
    assert manager.query_then_erase_reset_offset("T", "g", 0) is None  # it pulls on
    assert not manager.is_behind_a_reset("T", "g", 0, 510)


def test_a_pending_reset_is_not_written() -> None:
    disk = SimDisk()
    manager = manager_on(disk)
    manager.assign_reset_offset("T", "g", 0, 200)
    manager.persist()
    disk.unmount()

    again = manager_on(disk)

    assert again.query_offset("g", "T", 0) == 200
    assert not again.has_offset_reset("T", "g", 0)


def test_a_topic_or_a_group_goes_whole(manager: ConsumerOffsetManager) -> None:
    for topic, group in (("T", "g"), ("T", "h"), ("U", "g"), ("T", "g@broadcast")):
        manager.commit_offset(group, topic, 0, 1)
    manager.assign_reset_offset("T", "g", 0, 0)
    assert manager.which_topic_by_consumer("g") == ["T", "U"]
    assert manager.which_group_by_topic("T") == ["g", "h"]

    manager.clean_offset_by_topic("T")
    assert sorted(manager.offset_table) == ["T@g@broadcast", "U@g"]
    assert not manager.has_offset_reset("T", "g", 0)

    manager.remove_offset("g")
    assert sorted(manager.offset_table) == ["T@g@broadcast"]


def test_a_group_is_given_the_offsets_of_another(
    manager: ConsumerOffsetManager,
) -> None:
    manager.commit_offset("g", "T", 0, 5)
    manager.commit_offset("h", "T", 1, 6)

    manager.clone_offset("g", "h", "T")
    manager.clone_offset("none", "g", "T")
    manager.commit_offset("g", "T", 0, 7)

    assert manager.offset_table == {"T@g": {0: 7}, "T@h": {0: 5}}


def test_a_removal_reaches_the_file_though_a_clone_has_taken_the_row_from_memory() -> (
    None
):
    disk = SimDisk()
    manager = manager_on(disk)
    manager.commit_offset("h", "T", 1, 6)
    manager.persist()
    manager.commit_offset("g", "T", 0, 5)
    manager.clone_offset("g", "h", "T")

    with manager.removal(Part(topic="T", queue_id=1)):
        pass

    disk.unmount()
    assert manager_on(disk).offset_table == {"T@g": {0: 5}, "T@h": {0: 5}}


def test_what_lies_past_a_queues_end_is_lowered_in_both_copies() -> None:
    disk = SimDisk()
    manager = manager_on(disk)
    for queue_id, offset in ((0, 9), (1, 4), (2, 5)):
        manager.commit_offset("g", "T", queue_id, offset)
    manager.commit_offset("g@broadcast", "U", 0, 3)
    manager.persist()

    assert manager.correct_offsets({("T", 0): 6, ("T", 1): 6}) == 3
    assert manager.correct_offsets({("T", 0): 6, ("T", 1): 6}) == 0

    lowered = {"T@g": {0: 6, 1: 4, 2: 0}, "U@g@broadcast": {0: 0}}
    assert manager.offset_table == lowered
    assert disk.unsynced() == ()
    disk.unmount()
    disk.replace_file(PATH, None)
    assert manager_on(disk).offset_table == lowered


def test_a_correction_that_fails_is_said() -> None:
    disk = SimDisk()
    manager = manager_on(disk)
    manager.commit_offset("g", "T", 0, 9)
    disk.fail(DiskFault("create", "ENOSPC", 1))

    with pytest.raises(OSError, match="No space left"):
        manager.correct_offsets({})
