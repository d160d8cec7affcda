"""Our store on directories that Apache RocketMQ wrote, and RocketMQ on ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_kinds import Reader, all_served, by_place, put_more, started

from crashmq.engine.store.config import StoreConfig

GoldenStore = Callable[[str], tuple[Path, list[dict[str, Any]]]]
NAMES = ["clean", "killed", "killed-sync"]
CONFIG = StoreConfig(
    mapped_file_size_commit_log=65_536, mapped_file_size_consume_queue=6_000
)
DERIVED = ("commitlog/", "consumequeue/")
OURS = {"abort", "checkpoint", "lock"}


def other_files(root: Path) -> dict[str, bytes]:
    """What in a directory is neither a log, nor a queue, nor ours to write."""
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    named = {path.relative_to(root).as_posix(): path for path in paths}
    return {
        name: path.read_bytes()
        for name, path in named.items()
        if not name.startswith(DERIVED) and name not in OURS
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_message_of_rocketmq_is_served(
    golden_store: GoldenStore, name: str
) -> None:
    root, rows = golden_store(name)

    store = started(root, CONFIG)

    assert store.last_exit_ok is (name == "clean")
    assert all_served(store, rows) == by_place(rows)
    assert store.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_store_of_rocketmq_goes_on_as_ours(
    golden_store: GoldenStore, name: str
) -> None:
    root, rows = golden_store(name)
    others = other_files(root)
    store = started(root, CONFIG)

    rows += put_more(store, "ipv6", 0, 50)
    assert store.shutdown()

    again = started(root, CONFIG)
    assert again.last_exit_ok
    assert all_served(again, rows) == by_place(rows)
    assert again.shutdown()
    assert other_files(root) == others


def test_a_clean_store_of_rocketmq_keeps_every_record_and_unit(
    golden_store: GoldenStore,
) -> None:
    root, _ = golden_store("clean")
    before = {path: path.read_bytes() for path in root.rglob("0*") if path.is_file()}

    assert started(root, CONFIG).shutdown()

    assert len(before) > 10
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.parametrize("ends", ["shut down", "copied while it runs"])
def test_rocketmq_serves_every_message_of_our_store(
    rocketmq: Reader, tmp_path: Path, ends: str
) -> None:
    store = started(tmp_path, CONFIG)
    rows = put_more(store, "ipv6", 0, 1200)
    if ends == "shut down":
        assert store.shutdown()

    told = rocketmq(tmp_path)

    store.shutdown()
    assert told == by_place(rows)


@pytest.mark.slow
@pytest.mark.rocketmq
def test_rocketmq_serves_its_own_store_after_ours_went_on_with_it(
    rocketmq: Reader, golden_store: GoldenStore
) -> None:
    root, rows = golden_store("killed")
    store = started(root, CONFIG)
    rows += put_more(store, "ipv6", 0, 50)
    assert store.shutdown()

    assert rocketmq(root) == by_place(rows)
