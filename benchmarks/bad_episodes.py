"""One soak in which episodes hang, eat memory, leave and fork: does each cost a row?

Run by hand: ``python benchmarks/bad_episodes.py [--episodes N] [--hang N] [--eat N]
[--leave N] [--fork N] [--spark]``. The bad ones are spread over the run. It prints how
the run went, and complains (exit code 1) if an episode has no row or two, another
outcome than its own, or left a process behind.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".ci" / "checkout"))

import pyarrow.parquet as pq

from crashmq.harness.commands.reporting import write_report
from crashmq.harness.searches.declaring import declared
from crashmq.harness.searches.shards_here import run_here
from crashmq.harness.searches.soak import SoakTask
from crashmq.reports.aggregates import LocalAggregates, row_files
from crashmq.reports.records import EpisodeRecord
from crashmq.reports.run_dir import (
    DONE,
    Session,
    Wanted,
    begin_run,
    new_session,
    write_session,
)

SCENARIOS = ("clean_restart", "power_loss")
OUTCOMES = {
    "hang": {"timeout"},
    "eat": {"unknown", "timeout"},  # of a MemoryError; where memory is slow, sooner
    "leave": {"exit:3"},
    "fork": {"passed"},
}


@dataclass(frozen=True, slots=True)
class BadTask(SoakTask):
    """A soak some of whose episodes are bad; ``bad`` says how many of each kind."""

    bad: tuple[tuple[str, int], ...] = ()
    spread_over: int = 1
    marker: str = ""

    def badness_of(self, number: int) -> str:
        """What an episode does instead; "" for nothing."""
        kinds = [kind for kind, times in self.bad for _ in range(times)]
        every = self.spread_over // max(1, len(kinds))
        if kinds and number % every == 0 and number // every < len(kinds):
            # One after another, by a step that meets all: so kinds are mixed.
            return kinds[number // every * 7919 % len(kinds)]
        return ""

    def run_episode(self, number: int) -> EpisodeRecord:
        match self.badness_of(number):
            case "hang":
                while True:
                    pass
            case "eat":
                eaten = []
                while True:
                    eaten.append(bytearray(64 * 1024 * 1024))
            case "leave":
                os._exit(3)
            case "fork":
                if os.fork() == 0 and number % 2:
                    signal.pause()  # the others come back from here as copies
        return super(BadTask, self).run_episode(number)


def left_behind() -> list[int]:
    """Copies of this process that live on."""
    found, ours = [], Path("/proc/self/cmdline").read_bytes()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if (entry / "cmdline").read_bytes() == ours:
                    found.append(int(entry.name))
    return found


def run_with_spark(task: SoakTask, out: Path, episodes: int, workers: int) -> None:
    from pyspark import cloudpickle

    from crashmq.reports.run_store import run_on_spark
    from crashmq.reports.spark import open_session

    register: Any = cloudpickle.register_pickle_by_value  # not annotated
    register(sys.modules[__name__])
    session = open_session(f"local[{workers},4]", out)
    try:
        run_on_spark(session, task, out, Wanted(episodes), lambda _: None)
    finally:
        session.stop()


def complaints_of(task: BadTask, out: Path, episodes: int) -> list[str]:
    rows = [
        row
        for path in row_files(out)
        for row in pq.read_table(path, columns=["episode_id", "outcome"]).to_pylist()
    ]
    complaints = []
    if sorted(row["episode_id"] for row in rows) != list(range(episodes)):
        complaints.append(f"{len(rows)} rows of {episodes} episodes, or some twice")
    for row in rows:
        badness = task.badness_of(row["episode_id"])
        wanted = OUTCOMES[badness] if badness else {"passed"}
        if row["outcome"] not in wanted:
            what = badness or "well"
            complaints.append(f"{row['episode_id']} ({what}) is {row['outcome']}")
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("hang", 200), ("eat", 20), ("leave", 20), ("fork", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--episodes", type=int, default=3_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=0.5)
    parser.add_argument("--spark", action="store_true")
    typed = parser.parse_args()
    bad = tuple((kind, getattr(typed, kind)) for kind in OUTCOMES)
    began = time.time()
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "run"
        task = BadTask(
            "bad",
            SCENARIOS,
            7,
            "",
            "code",
            typed.timeout,
            bad=bad,
            spread_over=typed.episodes,
        )
        begin_run(out, "bad", task.definition, typed.episodes, declared(SCENARIOS))
        if typed.spark:
            run_with_spark(task, out, typed.episodes, typed.workers)
        else:
            wanted = Wanted(typed.episodes)
            run_here(task, out, wanted, lambda _: None, workers=typed.workers)
        seconds = time.time() - began
        session = Session("2026-11-24T00:00:00+00:00", "here", "-", DONE, seconds)
        write_session(new_session(out), session)
        summary, _ = write_report(LocalAggregates(out), out)
        complaints = complaints_of(task, out, typed.episodes)
        totals = LocalAggregates(out).sums()["scenarios"]
    time.sleep(0.5)
    complaints += [f"process {pid} lives on" for pid in left_behind()]
    if summary.exit_code != 1:
        complaints.append(f"exit code {summary.exit_code}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    met = Counter(
        {found.signature: found.episodes for found in summary.unjudged_failures}
    )
    print(summary.verdict)
    print(f"{sum(each.episodes for each in totals)} rows; {dict(met)}")
    worked = used.ru_utime + used.ru_stime
    print(f"{seconds:.1f} s, {worked:.1f} s of work, at most {used.ru_maxrss} KiB each")
    for told in complaints[:20]:
        print(f"complaint: {told}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
