"""Stores in which RocketMQ deleted topics: what no queue has to list any more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_store import golden

from harness.fsck import FsckReport, fsck
from models.image.presumed import topics_in

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


def test_a_topic_without_a_folder_is_lost_where_no_list_says_more(
    tmp_path: Path,
) -> None:
    report = without_topic(tmp_path)

    assert {finding.invariant for finding in report.violations} == {"CQ-4"}


def test_a_topic_the_broker_lists_has_lost_its_queues(tmp_path: Path) -> None:
    report = without_topic(tmp_path, ["orders", "payments", "audit-log"])

    assert {finding.invariant for finding in report.violations} == {"CQ-4"}
    assert all(finding.where.startswith(TOPIC) for finding in report.violations)


def test_a_topic_whose_folder_is_left_has_lost_its_queues(tmp_path: Path) -> None:
    (tmp_path / TOPIC).mkdir(parents=True)

    report = without_topic(tmp_path)

    assert {finding.invariant for finding in report.violations} == {"CQ-4"}


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b'{"topicConfigTable": 3}'])
def test_a_list_of_topics_that_cannot_be_read_tells_nothing(raw: bytes) -> None:
    assert topics_in(raw) is None
