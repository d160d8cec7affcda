"""A soak whose drivers, workers and executors are killed: does it come to the same?

Run by hand: ``python benchmarks/killed_soaks.py [--episodes N] [--drivers N]
[--workers N] [--executors N] [--seed N] [--onto-s3] [--at DIR]``. One run is left
alone. Another is killed at random moments by SIGKILL, and begun again with the same
command: its drivers, on processes of this machine and on Spark in turn; Python workers
of either; executors on a standalone cluster. With ``--onto-s3`` that run lies in an
S3-compatible store on this machine. With ``--at`` the runs are kept, ``alone`` for the
next time too; ``killed`` must not be there. The store that they judge answers its first
puts wrong: its episodes are short, so many kills meet a shard that is being written or
committed. It prints how it went, and complains (exit code 1) if sums, digest or
findings of the two differ.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".ci" / "checkout"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "reports"))

import psutil
from object_store import SIGNED, address_of, object_store
from standalone_cluster import standalone_cluster

from crashmq.reports.aggregates import LocalAggregates
from crashmq.reports.places import Place, listed, place_of
from crashmq.reports.run_dir import MANIFESTS_DIR

SOAK = ("soak", "process_kill", "--subject", "misplaced:Misplaced", "--seed", "7")
LOCAL = ("--local", "--workers", "2")
SPARK = ("--workers", "2")
GIVEN_UP_S = 1200.0
ROOT = Path(__file__).resolve().parents[1]
IMPORTED_FROM = (
    str(ROOT / ".ci" / "checkout"),
    str(ROOT / "benchmarks"),
    str(ROOT / "tests" / "harness"),
)


def committed_in(out: Place) -> int:
    return len(listed(out / MANIFESTS_DIR, "[!.]*.parquet"))


def comes_to(out: Place) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """All that a report is made of, but for timings."""
    found = LocalAggregates(out)
    sums: dict[str, Any] = dict(found.sums())
    sums["scenarios"] = [replace(each, elapsed_us=0) for each in sums["scenarios"]]
    findings = {one.signature: one for one in found.findings()}
    return sums, found.digest(), findings


def children_here(driver: psutil.Process) -> list[psutil.Process]:
    """The processes that have a shard each; not theirs, whose death is a row."""
    return driver.children()


def workers_of_spark(driver: psutil.Process) -> list[psutil.Process]:
    """Children of the daemon; not theirs, which look alike and whose death is a row."""
    return [
        each
        for daemon in driver.children(recursive=True)
        if is_daemon(daemon) and not is_daemon(daemon.parent())
        for each in children_of(daemon)
    ]


def is_daemon(process: psutil.Process | None) -> bool:
    return process is not None and "pyspark.daemon" in " ".join(cmdline_of(process))


def children_of(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children()
    except psutil.Error:
        return []


def executors(_: psutil.Process) -> list[psutil.Process]:
    """Of our cluster, whose workers are processes that we have started."""
    return [
        each
        for each in psutil.Process().children(recursive=True)
        if "CoarseGrainedExecutorBackend" in " ".join(cmdline_of(each))
    ]


def cmdline_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class Killer:
    """Kills what belongs to a soak, again and again."""

    def __init__(
        self, out: Place, said: Path, episodes: int, draw: random.Random
    ) -> None:
        """Start nothing yet; what the drivers say is appended to the file ``said``."""
        self.command = [sys.executable, "-m", "crashmq.harness.cli", *SOAK]
        self.command += ["--episodes", str(episodes), "--out", str(out)]
        self.out = out
        self.said = said
        self.draw = draw
        self.kills: Counter[str] = Counter()
        self.codes: Counter[int] = Counter()

    def drivers(self, how: tuple[str, ...], what: str) -> bool:
        """Begin a driver and kill it; False if it came to its end before."""
        with self._driver(how) as driver:
            if not self._amid(driver):
                return False
            driver.kill()
            self.kills[f"drivers {what}"] += 1
            return True

    def others(
        self,
        how: tuple[str, ...],
        what: str,
        times: int,
        find: Callable[[psutil.Process], list[psutil.Process]],
    ) -> None:
        """Kill so many of what belongs to a driver that goes on, then the driver."""
        while times:
            with self._driver(how) as driver:
                while times and self._amid(driver):
                    with_it = find(psutil.Process(driver.pid))
                    if with_it:
                        self.draw.choice(with_it).send_signal(signal.SIGKILL)
                        self.kills[what] += 1
                        times -= 1
                if driver.poll() is not None:
                    return
                driver.kill()

    def to_its_end(self) -> None:
        with self._driver(LOCAL) as driver:
            driver.wait()

    @contextmanager
    def _driver(self, how: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
        with self.said.open("ab") as said:
            driver = subprocess.Popen([*self.command, *how], stdout=said, stderr=said)
            try:
                yield driver
            except BaseException:
                driver.kill()
                raise
            finally:
                self.codes[driver.wait(GIVEN_UP_S)] += 1

    def _amid(self, driver: subprocess.Popen[bytes]) -> bool:
        """Wait until some moment after a shard, or any moment; False if it ended."""
        there, began = committed_in(self.out), time.monotonic()
        anywhere = self.draw.random() < 0.2
        while not anywhere and committed_in(self.out) == there:
            if driver.poll() is not None:
                return False
            if time.monotonic() - began > GIVEN_UP_S:
                raise TimeoutError("no shard is committed")
            time.sleep(0.05)
        until = time.monotonic() + self.draw.uniform(0, 3)
        while time.monotonic() < until:
            if driver.poll() is not None:
                return False
            time.sleep(0.02)
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("episodes", 10_000), ("drivers", 20), ("workers", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--executors", type=int, default=5)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--onto-s3", action="store_true")
    parser.add_argument("--at", type=Path)
    typed = parser.parse_args()
    began = time.monotonic()
    os.environ["PYTHONPATH"] = os.pathsep.join(IMPORTED_FROM)
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kept = (typed.at or place).absolute()
        out: Place = kept / "killed"
        if typed.onto_s3:
            os.environ.update(SIGNED)
            at = stack.enter_context(object_store())
            out = place_of(address_of(at, "killed"))
        draw = random.Random(typed.seed)
        said = place / "said"
        killer = Killer(out, said, typed.episodes, draw)
        if typed.executors:
            with standalone_cluster(place / "cluster") as master:
                there = ("--master", master)
                killer.others(there, "executors", typed.executors, executors)
        for number in range(typed.drivers):
            on_spark = number % 4 == 3
            what = "on Spark" if on_spark else "here"
            if not killer.drivers(SPARK if on_spark else LOCAL, what):
                break
        half = typed.workers // 2
        killer.others(LOCAL, "workers here", typed.workers - half, children_here)
        killer.others(SPARK, "workers of Spark", half, workers_of_spark)
        before_the_end = committed_in(killer.out)
        killer.to_its_end()
        if set(killer.codes) - {0, 1, -signal.SIGKILL}:
            print(said.read_text("utf-8", "replace")[-2000:])
        print(f"{dict(killer.kills)}; exit codes {dict(killer.codes)}", flush=True)
        print(
            f"{before_the_end} of {committed_in(killer.out)} shards before the last "
            f"session; {time.monotonic() - began:.0f} s",
            flush=True,
        )
        alone = Killer(kept / "alone", said, typed.episodes, draw)
        alone.to_its_end()
        came_to = comes_to(killer.out), comes_to(alone.out)
        same = came_to[0] == came_to[1]
        for *_, findings in () if same else came_to:
            print({name: one.episodes for name, one in findings.items()}, flush=True)
    print(
        f"{time.monotonic() - began:.0f} s; the two are {'' if same else 'NOT '}equal"
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
