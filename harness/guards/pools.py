"""Pools: worker processes that do one task after the other."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from typing import Protocol, TypeVar

from crashmq.harness.guards.interrupts import (
    held_back,
    left_to_parent,
    new_interpreters,
)

Task = TypeVar("Task")
Row = TypeVar("Row")

WAITING_A_WORKER = 2
PATIENT_S = 1.0  # after an interrupt, for what workers have found by then


class Stop(Protocol):
    """A number in memory shared with the workers; nonzero tells them to stop."""

    value: int


_stop: list[Stop] = []  # in a worker, its parent's


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


def worked_off(
    workers: int,
    work: Callable[[Task, float], Row],
    tasks: Iterator[Task],
    deadline: float,
) -> Iterator[Row]:
    """Yield the row of each task as it ends, in any order; none begins too late.

    With one worker the work is done here, in order. Only tasks that are begun are taken
    from ``tasks``. At Ctrl-C the running tasks are told to stop, see ``is_stopped``;
    the rows that arrive soon are yielded, and then KeyboardInterrupt is raised.

    Args:
        workers: how many processes; each is a new interpreter.
        work: does a task until the deadline, which is its second argument.
        tasks: what to do; endless, maybe.
        deadline: when time is over, by ``time.monotonic``.
    """
    if workers == 1:
        while time.monotonic() < deadline:
            task = next(tasks, None)
            if task is None:
                return
            yield work(task, deadline)
        return
    context = new_interpreters()
    stop = context.RawValue("b", 0)
    with ProcessPoolExecutor(workers, context, _be_a_worker, (stop,)) as pool:
        waiting: set[Future[Row]] = set()
        try:
            while time.monotonic() < deadline:
                for task in islice(tasks, workers * WAITING_A_WORKER - len(waiting)):
                    with held_back():  # it may start a worker
                        waiting.add(pool.submit(work, task, deadline))
                if not waiting:
                    return
                done = wait(waiting, return_when=FIRST_COMPLETED).done
                waiting -= done
                yield from (each.result() for each in done)
            yield from (each.result() for each in waiting)
        except KeyboardInterrupt:
            stop.value = 1
            # Python 3.11 prints a traceback if a pool ends with cancelled tasks in it.
            begun = [each for each in waiting if each.running() or each.done()]
            done = wait(begun, timeout=PATIENT_S).done
            yield from (each.result() for each in done)
            for child in multiprocessing.active_children():
                child.kill()  # it has found nothing yet: it is still being started
            raise
        finally:
            stop.value = 1
            pool.shutdown(wait=True, cancel_futures=True)


def is_stopped() -> bool:
    """In a worker of ``worked_off``: whether its parent has told it to stop."""
    return bool(_stop) and bool(_stop[-1].value)


def _be_a_worker(stop: Stop) -> None:
    left_to_parent()
    _stop.append(stop)
