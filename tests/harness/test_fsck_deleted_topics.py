"""Stores in which topics were deleted: what no queue has to list any more."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest
from fsck_archive import archive
from fsck_breaking import Broken, written
from golden_store import golden
from test_fsck_power import judged

from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.host.thread_runtime import ThreadRuntime
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message_store import MessageStore
from crashmq.harness.fsck.fsck import FsckReport, fsck
from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.inferred_deletions import topics_in

TOPIC = "consumequeue/audit-log"


def without_topic(root: Path, topics: list[str] | None = None) -> FsckReport:
    """What fsck says of the clean store that lost all queues of one topic."""
    for path, data in golden("clean").files.items():
        if not path.startswith(f"{TOPIC}/"):
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    if topics is not None:
        (root / "config").mkdir()
        table = {topic: {"topicName": topic} for topic in topics}
        (root / "config/topics.json").write_text(
            json.dumps({"topicConfigTable": table})
        )
    return fsck(root)


def test_a_topic_the_broker_does_not_list_was_deleted(tmp_path: Path) -> None:
    report = without_topic(tmp_path, ["orders", "payments"])

    assert report.is_clean
    assert any(note.startswith(f"{TOPIC}: ") for note in report.notes)


def test_a_topic_without_a_folder_was_deleted_where_no_broker_keeps_a_list(
    tmp_path: Path,
) -> None:
    report = without_topic(tmp_path)

    assert report.is_clean
    assert any(note.startswith(f"{TOPIC}: ") for note in report.notes)


@pytest.mark.parametrize(
    "left",
    [
        "config/consumerOffset.json",
        "consumequeue_ext/audit-log/0/00000000000000000000",
        "batchconsumequeue/payments/0/00000000000000000000",
    ],
)
def test_what_a_deletion_would_have_taken_shows_a_loss(
    left: str, tmp_path: Path
) -> None:
    file = tmp_path / left
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")

    report = without_topic(tmp_path)

    is_a_queue_elsewhere = left.startswith("batchconsumequeue/payments")
    assert report.is_clean == is_a_queue_elsewhere


def test_the_backup_of_a_list_of_topics_is_one(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "topics.json.bak").write_text('{"topicConfigTable": {"audit-log": {}}}')

    report = without_topic(tmp_path)

    assert {finding.law for finding in report.violations} == {"CQ-4"}


def test_a_store_without_any_folder_of_a_queue_has_lost_them(tmp_path: Path) -> None:
    for path, data in golden("clean").files.items():
        if not path.startswith("consumequeue/"):
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

    assert {finding.law for finding in fsck(tmp_path).violations} == {"CQ-4"}


def test_a_topic_the_broker_lists_has_lost_its_queues(tmp_path: Path) -> None:
    report = without_topic(tmp_path, ["orders", "payments", "audit-log"])

    assert {finding.law for finding in report.violations} == {"CQ-4"}
    assert all(finding.where.startswith(TOPIC) for finding in report.violations)


def test_a_topic_whose_queues_folder_is_left_has_lost_it(tmp_path: Path) -> None:
    (tmp_path / TOPIC / "0").mkdir(parents=True)

    report = without_topic(tmp_path)

    assert {finding.law for finding in report.violations} == {"CQ-4"}


def test_an_empty_folder_is_what_older_brokers_leave_of_a_topic(tmp_path: Path) -> None:
    (tmp_path / TOPIC).mkdir(parents=True)

    assert without_topic(tmp_path).is_clean


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b'{"topicConfigTable": 3}'])
def test_a_list_of_topics_that_cannot_be_read_tells_nothing(raw: bytes) -> None:
    assert topics_in(raw) is None


PRE_BLANK = bytes(8) + b"\x7f\xff\xff\xff" + bytes(8)


def listed_again_from(base: int, topics: Collection[str]) -> FsckReport:
    """The rolled store, of some topics nothing listed before ``base``."""
    store = archive("rolled-clean")
    files = dict(store.files)
    for row in store.rows:
        if row["topic"] in topics and row["phy_offset"] < base:
            path, at = store.unit(row)
            files = written(files, path, at, PRE_BLANK)
    return judged(store, Broken(files, ()))


def test_a_deleted_topic_is_listed_again_by_a_start_after_a_crash() -> None:
    report = listed_again_from(32_768, ["payments"])

    assert report.is_clean
    assert any("consumequeue/payments: its queues begin" in n for n in report.notes)


@pytest.mark.parametrize(
    ("base", "topics"),
    [(32_768 + 5_000, ["payments"]), (32_768, ["payments", "orders", "audit-log"])],
)
def test_a_topic_that_begins_elsewhere_or_not_alone_lost_units(
    base: int, topics: list[str]
) -> None:
    report = listed_again_from(base, topics)

    assert {finding.law for finding in report.violations} == {"CQ-4"}


def deleted_by_crashmq(root: Path) -> None:
    """A store of ours that deleted one topic of two, and was shut down in order."""
    sizes = StoreConfig(
        mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=200
    )
    store = MessageStore(sizes, RealDisk(root), ThreadRuntime())
    store.load()
    store.start()
    for topic in ("orders", "audit"):
        store.put_message(Message(topic, 0, b"body"))
    store.reput.run_once()
    store.delete_topics(["audit"])
    assert store.shutdown()


def test_what_a_deletion_of_ours_wrote_down_is_believed(tmp_path: Path) -> None:
    deleted_by_crashmq(tmp_path)

    assert fsck(tmp_path).is_clean


def test_what_a_deletion_of_ours_wrote_down_is_held_against_its_crc(
    tmp_path: Path,
) -> None:
    deleted_by_crashmq(tmp_path)
    said = (tmp_path / DELETED_PATH).read_bytes()

    (tmp_path / DELETED_PATH).write_bytes(said.replace(b"audit", b"other"))

    assert "DEL-7" in {finding.law for finding in fsck(tmp_path).violations}
