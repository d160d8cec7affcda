"""Round trips with RocketMQ 5.3.0 of every kind of record, clean and killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_kinds import (
    Reader,
    all_served,
    by_place,
    config_for,
    put_more,
    settings_of,
    started,
)

from crashmq.harness.fsck.fsck import fsck

GoldenStore = Callable[[str], tuple[Path, list[dict[str, Any]]]]

KINDS = ("rolled", "batch", "lmq", "ipv6", "crc", "expired", "blanked")
ENDS = ("clean", "killed")
NAMES = [f"{kind}-{end}" for kind in KINDS for end in ENDS]
OURS = {"log_file_size": 16_384, "queue_file_size": 400, "messages": 240}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_message_of_a_rocketmq_store_is_served(
    golden_store: GoldenStore, name: str
) -> None:
    root, rows = golden_store(name)

    store = started(root, config_for(settings_of(root)))

    assert all_served(store, rows) == by_place(rows)
    assert store.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_rocketmq_store_goes_on_as_ours(golden_store: GoldenStore, name: str) -> None:
    root, rows = golden_store(name)
    settings = settings_of(root)
    config = config_for(settings)
    store = started(root, config)

    rows += put_more(store, settings["kind"], settings["messages"], 60)
    assert all_served(store, rows) == by_place(rows)
    assert store.shutdown()

    again = started(root, config)
    assert again.last_exit_ok
    assert all_served(again, rows) == by_place(rows)
    assert again.shutdown()
    assert fsck(root).violations == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_rocketmq_store_breaks_no_law(golden_store: GoldenStore, name: str) -> None:
    root, _ = golden_store(name)

    assert fsck(root).violations == ()


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("kind", ["plain", "batch", "lmq", "ipv6", "crc"])
def test_rocketmq_serves_what_our_store_wrote(
    rocketmq: Reader, tmp_path: Path, kind: str, ends: str
) -> None:
    settings = OURS | {"kind": kind}
    store = started(tmp_path, config_for(settings))
    rows = put_more(store, kind, 0, 240)
    if ends == "clean":
        assert store.shutdown()

    told = rocketmq(tmp_path, settings)

    store.shutdown()
    assert told == by_place(rows)


@pytest.mark.slow
@pytest.mark.rocketmq
def test_rocketmq_finds_by_key_what_our_index_files_list(
    rocketmq: Reader, tmp_path: Path
) -> None:
    settings = OURS | {"kind": "plain"}
    store = started(tmp_path, config_for(settings))
    rows = put_more(store, "plain", 0, 1200)
    assert store.shutdown()

    told = rocketmq(tmp_path, settings, "--queries", "on")

    keyed = [row for row in told if "indexed" in row]
    assert len(keyed) == len(rows) * 4 // 5
    assert all(row["indexed"] for row in keyed)


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.parametrize("name", NAMES)
def test_rocketmq_goes_on_with_its_own_store_after_ours_did(
    rocketmq: Reader, golden_store: GoldenStore, name: str
) -> None:
    root, rows = golden_store(name)
    settings = settings_of(root)
    store = started(root, config_for(settings))
    rows += put_more(store, settings["kind"], settings["messages"], 60)
    if name.endswith("clean"):
        assert store.shutdown()

    told = rocketmq(root, settings)

    store.shutdown()
    assert told == by_place(rows)
