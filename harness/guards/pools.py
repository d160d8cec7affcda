"""Pools: worker processes that do one task after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from crashmq.harness.guards.interrupts import (
    held_back,
    left_to_parent,
    new_interpreters,
)

Task = TypeVar("Task")
Row = TypeVar("Row")


def mapped(
    workers: int, work: Callable[[Task], Row], tasks: Sequence[Task]
) -> Iterator[Row]:
    """Yield the row of each task as it ends, in any order; in order without workers.

    Workers are new interpreters. With one worker, or one task, the work is done here.
    """
    if workers == 1 or len(tasks) <= 1:
        yield from map(work, tasks)
        return
    context = new_interpreters()
    with held_back():
        pool = context.Pool(min(workers, len(tasks)), left_to_parent)
    with pool:
        yield from pool.imap_unordered(work, tasks)
