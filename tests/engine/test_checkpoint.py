"""The checkpoint's bytes, and which of its two slots counts."""

from __future__ import annotations

import pytest

from crashmq.engine.host.probe import recording
from crashmq.engine.store.store_checkpoint import (
    CHECKPOINT_SIZE,
    DurableMark,
    StoreCheckpoint,
)
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.files.checkpoint import CheckpointImage, read_checkpoint
from crashmq.models.ops import DiskFault

STORED_AT = 1_700_000_007_999


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk()


def opened(mount: Mount) -> StoreCheckpoint:
    checkpoint = StoreCheckpoint(mount)
    checkpoint.load()
    checkpoint.open()
    return checkpoint


def marked(checkpoint: StoreCheckpoint, *offsets: int) -> StoreCheckpoint:
    for offset in offsets:
        checkpoint.mark = DurableMark(0, offset, 4096, 200)
        checkpoint.flush()
    return checkpoint


def image(disk: SimDisk) -> CheckpointImage:
    return read_checkpoint(disk.durable_files()["checkpoint"])


def reloaded(disk: SimDisk) -> StoreCheckpoint:
    disk.unmount()
    checkpoint = StoreCheckpoint(disk.mount())
    checkpoint.load()
    return checkpoint


def damage(disk: SimDisk, at: int) -> None:
    disk.unmount()
    data = disk.files()["checkpoint"]
    disk.replace_file("checkpoint", data[:at] + b"\xff" + data[at + 1 :])


def test_a_checkpoint_without_a_mark_is_rocketmqs_byte_for_byte(disk: SimDisk) -> None:
    checkpoint = opened(disk.mount())
    checkpoint.physic_msg_timestamp = checkpoint.logics_msg_timestamp = STORED_AT

    checkpoint.flush()

    fields = bytes.fromhex("0000018bcfe5873f" * 2)
    assert disk.durable_files()["checkpoint"] == fields.ljust(CHECKPOINT_SIZE, b"\0")


def test_the_five_fields_lie_in_rocketmqs_order(disk: SimDisk) -> None:
    checkpoint = opened(disk.mount())
    checkpoint.physic_msg_timestamp = 1
    checkpoint.logics_msg_timestamp = 2
    checkpoint.index_msg_timestamp = 3
    checkpoint.master_flushed_offset = 4
    checkpoint.confirm_phy_offset = 5
    checkpoint.flush()

    assert image(disk)[:5] == (1, 2, 3, 4, 5)
    again = reloaded(disk)
    assert (again.physic_msg_timestamp, again.confirm_phy_offset) == (1, 5)
    assert (again.logics_msg_timestamp, again.index_msg_timestamp) == (2, 3)
    assert again.master_flushed_offset == 4


def test_a_time_before_the_epoch_is_none(disk: SimDisk) -> None:
    checkpoint = opened(disk.mount())
    checkpoint.physic_msg_timestamp = 1
    checkpoint.logics_msg_timestamp = checkpoint.index_msg_timestamp = -1
    checkpoint.flush()

    again = reloaded(disk)

    assert again.physic_msg_timestamp == 1
    assert again.logics_msg_timestamp == again.index_msg_timestamp == 0


def test_marks_are_written_into_the_two_slots_in_turn(disk: SimDisk) -> None:
    checkpoint = opened(disk.mount())

    marks = []
    for offset in (100, 200, 300):
        marked(checkpoint, offset)
        mark = image(disk).mark
        assert mark is not None
        marks.append((mark.sequence, mark.durable_offset, mark.position))

    assert marks == [(1, 100, 1024), (2, 200, 512), (3, 300, 1024)]


def test_no_slot_is_left_that_promises_more_than_the_newest(disk: SimDisk) -> None:
    """Whichever of the two rots, the other says how far queues are durable."""
    for at in (512, 1024):
        checkpoint = opened(disk.mount())
        for dispatched in (100, 300, 200):
            checkpoint.mark = DurableMark(0, 300, 4096, 200, dispatched)
            checkpoint.flush()
        damage(disk, at)

        loaded = StoreCheckpoint(disk.mount())
        loaded.load()
        assert loaded.mark is not None
        assert loaded.mark.dispatched_offset == 200
        disk.unmount()


def test_the_newest_mark_is_loaded(disk: SimDisk) -> None:
    marked(opened(disk.mount()), 100, 200, 300)

    assert reloaded(disk).mark == DurableMark(0, 300, 4096, 200)


def test_the_sequence_goes_on_in_the_next_life(disk: SimDisk) -> None:
    marked(opened(disk.mount()), 100, 200)
    disk.unmount()

    marked(opened(disk.mount()), 300)

    mark = image(disk).mark
    assert mark is not None
    assert (mark.sequence, mark.position) == (3, 1024)


@pytest.mark.parametrize("byte", range(36))
def test_a_slot_torn_at_any_byte_leaves_the_other(disk: SimDisk, byte: int) -> None:
    marked(opened(disk.mount()), 100, 200, 300)
    damage(disk, 1024 + byte)

    with recording() as hits:
        assert reloaded(disk).mark == DurableMark(0, 200, 4096, 200)

    assert hits["checkpoint.load.one_slot"] == 1


def test_two_torn_slots_are_no_mark(disk: SimDisk) -> None:
    marked(opened(disk.mount()), 100, 200)
    damage(disk, 512)
    damage(disk, 1024)

    assert reloaded(disk).mark is None


def test_a_mark_that_has_not_changed_takes_no_slot(disk: SimDisk) -> None:
    checkpoint = marked(opened(disk.mount()), 100)
    checkpoint.physic_msg_timestamp = STORED_AT

    assert checkpoint.flush()

    mark = image(disk).mark
    assert mark is not None
    assert mark.sequence == 1


def test_a_checkpoint_with_nothing_new_is_not_written(disk: SimDisk) -> None:
    checkpoint = marked(opened(disk.mount()), 100)
    before = disk.actions

    assert not checkpoint.flush()
    assert disk.actions == before


def test_what_is_loaded_is_written_again_since_its_sync_may_have_failed(
    disk: SimDisk,
) -> None:
    checkpoint = opened(disk.mount())
    checkpoint.mark = DurableMark(0, 100, 4096, 200)
    disk.fail(DiskFault("sync", "EIO"))
    with pytest.raises(OSError, match="sync"):
        checkpoint.flush()
    disk.unmount()

    assert opened(disk.mount()).flush()

    mark = image(disk).mark
    assert mark is not None
    assert mark.durable_offset == 100


def test_what_is_loaded_after_a_clean_exit_is_not_written_again(disk: SimDisk) -> None:
    marked(opened(disk.mount()), 100)
    disk.unmount()
    checkpoint = opened(disk.mount())

    checkpoint.trust_loaded()

    assert not checkpoint.flush()


def test_values_whose_sync_failed_are_written_again(disk: SimDisk) -> None:
    checkpoint = marked(opened(disk.mount()), 100)
    checkpoint.mark = DurableMark(0, 200, 4096, 200)
    disk.fail(DiskFault("sync", "EIO"))
    with pytest.raises(OSError, match="sync"):
        checkpoint.flush()
    disk.heal()

    assert checkpoint.flush()

    mark = image(disk).mark
    assert mark is not None
    assert mark.durable_offset == 200


@pytest.mark.parametrize("size", [0, 8, 39])
def test_a_checkpoint_cut_short_says_nothing(disk: SimDisk, size: int) -> None:
    disk.replace_file("checkpoint", b"\x01" * size)

    checkpoint = opened(disk.mount())

    assert checkpoint.physic_msg_timestamp == 0
    assert checkpoint.mark is None
    assert len(disk.files()["checkpoint"]) == CHECKPOINT_SIZE


def test_rocketmq_49s_three_fields_are_read_as_far_as_they_go(disk: SimDisk) -> None:
    three = STORED_AT.to_bytes(8, "big") * 3
    disk.replace_file("checkpoint", three.ljust(CHECKPOINT_SIZE, b"\0"))

    checkpoint = reloaded(disk)

    assert checkpoint.index_msg_timestamp == STORED_AT
    assert checkpoint.confirm_phy_offset == 0


def test_loading_changes_nothing(disk: SimDisk) -> None:
    disk.replace_file("checkpoint", b"\x01" * 100)

    reloaded(disk)

    assert disk.files() == {"checkpoint": b"\x01" * 100}
    assert disk.actions == 0
