"""Runs the shards of a soak in processes of this machine, without Spark.

A child does one shard and commits it as a Spark executor would, so a run that was begun
there can be continued here. If a child dies, another one gets its shard and runs it
with care (``reports.careful``). A shard that still cannot be done ends the run.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from crashmq.harness.searches.side_by_side import Lost, Over, SideBySide, Tell
from crashmq.reports.careful import deaths_in, notes_of
from crashmq.reports.errors import ReportError, ShardLost
from crashmq.reports.files import changing
from crashmq.reports.masters import ATTEMPTS
from crashmq.reports.places import Place, Remote
from crashmq.reports.records import Shard
from crashmq.reports.run_dir import (
    EPISODES_DIR,
    MANIFESTS_DIR,
    Wanted,
    latest_session,
    missing,
)
from crashmq.reports.shards import RunProgress, ShardResult, hand_over, write_shard
from crashmq.reports.task import Task

_SHARD_TIMEOUT_S = 3_600.0  # of the child's own work; its episodes have their own limit
_POLL_S = 0.5


def run_here(
    task: Task,
    out: Place,
    wanted: Wanted,
    progress: Callable[[RunProgress], None],
    *,
    workers: int | None = None,
) -> None:
    """Run the missing shards of what is wanted of a run, and commit them in ``out``.

    ``progress`` is called every half second, and once at the end.

    Args:
        task: what is run.
        out: the run's directory, begun already.
        wanted: how much of the run.
        progress: is given the progress.
        workers: how many processes at a time; None for one per core.

    Raises:
        CannotWrite: the directory cannot be written, for example on a full disk.
        ShardLost: a shard could not be done, however often it was begun.
    """
    workers = workers or os.cpu_count() or 1
    began, done, violated = time.monotonic(), 0, 0
    waiting = missing(out, wanted.episodes, wanted.part)
    died = Counter[Shard]()
    session = latest_session(out)

    def work(shard: Shard, tell: Tell) -> None:
        try:
            again = died[shard] > 0
            tell(write_shard(task, shard, place, again=again, session=session))
        except ReportError as error:
            tell(error)

    def elapsed_s() -> float:
        return time.monotonic() - began

    # Whoever has asked an object store cannot be forked and ask it as well.
    with (
        _staged(out) as place,
        SideBySide(work, workers, _SHARD_TIMEOUT_S) as side,
    ):
        side.add(islice(waiting, workers))
        while not side.is_idle:
            for shard, what in side.messages(until=time.monotonic() + _POLL_S):
                match what:
                    case ShardResult():
                        if isinstance(out, Remote):
                            hand_over(place, shard, out)
                        done += what.episodes
                        violated += what.violated
                    case Over(how=""):
                        side.add(islice(waiting, _is_time(wanted.time_s, elapsed_s())))
                    case Over(how=how):
                        died[shard] += 1
                        noted = deaths_in(notes_of(place, shard), session)
                        if died[shard] - sum(noted.values()) >= ATTEMPTS:
                            raise _given_up(shard, how, died[shard])
                        side.add([shard])
                    case ReportError():
                        raise what
                    case Lost(detail=detail):
                        raise RuntimeError(detail)
            progress(RunProgress(done, violated, elapsed_s()))


@contextmanager
def _staged(out: Place) -> Iterator[Path]:
    """The directory in which children commit their shards.

    The run's own; for a run in an object store, a temporary one beside it.
    """
    if isinstance(out, Path):
        yield out
        return
    with ExitStack() as stack:
        with changing(Path(gettempdir())):
            name = stack.enter_context(TemporaryDirectory(prefix="crashmq-"))
            for kind in (EPISODES_DIR, MANIFESTS_DIR):
                Path(name, kind).mkdir()
        yield Path(name)


def _is_time(time_s: float | None, elapsed_s: float) -> bool:
    return time_s is None or elapsed_s < time_s


def _given_up(shard: Shard, how: str, died: int) -> ShardLost:
    return ShardLost(
        f"{died} processes that were to run the episodes {shard.first_episode} to "
        f"{shard.end - 1} died, the last by {how}: make sure that there is memory for "
        "--workers, and run the same command again to continue."
    )
