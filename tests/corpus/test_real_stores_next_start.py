"""What ``fsck`` foretells of our engine's next start, and what that start does.

Each directory of the corpus as it is, and with one damage of an operator's life.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from corpus_store import TESTED, Real, real_store
from our_answers import LATER_MS, all_of, newest_ms
from our_stores import config_of, started
from rocketmq import contents

from crashmq.engine.store.errors import StoreCorrupted, StoreForeign
from crashmq.harness.fsck.counts import Counts
from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.recognise import ForeignLayout

PAGE = 4096
CUT = 500


def zero_a_page(real: Real) -> None:
    """Zeros in the middle of the middle file of the log."""
    paths = log_paths(real)
    for path in paths[len(paths) // 2 :: -1][:1]:
        at = written(path) // 2 // PAGE * PAGE
        zero(path, at, at + PAGE)


def cut_the_tail(real: Real) -> None:
    """Zeros where the newest record ends."""
    for path in log_paths(real)[-1:]:
        zero(path, max(0, written(path) - CUT), written(path))


def remove_a_topic(real: Real) -> None:
    for folder in sorted(real.root.glob("consumequeue/*/"))[:1]:
        shutil.rmtree(folder)


def turn_abort(real: Real) -> None:
    """As if it had been killed, or ended in order."""
    path = real.root / "abort"
    path.unlink() if path.exists() else path.write_bytes(b"")


def remove_checkpoint(real: Real) -> None:
    (real.root / "checkpoint").unlink(missing_ok=True)


DAMAGES: tuple[Callable[[Real], None], ...] = (
    *(zero_a_page, cut_the_tail, remove_a_topic, turn_abort, remove_checkpoint),
)
# Every damage meets every version and many features; all pairs take a minute.
DAMAGED = [(name, DAMAGES[number % len(DAMAGES)]) for number, name in enumerate(TESTED)]


def log_paths(real: Real) -> list[Path]:
    return sorted(real.root.glob("commitlog/" + "[0-9]" * 20))


def written(path: Path) -> int:
    return len(path.read_bytes().rstrip(b"\0"))


def zero(path: Path, first: int, end: int) -> None:
    data = bytearray(path.read_bytes())
    data[first:end] = bytes(len(data[first:end]))
    path.write_bytes(data)


class Start(NamedTuple):
    """Messages served by queue; None if the start refused, and why it did."""

    served: dict[tuple[str, int], int] | None
    refused: StoreCorrupted | None = None


def started_in(real: Real, counts: Counts | None) -> tuple[Start, set[str]]:
    """How it went, and which files that were there a refused start changed."""
    before = contents(real.root, real.settings)
    try:
        store = started(real.root, config_of(real.settings), newest_ms(real) + LATER_MS)
    except StoreCorrupted as refused:
        after = contents(real.root, real.settings)
        kept = {path for path in before if before[path] == after.get(path)}
        return Start(None, refused), set(before) - kept
    assert store.losses.where is None
    keys = [(one.topic, one.queue_id) for one in counts.queues] if counts else []
    served = {key: len([*all_of(store, *key)]) for key in keys}
    assert store.shutdown()
    return Start(served), set()


def check_agreement(real: Real) -> None:
    """A start that is not refused serves what is whole, but for what it loses."""
    try:
        counts = fsck(real.root).counts
    except ForeignLayout:
        start, changed = started_in(real, None)
        assert isinstance(start.refused, StoreForeign)
        assert changed <= {"store/lock"}
        return
    listed = {path.name for path in real.root.glob("consumequeue/*/")}
    start, changed = started_in(real, counts)
    assert changed <= {"store/lock"}
    if counts.is_ours:
        assert (start.served is None) == counts.crashmq_refuses, start.refused
    else:
        # It loses nothing: where it would, it refuses.
        assert counts.lost_by_crashmq == 0
        assert not counts.crashmq_refuses
        words = real.feature.refused_as or "not by a mark of ours"
        is_foreign = start.refused is None or isinstance(start.refused, StoreForeign)
        assert is_foreign or words in str(start.refused)
    if start.served is None:
        return
    for one in counts.queues:
        left = one.whole - one.lost_by_crashmq
        seen = start.served[one.topic, one.queue_id]
        # RocketMQ replays some of a topic without a folder; ours reads all of the log.
        is_replayed = one.topic not in listed and seen > left
        place = (one.topic, one.queue_id)
        assert (place, seen) == (place, left) or is_replayed


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTED)
def test_a_start_of_ours_loses_what_fsck_says(name: str, tmp_path: Path) -> None:
    check_agreement(real_store(name, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "damage"), DAMAGED)
def test_a_start_of_ours_loses_what_fsck_says_of_a_damaged_store(
    name: str, damage: Callable[[Real], None], tmp_path: Path
) -> None:
    real = real_store(name, tmp_path)
    damage(real)

    check_agreement(real)
