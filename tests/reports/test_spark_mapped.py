"""A store's splits that Spark's tasks read are what one process reads."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.store_files import find_files, without_index
from crashmq.harness.fsck.survey import Manner, Runner, here, survey
from crashmq.models.files.left_out import LeftOut

pytestmark = pytest.mark.spark


def manner_of(runner: Runner) -> Manner:
    return Manner(runner, small_size=0, split_size=50_000, with_index=False)


def left_out(root: Path, runner: Runner) -> LeftOut:
    found = without_index(find_files(Places(root)))
    return survey(found, lambda *_: None, manner_of(runner))


@pytest.mark.slow
@pytest.mark.parametrize("is_damaged", [False, True])
def test_tasks_say_what_one_process_says(
    is_damaged: bool, session: Any, golden_store: Any
) -> None:
    from crashmq.reports.spark import mapped

    root, _ = golden_store("clean")
    if is_damaged:
        path = root / "consumequeue/orders/1/00000000000000000000"
        path.write_bytes(path.read_bytes()[:1000].ljust(6000, b"\0"))
    tasks = partial(mapped, session)

    assert left_out(root, tasks).runs
    assert (left_out(root, tasks) == left_out(root, here)) is True
    assert fsck(root, manner=manner_of(tasks)) == fsck(root, manner=manner_of(here))
