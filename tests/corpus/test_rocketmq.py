"""RocketMQ on a copy of a directory: what the manifest says of it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rocketmq import (
    BrokerEnded,
    Brokers,
    Row,
    Server,
    Settings,
    contents,
    settings_beside,
    settings_of_files,
)
from serve_rocketmq import manifest_text

GoldenStore = Callable[[str], tuple[Path, list[dict[str, Any]]]]
GOLDEN = {
    "mappedFileSizeCommitLog": "16384",
    "mappedFileSizeConsumeQueue": "400",
    "maxHashSlotNum": "256",
    "maxIndexNum": "1024",
}


def test_sizes_are_told_by_the_lengths_of_files(golden_store: GoldenStore) -> None:
    root, _ = golden_store("rolled-clean")

    assert settings_of_files(root) == Settings(GOLDEN)


def test_settings_beside_a_store_go_before_its_files(tmp_path: Path) -> None:
    root = tmp_path / "store"
    root.mkdir()
    told = Settings({"messageDelayLevel": "3d"}, topics=[{"name": "t"}], beside=["log"])
    text = json.dumps({"version": "5.3.0"} | told.to_json())
    (tmp_path / "settings.json").write_text(text, "utf-8")

    assert settings_beside(root) == told


def test_the_text_of_a_manifest_is_json_with_a_message_a_line() -> None:
    messages = [{"queue_offset": 0}, {"queue_offset": 1}]
    queue = {"topic": "t", "queue_id": 0, "gaps": [], "messages": messages}
    manifest: Row = {"version": "5.3.0", "said": ["1"], "queues": [queue, queue]}

    text = manifest_text(manifest)

    assert json.loads(text) == manifest
    assert '\n   {"queue_offset": 1}\n' in text


@pytest.mark.slow
@pytest.mark.rocketmq
def test_a_manifest_tells_all_that_rocketmq_serves_and_keeps_the_directory(
    golden_store: GoldenStore, brokers: Brokers
) -> None:
    root, rows = golden_store("rolled-clean")
    settings = Settings(GOLDEN)
    before = contents(root, settings)

    manifest = Server("5.3.0", brokers).serve_all(root, settings)

    assert contents(root, settings) == before
    assert (manifest["version"], manifest["outcome"]) == ("5.3.0", "served")
    places = {
        (queue["topic"], queue["queue_id"], one["queue_offset"]): one
        for queue in manifest["queues"]
        for one in queue["messages"]
    }
    assert len(places) == len(rows)
    for row in rows:
        one = places[row["topic"], row["queue_id"], row["queue_offset"]]
        assert (one["phy_offset"], one["size"]) == (row["phy_offset"], row["size"])
        assert (one["keys"], one["tags"]) == (row["keys"], row["tags"])
        assert one["looked_up"]
        assert one.get("found_by_key", row["keys"] is None)
    first = places[rows[0]["topic"], rows[0]["queue_id"], 0]
    assert first["body_crc"] == zlib.crc32(b"")


@pytest.mark.slow
@pytest.mark.rocketmq
def test_a_manifest_tells_of_a_start_that_is_refused(
    golden_store: GoldenStore, brokers: Brokers
) -> None:
    root, _ = golden_store("rolled-clean")
    server = Server("5.3.0", brokers)

    wrong = GOLDEN | {"mappedFileSizeCommitLog": "32768"}
    manifest = server.serve_all(root, Settings(wrong))
    again = server.serve_all(root, Settings(GOLDEN))

    assert (manifest["outcome"], manifest["queues"]) == ("refused", [])
    assert manifest["why"] == "DefaultMessageStore.load refused"
    assert any("length not matched" in line for line in manifest["said"])
    assert again["outcome"] == "served"


@pytest.mark.slow
@pytest.mark.rocketmq
def test_a_setting_that_a_version_does_not_have_is_refused(
    brokers: Brokers, tmp_path: Path
) -> None:
    broker = brokers.of("5.3.0")

    broker.take(tmp_path / "store", Settings({"noSuchSetting": "1"}))

    with pytest.raises(BrokerEnded, match="this version has no setting noSuchSetting"):
        broker.open()
    brokers.drop("5.3.0")
